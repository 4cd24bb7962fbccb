// node_report.h - reports at the end of a run where the recordings of the other nodes are.
#ifndef SONDE_LAUNCH_NODE_REPORT_H
#define SONDE_LAUNCH_NODE_REPORT_H

#include "launch/gather.h"
#include "launch/placement.h"

// Reports on standard error. `gather` is NULL if nothing was gathered. Recordings beside ours are
// not mentioned; with `quiet`, only unexpected places are.
void node_report(const struct placement *placement, const struct gather *gather,
                 const struct allocation *allocation, const struct job *job, bool quiet);

#endif
