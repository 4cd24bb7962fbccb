// job_memory.h - the memory of a job's agent and aggregator on this machine (without mapped files),
// and its limits.
#ifndef SONDE_LAUNCH_JOB_MEMORY_H
#define SONDE_LAUNCH_JOB_MEMORY_H

#include <stdint.h>
#include <sys/types.h>

struct job_memory {
    // 0: no agent runs now, or the kernel does not report its memory
    uint64_t agent_bytes, agent_limit_bytes;
    uint64_t aggregator_bytes, aggregator_limit_bytes;
};

// Reads the present children of the job's launcher, so it finds restarted ones, too.
void job_memory_read(pid_t launcher, struct job_memory *out);

#endif
