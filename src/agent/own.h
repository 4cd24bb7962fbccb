// own.h - the agent's metrics about itself: received, dropped and stored data, and its costs.
//
// All of them at level 4. Losses are recorded at every level, from the first one on: no loss is
// silent, and without losses there are no such series. The header of the file holds the sum, too.
#ifndef SONDE_AGENT_OWN_H
#define SONDE_AGENT_OWN_H

#include "agent/connections.h"
#include "agent/sampler.h"

// Counters that no other part keeps.
struct own_figures {
    struct sampler_figures sampler;
    struct connections_stats connections;
    uint64_t rows_refused; // values of sampled rows that the store did not take
};

struct own;

// `labels` live as long as it does. NULL with e set when there is no memory or the store will not
// have the series.
struct own *own_create(struct store *store, const struct store_label *labels, size_t label_count,
                       int level, struct error *e);
void own_destroy(struct own *o);

// Writes the losses so far into the file's header, which has room for them even if the disk is
// full.
void own_note_dropped(struct own *o, const struct ingest *in, const struct own_figures *figures);

// The next row is recorded whenever it comes.
void own_be_due(struct own *o);

// Records one row at t_ns, the first instant of every second. 1: recorded; 0: not due, or nothing
// was ever dropped; or the error of store_append_row.
int own_sample(struct own *o, const struct ingest *in, const struct own_figures *figures,
               int64_t t_ns);

#endif
