#include "client/peaks.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PARTS = 1000,
    READ_S = 600, // a range of up to this length is read point by point
    STEPS_MAX = 16,
};

struct search {
    struct sonde_client *client;
    struct error *e;
    const struct sonde_series *series; // the series whose highest point is wanted
    double value;
    int64_t from_ns, to_ns; // both inclusive; the point lies in this range
};

// Sends a query for this series alone, with this downsampling, in [from, to].
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

// Returns the index of the first value that is at least this high; -1: none.
static int64_t first_at(const struct sonde_result *r, double value)
{
    const struct sonde_series *s = sonde_result_series(r, 0);
    for (size_t i = 0; s && i < s->count; i++)
        if (s->values[i] >= value)
            return s->time_ns[i];
    return -1;
}

// Narrows the range to its first part that contains the value: the rest before the whole parts, a
// whole part, or the rest after them.
static int narrow(struct search *s)
{
    int64_t part_ms = (s->to_ns - s->from_ns) / PARTS / NS_PER_MS + 1,
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

int peak_time(struct sonde_client *c, const struct sonde_series *series, double value,
              int64_t from_ns, int64_t to_ns, int64_t *out_ns, struct error *e)
{
    struct search s = {c, e, series, value, from_ns, to_ns};
    struct sonde_result *r = NULL;
    int rc = 0;
    for (int i = 0; i < STEPS_MAX && !rc && s.to_ns - s.from_ns > (int64_t)READ_S * NS_PER_S; i++)
        rc = narrow(&s);
    if (!rc)
        rc = ask_series(&s, NULL, s.from_ns, s.to_ns, &r);
    *out_ns = rc ? -1 : first_at(r, value);
    sonde_result_free(r);
    return rc;
}
