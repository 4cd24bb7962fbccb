// lookup.c - /api/search/lookup: the series of a metric that have some tags.
//
// The same key several times means any of the values; "*" means any value, any key, or any metric.
// A series of several files is found once. As in OpenTSDB, a name that no file knows is an error
// and not an empty answer.
#include "ask/tsuid.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "faces/opentsdb/handlers.h"
#include "faces/opentsdb/write.h"
#include "http/json_body.h"

#include <errno.h>
#include <stdlib.h>

enum {
    LOOKUP_DEFAULT = 25,
    LOOKUP_MAX = 1000000, // with limit=0
    LOOKUP_TAGS_MAX = 64,
};

struct lookup {
    struct str metric; // empty: any
    struct store_label tags[LOOKUP_TAGS_MAX];
    size_t tag_count;
    int64_t limit; // 0: LOOKUP_MAX
};

struct found {
    struct str metric;
    const struct store_label *tags;
    size_t tag_count;
};

struct finding {
    const struct lookup *what;
    struct arena *arena;
    // The metric, then each key and value, separated by zero bytes: identifies equal series of
    // several files
    struct map seen;
    struct found *all;
    size_t count, capacity, most;
    int64_t deadline_ns;
};

static int add_tag(struct lookup *l, struct str key, struct str value, struct error *e)
{
    if (!key.size && !value.size)
        return error_set(e, -EINVAL, "a tag has to be key=value, key= or =value");
    if (l->tag_count == LOOKUP_TAGS_MAX)
        return error_set(e, -E2BIG, "more than %d tags in a lookup", LOOKUP_TAGS_MAX);
    l->tags[l->tag_count++] = (struct store_label){key, value};
    return 0;
}

// Parses "metric", "metric{k=v,k2=*}", "{k=v}".
static int parse_lookup(struct str m, struct lookup *l, struct error *e)
{
    struct str tags = m;
    l->metric = str_trim(str_cut(&tags, '{'));
    if (!tags.data)
        return 0;
    if (!str_ends(tags, STR("}")))
        return error_set(e, -EINVAL, "Missing '}' in %.*s", STR_ARG(m));
    tags.size--;
    int rc = 0;
    while (tags.data && !rc) {
        struct str value = str_trim(str_cut(&tags, ','));
        if (value.size) {
            struct str key = str_cut(&value, '=');
            rc = value.data ? add_tag(l, str_trim(key), str_trim(value), e)
                            : error_set(e, -EINVAL, "a tag has to be key=value, key= or =value");
        }
    }
    return rc;
}

static int read_lookup(struct request *r, struct lookup *l, struct error *e)
{
    struct str m;
    int rc = json_body_take(r, e);
    if (!rc)
        rc = request_count(r, "limit", LOOKUP_DEFAULT, &l->limit, e);
    if (rc)
        return rc;
    if (request_parameter(r, "m", &m) && m.size)
        return parse_lookup(m, l, e);
    // Parses the JSON form of the request.
    bool any = request_parameter(r, "metric", &l->metric);
    for (size_t i = 0; i < r->parameter_count && !rc; i++) {
        struct str value = r->parameters[i].value;
        if (!str_eq(r->parameters[i].name, STR("tag")))
            continue;
        any = true;
        struct str key = str_cut(&value, '=');
        rc = add_tag(l, key, value, e);
    }
    if (!any)
        rc = error_set(e, -EINVAL,
                       "Missing the parameter m: a metric, with tags or without: m=metric{tag=*}");
    return rc;
}

// An empty value means any, too: {host=}, {=web01}.
static bool is_any(struct str value)
{
    return !value.size || str_eq(value, STR("*"));
}

static bool key_known(const struct sources_view *view, struct str key)
{
    for (size_t i = 0; i < view->count; i++) {
        if (view->labels && str_eq(view->labels[i].key, key))
            return true;
        size_t count;
        const struct str *keys = store_label_keys(view->snapshots[i], &count);
        for (size_t k = 0; k < count; k++)
            if (str_eq(keys[k], key))
                return true;
    }
    return false;
}

