// gpu_backend.h - the GPUs of one vendor: the interface between gpu.c and a backend (a library, or
// the kernel's files).
//
//   gpu.c              the sources gpu-nvidia, gpu-amd, gpu-intel: threads, deadlines, series
//   gpu_backend.c          the vendors, the choice of a backend, and what all backends need
//   gpu_holders.c      the processes of the job that hold memory of a GPU
//   nvidia.c           NVML          (nvml.h, nvidia_device.c)
//   amd.c              ROCm SMI      (rocm_smi.h)
//   intel.c            Level Zero    (level_zero.h)
//   gpu_sysfs.c        amdgpu, i915 and xe in /sys, and what the libraries leave out
//
// gpu.c uses the first backend of a vendor that starts and has a GPU, and no later one. It calls
// all functions of a backend in its own threads, where they may block without limit.
#ifndef SONDE_COLLECT_GPU_BACKEND_H
#define SONDE_COLLECT_GPU_BACKEND_H

#include "collect/catalogue.h"
#include "collect/job_process.h"

enum {
    GPU_ROW_FIRST = METRIC_GPU_UP, // the catalogue's rows of one GPU, in the catalogue's order
    GPU_ROWS = METRIC_GPU_FP16_ACTIVE + 1 - GPU_ROW_FIRST,
    GPU_UUID_SIZE = 96,
    GPU_PARTS_MAX = 16, // MIG instances per GPU; the driver's own limit is 7 today
    GPU_WORDS_MAX = 160,
    GPU_WHY_MAX = 256,    // of all backends of a vendor together
    GPU_BACKENDS_MAX = 2, // of a vendor
    GPU_HOLDERS_MAX = 64, // processes per GPU or part that are listed one by one
};

// The result of reading a GPU.
struct gpu_answer {
    bool lost;         // the GPU is lost for good: gpu.c does not read it again
    bool down;         // the GPU does not respond now
    const char *words; // a constant error message; NULL = none
};

// A process that holds memory of a GPU.
struct gpu_holder {
    uint64_t pid;
    double bytes;

    // For gpu.c:
    bool of_job;
    int16_t place; // of its series in the set, -1 = none
    char command[JOB_COMMAND_SIZE];
};

// One GPU, or a part of it with metrics of its own. Used by one thread at a time.
struct gpu_device {
    char uuid[GPU_UUID_SIZE];
    char part[12]; // "" or, for a part, its index within its GPU (tag mig)
    // rows that are not available; every other row gets a series after the first sample
    bool off[GPU_ROWS];
    double values[GPU_ROWS]; // by row - GPU_ROW_FIRST; missing before each sample
    // processes with pid and bytes, if the backend knows them; emptied before each sample
    struct gpu_holder holders[GPU_HOLDERS_MAX];
    size_t holder_count;
    void *own; // private to the backend

    // For gpu.c:
    bool listed[GPU_ROWS];
    int16_t place[GPU_ROWS];                  // of each row's series in the set, -1 = none
    struct gpu_holder known[GPU_HOLDERS_MAX]; // as of the last sample
    size_t known_count;
};

struct gpu_backend {
    const char *name; // tag library of gpu_count

    // Starts the backend. Returns false with `why` if it is not installed, does not work or finds
    // no GPU; *library is then unused. `root` as in collect_options; it stays valid until `stop`.
    bool (*start)(const char *root, void **library, unsigned *count, char why[GPU_WORDS_MAX]);

    // `lost`: a GPU is lost, and a call of the driver may never return.
    void (*stop)(void *library, bool lost);

    // Opens GPU `index`: devices[0], followed by its parts. Sets *count to their number, or leaves
    // it 0 on failure.
    struct gpu_answer (*open)(void *library, unsigned index,
                              struct gpu_device devices[1 + GPU_PARTS_MAX], size_t *count);

    // Reads all available values into d->values. Sets `words` only if it got none.
    struct gpu_answer (*sample)(void *library, struct gpu_device *d);

    void (*close)(void *library, struct gpu_device *d);
};

extern const struct gpu_backend gpu_nvml, gpu_rocm_smi, gpu_level_zero, gpu_sysfs_amd,
    gpu_sysfs_intel;

enum gpu_make { GPU_NVIDIA, GPU_AMD, GPU_INTEL, GPU_MAKES };

struct gpu_vendor {
    const char *name, *tag; // "NVIDIA", "nvidia"
    const struct gpu_backend *ways[GPU_BACKENDS_MAX];
};
extern const struct gpu_vendor gpu_vendors[GPU_MAKES];

// Starts the vendor's first backend that has a GPU, and sets *count to the number of GPUs. Returns
// NULL with `why` if none has.
const struct gpu_backend *gpu_find_backend(const struct gpu_vendor *vendor, const char *root,
                                           void **library, unsigned *count, char why[GPU_WHY_MAX]);

static inline void gpu_put(struct gpu_device *d, enum metric_symbol row, double value)
{
    d->values[row - GPU_ROW_FIRST] = value;
}

static inline double gpu_get(const struct gpu_device *d, enum metric_symbol row)
{
    return d->values[row - GPU_ROW_FIRST];
}

// Sets whether rows first … last are available.
void gpu_offer(struct gpu_device *d, enum metric_symbol first, enum metric_symbol last,
               bool offered);

// Memory in use, of `total` bytes, with its share.
void gpu_put_memory(struct gpu_device *d, double total, double used);

// A function of a library: its place in a struct of pointers, and its symbols, newest first,
// separated by blanks.
struct gpu_symbol {
    size_t offset;
    const char *names;
};

// Opens the library `name` and finds its functions (NULL for missing ones). Returns NULL with `why`
// on failure.
void *gpu_library(const char *name, const struct gpu_symbol *symbols, size_t count, void *functions,
                  char why[GPU_WORDS_MAX]);

// The library to open: the environment variable's or, unless tests set another root folder, `name`.
// Otherwise returns NULL with `why`.
const char *gpu_library_name(const char *variable, const char *name, const char *root,
                             char why[GPU_WORDS_MAX]);

#endif
