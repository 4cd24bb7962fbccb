// peaks.c - the highest point of each group, and when it was.
//
// How high is one query, answered from the summaries of blocks (0all-max). When: the range is cut
// into PEAK_PARTS, the part that has the value is cut again, until what is left can be read point
// by point. From 1970 until today that is three steps. The ends of a range that are no whole part
// are looked at when no whole part has the value.
#include "client/client.h"

#include "base/clock.h"
#include "query/query.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PEAK_PARTS = 1000,
    PEAK_READ_S = 600, // so long a range is read point by point
    PEAK_STEPS_MAX = 16,
};

struct search {
    struct sonde_client *client;
    struct error *e;
    const struct sonde_series *series; // whose highest value is looked for
    double value;
    int64_t from_ns, to_ns; // both inclusive; it is in there
};

// This one series, so downsampled, in [from, to].
static int ask_series(const struct search *s, const char *downsample, int64_t from_ns,
                      int64_t to_ns, struct sonde_result **out)
{
    struct sonde_filter *filters = calloc(s->series->tag_count + 1, sizeof *filters);
    if (!filters)
        return error_set(s->e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < s->series->tag_count; i++)
        filters[i] = (struct sonde_filter){s->series->tags[i].key, "equal_or_absent",
                                           s->series->tags[i].value, false};
    struct sonde_query q = {.metric = s->series->metric,
                            .downsample = downsample,
                            .filters = filters,
                            .filter_count = s->series->tag_count,
                            .explicit_tags = true,
                            .start_ns = from_ns,
                            .end_ns = to_ns};
    int rc = client_query(s->client, &q, 0, out, s->e);
    free(filters);
    return rc;
}

// The first place of the value or of one above it; -1: none.
static int64_t first_at(const struct sonde_result *r, double value)
{
    const struct sonde_series *s = sonde_result_series(r, 0);
    for (size_t i = 0; s && i < s->count; i++)
        if (s->values[i] >= value)
            return s->time_ns[i];
    return -1;
}

// Narrows the range to the part that has the value.
static int narrow(struct search *s)
{
    int64_t part_ms = (s->to_ns - s->from_ns) / PEAK_PARTS / NS_PER_MS + 1,
            part_ns = part_ms * NS_PER_MS;
    int64_t whole_ns = (s->from_ns + part_ns - 1) / part_ns * part_ns; // where whole parts begin…
    int64_t last_ns = (s->to_ns + 1) / part_ns * part_ns;              // …and end
    char text[64];
    struct sonde_result *r = NULL;
    snprintf(text, sizeof text, "%lldms-max", (long long)part_ms);
    int64_t at = -1;
    int rc = 0;
    if (whole_ns < last_ns) {
        rc = ask_series(s, text, whole_ns, last_ns - 1, &r);
        at = rc ? -1 : first_at(r, s->value);
        sonde_result_free(r);
    }
    if (rc)
        return rc;
    if (at >= 0) {
        s->from_ns = at;
        s->to_ns = at + part_ns - 1;
        return 0;
    }
    r = NULL;
    if (whole_ns > s->from_ns)
        rc = ask_series(s, "0all-max", s->from_ns, whole_ns, &r);
    if (rc)
        return rc;
    bool head = r && first_at(r, s->value) >= 0;
    sonde_result_free(r);
    if (head)
        s->to_ns = whole_ns - 1;
    else
        s->from_ns = last_ns > s->from_ns ? last_ns : s->from_ns;
    return 0;
}

static int when(struct search *s, int64_t *out_ns)
{
    int rc = 0;
    for (int i = 0;
         i < PEAK_STEPS_MAX && !rc && s->to_ns - s->from_ns > (int64_t)PEAK_READ_S * NS_PER_S; i++)
        rc = narrow(s);
    struct sonde_result *r = NULL;
    if (!rc)
        rc = ask_series(s, NULL, s->from_ns, s->to_ns, &r);
    if (rc)
        return rc;
    *out_ns = first_at(r, s->value);
    sonde_result_free(r);
    return 0;
}

// ---------------------------------------------------------------- groups

static const char *tag_of(const struct sonde_series *s, const char *key)
{
    for (size_t i = 0; i < s->tag_count; i++)
        if (strcmp(s->tags[i].key, key) == 0)
            return s->tags[i].value;
    return "";
}

static bool same_group(const struct sonde_series *a, const struct sonde_series *b,
                       const char *const *by)
{
    if (!by)
        return a == b;
    for (; *by; by++)
        if (strcmp(tag_of(a, *by), tag_of(b, *by)) != 0)
            return false;
    return true;
}

// Of the series that are the highest of their group the first one each, to the front; how many
// there are.
static size_t keep_highest(struct sonde_series *all, size_t count, const char *const *by)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        struct sonde_series s = all[i];
        if (!s.count || isnan(s.values[0]))
            continue;
        while (k < n && by && !same_group(&all[k], &s, by))
            k++;
        if (!by || k == n)
            all[n++] = s;
        else if (s.values[0] > all[k].values[0])
            all[k] = s;
    }
    return n;
}

static int read_time(const char *text, int64_t ns, int64_t otherwise_ns, int64_t *out_ns,
                     struct error *e)
{
    *out_ns = ns ? ns : otherwise_ns;
    return ns || !text ? 0
                       : query_parse_time(str_of(text), clock_realtime_ns(), STR(""), out_ns, e);
}

int sonde_client_peaks(struct sonde_client *c, const struct sonde_query *query,
                       const char *const *by, struct sonde_result **out, struct sonde_error *error)
{
    struct error *e = error_inside(error);
    struct sonde_query q = {.metric = query->metric,
                            .downsample = "0all-max",
                            .filters = query->filters,
                            .filter_count = query->filter_count};
    struct sonde_result *r = NULL;
    *out = NULL;
    if (!query->metric)
        return error_set(e, -EINVAL, "peaks are asked of a metric");
    int rc = read_time(query->start, query->start_ns, 1, &q.start_ns, e);
    if (!rc)
        rc = read_time(query->end, query->end_ns, clock_realtime_ns() + NS_PER_S, &q.end_ns, e);
    if (rc)
        return rc;
    q.end_ns++; // 0all leaves out its end
    rc = client_query(c, &q, 0, &r, e);
    if (rc)
        return rc;
    r->count = keep_highest(r->series, r->count, by);
    int64_t *times = arena_array(&r->arena, r->count, sizeof *times);
    if (!times)
        rc = error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < r->count && !rc; i++) {
        struct search s = {c, e, &r->series[i], r->series[i].values[0], q.start_ns, q.end_ns - 1};
        rc = when(&s, &times[i]);
        r->series[i].time_ns = &times[i];
    }
    if (rc)
        sonde_result_free(r);
    else
        *out = r;
    return rc;
}
