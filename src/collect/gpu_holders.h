// gpu_holders.h - the processes that hold memory of a GPU: which of them belong to the job.
#ifndef SONDE_COLLECT_GPU_HOLDERS_H
#define SONDE_COLLECT_GPU_HOLDERS_H

#include "collect/gpu_way.h"
#include "collect/source.h"

// Takes d->holders over into d->known and puts the bytes of those that have a series. `proc`: a
// descriptor of /proc; -1 = none, and no process is of the job. Sets s->changed if a process of the
// job came or went: it then gets or loses its series.
void gpu_holders_take(struct source *s, int proc, const struct job_mark *job, struct gpu_device *d,
                      double *values);

#endif