static bool value_known(const struct sources_view *view, struct str value)
{
    for (size_t i = 0; i < view->count; i++) {
        if (view->labels && str_eq(view->labels[i].value, value))
            return true;
        size_t count, series;
        const struct str *keys = store_label_keys(view->snapshots[i], &count);
        for (size_t k = 0; k < count; k++) {
            store_label_series(view->snapshots[i], keys[k], value, &series);
            if (series)
                return true;
        }
    }
    return false;
}

// Whether another node knows the name.
static bool elsewhere(struct reading *d, struct str kind, struct str name)
{
    const struct str *names;
    size_t count;
    // The list is sorted, so the name itself comes first among the names that begin with it.
    return d->from->hub && reading_names(d, kind, name, false, 1, &names, &count, NULL) == 0 &&
           count && str_eq(names[0], name);
}

// Checks that some file knows every tag in the lookup; -ENOENT with OpenTSDB's message.
static int check_tags(struct reading *d, const struct lookup *l, struct error *e)
{
    for (size_t i = 0; i < l->tag_count; i++) {
        if (!is_any(l->tags[i].key) && !key_known(&d->view, l->tags[i].key) &&
            !elsewhere(d, STR("tagk"), l->tags[i].key))
            return error_set(e, -ENOENT, "No such name for 'tagk': '%.*s'",
                             STR_ARG(l->tags[i].key));
        if (!is_any(l->tags[i].value) && !value_known(&d->view, l->tags[i].value) &&
            !elsewhere(d, STR("tagv"), l->tags[i].value))
            return error_set(e, -ENOENT, "No such name for 'tagv': '%.*s'",
                             STR_ARG(l->tags[i].value));
    }
    return 0;
}

// Whether a tag of the lookup with the key of `like` accepts the value.
static bool value_taken(const struct lookup *l, const struct store_label *like, struct str value)
{
    for (size_t i = 0; i < l->tag_count; i++)
        if (str_eq(l->tags[i].key, like->key) &&
            (is_any(l->tags[i].value) || str_eq(l->tags[i].value, value)))
            return true;
    return false;
}

static bool matches(const struct lookup *l, const struct store_series_info *s)
{
    for (size_t i = 0; i < l->tag_count; i++) {
        const struct store_label *filter = &l->tags[i];
        if (is_any(filter->key)) {
            bool any = is_any(filter->value);
            for (uint32_t k = 0; k < s->label_count && !any; k++)
                any = str_eq(s->labels[k].value, filter->value);
            if (!any)
                return false;
            continue;
        }
        const struct str *value = query_labels_get(s, filter->key);
        if (!value || !value_taken(l, filter, *value))
            return false;
    }
    return true;
}

static bool is_new(struct finding *f, struct str metric, const struct store_series_info *s,
                   struct error *e, int *rc)
{
    struct buf key = {0};
    buf_add_str(&key, metric);
    for (uint32_t i = 0; i < s->label_count; i++) {
        buf_add_char(&key, 0);
        buf_add_str(&key, s->labels[i].key);
        buf_add_char(&key, 0);
        buf_add_str(&key, s->labels[i].value);
    }
    bool added = false;
    struct str kept = key.failed ? (struct str){0} : arena_str(f->arena, buf_str(&key));
    if (!kept.data || !map_add(&f->seen, kept, &added))
        *rc = error_set(e, -ENOMEM, "no memory for the lookup");
    buf_free(&key);
    return added;
}

static int keep(struct finding *f, struct str metric, const struct store_series_info *s,
                struct error *e)
{
    if (!array_room(&f->all, &f->capacity, f->count + 1, sizeof *f->all))
        return error_set(e, -ENOMEM, "no memory for the lookup");
    f->all[f->count++] = (struct found){metric, s->labels, s->label_count};
    return 0;
}

