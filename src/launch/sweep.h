// sweep.h - cleans up after launchers that were killed.
//
// Their agent and aggregator have ended by themselves, but the recording and the run folder are
// left. The next run keeps the recording and removes the folder.
#ifndef SONDE_LAUNCH_SWEEP_H
#define SONDE_LAUNCH_SWEEP_H

// For every run folder below `base` without a running launcher and without a writer: moves the
// recording to the folder that the run had chosen. A recording that cannot be moved stays.
void sweep_dead_jobs(const char *base);

#endif
