// probe_gpu.c - the probe of GPUs, through their maker's own library.
//
// The GPU measures the times, between events in a queue that is filled in advance: they exclude
// delays of the processor, but include other programs on the GPU. Each kind of work runs as a
// batch, and the median of its stretches is the time:
//
//   warm-up  │ stretch │ stretch │ stretch │ stretch │ stretch │
//            event     event     event     event     event     event
//
// A stretch is a few launches; it takes longer than the time slice of a program on the GPU.
//
// If its stretches differ (a clock still rises, a program starts or ends), another batch follows, a
// few at most; the last batch counts. Each maker has its own work: work_cuda.c, work_hip.c.
#include "detect/gpu_driver.h"
#include "detect/median.h"
#include "detect/probe.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 256,
    // on every multiprocessor: eight chains of 1,024 threads keep its 128 lanes busy
    BLOCKS_EACH = 4,
    // 2,048 threads with 16 bytes in flight each are 32 KB per multiprocessor; 4.8 TB/s in 700 ns
    // are 25 KB for each of 132.
    MEMORY_BLOCKS_EACH = 8,
    STRETCHES = 5,
    BATCHES_MAX = 4,
    LAUNCHES = 4, // of the arithmetic per stretch
    WARM_UP = 12, // before the first batch: the clock rises while there is work
    MEMORY_WARM_UP = 4,
    VECTOR_BYTES = 16,
};

// a batch's stretches are alike if the longest takes at most this multiple of the shortest
static const double ALIKE = 1.02;

static const size_t MEMORY_READ = (size_t)4 << 30; // bytes per stretch: 1 ms on an H200

// ---------------------------------------------------------------- the library

// Error codes of an intact GPU that is unavailable now.
static const struct {
    int error;
    const char *words;
} busy[] = {
    {GPU_OUT_OF_MEMORY, "its memory is full"},
    {GPU_UNAVAILABLE, "another program has it to itself, or its compute mode permits none"},
    {GPU_MPS_NOT_READY, "its MPS server is not ready"},
    {GPU_MPS_CLIENTS, "its MPS server takes no more programs"},
    {GPU_MPS_CONNECTIONS, "its MPS server takes no more connections"},
};

static int failed(const struct gpu_driver *g, int result, const char *what, struct error *e)
{
    const char *name = NULL, *words = NULL;
    g->error_name(result, &name);
    for (size_t i = 0; i < sizeof busy / sizeof *busy && !words; i++)
        words = busy[i].error == result ? busy[i].words : NULL;
    return error_set(e, words ? -EBUSY : -EIO, "%s: %s (%d)%s%s", what, name ? name : "an error",
                     result, words ? ": " : "", words ? words : "");
}

