// gather.h - requests everything that a report needs from a job or a recording.
//
//   status, nodes, metrics, annotations, findings, spans      one request each
//   a measure      one request of four queries: mean, peak, count, and buckets; if the measure is
//                  drawn, also the least and greatest value of each bucket
//
// Requests: at most 5 + measures + the user's metrics + spans. Memory: REPORT_CELLS_MAX values a
// measure, so 32 MB with all measures of 1,000 nodes with 8 GPUs.
#ifndef SONDE_REPORT_GATHER_H
#define SONDE_REPORT_GATHER_H

#include "base/error.h"
#include "client/client.h"
#include "report/report.h"

struct gather_options {
    const char *where;    // the name by which the user selected the run; NULL: none
    double grams_per_kwh; // NaN: unknown
    bool brief;           // only the data behind the lines of report_brief
};

// Fills *out, with conclusions; its memory is in `arena`. out->missing lists the requests that
// failed. Returns 0, -ENOTSUP (the target has several runs) or another negative errno.
int report_gather(struct sonde_client *client, const struct gather_options *options,
                  struct arena *arena, struct report *out, struct error *e);

// Fills only the nodes, the range and the spans of *out, for the table of spans. `name`: only spans
// of this name; NULL: all. Only spans that overlap the range count; start 0: from the first point,
// end 0: to the last point.
int report_gather_spans(struct sonde_client *client, const char *name, int64_t start_ns,
                        int64_t end_ns, struct arena *arena, struct report *out, struct error *e);

// ---- parts of gathering

struct gather {
    struct sonde_client *client;
    struct report *report;
    struct arena *arena;
    json_t *metrics; // owned: the list of metrics; NULL: gather_metrics was not called
    struct buf missing;
    struct error *e;
};

void gather_note_missing(struct gather *g, const char *names); // NULL: no node is missing
struct str gather_text(struct gather *g, const json_t *object, const char *key);
// Returns the value of a tag, in the memory of the series; empty: it has no such tag.
struct str gather_tag(const struct sonde_series *s, const char *key);

// gather_measures.c
int gather_measures(struct gather *g, bool brief);
// True for errors that smaller requests may avoid.
bool gather_is_too_much(int rc);
// gather_traced.c
int gather_traced(struct gather *g);
// True for a metric of `sonde run --trace` that does not count as the user's own.
bool gather_is_traced(struct str metric);
// True for the other metrics of `sonde run --trace`: the user's own come before them.
bool gather_is_of_tracer(struct str metric);
// gather_totals.c: calls take() with the calls and with the seconds of each name that a tracer
// records as spans; the other one of both is 0.
int gather_totals(struct gather *g,
                  void (*take)(void *user, struct str name, double calls, double seconds),
                  void *user);
// gather_spans.c
struct gather_spans_request {
    const char *name;         // NULL: all names
    int64_t start_ns, end_ns; // 0: no limit
};
int gather_spans(struct gather *g, const struct gather_spans_request *request);

// Requests the list of metrics, unless it is known.
int gather_metrics(struct gather *g);
// Returns the row of a metric in g->metrics; NULL: the run does not have the metric.
const json_t *gather_metric(const struct gather *g, const char *name);

// Sends one request with several queries over the report's range. Each query is an expression.
// `spans`, if not NULL, restricts them to spans of this name. Returns 0 and sets *out; its series
// have the numbers of their queries.
int gather_ask(struct gather *g, const char *const *expressions, size_t count, const char *span,
               int64_t start_ns, int64_t end_ns, struct sonde_result **out);

// conclusions.c: resource use and energy, from the measures.
void report_conclude(struct report *r);

#endif
