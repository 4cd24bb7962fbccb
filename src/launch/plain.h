// plain.h - the command alone: at level 0, and where telemetry cannot start.
//
// The launcher becomes the command, so that nothing of sonde is in its way, and nothing more can
// fail.
#ifndef SONDE_LAUNCH_PLAIN_H
#define SONDE_LAUNCH_PLAIN_H

#include "launch/nodes.h"
#include "launch/run.h"

enum { PLAIN_PATH_MAX = 64 };

// Becomes the command, with SONDE_LEVEL=0 and its words for the nodes filled in. `nodes` may be
// NULL: then they are looked up where a word needs them. Returns only on failure: the exit code,
// with e set.
int plain_run(const struct launch_options *options, struct nodes *nodes, struct error *e);

// A hostfile in memory, where there is no folder for one: its descriptor, which the caller closes,
// and a path that leads to it as long as the descriptor is open. A negative errno (and an empty
// path) where it cannot be made.
int plain_hostfile(const struct nodes *nodes, char path[PLAIN_PATH_MAX]);

#endif