// Returns the tags that select series directly: those with one value for their key.
static size_t single_tags(const struct lookup *l, struct store_label out[LOOKUP_TAGS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < l->tag_count; i++) {
        size_t same = 0;
        for (size_t k = 0; k < l->tag_count; k++)
            same += str_eq(l->tags[k].key, l->tags[i].key);
        if (same == 1 && !is_any(l->tags[i].key))
            out[count++] = (struct store_label){
                l->tags[i].key, is_any(l->tags[i].value) ? STR("*") : l->tags[i].value};
    }
    return count;
}

// Examines series of a file. `metric` is NULL, or the only one that counts.
static int find_among(struct finding *f, const struct sources_view *view, size_t file,
                      const uint32_t *metric, const uint32_t *ids, size_t count, struct error *e)
{
    const struct store_snapshot *snapshot = view->snapshots[file];
    int rc = 0;
    for (size_t i = 0; i < count && !rc && f->count < f->most; i++) {
        struct store_series_info s;
        if ((i & 4095) == 4095 && clock_monotonic_ns() > f->deadline_ns)
            return error_set(e, -ETIMEDOUT, "the lookup took too long (limit query_deadline)");
        if (!sources_series(view, file, ids[i], f->arena, &s) || (metric && s.metric != *metric) ||
            !matches(f->what, &s))
            continue;
        struct str name = store_metric_get(snapshot, s.metric)->name;
        // A file has each series once.
        if (view->count == 1 || is_new(f, name, &s, e, &rc))
            rc = keep(f, name, &s, e);
    }
    return rc;
}

static int find_in_file(struct finding *f, const struct sources_view *view, size_t file,
                        struct error *e)
{
    const struct store_snapshot *snapshot = view->snapshots[file];
    const struct store_label *more = view->labels ? &view->labels[file] : NULL;
    struct store_label tags[LOOKUP_TAGS_MAX];
    const bool one_metric = f->what->metric.size > 0;
    uint32_t metric = 0, last = (uint32_t)store_metric_count(snapshot);
    size_t count = store_series_count(snapshot);
    const uint32_t *ids;
    if (one_metric) {
        if (!store_metric_find(snapshot, f->what->metric, &metric))
            return 0;
        last = metric + 1;
        store_metric_series(snapshot, metric, &count);
    }
    if (query_labels_narrow(snapshot, tags, single_tags(f->what, tags), more, count, &ids, &count))
        return find_among(f, view, file, one_metric ? &metric : NULL, ids, count, e);
    int rc = 0;
    for (; metric < last && !rc; metric++) {
        ids = store_metric_series(snapshot, metric, &count);
        rc = find_among(f, view, file, NULL, ids, count, e);
    }
    return rc;
}

static int find_in_files(struct finding *f, const struct sources_view *view, struct error *e)
{
    int rc = 0;
    for (size_t i = 0; i < view->count && !rc; i++)
        rc = find_in_file(f, view, i, e);
    return rc;
}

// Used if there are other nodes: searches the list of all series of the metric.
static int find_in_list(struct finding *f, struct reading *d, struct error *e)
{
    struct store_label tags[LOOKUP_TAGS_MAX];
    struct query_series_filter filter = {
        .metric = f->what->metric, .tags = tags, .from_ns = INT64_MIN};
    filter.tag_count = single_tags(f->what, tags);
    const struct query_listed *all;
    size_t count;
    int rc = reading_series(d, &filter, &all, &count, e);
    for (size_t i = 0; !rc && i < count && f->count < f->most; i++) {
        struct store_series_info s = {.labels = all[i].labels,
                                      .label_count = (uint32_t)all[i].label_count};
        if (matches(f->what, &s))
            rc = keep(f, all[i].metric->name, &s, e);
    }
    return rc;
}

static int compare_found(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    int order = str_compare(a->metric, b->metric);
    for (size_t i = 0; !order && i < a->tag_count && i < b->tag_count; i++) {
        order = str_compare(a->tags[i].key, b->tags[i].key);
        if (!order)
            order = str_compare(a->tags[i].value, b->tags[i].value);
    }
    return order ? order : (a->tag_count > b->tag_count) - (a->tag_count < b->tag_count);
}

