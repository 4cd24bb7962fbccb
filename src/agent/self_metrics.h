// self_metrics.h - the agent's metrics about itself: received, dropped and stored data, and its
// costs.
//
// All of them have level 4. Losses are recorded at every level, from the first loss on. So no loss
// is silent, and without losses there are no such series. The header of the file holds their sum,
// too.
#ifndef SONDE_AGENT_SELF_METRICS_H
#define SONDE_AGENT_SELF_METRICS_H

#include "agent/connections.h"
#include "agent/sampler.h"

// Counters that no other part has.
struct self_metrics_figures {
    struct sampler_figures sampler;
    struct connections_stats connections;
    uint64_t rows_refused; // values of sampled rows that the store refused
};

struct self_metrics;

// `labels` must live as long as the result. Returns NULL with e set if memory is exhausted or the
// store refuses the series.
struct self_metrics *self_metrics_create(struct store *store, const struct store_label *labels,
                                         size_t label_count, int level, struct error *e);
void self_metrics_destroy(struct self_metrics *o);

// Writes the losses so far into the file's header, which has room for them even if the disk is
// full.
void self_metrics_note_dropped(struct self_metrics *o, const struct ingest *in,
                               const struct self_metrics_figures *figures);

// Makes the next row be recorded, whatever its time.
void self_metrics_be_due(struct self_metrics *o);

// Records one row at t_ns, at the first instant of every second. Returns 1 if it was recorded, 0 if
// it was not due or if nothing was ever dropped, or the error of store_append_row.
int self_metrics_sample(struct self_metrics *o, const struct ingest *in,
                        const struct self_metrics_figures *figures, int64_t t_ns);

#endif
