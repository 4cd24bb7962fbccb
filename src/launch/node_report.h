// node_report.h - says at the end of a run where the recordings of the other nodes are.
#ifndef SONDE_LAUNCH_NODE_REPORT_H
#define SONDE_LAUNCH_NODE_REPORT_H

#include "launch/gather.h"
#include "launch/placement.h"

// `gather`: NULL where nothing was gathered. A recording that lies beside ours is not mentioned;
// with `quiet` only those that are not where the user expects them.
void node_report(const struct placement *placement, const struct gather *gather,
                 const struct allocation *allocation, const struct job *job, bool quiet);

#endif
