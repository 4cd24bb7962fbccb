// findings.h - finds problems of a run that the user should solve, from the data of its report.
//
// Each function searches for one problem. It adds at most a few findings, and none if it has too
// few data, so a run of a second has no findings. The functions read only the report, but no clock
// and no file. Their thresholds are in docs/report.md. For each function,
// tests/unit/report/test_findings.c has a case with a finding, one without, and one with too few
// data.
#ifndef SONDE_REPORT_FINDINGS_H
#define SONDE_REPORT_FINDINGS_H

#include "report/report.h"

enum {
    FINDING_LEAST_S = 60,       // shorter runs get no findings
    FINDING_LEAST_BUCKETS = 10, // minimum number of buckets with values
};

// Calls all finders, then sorts the findings by certainty and weight, the highest first.
void report_find(struct report *r);

// If several findings say the same about nested spans, keeps one of them (findings_nested.c).
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
void find_pageable_copies(struct report *r);
void find_largest_file(struct report *r);

// ---- functions for the finders

// Adds a finding over the whole range, without texts, and returns it. NULL: there are too many
// findings.
struct report_finding *finding_add(struct report *r, const char *kind,
                                   enum report_sureness sureness, double weight);
// Returns a text in the report's arena, or an empty text if memory is exhausted.
struct str finding_text(struct report *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool finding_is_long_enough(const struct report *r); // true for a run of at least FINDING_LEAST_S

// number of buckets with a value
size_t line_values(const struct report *r, const struct report_line *l);
// Mean of the buckets from `from` to before `to`; NaN if they have no value.
double line_mean(const struct report_line *l, size_t from, size_t to);
// Returns the last bucket with a value of at least `least`; -1: none.
ptrdiff_t line_last_at_least(const struct report *r, const struct report_line *l, double least);

// Returns the first bucket of the idle time at the end of the run; -1: none, or unknown.
ptrdiff_t finding_quiet_from(const struct report *r);

// Returns the measure's line for this node. If there are several, returns the first one; NULL:
// none.
const struct report_line *measure_line(const struct report *r, enum report_measure_id id,
                                       struct str host);
// Returns the sum of the lines' totals on this node; NaN: no line has a total.
double measure_total(const struct report *r, enum report_measure_id id, struct str host);

// Returns the value of a recorded environment variable as a number; NaN: it is not set.
double report_environment(const struct report *r, struct str key);

// Returns the time since the start of the run, "00:41:05".
struct str finding_elapsed(struct report *r, int64_t t_ns);
struct str finding_bytes(struct report *r, double bytes);
struct str finding_duration(struct report *r, double seconds);

#endif