void *gpu_library_open(const char *const names[GPU_LIBRARY_NAMES_MAX])
{
    void *library = NULL;
    for (int i = 0; i < GPU_LIBRARY_NAMES_MAX && names[i] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

// Opens a driver. Returns its number of devices, or a negative errno with a message; -ENOENT if it
// is not installed.
static int open_driver(const struct gpu_make *make, struct gpu_driver *g, struct error *e)
{
    void *library = gpu_library_open(make->libraries);
    if (!library)
        return error_set(e, -ENOENT, "there is no %s", make->libraries[0]);
    g->make = make;
#define GPU_FIND(name, cuda_symbol, hip_symbol, parameters)                           \
    {                                                                                 \
        const char *symbol = make->hip ? hip_symbol : cuda_symbol;                    \
        void *found = dlsym(library, symbol);                                         \
        if (!found)                                                                   \
            return error_set(e, -ENOSYS, "%s has no %s", make->libraries[0], symbol); \
        memcpy(&g->name, &found, sizeof found);                                       \
    }
    GPU_FUNCTIONS(GPU_FIND)
#undef GPU_FIND
    // By default CUDA numbers the fastest GPU 0; all other tools number them in the order of the
    // bus.
    if (!make->hip)
        setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
    int count = 0, result = g->init(0);
    if (result == GPU_NO_DEVICE)
        return 0;
    if (result != GPU_SUCCESS)
        return failed(g, result, "the driver does not start", e);
    result = g->device_count(&count);
    return result == GPU_SUCCESS || result == GPU_NO_DEVICE
               ? count
               : failed(g, result, "the driver does not count its devices", e);
}

// Finds the driver with devices; without any, the one with the most informative error.
static int find_driver(struct gpu_driver *g, struct error *e)
{
    static const struct gpu_make *const makes[] = {&gpu_make_cuda, &gpu_make_hip};
    int best = -ENOENT;
    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++) {
        struct error why = {0};
        int count = open_driver(makes[i], g, &why);
        if (count > 0)
            return count;
        if (count == -ENOENT || best != -ENOENT)
            continue;
        best = count;
        *e = why;
    }
    return best == -ENOENT
               ? error_set(
                     e, best,
                     "there is neither libcuda.so.1 (NVIDIA's driver) nor libamdhip64 (AMD's ROCm)")
               : best;
}

int probe_gpu_count(struct error *e)
{
    struct gpu_driver g;
    return find_driver(&g, e);
}

// ---------------------------------------------------------------- the work

struct kernel {
    void *function;
    unsigned blocks;
    void **parameters;
    unsigned launches, warm_up;
};

// Queues a batch and waits for its end.
static int time_batch(const struct gpu_driver *g, const struct kernel *k,
                      void *const events[STRETCHES + 1], unsigned warm_up,
                      double seconds[STRETCHES])
{
    int result = GPU_SUCCESS;
    unsigned launches = warm_up + STRETCHES * k->launches;
    for (unsigned i = 0; i < launches && result == GPU_SUCCESS; i++) {
        if (i >= warm_up && (i - warm_up) % k->launches == 0)
            result = g->event_record(events[(i - warm_up) / k->launches], NULL);
        if (result == GPU_SUCCESS)
            result = g->launch(k->function, k->blocks, 1, 1, THREADS, 1, 1, 0, NULL, k->parameters,
                               NULL);
    }
    if (result == GPU_SUCCESS)
        result = g->event_record(events[STRETCHES], NULL);
    if (result == GPU_SUCCESS)
        result = g->event_wait(events[STRETCHES]);
    for (unsigned i = 0; i < STRETCHES && result == GPU_SUCCESS; i++) {
        float ms = 0;
        result = g->event_elapsed(&ms, events[i], events[i + 1]);
        seconds[i] = (double)ms / 1e3;
    }
    return result;
}

// Times a stretch of the kernel, in seconds of the device's own clock.
static int time_kernel(const struct gpu_driver *g, const struct kernel *k, double *seconds)
{
    void *events[STRETCHES + 1]; // freed with the context
    double sorted[STRETCHES];
    int result = GPU_SUCCESS;
    for (unsigned i = 0; i <= STRETCHES && result == GPU_SUCCESS; i++)
        result = g->event_create(&events[i], GPU_EVENT_BLOCKING);
    bool alike = false;
    for (unsigned batch = 0; batch < BATCHES_MAX && !alike && result == GPU_SUCCESS; batch++) {
        // At least one warm-up launch: while it runs, the rest is queued.
        result = time_batch(g, k, events, batch ? 1 : k->warm_up, sorted);
        if (result == GPU_SUCCESS) {
            median_sort(sorted, STRETCHES);
            *seconds = median_of(sorted, STRETCHES);
            alike = sorted[STRETCHES - 1] <= sorted[0] * ALIKE;
        }
    }
    return result;
}

static int time_compute(const struct gpu_driver *g, void *module, unsigned blocks, gpu_memory out,
                        double *seconds)
{
    unsigned rounds = g->make->rounds;
    void *parameters[] = {&out, &rounds};
    struct kernel k = {
        .blocks = blocks, .parameters = parameters, .launches = LAUNCHES, .warm_up = WARM_UP};
    int result = g->module_function(&k.function, module, "sonde_compute");
    return result == GPU_SUCCESS ? time_kernel(g, &k, seconds) : result;
}

// Reads half as much if memory is short; less than that would only time the cache. If even half
// does not fit, returns success and NaN.
static int time_memory(const struct gpu_driver *g, void *module, unsigned blocks, gpu_memory out,
                       double *seconds)
{
    *seconds = NAN;
    gpu_memory data = 0;
    size_t bytes = g->make->memory_bytes;
    int result = g->memory_alloc(&data, bytes);
    if (result == GPU_OUT_OF_MEMORY) {
        bytes /= 2;
        result = g->memory_alloc(&data, bytes);
    }
    if (result != GPU_SUCCESS)
        return result == GPU_OUT_OF_MEMORY ? GPU_SUCCESS : result;
    result = g->memory_set(data, 0, bytes / sizeof(uint32_t));
    uint64_t vectors = bytes / VECTOR_BYTES;
    void *parameters[] = {&data, &vectors, &out};
    struct kernel k = {.blocks = blocks,
                       .parameters = parameters,
                       .launches = (unsigned)(MEMORY_READ / bytes),
                       .warm_up = MEMORY_WARM_UP};
    if (result == GPU_SUCCESS)
        result = g->module_function(&k.function, module, "sonde_memory");
    if (result == GPU_SUCCESS)
        result = time_kernel(g, &k, seconds);
    int freed = g->memory_free(data);
    return result == GPU_SUCCESS ? freed : result;
}

static int load_work(const struct gpu_driver *g, void **module, struct error *e)
{
    const char *work;
    char *allocated = NULL;
    int status = g->make->make_work(&work, &allocated, e);
    if (status < 0)
        return status;
    int result = g->module_load(module, work);
    free(allocated);
    return result == GPU_SUCCESS ? 0 : failed(g, result, "the work cannot be loaded", e);
}

static int run_in_context(const struct gpu_driver *g, int device, struct probe_result *out,
                          struct error *e)
{
    void *module;
    gpu_memory result_at;
    int processors = 0, status = load_work(g, &module, e);
    if (status < 0)
        return status;
    int result = g->device_attribute(&processors, g->make->multiprocessors, device);
    if (result == GPU_SUCCESS)
        result = g->memory_alloc(&result_at, sizeof(float));
    if (result != GPU_SUCCESS)
        return failed(g, result, "the work cannot begin", e);
    unsigned each = (unsigned)(processors > 0 ? processors : 1);
    result = time_compute(g, module, each * BLOCKS_EACH, result_at, &out->compute_s);
    if (result == GPU_SUCCESS)
        result = time_memory(g, module, each * MEMORY_BLOCKS_EACH, result_at, &out->memory_s);
    int freed = g->memory_free(result_at);
    if (result == GPU_SUCCESS)
        result = freed;
    return result == GPU_SUCCESS ? 0 : failed(g, result, "the work failed", e);
}

// Writes it like nvidia-smi, GPU-8-4-4-4-12, or like rocm-smi, GPU-16.
static void write_uuid(const struct gpu_make *make, const unsigned char bytes[GPU_UUID_BYTES],
                       char out[PROBE_UUID_MAX])
{
    size_t at = (size_t)snprintf(out, PROBE_UUID_MAX, "GPU-");
    for (int i = 0; i < GPU_UUID_BYTES; i++) {
        bool dash = !make->uuid_is_text && (i == 4 || i == 6 || i == 8 || i == 10);
        if (!make->uuid_is_text)
            at += (size_t)snprintf(out + at, PROBE_UUID_MAX - at, "%s%02x", dash ? "-" : "",
                                   bytes[i]);
        else if (isalnum(bytes[i]))
            out[at++] = (char)bytes[i];
    }
    out[at] = 0;
}

int probe_gpu_run(int index, struct probe_result *out, struct error *e)
{
    struct gpu_driver g;
    int device, count = find_driver(&g, e);
    if (count < 0)
        return count;
    if (index >= count || g.device_get(&device, index) != GPU_SUCCESS)
        return error_set(e, -ENOENT, "there is no GPU %d", index);
    unsigned char uuid[GPU_UUID_BYTES];
    if (g.device_uuid(uuid, device) == GPU_SUCCESS)
        write_uuid(g.make, uuid, out->uuid);
    if (g.device_name(out->name, sizeof out->name, device) != GPU_SUCCESS)
        out->name[0] = 0;
    void *context;
    int result = g.context_create(&context, 0, device);
    if (result != GPU_SUCCESS)
        return failed(&g, result, "the GPU cannot be used", e);
    int status = run_in_context(&g, device, out, e);
    g.context_destroy(context);
    return status;
}
