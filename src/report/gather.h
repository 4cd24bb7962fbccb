// gather.h - asks a job or a recording for everything that a report is made of.
//
//   status, nodes, metrics, annotations, findings, spans      one request each
//   a measure      one request of four queries: mean, peak, count, and buckets; of those that are
//                  drawn also the least and greatest of each bucket
//
// Requests: at most 5 + measures + the user's metrics + spans. Memory: REPORT_CELLS_MAX values a
// measure, so 32 MB with all measures of 1,000 nodes with 8 GPUs.
#ifndef SONDE_REPORT_GATHER_H
#define SONDE_REPORT_GATHER_H

#include "base/error.h"
#include "client/client.h"
#include "report/report.h"

struct gather_options {
    const char *where;    // the name that the user gave; NULL: none
    double grams_per_kwh; // NaN: not given
    bool brief;           // nothing that is only drawn
};

// Fills *out, conclusions included; its memory is of `arena`. What single requests could not answer
// is in out->missing. -ENOTSUP: several runs.
int report_gather(struct sonde_client *client, const struct gather_options *options,
                  struct arena *arena, struct report *out, struct error *e);

// ---- its parts

struct gather {
    struct sonde_client *client;
    struct report *report;
    struct arena *arena;
    const json_t *metrics; // the list of metrics
    struct buf missing;
    struct error *e;
};

void gather_note_missing(struct gather *g, const char *names); // NULL: nobody
struct str gather_text(struct gather *g, const json_t *object, const char *key);

// gather_measures.c
int gather_measures(struct gather *g, bool drawn);
// gather_spans.c
int gather_spans(struct gather *g);

// The row of a metric in g->metrics; NULL: the run does not have it.
const json_t *gather_metric(const struct gather *g, const char *name);

// A request of several queries, each an expression (and the spans of a name, if not NULL), over the
// report's range. 0 and *out; the answers' queries are numbered.
int gather_ask(struct gather *g, const char *const *expressions, size_t count, const char *span,
               int64_t start_ns, int64_t end_ns, struct sonde_result **out);

// conclusions.c: uses and energy, from the measures.
void report_conclude(struct report *r);

#endif
