// shutdown.h - the end of a run: stops the command, then agent, nodes, aggregator and tunnel. Each
// step has a deadline, after which its processes are killed.
#ifndef SONDE_LAUNCH_SHUTDOWN_H
#define SONDE_LAUNCH_SHUTDOWN_H

#include "launch/launch.h"

// Ends the command and all its descendants.
void shutdown_command(struct launch *l);

// `keep`: the recordings of the other nodes are fetched first.
void shutdown_telemetry(struct launch *l, bool keep);

// Ends telemetry before the command has started, and removes the run's folder.
void shutdown_unused(struct launch *l);

#endif
