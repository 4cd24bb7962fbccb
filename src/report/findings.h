// findings.h - finds what the user should change about a run, from the data of its report.
//
// Each function searches for one problem. It adds at most a few findings, and none if it has too
// few data, so a run of a second has none. The functions read only the report: no clock, no file.
// Their thresholds are in docs/report.md; tests/unit/report/test_findings.c has for each of them a
// case with a finding, one without, and one with too few data.
#ifndef SONDE_REPORT_FINDINGS_H
#define SONDE_REPORT_FINDINGS_H

#include "report/report.h"

enum {
    FINDING_LEAST_S = 60,       // a shorter run is not judged
    FINDING_LEAST_BUCKETS = 10, // number of buckets with values
};

// Calls all finders; then sorts the findings by sureness and weight, the highest first.
void report_find(struct report *r);

// Of findings that say one thing about spans within each other, keeps one (findings_nested.c).
void report_say_once(struct report *r);

// findings_cpu.c
void find_idle_end(struct report *r);
void find_one_core(struct report *r);
void find_cpu_limit(struct report *r);
// findings_memory.c
void find_memory_request(struct report *r);
void find_memory_growth(struct report *r);
void find_out_of_memory(struct report *r);
void find_swapping(struct report *r);
// findings_gpu.c
void find_idle_gpus(struct report *r);
void find_gpu_waits(struct report *r);
void find_throttling(struct report *r);
// findings_io.c
void find_slow_disk(struct report *r);
void find_full_network(struct report *r);
// findings_ranks.c
void find_stragglers(struct report *r);
void find_imbalance(struct report *r);

// findings_traced.c
void find_awaited_rank(struct report *r);
void find_largest_file(struct report *r);

// ---- for the finders

// Adds a finding over the whole range, without texts, and returns it; NULL: too many findings.
struct report_finding *finding_add(struct report *r, const char *kind,
                                   enum report_sureness sureness, double weight);
// Text in the report's arena; empty if memory is out.
struct str finding_text(struct report *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool finding_is_long_enough(const struct report *r); // FINDING_LEAST_S

size_t line_values(const struct report *r, const struct report_line *l); // buckets with a value
// Mean of the buckets from `from` to before `to`; NaN if they have no value.
double line_mean(const struct report_line *l, size_t from, size_t to);
// The last bucket with a value of at least `least`; -1: none.
ptrdiff_t line_last_at_least(const struct report *r, const struct report_line *l, double least);

// The first bucket of the idle time at the end of the run; -1: none, or unknown.
ptrdiff_t finding_quiet_from(const struct report *r);

// The measure's line for this node, the first of several; NULL: none.
const struct report_line *measure_line(const struct report *r, enum report_measure_id id,
                                       struct str host);
// Sum of the lines' totals on this node; NaN: no line has one.
double measure_total(const struct report *r, enum report_measure_id id, struct str host);

// Value of a kept environment variable as a number; NaN: not set.
double report_environment(const struct report *r, struct str key);

// "00:41:05" since the start of the run.
struct str finding_elapsed(struct report *r, int64_t t_ns);
struct str finding_bytes(struct report *r, double bytes);
struct str finding_duration(struct report *r, double seconds);

#endif
