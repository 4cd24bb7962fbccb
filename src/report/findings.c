#include "report/findings.h"

#include "launch/summary.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

// ---------------------------------------------------------------- functions for the finders

struct str finding_text(struct report *r, const char *format, ...)
{
    struct buf text = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    struct str copy = arena_str(r->arena, buf_str(&text));
    buf_free(&text);
    return copy.data ? copy : (struct str){0};
}

struct report_finding *finding_add(struct report *r, const char *kind,
                                   enum report_sureness sureness, double weight)
{
    if (r->finding_count == REPORT_FINDINGS_MAX)
        return NULL;
    struct report_finding *f = &r->findings[r->finding_count++];
    *f = (struct report_finding){.kind = kind,
                                 .sureness = sureness,
                                 .weight = fmin(fmax(weight, 0), 1),
                                 .value = (double)NAN,
                                 .unit = "",
                                 .start_ns = r->from_ns,
                                 .end_ns = r->to_ns};
    return f;
}

bool finding_is_long_enough(const struct report *r)
{
    return report_seconds(r) >= FINDING_LEAST_S && r->bucket_count > 0;
}

size_t line_values(const struct report *r, const struct report_line *l)
{
    size_t values = 0;
    for (size_t i = 0; i < r->bucket_count; i++)
        values += isnan(l->buckets[i]) ? 0 : 1;
    return values;
}

double line_mean(const struct report_line *l, size_t from, size_t to)
{
    double sum = 0;
    size_t values = 0;
    for (size_t i = from; i < to; i++) {
        if (isnan(l->buckets[i]))
            continue;
        sum += l->buckets[i];
        values++;
    }
    return values ? sum / (double)values : (double)NAN;
}

ptrdiff_t line_last_at_least(const struct report *r, const struct report_line *l, double least)
{
    for (size_t i = r->bucket_count; i > 0; i--)
        if (l->buckets[i - 1] >= least)
            return (ptrdiff_t)i - 1;
    return -1;
}

const struct report_line *measure_line(const struct report *r, enum report_measure_id id,
                                       struct str host)
{
    const struct report_measure *m = &r->measures[id];
    for (size_t i = 0; i < m->count; i++)
        if (str_eq(m->lines[i].host, host))
            return &m->lines[i];
    return NULL;
}

double measure_total(const struct report *r, enum report_measure_id id, struct str host)
{
    const struct report_measure *m = &r->measures[id];
    double sum = (double)NAN;
    for (size_t i = 0; i < m->count; i++)
        if (str_eq(m->lines[i].host, host) && !isnan(m->lines[i].total))
            sum = (isnan(sum) ? 0 : sum) + m->lines[i].total;
    return sum;
}

double report_environment(const struct report *r, struct str key)
{
    double value = (double)NAN;
    for (size_t i = 0; i < r->environment_count; i++)
        if (str_eq(r->environment[i].key, key) &&
            !(str_to_double(r->environment[i].value, &value) && isfinite(value)))
            value = (double)NAN;
    return value;
}

struct str finding_elapsed(struct report *r, int64_t t_ns)
{
    int64_t s = (t_ns - r->start_ns) / 1000000000;
    s = s < 0 ? 0 : s;
    return finding_text(r, "%02lld:%02d:%02d", (long long)(s / 3600), (int)(s / 60 % 60),
                        (int)(s % 60));
}

struct str finding_bytes(struct report *r, double bytes)
{
    char text[32];
    summary_bytes_text(bytes, text, sizeof text);
    return finding_text(r, "%s", text);
}

struct str finding_duration(struct report *r, double seconds)
{
    char text[32];
    summary_duration_text((int64_t)(seconds * 1e9), text, sizeof text);
    return finding_text(r, "%s", text);
}

// ---------------------------------------------------------------- all findings

typedef void finding_fn(struct report *r);

static finding_fn *const finders[] = {
    find_idle_end,      find_idle_gpus, find_gpu_waits,      find_throttling,
    find_one_core,      find_cpu_limit, find_memory_request, find_memory_growth,
    find_out_of_memory, find_swapping,  find_slow_disk,      find_full_network,
    find_stragglers,    find_imbalance, find_awaited_rank,   find_pageable_copies,
    find_largest_file,
};

static int surest_first(const void *a, const void *b)
{
    const struct report_finding *x = a, *y = b;
    if (x->sureness != y->sureness)
        return x->sureness > y->sureness ? -1 : 1;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    int order = strcmp(x->kind, y->kind);
    return order ? order : str_compare_natural(x->title, y->title);
}

void report_find(struct report *r)
{
    r->finding_count = 0;
    for (size_t i = 0; i < sizeof finders / sizeof *finders; i++)
        finders[i](r);
    report_say_once(r);
    if (r->finding_count)
        qsort(r->findings, r->finding_count, sizeof *r->findings, surest_first);
}
