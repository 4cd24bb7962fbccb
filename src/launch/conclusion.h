// conclusion.h - the last step of a run: prints a summary on standard error, keeps the recording,
// and removes everything else.
#ifndef SONDE_LAUNCH_CONCLUSION_H
#define SONDE_LAUNCH_CONCLUSION_H

#include "launch/job.h"
#include "launch/nodes.h"

struct launch_options;

// Call it when agents and aggregator have ended. Prints the summary (unless the options say quiet),
// moves the recording to job->record, prints the findings of a report (brief_report.h), reports
// where the recordings of other nodes are, and removes the run folder and an empty `base`. If a
// recording cannot be moved, it stays in the run folder, and a message says so. `runs` is the
// folder of the kept runs, from which old recordings are removed to make room for the new one;
// empty if the recording lies elsewhere.
void conclusion(struct job *job, const struct launch_options *o, const struct nodes *nodes,
                const char *base, const char *runs);

#endif
