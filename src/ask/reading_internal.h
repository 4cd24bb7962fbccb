// reading_internal.h - for the files that implement reading.h.
#ifndef SONDE_ASK_READING_INTERNAL_H
#define SONDE_ASK_READING_INTERNAL_H

#include "ask/query_wire.h"
#include "ask/reading.h"

// Selects all nodes, except those that were missing before.
int reading_where(struct reading *d, struct hub_where *out, struct error *e);

// Returns the query without the time before the window (reading_from.window_ns).
struct query reading_within_window(const struct reading_from *from, struct query q);

// Returns the prepared gather of this query, which the caller destroys. NULL: none was prepared.
struct query_gather *reading_take_prepared(struct reading *d, const struct query *query);

// Destroys the gathers that no query has taken.
void reading_drop_prepared(struct reading *d);

#endif
