// rows.h - the sampler's rows become points of the store. In the thread that owns the store.
#ifndef SONDE_AGENT_ROWS_H
#define SONDE_AGENT_ROWS_H

#include "agent/connections.h"
#include "agent/parts.h"

// Stores rows until the queue is empty or that time has come (monotonic). New rows may come faster
// than it stores them. True: there are more.
bool rows_take(struct parts *p, struct connections *connections, int64_t until_ns);

#endif
