// job_memory.h - what the agent and the aggregator of a job take on this machine, beside mapped files, and their bounds.
#ifndef SONDE_LAUNCH_JOB_MEMORY_H
#define SONDE_LAUNCH_JOB_MEMORY_H

#include <stdint.h>
#include <sys/types.h>

struct job_memory {
    uint64_t agent_bytes, agent_limit_bytes; // 0 = there is none now, or the kernel does not say
    uint64_t aggregator_bytes, aggregator_limit_bytes;
};

// Of the children of the job's launcher, as the kernel lists them now: one that was started again is found, too.
void job_memory_read(pid_t launcher, struct job_memory *out);

#endif
