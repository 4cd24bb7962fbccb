// conclusion.h - what a run leaves behind: a summary on standard error and a recording, nothing
// else.
#ifndef SONDE_LAUNCH_CONCLUSION_H
#define SONDE_LAUNCH_CONCLUSION_H

#include "launch/job.h"
#include "launch/nodes.h"

struct launch_options;

// Agents and aggregator have ended. Prints the summary (unless the options say quiet), moves the
// recording to job->record, says where the recordings of other nodes are, and removes the run
// folder and an empty `base`. A recording that cannot be moved stays in the run folder, and a line
// says so. In `runs`, the folder of the kept runs (empty: the recording does not go there), old
// recordings make room for the new one.
void conclusion(struct job *job, const struct launch_options *o, const struct nodes *nodes,
                const char *base, const char *runs);

#endif
