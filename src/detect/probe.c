// probe.c - the processor's probe, and which kind is asked for.
#include "detect/probe.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHAINS = 8,       // of multiply-adds, as deep as an addition takes on any core there is
    ROUNDS = 3000000, // of each chain: some 12 ms, several times what a scheduler gives at a time
    MEMORY_BYTES = 32 << 20,
    PASSES = 2,
};

static int cpu_count(struct error *e)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return error_set(e, -errno, "cannot ask for the cores of this process: %s", strerror(errno));
    return CPU_COUNT(&allowed);
}

// The index-th of the cores that this process may use.
static int pin(int index, struct error *e)
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return error_set(e, -errno, "cannot ask for the cores of this process: %s", strerror(errno));
    int core = -1;
    int left = index;
    for (size_t i = 0; i < CPU_SETSIZE && core < 0; i++)
        if (CPU_ISSET(i, &allowed) && left-- == 0)
            core = (int)i;
    if (core < 0)
        return error_set(e, -ENOENT, "there is no core %d: this process may use %d", index, CPU_COUNT(&allowed));
    CPU_SET((size_t)core, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        return error_set(e, -errno, "cannot run on core %d: %s", core, strerror(errno));
    return 0;
}

// What the work comes to is kept, so that no compiler leaves it out.
static volatile double kept;

static double compute_s(long rounds)
{
    double chain[CHAINS];
    for (int k = 0; k < CHAINS; k++)
        chain[k] = k;
    int64_t start_ns = clock_monotonic_ns();
    for (long i = 0; i < rounds; i++)
        for (int k = 0; k < CHAINS; k++)
            chain[k] = chain[k] * 0.999999 + 0.001;
    int64_t end_ns = clock_monotonic_ns();
    double sum = 0;
    for (int k = 0; k < CHAINS; k++)
        sum += chain[k];
    kept = sum;
    return (double)(end_ns - start_ns) / NS_PER_S;
}

static double memory_s(void)
{
    size_t count = MEMORY_BYTES / sizeof(uint64_t);
    uint64_t *data = malloc(MEMORY_BYTES), sum = 0;
    if (!data)
        return NAN;
    memset(data, 1, MEMORY_BYTES); // the pages are made here, not in the work
    int64_t start_ns = clock_monotonic_ns();
    for (int pass = 0; pass < PASSES; pass++)
        for (size_t i = 0; i < count; i += 8) // a cache line
            sum += data[i];
    int64_t end_ns = clock_monotonic_ns();
    kept = (double)sum;
    free(data);
    return (double)(end_ns - start_ns) / NS_PER_S;
}

static int cpu_run(int index, struct probe_result *out, struct error *e)
{
    int status = pin(index, e);
    if (status < 0)
        return status;
    compute_s(ROUNDS / 12); // the core wakes up
    out->compute_s = compute_s(ROUNDS);
    out->memory_s = memory_s();
    return 0;
}

int probe_count(enum probe_kind kind, struct error *e)
{
    return kind == PROBE_GPU ? probe_gpu_count(e) : cpu_count(e);
}

int probe_run(enum probe_kind kind, int index, struct probe_result *out, struct error *e)
{
    *out = (struct probe_result){0};
    return kind == PROBE_GPU ? probe_gpu_run(index, out, e) : cpu_run(index, out, e);
}
