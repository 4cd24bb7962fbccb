// self_metrics.h - the agent's metrics about itself: received, dropped and stored data, and its
// costs.
//
// All of them at level 4. Losses are recorded at every level, from the first one on: no loss is
// silent, and without losses there are no such series. The header of the file holds the sum, too.
#ifndef SONDE_AGENT_SELF_METRICS_H
#define SONDE_AGENT_SELF_METRICS_H

#include "agent/connections.h"
#include "agent/sampler.h"

// Counters that no other part keeps.
struct self_metrics_figures {
    struct sampler_figures sampler;
    struct connections_stats connections;
    uint64_t rows_refused; // values of sampled rows that the store did not take
};

struct self_metrics;

// `labels` live as long as it does. NULL with e set when there is no memory or the store will not
// have the series.
struct self_metrics *self_metrics_create(struct store *store, const struct store_label *labels,
                                         size_t label_count, int level, struct error *e);
void self_metrics_destroy(struct self_metrics *o);

// Writes the losses so far into the file's header, which has room for them even if the disk is
// full.
void self_metrics_note_dropped(struct self_metrics *o, const struct ingest *in,
                               const struct self_metrics_figures *figures);

// The next row is recorded whenever it comes.
void self_metrics_be_due(struct self_metrics *o);

// Records one row at t_ns, the first instant of every second. 1: recorded; 0: not due, or nothing
// was ever dropped; or the error of store_append_row.
int self_metrics_sample(struct self_metrics *o, const struct ingest *in,
                        const struct self_metrics_figures *figures, int64_t t_ns);

#endif
