// top_feed_events.c - requests spans and annotations, findings, restarts.
#include "cli/top_feed_internal.h"

#include "base/clock.h"
#include "cli/data_request.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

enum { RESTARTS_MAX = 1000 };
static const int64_t FINDINGS_NS = INT64_C(1800) * NS_PER_S,
                     ANNOTATIONS_NS = INT64_C(21600) * NS_PER_S;

// ---------------------------------------------------------------- spans and annotations

static const char *tags_text(const json_t *tags, struct arena *arena)
{
    struct buf text = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)tags, key, value)
        buf_printf(&text, "%s%s=%s", text.size ? " " : "", key,
                   json_string_value(value) ? json_string_value(value) : "");
    const char *copy = arena_strdup(arena, str_of(buf_cstr(&text)));
    buf_free(&text);
    return copy ? copy : "";
}

// Returns the tag that distinguishes the processes of a node.
static const char *process_of(const json_t *tags, struct arena *arena)
{
    static const char *const keys[] = {"rank", "worker", "pid"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (*data_request_text(tags, keys[i]))
            return arena_strdup(arena, str_of(data_request_text(tags, keys[i])));
    return "";
}

static int add_events(struct top_feed *f, struct top_model *m, const char *path, const char *list,
                      struct error *e)
{
    json_t *events;
    const json_t *event;
    size_t i;
    bool annotation = strcmp(list, "annotations") == 0;
    int rc = client_list(f->client, path, list, &events, NULL, e);
    if (rc)
        return rc;
    json_array_foreach(events, i, event)
    {
        if (m->event_count == TOP_EVENTS_MAX)
            break;
        struct top_event *own = &m->events[m->event_count++];
        *own = (struct top_event){
            .text = arena_strdup(&m->events_arena,
                                 str_of(data_request_text(event, annotation ? "text" : "name"))),
            .node = arena_strdup(&m->events_arena, str_of(data_request_text(event, "node"))),
            .tags = tags_text(json_object_get(event, "tags"), &m->events_arena),
            .start_ns = data_request_number(event, annotation ? "t_ns" : "start_ns"),
            .end_ns = data_request_number(event, "end_ns"),
            .annotation = annotation,
            .process = process_of(json_object_get(event, "tags"), &m->events_arena),
            .id = data_request_number(event, "id"),
            .parent = data_request_number(event, "parent")};
        if (!own->text || !own->node || !own->process)
            m->event_count--; // without memory, the event is dropped
    }
    json_decref(events);
    return 0;
}

int top_feed_ask_events(struct top_feed *f, struct top_model *m, struct error *e)
{
    char path[160];
    int64_t end = m->at_ns ? m->at_ns : m->job.last_ns, since = end - ANNOTATIONS_NS;
    arena_reset(&m->events_arena);
    m->event_count = 0;
    if (!end)
        return 0;
    since = since < 0 ? 0 : since;
    snprintf(path, sizeof path, "/sonde/v1/spans?start=%lld.%09lld&end=%lld.%09lld&limit=%d",
             (long long)(end / NS_PER_S), (long long)(end % NS_PER_S), (long long)(end / NS_PER_S),
             (long long)(end % NS_PER_S), TOP_EVENTS_MAX / 2);
    int rc = add_events(f, m, path, "spans", e);
    snprintf(path, sizeof path, "/sonde/v1/annotations?start=%lld&end=%lld.%09lld&limit=%d",
             (long long)(since / NS_PER_S), (long long)(end / NS_PER_S),
             (long long)(end % NS_PER_S), TOP_EVENTS_MAX);
    if (!rc)
        rc = add_events(f, m, path, "annotations", e);
    top_model_nest(m);
    return rc;
}

// ---------------------------------------------------------------- findings and restarts

static const char *text_in(struct arena *arena, const json_t *object, const char *key)
{
    const char *copy = arena_strdup(arena, str_of(data_request_text(object, key)));
    return copy ? copy : "";
}

// Writes "gpu 1 on n2", "rank 3 on n2", or "n2 core=4".
static const char *member_text(const json_t *tags, struct arena *arena)
{
    struct buf text = {0};
    const char *host = data_request_text(tags, "host"), *key;
    json_t *value;
    json_object_foreach((json_t *)tags, key, value) if (strcmp(key, "host") != 0 &&
                                                        strcmp(key, "uuid") != 0 &&
                                                        strcmp(key, "job") != 0)
        buf_printf(&text, "%s%s %s", text.size ? ", " : "", key,
                   json_string_value(value) ? json_string_value(value) : "");
    if (*host)
        buf_printf(&text, "%s%s", text.size ? " on " : "", host);
    const char *copy = arena_strdup(arena, str_of(buf_cstr(&text)));
    buf_free(&text);
    return copy ? copy : "";
}

static void take_findings(struct top_model *m, const json_t *findings)
{
    const json_t *one;
    size_t i;
    struct arena *arena = &m->findings_arena;
    arena_reset(arena);
    m->finding_count = m->slow_count = m->silent_count = 0;
    json_array_foreach(findings, i, one)
    {
        if (m->finding_count == TOP_FINDINGS_MAX)
            break;
        const json_t *tags = json_object_get(one, "tags");
        const char *state = data_request_text(one, "state");
        bool span = *data_request_text(one, "span") != 0, silent = strcmp(state, "silent") == 0;
        struct top_finding *f = &m->findings[m->finding_count++];
        *f = (struct top_finding){
            .member = member_text(tags, arena),
            .what = text_in(arena, one, span ? "span" : "metric"),
            .host = text_in(arena, tags, "host"),
            .gpu = text_in(arena, tags, "gpu"),
            .rank = text_in(arena, tags, "rank"),
            .against = text_in(arena, one, "against"),
            .span = span,
            .now = silent || strcmp(state, "slow") == 0,
            .silent = silent,
            .factor = silent ? INFINITY : json_number_value(json_object_get(one, "factor")),
            .since_ns = data_request_number(one, "since_ns"),
            .until_ns = data_request_number(one, "until_ns"),
            .rounds = data_request_number(one, "rounds"),
        };
        m->slow_count += f->now && !silent;
        m->silent_count += silent;
    }
}

// Requests the findings for the half hour before the displayed time. If the server cannot compare
// (an older version, or a range that takes too long), the rest of the picture stays.
int top_feed_ask_findings(struct top_feed *f, struct top_model *m, struct error *e)
{
    char path[160];
    json_t *findings;
    int64_t end = m->at_ns ? m->at_ns : m->job.last_ns,
            start = end > FINDINGS_NS ? end - FINDINGS_NS : 0;
    if (!end || end == f->findings_end_ns)
        return 0;
    snprintf(path, sizeof path, "/sonde/v1/findings?start=%lld.%09lld&end=%lld.%09lld",
             (long long)(start / NS_PER_S), (long long)(start % NS_PER_S),
             (long long)(end / NS_PER_S), (long long)(end % NS_PER_S));
    int rc = client_list(f->client, path, "findings", &findings, NULL, e);
    if (rc == -ECANCELED)
        return rc;
    f->findings_end_ns = end;
    snprintf(m->findings_trouble, sizeof m->findings_trouble, "%.200s", rc ? e->text : "");
    take_findings(m, rc ? NULL : findings);
    if (!rc)
        json_decref(findings);
    return 0;
}

// Requests the restarts. If a command may be restarted, the launcher annotates each attempt with
// its number.
int top_feed_ask_restarts(struct top_feed *f, struct top_job *job, struct error *e)
{
    char path[128];
    const json_t *event;
    json_t *events;
    size_t i;
    snprintf(path, sizeof path, "/sonde/v1/annotations?start=%lld&limit=%d",
             (long long)(f->restarts_from_ns / NS_PER_S), RESTARTS_MAX);
    int rc = client_list(f->client, path, "annotations", &events, NULL, e);
    if (rc)
        return rc;
    json_array_foreach(events, i, event)
    {
        int64_t number, t_ns = data_request_number(event, "t_ns") -
                               (int64_t)TOP_FEED_FINDINGS_EACH_S * NS_PER_S;
        const char *attempt = data_request_text(json_object_get(event, "tags"), "attempt");
        if (str_to_i64(str_of(attempt), &number) && number > job->restarts && number < INT_MAX)
            job->restarts = (int)number;
        f->restarts_from_ns = t_ns > f->restarts_from_ns ? t_ns : f->restarts_from_ns;
    }
    json_decref(events);
    return 0;
}
