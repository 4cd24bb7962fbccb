// findings_world.h - a report with manual data, and what the tests of findings ask it.
#ifndef SONDE_TESTS_UNIT_REPORT_FINDINGS_WORLD_H
#define SONDE_TESTS_UNIT_REPORT_FINDINGS_WORLD_H

#include "report/findings.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS = 120, BUCKET_S = 10, LINES_MAX = 4 };
static const double GIB = 1 << 30;

// A report with manual data: a run of 1,200 s on one node that is busy until its end.
struct world {
    struct arena arena;
    struct report report;
    struct report_line lines[REPORT_MEASURES_COUNT][LINES_MAX];
    double buckets[REPORT_MEASURES_COUNT][LINES_MAX][BUCKETS];
    struct report_key environment[2];
    struct report_straggler straggler;
    struct report_node nodes[LINES_MAX];
};

typedef double shape(size_t bucket, double value);

static inline double steady(size_t bucket, double value)
{
    (void)bucket;
    return value;
}

static inline double ends_at_half(size_t bucket, double value)
{
    return bucket < BUCKETS / 2 ? value : 0;
}

static inline double grows(size_t bucket, double value)
{
    return value * (double)(bucket + 1) / BUCKETS;
}

static inline double grows_then_rests(size_t bucket, double value)
{
    return bucket < BUCKETS / 2 ? grows(2 * bucket, value) : value;
}

static inline double rarely_there(size_t bucket, double value)
{
    return bucket % 15 == 0 ? value : (double)NAN;
}

// Adds a series with the maximum `value`. A counter's values are rates.
static inline struct report_line *add(struct world *w, enum report_measure_id id, const char *host,
                                      const char *part, shape *at, double value)
{
    struct report_measure *m = &w->report.measures[id];
    struct report_line *l = &w->lines[id][m->count];
    double *buckets = w->buckets[id][m->count], sum = 0;
    assert_true(m->count < LINES_MAX);
    *l = (struct report_line){
        .host = str_of(host), .part = str_of(part), .buckets = buckets, .total = (double)NAN};
    for (size_t i = 0; i < BUCKETS; i++) {
        buckets[i] = at(i, value);
        if (isnan(buckets[i]))
            continue;
        sum += buckets[i];
        l->points += 1;
        l->peak = fmax(l->peak, buckets[i]);
    }
    l->mean = sum / l->points;
    if (m->counter)
        l->total = sum * BUCKET_S;
    m->lines = w->lines[id];
    m->count++;
    return l;
}

static inline struct world *begin(void)
{
    struct world *w = calloc(1, sizeof *w);
    struct report *r = &w->report;
    assert_non_null(w);
    *r = (struct report){.arena = &w->arena,
                         .nodes = w->nodes,
                         .node_count = 1,
                         .ended = true,
                         .bucket_count = BUCKETS,
                         .bucket_ns = (int64_t)BUCKET_S * 1000000000,
                         .to_ns = (int64_t)BUCKETS * BUCKET_S * 1000000000,
                         .end_ns = (int64_t)BUCKETS * BUCKET_S * 1000000000,
                         .environment = w->environment};
#define NAME(id, name, tag, kind)                   \
    r->measures[REPORT_##id].metric = str_of(name); \
    r->measures[REPORT_##id].counter = strcmp(#kind, "COUNTER") == 0;
    REPORT_MEASURES(NAME)
#undef NAME
    add(w, REPORT_CPU, "n1", "", steady, 50);
    add(w, REPORT_CPU_COUNT, "n1", "", steady, 16);
    return w;
}

static inline void set_environment(struct world *w, const char *key, const char *value)
{
    w->environment[w->report.environment_count++] = (struct report_key){str_of(key), str_of(value)};
}

static inline size_t count_of(struct world *w, const char *kind)
{
    size_t found = 0;
    report_find(&w->report);
    for (size_t i = 0; i < w->report.finding_count; i++) {
        const struct report_finding *f = &w->report.findings[i];
        found += strcmp(f->kind, kind) == 0;
        // Every finding has all of these fields.
        assert_true(f->title.size && f->evidence.size && f->advice.size && f->unit[0]);
        assert_true(isfinite(f->value) && f->weight >= 0 && f->weight <= 1);
        assert_true(f->start_ns < f->end_ns);
    }
    return found;
}

static inline const struct report_finding *the(struct world *w, const char *kind)
{
    assert_int_equal(count_of(w, kind), 1);
    for (size_t i = 0;; i++)
        if (strcmp(w->report.findings[i].kind, kind) == 0)
            return &w->report.findings[i];
}

static inline void end(struct world *w)
{
    arena_free(&w->arena);
    free(w);
}

static inline void expect_in(struct str text, const char *words)
{
    char line[512];
    snprintf(line, sizeof line, "%.*s", STR_ARG(text));
    if (!strstr(line, words))
        fail_msg("'%s' does not say '%s'", line, words);
}

// Checks each case once more with a tenth of the values, and as a run of 40 s.
typedef void fill(struct world *w, shape *s);

static inline void expect_silence_on_few_data(fill *f, const char *kind)
{
    struct world *w = begin();
    f(w, rarely_there);
    assert_int_equal(count_of(w, kind), 0);
    end(w);
    w = begin();
    f(w, steady);
    w->report.to_ns = (int64_t)40 * 1000000000;
    w->report.bucket_count = 4;
    assert_int_equal(count_of(w, kind), 0);
    end(w);
}

static inline struct report_span *step_of(struct world *w)
{
    struct report_span *s = &w->report.spans[w->report.span_count++];
    *s = (struct report_span){.name = STR("step"),
                              .count = 1000,
                              .mean_s = 1,
                              .share = 0.9,
                              .members = 1,
                              .imbalance = (double)NAN,
                              .gpu_idle = 0.38,
                              .gpu_samples = 5000};
    return s;
}

#endif
