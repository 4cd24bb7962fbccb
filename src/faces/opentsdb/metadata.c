// metadata.c - names, aggregators, filters, versions.
#include "base/clock.h"
#include "faces/opentsdb/handlers.h"
#include "http/json_body.h"
#include "query/query.h"

#include <errno.h>
#include <stdio.h>

enum {
    SUGGEST_DEFAULT = 25, // OpenTSDB's default
    SUGGEST_MAX = 1000000,
};

// Inserts a name into the sorted list, unless it is there already. -ENOMEM.
static int insert_name(struct arena *arena, struct str name, const struct str **names,
                       size_t *count, struct error *e)
{
    size_t at = 0;
    while (at < *count && str_compare((*names)[at], name) < 0)
        at++;
    if (at < *count && str_eq((*names)[at], name))
        return 0;
    struct str *all = arena_array(arena, *count + 1, sizeof *all);
    if (!all)
        return error_set(e, -ENOMEM, "no memory for suggestions");
    if (at)
        memcpy(all, *names, at * sizeof *all);
    all[at] = name;
    if (at < *count)
        memcpy(all + at + 1, *names + at, (*count - at) * sizeof *all);
    *names = all;
    ++*count;
    return 0;
}

// Adds aliases of built-in metrics that have series. `text` is the beginning of the names, or with
// `anywhere` a part of them.
static int add_aliases(struct reading *d, struct str text, bool anywhere, size_t most,
                       const struct str **names, size_t *count, struct error *e)
{
    struct str alias, metric;
    int rc = 0;
    for (size_t i = 0; !rc && d->from->alias_at && d->from->alias_at(i, &alias, &metric); i++)
        if ((anywhere ? str_find(alias, text) >= 0 : str_starts(alias, text)) &&
            reading_metric_known(d, metric))
            rc = insert_name(d->request.arena, alias, names, count, e);
    *count = *count < most ? *count : most;
    return rc;
}

// The label that distinguishes several jobs is not in any store, so it is inserted into the sorted
// names here.
static int add_file_labels(const struct sources_view *view, struct str kind, struct str text,
                           bool anywhere, size_t most, struct arena *arena,
                           const struct str **names, size_t *count, struct error *e)
{
    bool keys = str_eq(kind, STR("tagk"));
    if (!view->labels || str_eq(kind, STR("metrics")))
        return 0;
    struct str *all = arena_array(arena, *count + view->count, sizeof *all);
    if (!all)
        return error_set(e, -ENOMEM, "no memory for suggestions");
    size_t n = *count;
    if (n)
        memcpy(all, *names, n * sizeof *all);
    for (size_t i = 0; i < view->count; i++) {
        struct str name = keys ? view->labels[i].key : view->labels[i].value;
        size_t at = 0;
        if (anywhere ? str_find(name, text) < 0 : !str_starts(name, text))
            continue;
        while (at < n && str_compare(all[at], name) < 0)
            at++;
        if (at < n && str_eq(all[at], name))
            continue;
        memmove(all + at + 1, all + at, (n - at) * sizeof *all);
        all[at] = name;
        n++;
    }
    *names = all;
    *count = n < most ? n : most;
    return 0;
}

static int suggest(struct service *service, struct request *r, struct answer *a, struct error *e)
{
    struct str kind = STR(""), text = STR("");
    int64_t most;
    int rc = json_body_take(r, e);
    if (!rc)
        rc = request_count(r, "max", SUGGEST_DEFAULT, &most, e);
    if (rc)
        return rc;
    if (!request_parameter(r, "type", &kind) || !kind.size)
        kind = STR("metrics"); // Dragon's clients request nothing else
    if (!str_eq(kind, STR("metrics")) && !str_eq(kind, STR("tagk")) && !str_eq(kind, STR("tagv")))
        return error_set(e, -EINVAL, "Invalid 'type' parameter:%.*s", STR_ARG(kind));
    request_parameter(r, "q", &text);
    if (!most)
        most = SUGGEST_DEFAULT;
    struct reading d;
    rc = service_read(service, r, INT64_MAX, &d, e);
    if (rc)
        return rc;
    const struct str *names;
    size_t count;
    size_t limit = (size_t)(most < SUGGEST_MAX ? most : SUGGEST_MAX);
    bool anywhere = service->dragon_compatible;
    rc = reading_names(&d, kind, text, anywhere, limit, &names, &count, e);
    if (!rc && str_eq(kind, STR("metrics")))
        rc = add_aliases(&d, text, anywhere, limit, &names, &count, e);
    if (!rc)
        rc = add_file_labels(&d.view, kind, text, anywhere, limit, &r->arena, &names, &count, e);
    struct json_writer w = json_to(&a->body);
    json_begin_array(&w);
    for (size_t i = 0; !rc && i < count; i++)
        json_put_string(&w, names[i]);
    json_end_array(&w);
    service_read_end(&d, a);
    return rc;
}

