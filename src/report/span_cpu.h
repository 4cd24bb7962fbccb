// span_cpu.h - the processor use of the nodes while spans of a name run, and while none runs.
//
// A sample of cpu_percent is the mean since the sample before it. So a bucket of the measure holds
// the use from one sample interval before its start to one before its end. Each bucket counts by
// the part of it that spans cover:
//
//   within   sum(covered * use) / sum(covered)
//   outside  sum((1 - covered) * use) / sum(1 - covered)
//
// Only nodes with such spans count. A bucket that a span covers in part also contains the work
// beside it, so the true values differ by more than these.
#ifndef SONDE_REPORT_SPAN_CPU_H
#define SONDE_REPORT_SPAN_CPU_H

#include "report/report.h"

struct span_cpu;

// The report keeps its nodes' processor use and its buckets as long as the result lives. Returns
// NULL if memory is exhausted.
struct span_cpu *span_cpu_create(const struct report *r);
void span_cpu_destroy(struct span_cpu *c); // NULL: does nothing

// Adds a span of a node. Ignores nodes whose processor use is unknown.
void span_cpu_add(struct span_cpu *c, struct str host, int64_t start_ns, int64_t end_ns);
// Sets the processor use of *out from the added spans, and forgets them. It stays NaN if spans
// cover less than a bucket, or leave less than a bucket uncovered.
void span_cpu_take(struct span_cpu *c, struct report_span *out);

#endif
