// last.c - /api/query/last: the latest point of each series.
//
// A request selects series by a metric and some tags ("cpu{host=a}" selects every series that has
// them), or by a tsuid. With back_scan, or backScan, only points of the last so many hours count;
// 0, the default, selects the latest point of any time.
#include "ask/tsuid.h"
#include "base/clock.h"
#include "faces/opentsdb/handlers.h"
#include "faces/opentsdb/write.h"
#include "http/json_body.h"

#include <errno.h>

enum { LAST_TAGS_MAX = 64, BACK_SCAN_MAX_HOURS = 1000000 };

struct last {
    bool resolve;
    int64_t from_ns, shift_ns;
    struct json_writer w;
};

static void write_last(struct last *l, struct str metric, const struct query_listed *s)
{
    char tsuid[TSUID_SIZE], value[NUMBER_TEXT_MAX];
    tsuid_of(tsuid, metric, s->labels, s->label_count);
    json_begin_object(&l->w);
    if (l->resolve)
        json_key_string(&l->w, "metric", metric);
    json_key_i64(&l->w, "timestamp", (s->t_ns + l->shift_ns) / NS_PER_MS);
    json_key_string(&l->w, "value", (struct str){value, number_format(value, s->value)});
    if (l->resolve) {
        json_key(&l->w, STR("tags"));
        json_begin_object(&l->w);
        for (size_t i = 0; i < s->label_count; i++) {
            json_key(&l->w, s->labels[i].key);
            json_put_string(&l->w, s->labels[i].value);
        }
        json_end_object(&l->w);
    }
    json_key_string(&l->w, "tsuid", (struct str){tsuid, sizeof tsuid});
    json_end_object(&l->w);
}

static int of_series(struct reading *d, struct last *l, struct str text, struct error *e)
{
    struct store_label tags[LAST_TAGS_MAX];
    struct query_series_filter f = {.latest = true, .from_ns = l->from_ns, .tags = tags};
    int rc = series_parse(text, &f.metric, tags, LAST_TAGS_MAX, &f.tag_count, e);
    struct str requested_name = f.metric;
    if (!rc && !reading_find_metric(d, requested_name, &f.metric))
        return f.metric.size ? 0
                             : error_set(e, -ENOENT, "No such name for 'metrics': '%.*s'",
                                         STR_ARG(str_slice(requested_name, 0, 100)));
    const struct query_listed *all;
    size_t count = 0;
    if (!rc)
        rc = reading_series(d, &f, &all, &count, e);
    for (size_t i = 0; i < count && !rc; i++)
        write_last(l, requested_name, &all[i]);
    return rc;
}

// A tsuid is a hash, so finding its series means searching all of them.
static int of_tsuids(struct reading *d, struct last *l, struct str tsuids, struct error *e)
{
    struct query_series_filter f = {.latest = true, .from_ns = l->from_ns};
    const struct query_listed *all;
    size_t count = 0;
    int rc = reading_series(d, &f, &all, &count, e);
    for (size_t i = 0; i < count && !rc; i++) {
        char tsuid[TSUID_SIZE];
        tsuid_of(tsuid, all[i].metric->name, all[i].labels, all[i].label_count);
        struct str rest = tsuids;
        while (rest.data)
            if (str_eq_nocase(str_trim(str_cut(&rest, ',')), (struct str){tsuid, sizeof tsuid}))
                write_last(l, all[i].metric->name, &all[i]);
    }
    return rc;
}

static int answer_last(struct service *service, struct request *r, struct answer *a,
                       struct error *e)
{
    struct last l = {.from_ns = INT64_MIN, .shift_ns = service->shift_ns, .w = json_to(&a->body)};
    int64_t hours = 0;
    bool any = false;
    int rc = json_body_take_last(r, e);
    if (!rc)
        rc = request_count(r, "back_scan", 0, &hours, e);
    if (rc)
        return rc;
    if (hours > BACK_SCAN_MAX_HOURS)
        return error_set(e, -EINVAL, "back_scan may be %d hours", BACK_SCAN_MAX_HOURS);
    if (hours)
        l.from_ns = service_recorded_ns(service, clock_realtime_ns() - hours * 3600 * NS_PER_S);
    l.resolve = request_flag(r, "resolve");
    struct reading d;
    rc = service_read(service, r, INT64_MAX, &d, e);
    if (rc)
        return rc;
    json_begin_array(&l.w);
    for (size_t i = 0; i < r->parameter_count && !rc; i++) {
        const struct request_parameter *p = &r->parameters[i];
        bool series = str_eq(p->name, STR("timeseries")), tsuids = str_eq(p->name, STR("tsuids"));
        any |= series || tsuids;
        if (series)
            rc = of_series(&d, &l, p->value, e);
        else if (tsuids)
            rc = of_tsuids(&d, &l, p->value, e);
    }
    json_end_array(&l.w);
    service_read_end(&d, a);
    if (!rc && !any)
        rc = error_set(e, -EINVAL, "Query was missing: timeseries=metric{tag=value} or tsuids=…");
    return rc;
}

void opentsdb_last(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    if (answer_last(service, r, a, &e) != 0)
        answer_failure(a, &e);
}
