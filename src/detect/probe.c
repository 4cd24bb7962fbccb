// probe.c - the processor's probe, and the choice of the kind of device.
#include "detect/probe.h"

#include "base/clock.h"
#include "detect/median.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHAINS = 8, // of multiply-adds: as many as the latency of an addition on any current core
    // rounds of each chain per stretch: some 12 ms, several time slices of a scheduler
    ROUNDS = 3000000,
    MEMORY_BYTES = 32 << 20,
    PASSES = 2, // per stretch
    STRETCHES = 3,
    STRETCHES_MAX = 9, // if stretches differ in length
};

static int cpu_count(struct error *e)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return error_set(e, -errno, "cannot ask for the cores of this process: %s",
                         strerror(errno));
    return CPU_COUNT(&allowed);
}

// Pins to the index-th of the cores that this process may use.
static int pin(int index, struct error *e)
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return error_set(e, -errno, "cannot ask for the cores of this process: %s",
                         strerror(errno));
    int core = -1;
    int left = index;
    for (size_t i = 0; i < CPU_SETSIZE && core < 0; i++)
        if (CPU_ISSET(i, &allowed) && left-- == 0)
            core = (int)i;
    if (core < 0)
        return error_set(e, -ENOENT, "there is no core %d: this process may use %d", index,
                         CPU_COUNT(&allowed));
    CPU_SET((size_t)core, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        return error_set(e, -errno, "cannot run on core %d: %s", core, strerror(errno));
    return 0;
}

// stretches are alike if the longest takes at most this multiple of the shortest
static const double ALIKE = 1.1;
static const double DIFFER_MAX_S = 1; // time limit for repeating stretches that differ, in total

// Keeps the result of the work, so that no compiler removes it.
static volatile double kept;

static void compute(long rounds)
{
    double chain[CHAINS];
    for (int k = 0; k < CHAINS; k++)
        chain[k] = k;
    for (long i = 0; i < rounds; i++)
        for (int k = 0; k < CHAINS; k++)
            chain[k] = chain[k] * 0.999999 + 0.001;
    double sum = 0;
    for (int k = 0; k < CHAINS; k++)
        sum += chain[k];
    kept = sum;
}

static void compute_stretch(const uint64_t *unused)
{
    (void)unused;
    compute(ROUNDS);
}

static void memory_stretch(const uint64_t *data)
{
    uint64_t sum = 0;
    for (int pass = 0; pass < PASSES; pass++)
        for (size_t i = 0; i < MEMORY_BYTES / sizeof *data; i += 8) // one read per cache line
            sum += data[i];
    kept = (double)sum;
}

// A process on a busy core gets its share in time slices, so stretches differ. If they do, more of
// them are timed, within a short time limit.
static double time_stretches(void (*stretch)(const uint64_t *data), const uint64_t *data)
{
    double sorted[STRETCHES_MAX], all_s = 0;
    size_t count = 0;
    do {
        int64_t start_ns = clock_monotonic_ns();
        stretch(data);
        sorted[count] = (double)(clock_monotonic_ns() - start_ns) / NS_PER_S;
        all_s += sorted[count];
        median_sort(sorted, ++count);
    } while (count < STRETCHES || (count < STRETCHES_MAX && all_s < DIFFER_MAX_S &&
                                   sorted[count - 1] > sorted[0] * ALIKE));
    return median_of(sorted, count);
}

static int cpu_run(int index, struct probe_result *out, struct error *e)
{
    int status = pin(index, e);
    if (status < 0)
        return status;
    compute(ROUNDS / 12); // wakes up the core
    out->compute_s = time_stretches(compute_stretch, NULL);
    out->memory_s = NAN;
    uint64_t *data = malloc(MEMORY_BYTES);
    if (!data)
        return 0;
    memset(data, 1, MEMORY_BYTES); // touches the pages before the timed work
    out->memory_s = time_stretches(memory_stretch, data);
    free(data);
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
