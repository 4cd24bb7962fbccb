// agent.h - the process on each node: connects ingest, collect and store.
//
// The agent has two threads. The main thread owns the store and the event loop (socket, rings,
// timers). The sampling thread wakes at instants that are whole multiples of the rate since the
// epoch, so that all nodes sample at the same moment. It passes its rows to the main thread.
#ifndef SONDE_AGENT_AGENT_H
#define SONDE_AGENT_AGENT_H

#include "agent/agent_options.h"
#include "base/error.h"

// Runs an agent until SIGTERM, SIGINT or the end of control_fd. Then it drains all programs, takes
// a last sample, and closes the store. Returns the exit code: 0, or 1 with e set.
int agent_run(const struct agent_options *options, struct error *e);

#endif
