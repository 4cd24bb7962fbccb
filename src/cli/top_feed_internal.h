// top_feed_internal.h - shared by top_feed.c (ticks), top_feed_points.c (tables) and
// top_feed_events.c (events, findings, restarts).
#ifndef SONDE_CLI_TOP_FEED_INTERNAL_H
#define SONDE_CLI_TOP_FEED_INTERNAL_H

#include "cli/top_feed.h"

enum { TOP_FEED_FINDINGS_EACH_S = 10 }; // interval of the requests for findings and restarts

// Returns the metric of this name in the last list of metrics; NULL: the list does not have it.
const struct top_metric *top_feed_metric(const struct top_feed *f, const char *name);

// Each function sends a request, and stores the answer in the model. Returns 0, or the error of the
// request.
int top_feed_ask_table(struct top_feed *f, struct top_model *m, struct top_table *t,
                       struct error *e);
int top_feed_ask_events(struct top_feed *f, struct top_model *m, struct error *e);
int top_feed_ask_restarts(struct top_feed *f, struct top_job *job, struct error *e);
int top_feed_ask_findings(struct top_feed *f, struct top_model *m, struct error *e);

#endif
