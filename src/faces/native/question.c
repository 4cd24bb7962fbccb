// question.c - the additions of /sonde/v1/query to OpenTSDB's body: the times "first" and "last",
// and job_tag.
#include "base/clock.h"
#include "faces/native/handlers.h"
#include "query/filter.h"

#include <errno.h>

enum { NATIVE_QUERIES_MAX = 256 };

// ---- times

int native_query_parse(const struct service *service, struct request *r, struct query_request *out,
                       struct error *e)
{
    *out = (struct query_request){.dragon_compatible = service->dragon_compatible,
                                  .named_times = true};
    if (!r->body.size)
        return error_set(e, -EINVAL, "Missing request content: a query as JSON");
    int rc = query_parse_json(r->body, clock_realtime_ns(), &r->arena, out, e);
    if (!rc && out->delete_requested)
        rc = error_set(e, -EINVAL,
                       "Deleting data is not enabled: recordings are never changed by a query");
    if (!rc && out->count > NATIVE_QUERIES_MAX)
        rc = error_set(e, -E2BIG, "more than %d queries in one request", NATIVE_QUERIES_MAX);
    for (size_t i = 0; i < out->count && !rc; i++) {
        if (out->queries[i].tsuids.size)
            rc = error_set(
                e, -EINVAL,
                "Queries by tsuids are answered by /api/query: name a metric and tags here");
        out->queries[i].start_ns = service_recorded_ns(service, out->queries[i].start_ns);
        out->queries[i].end_ns = service_recorded_ns(service, out->queries[i].end_ns);
    }
    return rc;
}

// An answer excludes a bucket that begins before the range (OpenTSDB's rule). So the range begins
// where its first bucket begins; for calendar intervals it begins early enough.
static int64_t first_bucket_ns(const struct query_downsample *d, int64_t first_ns)
{
    static const struct {
        char unit;
        int64_t days; // upper bound of the interval's days
    } longest[] = {{'d', 1}, {'w', 7}, {'n', 31}, {'y', 366}};
    if (!d->on || d->all || d->interval <= 0)
        return first_ns;
    if (!d->calendar) {
        int64_t before = first_ns % d->interval;
        return first_ns - (before < 0 ? before + d->interval : before);
    }
    int64_t days = 1;
    for (size_t i = 0; i < sizeof longest / sizeof longest[0]; i++)
        if (longest[i].unit == d->unit)
            days = longest[i].days;
    return first_ns - days * d->interval * 86400 * NS_PER_S;
}

// Forgets the nodes that were not connected: the query may not need them, and otherwise finds their
// absence without a delay. A late node stays in the list, because it would delay the request again.
static void forget_not_connected(struct reading *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->missing_count; i++)
        if (d->missing[i].reason != WIRE_NOT_CONNECTED)
            d->missing[n++] = d->missing[i];
    d->missing_count = n;
}

// Replaces "first" and "last" by the times of the first and the last point. If the start is after
// the last point, the end is now.
static int fill_range(const struct service *service, struct reading *d,
                      struct query_request *request, struct error *e)
{
    const struct ask_status *all;
    size_t count;
    int64_t first_ns = 0, last_ns = 0;
    bool any = false;
    int rc = reading_status(d, false, &all, &count, e);
    forget_not_connected(d);
    for (size_t i = 0; i < count && !rc; i++) {
        if (!all[i].has_points)
            continue;
        first_ns = !any || all[i].first_ns < first_ns ? all[i].first_ns : first_ns;
        last_ns = !any || all[i].last_ns > last_ns ? all[i].last_ns : last_ns;
        any = true;
    }
    for (size_t i = 0; i < request->count && !rc; i++) {
        struct query *q = &request->queries[i];
        if (request->from_first)
            q->start_ns = first_bucket_ns(&q->downsample, first_ns);
        if (request->to_last) // 0all excludes the end of its range
            q->end_ns = last_ns + (q->downsample.on && q->downsample.all);
        if (request->to_last && q->end_ns < q->start_ns)
            q->end_ns = service_recorded_ns(service, clock_realtime_ns());
        if (q->end_ns < q->start_ns)
            rc = error_set(e, -EINVAL, "The end of the time range lies before its start");
    }
    return rc;
}

// ---- the tag job

struct str native_job(const struct reading *d)
{
    if (d->from->job.size)
        return d->from->job;
    return d->view.count ? store_reader_meta(source_reader(d->view.files[0]), STR("job")) : STR("");
}

