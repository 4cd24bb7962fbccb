// peaks.c - the highest point of each group, and its time.
//
// One query returns the highest values from the summaries of blocks (0all-max). To find the time,
// the range is divided into PEAK_PARTS, and the part with the value is divided again, until the
// rest is short enough to read its points. A week takes one step. The ends of a range that are not
// whole parts are searched like a part. Parts are searched in the order of time, so of equal points
// the first one counts.
#include "client/client.h"

#include "base/clock.h"
#include "base/map.h"
#include "query/query.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PEAK_PARTS = 1000,
    PEAK_READ_S = 600, // a range up to this length is read point by point
    PEAK_STEPS_MAX = 16,
};

struct search {
    struct sonde_client *client;
    struct error *e;
    const struct sonde_series *series; // the series whose highest point is searched
    double value;
    int64_t from_ns, to_ns; // both inclusive; the point lies between them
};

// Queries this series alone with this downsampling in [from, to].
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

// The index of the first value that is at least this high; -1: none.
static int64_t first_at(const struct sonde_result *r, double value)
{
    const struct sonde_series *s = sonde_result_series(r, 0);
    for (size_t i = 0; s && i < s->count; i++)
        if (s->values[i] >= value)
            return s->time_ns[i];
    return -1;
}

// Narrows the range to its first part with the value: the rest before the whole parts, a whole
// part, or the rest behind them.
static int narrow(struct search *s)
{
    int64_t part_ms = (s->to_ns - s->from_ns) / PEAK_PARTS / NS_PER_MS + 1,
            part_ns = part_ms * NS_PER_MS;
    // the start of the whole parts…
    int64_t whole_ns = (s->from_ns + part_ns - 1) / part_ns * part_ns;
    int64_t last_ns = (s->to_ns + 1) / part_ns * part_ns; // …and their end
    char text[64];
    struct sonde_result *r = NULL;
    snprintf(text, sizeof text, "%lldms-max", (long long)part_ms);
    int rc = whole_ns > s->from_ns ? ask_series(s, "0all-max", s->from_ns, whole_ns, &r) : 0;
    if (rc)
        return rc;
    bool head = r && first_at(r, s->value) >= 0;
    sonde_result_free(r);
    if (head) {
        s->to_ns = whole_ns - 1;
        return 0;
    }
    int64_t at = -1;
    if (whole_ns < last_ns) {
        rc = ask_series(s, text, whole_ns, last_ns - 1, &r);
        at = rc ? -1 : first_at(r, s->value);
        sonde_result_free(r);
    }
    if (at >= 0) {
        s->from_ns = at;
        s->to_ns = at + part_ns - 1;
    } else {
        s->from_ns = last_ns > s->from_ns ? last_ns : s->from_ns;
    }
    return rc;
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

// The first series of the group of each series. NULL: no memory.
static size_t *find_groups(const struct sonde_result *r, const char *const *by, struct arena *arena)
{
    struct map groups = {0};
    struct buf key = {0};
    size_t *first = arena_array(arena, r->count, sizeof *first);
    for (size_t i = 0; first && i < r->count; i++) {
        bool added;
        first[i] = i;
        if (!by)
            continue;
        key.size = 0;
        for (size_t k = 0; by[k]; k++) {
            const char *value = tag_of(&r->series[i], by[k]);
            buf_add(&key, value, strlen(value) + 1);
        }
        struct str text = key.size ? arena_str(arena, buf_str(&key)) : STR("");
        uint64_t *at = text.data && !key.failed ? map_add(&groups, text, &added) : NULL;
        if (!at)
            first = NULL;
        else if (added)
            *at = i;
        else
            first[i] = (size_t)*at;
    }
    buf_free(&key);
    map_free(&groups);
    return first;
}

static bool has_point(const struct sonde_series *s)
{
    return s->count && !isnan(s->values[0]);
}

// Keeps of each group the series that has the highest point, with its time: of equal points the
// first one.
static int keep_highest(const struct search *all, struct sonde_result *r, const char *const *by)
{
    size_t n = 0, *group = find_groups(r, by, &r->arena),
           *best = arena_array(&r->arena, r->count, sizeof *best);
    int64_t *times = arena_array(&r->arena, r->count, sizeof *times);
    struct sonde_series *series = r->series;
    if (!group || !best || !times)
        return error_set(all->e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < r->count; i++) {
        size_t *of = &best[group[i]];
        times[i] = -1;
        if (group[i] == i)
            *of = i;
        else if (has_point(&series[i]) &&
                 !(has_point(&series[*of]) && series[*of].values[0] >= series[i].values[0]))
            *of = i;
    }
    for (size_t i = 0; i < r->count; i++) {
        size_t *of = &best[group[i]];
        if (!has_point(&series[i]) || series[i].values[0] < series[*of].values[0])
            continue;
        struct search s = *all;
        s.series = &series[i];
        s.value = series[i].values[0];
        int rc = when(&s, &times[i]);
        if (rc)
            return rc;
        if (times[*of] < 0 || (times[i] >= 0 && times[i] < times[*of]))
            *of = i;
    }
    for (size_t i = 0; i < r->count; i++) {
        size_t of = best[i];
        if (group[i] != i || !has_point(&series[of]))
            continue;
        series[n] = series[of]; // n <= i <= of, and of later groups the places are behind i
        series[n++].time_ns = &times[of];
    }
    r->count = n;
    return 0;
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
    int64_t first_ns, last_ns;
    *out = NULL;
    if (!query->metric)
        return error_set(e, -EINVAL, "peaks need the name of a metric");
    int rc = client_range(c, &first_ns, &last_ns, NULL, e);
    if (!rc)
        rc =
            client_read_time(query->start, query->start_ns, last_ns ? first_ns : 1, &q.start_ns, e);
    if (!rc)
        rc = client_read_time(query->end, query->end_ns, last_ns ? last_ns : 1, &q.end_ns, e);
    if (rc)
        return rc;
    if (!query->end && !query->end_ns && q.end_ns < q.start_ns)
        q.end_ns =
            q.start_ns; // after the last point: an empty result, unless no node has the metric
    q.end_ns++;         // 0all leaves out its end
    rc = client_query(c, &q, 0, &r, e);
    if (rc)
        return rc;
    struct search all = {.client = c, .e = e, .from_ns = q.start_ns, .to_ns = q.end_ns - 1};
    rc = keep_highest(&all, r, by);
    if (rc)
        sonde_result_free(r);
    else
        *out = r;
    return rc;
}
