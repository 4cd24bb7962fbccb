#include "report/span_cpu.h"

#include "base/map.h"

#include <stdlib.h>

struct span_cpu {
    const struct report *report;
    struct map line_of; // host → index of its line
    double *covered;    // part of each bucket of each line
    bool *used;         // lines with spans
};

static const struct report_measure *measure(const struct span_cpu *c)
{
    return &c->report->measures[REPORT_CPU];
}

struct span_cpu *span_cpu_create(const struct report *r)
{
    size_t lines = r->measures[REPORT_CPU].count;
    struct span_cpu *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->report = r;
    c->covered = calloc(lines * r->bucket_count + 1, sizeof *c->covered);
    c->used = calloc(lines + 1, sizeof *c->used);
    bool good = c->covered && c->used;
    for (size_t i = 0; i < lines && good; i++) {
        uint64_t *at = map_add(&c->line_of, r->measures[REPORT_CPU].lines[i].host, NULL);
        good = at != NULL;
        if (at)
            *at = i;
    }
    if (good)
        return c;
    span_cpu_destroy(c);
    return NULL;
}

void span_cpu_destroy(struct span_cpu *c)
{
    if (!c)
        return;
    map_free(&c->line_of);
    free(c->covered);
    free(c->used);
    free(c);
}

void span_cpu_add(struct span_cpu *c, struct str host, int64_t start_ns, int64_t end_ns)
{
    const struct report *r = c->report;
    const uint64_t *line = map_get(&c->line_of, host);
    int64_t first_ns = r->first_ns - r->sample_ns, // of the time that the first bucket describes
        most_ns = first_ns + (int64_t)r->bucket_count * r->bucket_ns;
    start_ns = start_ns < first_ns ? first_ns : start_ns;
    end_ns = end_ns > most_ns ? most_ns : end_ns;
    if (!line || end_ns <= start_ns)
        return;
    double *covered = c->covered + *line * r->bucket_count;
    c->used[*line] = true;
    for (int64_t at_ns = start_ns; at_ns < end_ns;) {
        int64_t bucket = (at_ns - first_ns) / r->bucket_ns,
                next_ns = first_ns + (bucket + 1) * r->bucket_ns,
                until_ns = end_ns < next_ns ? end_ns : next_ns;
        covered[bucket] += (double)(until_ns - at_ns) / (double)r->bucket_ns;
        at_ns = until_ns;
    }
}

void span_cpu_take(struct span_cpu *c, struct report_span *out)
{
    const struct report *r = c->report;
    double within = 0, within_sum = 0, outside = 0, outside_sum = 0;
    for (size_t i = 0; i < measure(c)->count; i++) {
        double *covered = c->covered + i * r->bucket_count;
        for (size_t k = 0; k < r->bucket_count && c->used[i]; k++) {
            double use = measure(c)->lines[i].buckets[k],
                   part = fmin(covered[k], 1); // spans of several ranks overlap
            covered[k] = 0;
            if (isnan(use))
                continue;
            within += part;
            within_sum += part * use;
            outside += 1 - part;
            outside_sum += (1 - part) * use;
        }
        c->used[i] = false;
    }
    if (within < 1 || outside < 1)
        return;
    out->cpu_within = within_sum / within;
    out->cpu_outside = outside_sum / outside;
}
