// sweep.h - tidies up after launchers that were killed.
//
// Their agent and aggregator have ended by themselves, but nobody has kept the recording or removed
// the run folder. The next run does.
#ifndef SONDE_LAUNCH_SWEEP_H
#define SONDE_LAUNCH_SWEEP_H

// Every run folder below `base` without a living launcher and without a writer: its recording goes
// where it was to go. What cannot be kept stays where it is.
void sweep_dead_jobs(const char *base);

#endif