static void write_found(struct json_writer *w, const struct found *f, struct str metric)
{
    char tsuid[TSUID_SIZE];
    tsuid_of(tsuid, metric, f->tags, f->tag_count);
    json_begin_object(w);
    json_key_string(w, "tsuid", (struct str){tsuid, sizeof tsuid});
    json_key_string(w, "metric", metric);
    json_key(w, STR("tags"));
    json_begin_object(w);
    for (size_t i = 0; i < f->tag_count; i++) {
        json_key(w, f->tags[i].key);
        json_put_string(w, f->tags[i].value);
    }
    json_end_object(w);
    json_end_object(w);
}

static void write_name(struct json_writer *w, const char *member, struct str name)
{
    json_key(w, str_of(member));
    if (name.size)
        json_put_string(w, name);
    else
        json_put_null(w);
}

// `requested_name` is the name in the request, which may be an alias of the metric that was found.
static void write_lookup(struct json_writer *w, const struct lookup *l, struct str requested_name,
                         const struct finding *f, int64_t began_ns)
{
    json_begin_object(w);
    json_key_string(w, "type", STR("LOOKUP"));
    json_key_string(w, "metric", requested_name.size ? requested_name : STR("*"));
    json_key(w, STR("tags"));
    json_begin_array(w);
    for (size_t i = 0; i < l->tag_count; i++) {
        json_begin_object(w);
        write_name(w, "key", l->tags[i].key);
        write_name(w, "value", l->tags[i].value);
        json_end_object(w);
    }
    json_end_array(w);
    json_key_i64(w, "limit", l->limit);
    json_key_double(w, "time", (double)(clock_monotonic_ns() - began_ns) / NS_PER_MS);
    json_key(w, STR("results"));
    json_begin_array(w);
    for (size_t i = 0; i < f->count; i++)
        write_found(w, &f->all[i], requested_name.size ? requested_name : f->all[i].metric);
    json_end_array(w);
    json_key_u64(w, "startIndex", 0);
    json_key_u64(w, "totalResults", f->count);
    json_end_object(w);
}

static int lookup(struct service *service, struct request *r, struct answer *a, struct error *e)
{
    struct lookup l = {0};
    int rc = read_lookup(r, &l, e);
    if (rc)
        return rc;
    if (is_any(l.metric))
        l.metric = STR("");
    struct str requested_name = l.metric;
    struct reading d;
    rc = service_read(service, r, INT64_MAX, &d, e);
    if (rc)
        return rc;
    bool has_series = !requested_name.size || reading_find_metric(&d, requested_name, &l.metric);
    struct finding f = {
        .what = &l,
        .arena = &r->arena,
        .most = l.limit && l.limit < LOOKUP_MAX ? (size_t)l.limit : LOOKUP_MAX,
        .deadline_ns = r->arrived_ns + service->limits.query_deadline_ns,
    };
    if (has_series)
        rc = check_tags(&d, &l, e);
    else if (!l.metric.size)
        rc = error_set(e, -ENOENT, "No such name for 'metrics': '%.*s'", STR_ARG(requested_name));
    if (!rc && has_series)
        rc = service->reads.hub ? find_in_list(&f, &d, e) : find_in_files(&f, &d.view, e);
    if (!rc && f.count == LOOKUP_MAX)
        rc = error_set(e, -E2BIG, "more than %d series match; give a limit or more tags",
                       LOOKUP_MAX - 1);
    if (!rc) {
        if (f.count)
            qsort(f.all, f.count, sizeof *f.all, compare_found);
        struct json_writer w = json_to(&a->body);
        write_lookup(&w, &l, requested_name, &f, r->arrived_ns);
    }
    map_free(&f.seen);
    free(f.all);
    service_read_end(&d, a);
    return rc;
}

void opentsdb_lookup(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    int rc = lookup(service, r, a, &e);
    if (rc == -ENOENT)
        answer_error(a, 404, e.text, NULL);
    else if (rc)
        answer_failure(a, &e);
}