void opentsdb_suggest(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    if (suggest(service, r, a, &e) != 0)
        answer_failure(a, &e);
}

// ---- the engine's functions

void opentsdb_aggregators(struct service *service, struct request *r, struct answer *a)
{
    (void)service, (void)r;
    struct json_writer w = json_to(&a->body);
    json_begin_array(&w);
    for (int i = 0; i < QUERY_AGGREGATOR_COUNT; i++)
        json_put_string(&w, query_aggregator_name((enum query_aggregator)i));
    json_end_array(&w);
}

void opentsdb_filters(struct service *service, struct request *r, struct answer *a)
{
    static const struct {
        const char *name, *examples, *description;
    } filters[QUERY_FILTER_COUNT] = {
        [QUERY_LITERAL_OR] = {"literal_or", "host=literal_or(web01), host=literal_or(web01|web02)",
                              "Takes series whose tag has one of the values."},
        [QUERY_ILITERAL_OR] =
            {"iliteral_or", "host=iliteral_or(Web01|web02)",
             "Takes series whose tag has one of the values, upper and lower case being the same."},
        [QUERY_NOT_LITERAL_OR] = {"not_literal_or", "host=not_literal_or(web01|web02)",
                                  "Leaves out series whose tag has one of the values."},
        [QUERY_NOT_ILITERAL_OR] = {"not_iliteral_or", "host=not_iliteral_or(Web01|web02)",
                                   "Leaves out series whose tag has one of the values, upper and "
                                   "lower case being the same."},
        [QUERY_WILDCARD] =
            {"wildcard", "host=wildcard(*), host=wildcard(web*), host=wildcard(web*.lab)",
             "Takes series whose tag matches the pattern, in which each * stands for any text."},
        [QUERY_IWILDCARD] =
            {"iwildcard", "host=iwildcard(Web*)",
             "Takes series whose tag matches the pattern, upper and lower case being the same."},
        [QUERY_REGEXP] = {"regexp", "host=regexp(web[0-9]+)",
                          "Takes series in whose tag the extended regular expression is found."},
        [QUERY_NOT_KEY] = {"not_key", "host=not_key()",
                           "Takes series that do not have the tag at all."},
        [QUERY_EQUAL_OR_ABSENT] =
            {"equal_or_absent", "rank=equal_or_absent(3)",
             "Takes series whose tag has exactly this value, and those that do not have the tag."},
    };
    (void)service, (void)r;
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    for (int i = 0; i < QUERY_FILTER_COUNT; i++) {
        json_key(&w, str_of(filters[i].name));
        json_begin_object(&w);
        json_key_string(&w, "examples", str_of(filters[i].examples));
        json_key_string(&w, "description", str_of(filters[i].description));
        json_end_object(&w);
    }
    json_end_object(&w);
}

// Clients of OpenTSDB read this configuration before they write or query.
void opentsdb_configuration(struct service *service, struct request *r, struct answer *a)
{
    char timeout_ms[24];
    bool running = service->agent_socket.size > 0;
    snprintf(timeout_ms, sizeof timeout_ms, "%lld",
             (long long)(service->limits.query_deadline_ns / NS_PER_MS));
    const struct {
        const char *name, *value;
    } all[] = {
        {"tsd.core.auto_create_metrics", "true"}, {"tsd.core.auto_create_tagks", "true"},
        {"tsd.core.auto_create_tagvs", "true"},   {"tsd.http.query.allow_delete", "false"},
        {"tsd.mode", running ? "rw" : "ro"},      {"tsd.query.timeout", timeout_ms},
        {"tsd.storage.fix_duplicates", "true"},
    };
    (void)r;
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        json_key_string(&w, all[i].name, str_of(all[i].value));
    json_end_object(&w);
}

void opentsdb_version(struct service *service, struct request *r, struct answer *a)
{
    (void)service, (void)r;
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    // Programs check this version of OpenTSDB, whose answers ours imitate.
    json_key_string(&w, "version", STR("2.4.0"));
    json_key_string(&w, "short_revision", STR(""));
    json_key_string(&w, "full_revision", STR(""));
    json_key_string(&w, "timestamp", STR("0"));
    json_key_string(&w, "repo_status", STR(""));
    json_key_string(&w, "repo", STR("sonde"));
    json_key_string(&w, "sonde", STR(SONDE_VERSION));
    json_end_object(&w);
}
