// rows.h - turns the sampler's rows into points of the store. Called in the thread that owns the
// store.
#ifndef SONDE_AGENT_ROWS_H
#define SONDE_AGENT_ROWS_H

#include "agent/connections.h"
#include "agent/parts.h"

// Stores rows until the queue is empty or the monotonic time until_ns has passed, because new rows
// may come faster than it stores them. Returns true if rows are left.
bool rows_take(struct parts *p, struct connections *connections, int64_t until_ns);

#endif
