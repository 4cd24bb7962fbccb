// amd.c - the backend for AMD GPUs with ROCm SMI. It reads metrics that the library lacks (clocks,
// throttling, XGMI, processes) from the kernel's files of the same GPU.
//
// A row whose first reading fails gets no series, unless the library was only busy. The backend
// does not read PCIe traffic, because the library stops for a second to measure it.
#include "collect/gpu_sysfs.h"
#include "collect/rocm_smi.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ADDRESS_SIZE = 32 };
static const double WATTS_PER_MICROWATT = 1e-6, JOULES_PER_MICROJOULE = 1e-6,
                    CELSIUS_PER_MILLICELSIUS = 1e-3;

static const struct gpu_symbol symbols[] = {
#define FUNCTION(member, arguments, names) {offsetof(struct rocm_smi, member), names},
    ROCM_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

struct amd {
    struct rocm_smi smi;
    void *library;
    const char *root;
};

enum { READINGS = 7 };
struct amd_gpu {
    uint32_t index;
    bool begun;
    bool off[READINGS];
    struct sysfs_gpu *files; // NULL = no files
};

static const char *words_of(int status)
{
    switch ((enum rocm_status)status) {
    case ROCM_SUCCESS:
        return NULL;
    case ROCM_INVALID_ARGS:
    case ROCM_NOT_SUPPORTED:
    case ROCM_NOT_YET_IMPLEMENTED:
        return "not supported by this GPU";
    case ROCM_FILE_ERROR:
        return "the amdgpu driver does not answer";
    case ROCM_PERMISSION:
        return "no permission; ask the administrator for access to /dev/kfd and /dev/dri (group "
               "render or video)";
    case ROCM_INIT_ERROR:
        return "the amdgpu driver is not loaded";
    case ROCM_BUSY:
        return "the library is busy with another process";
    }
    return "ROCm SMI failed for a reason of its own";
}

// ---- start ----

static void stop(void *library, bool lost)
{
    struct amd *amd = library;
    if (!lost && amd->smi.shut_down)
        amd->smi.shut_down();
    if (!lost)
        dlclose(amd->library);
    free(amd);
}

// ROCm installs its libraries into a folder of its own, which the dynamic loader does not always
// search.
static void *open_library(struct amd *amd, const char *root, char why[GPU_WORDS_MAX])
{
    static const char *const names[] = {"librocm_smi64.so.7", "librocm_smi64.so.6",
                                        "librocm_smi64.so.5", "librocm_smi64.so.1",
                                        "librocm_smi64.so",   "/opt/rocm/lib/librocm_smi64.so"};
    void *library = NULL;
    const char *wanted = gpu_library_name("SONDE_ROCM_SMI", "", root, why);
    if (wanted && wanted[0])
        return gpu_library(wanted, symbols, sizeof symbols / sizeof *symbols, &amd->smi, why);
    for (size_t i = 0; wanted && i < sizeof names / sizeof *names && !library; i++)
        library = gpu_library(names[i], symbols, sizeof symbols / sizeof *symbols, &amd->smi, why);
    return library;
}

static bool start(const char *root, void **library, unsigned *count, char why[GPU_WORDS_MAX])
{
    char wrong[GPU_WORDS_MAX];
    struct amd *amd = calloc(1, sizeof *amd);
    if (!amd) {
        snprintf(why, GPU_WORDS_MAX, "no memory");
        return false;
    }
    amd->root = root;
    amd->library = open_library(amd, root, wrong);
    if (!amd->library) {
        snprintf(why, GPU_WORDS_MAX, "no ROCm SMI: %.*s", GPU_WORDS_MAX - 32, wrong);
    } else if (!amd->smi.init || !amd->smi.device_count) {
        snprintf(why, GPU_WORDS_MAX,
                 "no ROCm SMI: the library lacks rsmi_init or rsmi_num_monitor_devices");
        dlclose(amd->library);
    } else {
        uint32_t found = 0;
        int failed = amd->smi.init(ROCM_INIT_THREAD_LOCKS);
        bool up = failed == ROCM_SUCCESS;
        failed = up ? amd->smi.device_count(&found) : failed;
        *count = found;
        *library = amd;
        if (!failed && found)
            return true;
        snprintf(why, GPU_WORDS_MAX, "ROCm SMI: %.*s", GPU_WORDS_MAX - 32,
                 failed ? words_of(failed) : "there is no AMD GPU on this node");
        if (up && amd->smi.shut_down)
            amd->smi.shut_down();
        dlclose(amd->library);
    }
    free(amd);
    return false;
}

// ---- readings: a status, ROCM_NOT_SUPPORTED where the library lacks the function ----

static int read_busy(const struct rocm_smi *smi, uint32_t index, struct gpu_device *d)
{
    uint32_t percent;
    int status = smi->busy ? smi->busy(index, &percent) : ROCM_NOT_SUPPORTED;
    if (status == ROCM_SUCCESS)
        gpu_put(d, METRIC_GPU_UTILIZATION, percent);
    return status;
}

static int read_memory_busy(const struct rocm_smi *smi, uint32_t index, struct gpu_device *d)
{
    uint32_t percent;
    int status = smi->memory_busy ? smi->memory_busy(index, &percent) : ROCM_NOT_SUPPORTED;
    if (status == ROCM_SUCCESS)
        gpu_put(d, METRIC_GPU_MEMORY_ACTIVITY, percent);
    return status;
}

static int read_memory(const struct rocm_smi *smi, uint32_t index, struct gpu_device *d)
{
    uint64_t total, used;
    if (!smi->memory_total || !smi->memory_used)
        return ROCM_NOT_SUPPORTED;
    int status = smi->memory_total(index, ROCM_MEMORY_VRAM, &total);
    if (status == ROCM_SUCCESS)
        status = smi->memory_used(index, ROCM_MEMORY_VRAM, &used);
    if (status == ROCM_SUCCESS)
        gpu_put_memory(d, (double)total, (double)used);
    return status;
}

// Newer GPUs report the current power, older ones an average over a short time.
static int read_power(const struct rocm_smi *smi, uint32_t index, struct gpu_device *d)
{
    uint64_t microwatts;
    int status = smi->socket_power ? smi->socket_power(index, &microwatts) : ROCM_NOT_SUPPORTED;
    if (status != ROCM_SUCCESS && smi->power)
        status = smi->power(index, 0, &microwatts);
    if (status == ROCM_SUCCESS)
        gpu_put(d, METRIC_GPU_POWER, (double)microwatts * WATTS_PER_MICROWATT);
    return status;
}

static int read_energy(const struct rocm_smi *smi, uint32_t index, struct gpu_device *d)
{
    uint64_t count, time_ns;
    float microjoules; // per count
    int status =
        smi->energy ? smi->energy(index, &count, &microjoules, &time_ns) : ROCM_NOT_SUPPORTED;
    if (status == ROCM_SUCCESS)
        gpu_put(d, METRIC_GPU_ENERGY, (double)count * (double)microjoules * JOULES_PER_MICROJOULE);
    return status;
}

static int read_temperatures(const struct rocm_smi *smi, uint32_t index, struct gpu_device *d)
{
    int64_t millicelsius;
    if (!smi->temperature)
        return ROCM_NOT_SUPPORTED;
    int status =
        smi->temperature(index, ROCM_TEMPERATURE_EDGE, ROCM_TEMPERATURE_CURRENT, &millicelsius);
    if (status != ROCM_SUCCESS)
        status = smi->temperature(index, ROCM_TEMPERATURE_JUNCTION, ROCM_TEMPERATURE_CURRENT,
                                  &millicelsius);
    if (status == ROCM_SUCCESS)
        gpu_put(d, METRIC_GPU_TEMPERATURE, (double)millicelsius * CELSIUS_PER_MILLICELSIUS);
    if (smi->temperature(index, ROCM_TEMPERATURE_MEMORY, ROCM_TEMPERATURE_CURRENT, &millicelsius) ==
        ROCM_SUCCESS)
        gpu_put(d, METRIC_GPU_MEMORY_TEMPERATURE, (double)millicelsius * CELSIUS_PER_MILLICELSIUS);
    return status;
}

static int read_errors(const struct rocm_smi *smi, uint32_t index, struct gpu_device *d)
{
    struct rocm_errors errors = {0};
    int status = smi->errors ? smi->errors(index, ROCM_BLOCK_MEMORY, &errors) : ROCM_NOT_SUPPORTED;
    if (status == ROCM_SUCCESS) {
        gpu_put(d, METRIC_GPU_ECC_CORRECTED, (double)errors.corrected);
        gpu_put(d, METRIC_GPU_ECC_UNCORRECTED, (double)errors.uncorrected);
    }
    return status;
}

static const struct {
    enum metric_symbol first, last;
    int (*read)(const struct rocm_smi *, uint32_t, struct gpu_device *);
} readings[READINGS] = {
    {METRIC_GPU_UTILIZATION, METRIC_GPU_UTILIZATION, read_busy},
    {METRIC_GPU_MEMORY_ACTIVITY, METRIC_GPU_MEMORY_ACTIVITY, read_memory_busy},
    {METRIC_GPU_MEMORY_TOTAL, METRIC_GPU_MEMORY_USED_PERCENT, read_memory},
    {METRIC_GPU_POWER, METRIC_GPU_POWER, read_power},
    {METRIC_GPU_ENERGY, METRIC_GPU_ENERGY, read_energy},
    {METRIC_GPU_TEMPERATURE, METRIC_GPU_MEMORY_TEMPERATURE, read_temperatures},
    {METRIC_GPU_ECC_CORRECTED, METRIC_GPU_ECC_UNCORRECTED, read_errors},
};

// ---- one GPU ----

static struct gpu_answer open_gpu(void *library, unsigned index,
                                  struct gpu_device devices[1 + GPU_PARTS_MAX], size_t *count)
{
    const struct amd *amd = library;
    struct amd_gpu *gpu = calloc(1, sizeof *gpu);
    uint64_t id;
    if (!gpu)
        return (struct gpu_answer){.words = "no memory"};
    gpu->index = index;
    if (amd->smi.pci_id && amd->smi.pci_id(index, &id) == ROCM_SUCCESS) {
        char address[ADDRESS_SIZE];
        snprintf(address, sizeof address, "%04x:%02x:%02x.%x", (unsigned)(id >> 32),
                 (unsigned)(id >> 8 & 0xff), (unsigned)(id >> 3 & 0x1f), (unsigned)(id & 7));
        snprintf(devices->uuid, sizeof devices->uuid, "%s", address);
        gpu->files = sysfs_gpu_at(amd->root, address);
    }
    if (amd->smi.unique_id && amd->smi.unique_id(index, &id) == ROCM_SUCCESS)
        snprintf(devices->uuid, sizeof devices->uuid, "%016" PRIx64, id);
    devices->own = gpu;
    *count = 1;
    gpu_offer(devices, METRIC_GPU_UTILIZATION, METRIC_GPU_FP16_ACTIVE, false);
    return (struct gpu_answer){0};
}

static void offer_what_there_is(const struct amd_gpu *gpu, struct gpu_device *d)
{
    for (int row = 0; row < GPU_ROWS; row++)
        if (!store_is_missing(d->values[row]))
            d->off[row] = false;
    for (int i = 0; i < READINGS; i++)
        if (!gpu->off[i])
            gpu_offer(d, readings[i].first, readings[i].first, true);
    if (gpu->files)
        sysfs_gpu_offer(gpu->files, d);
}

static struct gpu_answer sample(void *library, struct gpu_device *d)
{
    const struct amd *amd = library;
    struct amd_gpu *gpu = d->own;
    int failed = ROCM_NOT_SUPPORTED;
    bool any = false;
    for (int i = 0; i < READINGS; i++) {
        if (gpu->off[i])
            continue;
        int status = readings[i].read(&amd->smi, gpu->index, d);
        any = any || status == ROCM_SUCCESS;
        failed = status == ROCM_SUCCESS ? failed : status;
        gpu->off[i] = !gpu->begun && status != ROCM_SUCCESS && status != ROCM_BUSY;
    }
    if (gpu->files)
        any = sysfs_gpu_fill(gpu->files, d) || any;
    if (!gpu->begun)
        offer_what_there_is(gpu, d);
    gpu->begun = true;
    return any ? (struct gpu_answer){0}
               : (struct gpu_answer){.down = true, .words = words_of(failed)};
}

static void close_gpu(void *library, struct gpu_device *d)
{
    (void)library;
    struct amd_gpu *gpu = d->own;
    sysfs_gpu_close(gpu->files);
    free(gpu);
}

const struct gpu_backend gpu_rocm_smi = {"rocm_smi", start, stop, open_gpu, sample, close_gpu};
