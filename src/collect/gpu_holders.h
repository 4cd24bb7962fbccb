// gpu_holders.h - finds the processes of the job that hold memory of a GPU.
#ifndef SONDE_COLLECT_GPU_HOLDERS_H
#define SONDE_COLLECT_GPU_HOLDERS_H

#include "collect/gpu_backend.h"
#include "collect/source.h"

// Updates d->known from d->holders and puts the bytes of processes with a series. `proc`: a
// descriptor of /proc; without one (-1), no process belongs to the job. Sets s->changed if a
// process of the job came or went: it then gets or loses its series.
void gpu_holders_take(struct source *s, int proc, const struct job_mark *job, struct gpu_device *d,
                      double *values);

#endif