// Removes the filters on the tag job from the query. *matches: the job passes all of them.
static int strip_job(struct query *q, struct str job, struct arena *arena, bool *matches,
                     struct error *e)
{
    struct query_filter *filters = arena_array(arena, q->filter_count, sizeof *filters);
    size_t n = 0;
    int rc = filters ? 0 : error_set(e, -ENOMEM, "no memory for the query");
    *matches = true;
    for (size_t i = 0; i < q->filter_count && !rc; i++) {
        struct query_matcher m;
        if (!str_eq(q->filters[i].key, STR("job"))) {
            filters[n++] = q->filters[i];
            continue;
        }
        rc = query_matcher_init(&m, &q->filters[i], e);
        if (rc)
            break;
        *matches &= query_matcher_test(&m, job);
        query_matcher_fini(&m);
    }
    q->filters = filters;
    q->filter_count = n;
    return rc;
}

static bool has_job(const struct query_series *s)
{
    for (size_t i = 0; i < s->tag_count; i++)
        if (str_eq(s->tags[i].key, STR("job")))
            return true;
    for (size_t i = 0; i < s->aggregate_tag_count; i++)
        if (str_eq(s->aggregate_tags[i], STR("job")))
            return true;
    return false;
}

static int add_job(struct query_result *result, struct str job, struct arena *arena,
                   struct error *e)
{
    struct query_series *all = arena_array(arena, result->count, sizeof *all);
    struct str copy = arena_str(arena, job);
    if (!all || !copy.data)
        return error_set(e, -ENOMEM, "no memory for the answer");
    for (size_t i = 0; i < result->count; i++) {
        all[i] = result->series[i];
        if (has_job(&all[i]))
            continue;
        struct store_label *tags = arena_array(arena, all[i].tag_count + 1, sizeof *tags);
        size_t at = 0;
        if (!tags)
            return error_set(e, -ENOMEM, "no memory for the answer");
        while (at < all[i].tag_count && str_compare(all[i].tags[at].key, STR("job")) < 0) {
            tags[at] = all[i].tags[at];
            at++;
        }
        tags[at] = (struct store_label){STR("job"), copy};
        for (; at < all[i].tag_count; at++)
            tags[at + 1] = all[i].tags[at];
        all[i].tags = tags;
        all[i].tag_count++;
    }
    result->series = all;
    return 0;
}

// Makes the query without the filters that the files cannot apply. *matches: its job passes them.
static int plain_query(struct reading *d, const struct query_request *request, size_t i,
                       struct query *out, bool *matches, struct error *e)
{
    *out = request->queries[i];
    *matches = true;
    // If the files belong to several jobs, their series have the tag already, and can be grouped by
    // it.
    if (!request->job_tag || d->view.labels)
        return 0;
    return strip_job(out, native_job(d), d->request.arena, matches, e);
}

static void prepare(struct reading *d, const struct query_request *request)
{
    struct query *all = arena_array(d->request.arena, request->count, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; all && i < request->count; i++) {
        struct error e;
        bool matches;
        n += plain_query(d, request, i, &all[n], &matches, &e) == 0 && matches;
    }
    reading_prepare(d, all, n);
}

int native_run(struct reading *d, const struct query_request *request, size_t i,
               struct arena *arena, struct query_result *out, struct error *e)
{
    struct query q;
    bool matches;
    int rc = plain_query(d, request, i, &q, &matches, e);
    *out = (struct query_result){0};
    if (!rc && matches)
        rc = reading_run(d, q, arena, out, e);
    if (rc || !request->job_tag || d->view.labels)
        return rc;
    return add_job(out, native_job(d), arena, e);
}

// ---- opening

bool native_query_open(struct service *service, struct request *r, struct query_request *out,
                       struct reading *d, struct answer *a)
{
    struct error e = {0};
    int rc = native_query_parse(service, r, out, &e);
    if (!rc)
        rc = service_read(service, r, out->to_last ? INT64_MAX : reading_until(out), d, &e);
    if (!rc && (out->from_first || out->to_last)) {
        rc = fill_range(service, d, out, &e);
        if (rc)
            service_read_end(d, NULL);
    }
    if (rc)
        answer_failure(a, &e);
    else
        prepare(d, out);
    return rc == 0;
}
