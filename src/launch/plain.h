// plain.h - the command alone: at level 0, and when telemetry cannot start.
//
// The launcher becomes the command, so sonde can neither disturb it nor fail later.
#ifndef SONDE_LAUNCH_PLAIN_H
#define SONDE_LAUNCH_PLAIN_H

#include "launch/nodes.h"
#include "launch/run.h"

enum { PLAIN_PATH_MAX = 64 };

// Becomes the command, with SONDE_LEVEL=0 and its placeholders for nodes replaced. `nodes` may be
// NULL: then this function looks the nodes up if a placeholder needs them. Returns only on failure:
// the exit code, with e set.
int plain_run(const struct launch_options *options, struct nodes *nodes, struct error *e);

// Makes a hostfile in memory, for a run without a folder. Returns its descriptor, which the caller
// closes, and a path that leads to the file while the descriptor is open. On failure returns a
// negative errno and an empty path.
int plain_hostfile(const struct nodes *nodes, char path[PLAIN_PATH_MAX]);

#endif
