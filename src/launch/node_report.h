// node_report.h - reports at the end of a run where the recordings of the other nodes are.
#ifndef SONDE_LAUNCH_NODE_REPORT_H
#define SONDE_LAUNCH_NODE_REPORT_H

#include "launch/gather.h"
#include "launch/placement.h"

// `gather` is NULL if nothing was gathered. Recordings beside ours are not mentioned; with `quiet`,
// only those are mentioned that are not where the user expects them.
void node_report(const struct placement *placement, const struct gather *gather,
                 const struct allocation *allocation, const struct job *job, bool quiet);

#endif
