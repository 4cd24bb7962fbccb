// intel.c - the backend for Intel GPUs with Sysman of Level Zero. It reads metrics that the library
// lacks from the kernel's files of the same GPU.
//
// A GPU has parts that are read one by one: engines, memory modules, sensors … They are listed
// once. If parts exist for the whole GPU and for each tile, those of the whole are used. If only
// tiles have them, they are combined: memory and traffic are summed, activity is the mean,
// temperature and clocks are the highest, and one throttled tile makes the GPU throttled.
//
// Utilisation, power and memory bandwidth are differences of counters with their own time stamps,
// so they are missing in the first sample.
#include "collect/gpu_sysfs.h"
#include "collect/level_zero.h"

#include "base/log.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { GPUS_MAX = 64, DRIVERS_MAX = 8, PARTS_MAX = 64, PROCESSES_MAX = 256, ADDRESS_SIZE = 32 };
static const double HERTZ_PER_MEGAHERTZ = 1e6, JOULES_PER_MICROJOULE = 1e-6, US_PER_S = 1e6;

static const struct gpu_symbol symbols[] = {
#define FUNCTION(member, arguments, names) {offsetof(struct level_zero, member), names},
    ZES_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

struct card {
    zes_handle handle;
    char address[ADDRESS_SIZE]; // "" = unknown
    uint8_t uuid[16];
};

struct intel {
    struct level_zero zes;
    void *library;
    const char *root;
    unsigned count;
    struct card cards[GPUS_MAX];
};

struct parts {
    size_t count;
    zes_handle handles[PARTS_MAX];
};

struct intel_gpu {
    zes_handle handle;
    struct parts engines, memories, ports, clocks, memory_clocks, sensors, memory_sensors,
        corrected, uncorrected;
    zes_handle power; // NULL = none
    struct zes_activity activity[PARTS_MAX];
    struct zes_bandwidth bandwidth[PARTS_MAX];
    struct zes_energy energy;
    struct zes_process processes[PROCESSES_MAX];
    struct sysfs_gpu *files; // NULL = no files
};

static const char *words_of(int result)
{
    switch ((enum zes_result)result) {
    case ZES_SUCCESS:
        return NULL;
    case ZES_DEVICE_LOST:
        return "the GPU is lost; the node needs a reset";
    case ZES_REQUIRES_RESET:
        return "the GPU needs a reset";
    case ZES_LOW_POWER:
        return "the GPU sleeps";
    case ZES_NO_PERMISSION:
        return "no permission; ask the administrator for access to /dev/dri (group render)";
    case ZES_DEPENDENCY_MISSING:
        return "a part of the Intel driver is not installed";
    case ZES_NOT_AVAILABLE:
    case ZES_UNSUPPORTED_VERSION:
    case ZES_UNSUPPORTED:
        return "not supported by this GPU or its driver";
    case ZES_UNINITIALIZED:
        return "there is no Intel driver for it";
    }
    return "Level Zero failed for a reason of its own";
}

// ---- start ----

// Uses Sysman alone or, in older libraries that cannot, the compute driver, whose devices are then
// Sysman's, too.
static int list_drivers(const struct level_zero *zes, bool *older, zes_handle drivers[DRIVERS_MAX],
                        uint32_t *count)
{
    *count = DRIVERS_MAX;
    *older = false;
    int result = ZES_UNINITIALIZED;
    if (zes->init && zes->drivers && zes->devices) {
        result = zes->init(0);
        if (result == ZES_SUCCESS)
            result = zes->drivers(count, drivers);
    }
    if (result == ZES_SUCCESS && *count)
        return result;
    if (!zes->older_init || !zes->older_drivers || !zes->older_devices)
        return result;
    *count = DRIVERS_MAX;
    *older = true;
    setenv("ZES_ENABLE_SYSMAN", "1", 0);
    int failed = zes->older_init(ZE_INIT_GPU_ONLY);
    return failed ? failed : zes->older_drivers(count, drivers);
}

// Adds a GPU once, even if two drivers list it.
static void add_card(struct intel *intel, zes_handle handle)
{
    const struct level_zero *zes = &intel->zes;
    struct zes_device_properties properties = {.type = ZES_DEVICE_PROPERTIES,
                                               .core.type = ZE_DEVICE_PROPERTIES};
    struct zes_pci_properties pci = {.type = ZES_PCI_PROPERTIES};
    struct card card = {.handle = handle};
    if (zes->properties && zes->properties(handle, &properties) == ZES_SUCCESS) {
        if (properties.core.device_type != ZE_DEVICE_GPU ||
            properties.core.vendor_id != ZES_VENDOR_INTEL)
            return;
        memcpy(card.uuid, properties.core.uuid, sizeof card.uuid);
    }
    if (zes->pci && zes->pci(handle, &pci) == ZES_SUCCESS)
        snprintf(card.address, sizeof card.address, "%04x:%02x:%02x.%x", pci.domain, pci.bus,
                 pci.device, pci.function);
    for (unsigned i = 0; i < intel->count; i++)
        if (card.address[0] && strcmp(intel->cards[i].address, card.address) == 0)
            return;
    if (intel->count < GPUS_MAX)
        intel->cards[intel->count++] = card;
    else
        log_warning("of the Intel GPUs only the first %d are sampled", GPUS_MAX);
}

static int find_cards(struct intel *intel)
{
    zes_handle drivers[DRIVERS_MAX];
    uint32_t count;
    bool older;
    int result = list_drivers(&intel->zes, &older, drivers, &count);
    for (uint32_t i = 0; result == ZES_SUCCESS && i < count && i < DRIVERS_MAX; i++) {
        zes_handle found[GPUS_MAX];
        uint32_t devices = GPUS_MAX;
        int each =
            (older ? intel->zes.older_devices : intel->zes.devices)(drivers[i], &devices, found);
        for (uint32_t k = 0; each == ZES_SUCCESS && k < devices && k < GPUS_MAX; k++)
            add_card(intel, found[k]);
    }
    return result;
}

static void stop(void *library, bool lost)
{
    struct intel *intel = library;
    if (!lost) // Sysman has no shutdown function
        dlclose(intel->library);
    free(intel);
}

static bool start(const char *root, void **library, unsigned *count, char why[GPU_WORDS_MAX])
{
    char wrong[GPU_WORDS_MAX] = "no memory";
    struct intel *intel = calloc(1, sizeof *intel);
    const char *name = gpu_library_name("SONDE_LEVEL_ZERO", "libze_loader.so.1", root, wrong);
    if (intel)
        intel->root = root;
    if (intel && name)
        intel->library =
            gpu_library(name, symbols, sizeof symbols / sizeof *symbols, &intel->zes, wrong);
    if (intel && intel->library) {
        int failed = find_cards(intel);
        *count = intel->count;
        *library = intel;
        if (!failed && intel->count)
            return true;
        snprintf(why, GPU_WORDS_MAX, "Level Zero: %.*s", GPU_WORDS_MAX - 32,
                 failed ? words_of(failed) : "there is no Intel GPU on this node");
        dlclose(intel->library);
    } else {
        snprintf(why, GPU_WORDS_MAX, "no Level Zero: %.*s", GPU_WORDS_MAX - 32, wrong);
    }
    free(intel);
    return false;
}

// ---- the parts of a GPU ----

typedef int list_function(zes_handle, uint32_t *, zes_handle *);
typedef int properties_function(zes_handle, struct zes_part_properties *);

static size_t list(list_function *function, zes_handle device, zes_handle out[PARTS_MAX])
{
    uint32_t count = PARTS_MAX;
    if (!function || function(device, &count, out) != ZES_SUCCESS)
        return 0;
    return count < PARTS_MAX ? count : PARTS_MAX;
}

// The parts of a kind that belong to the whole GPU; if none exist, those of its tiles.
static struct parts find_parts(list_function *enumerate, properties_function *describe,
                               enum zes_type type, uint32_t kind, zes_handle device)
{
    zes_handle all[PARTS_MAX];
    struct parts of_gpu = {0}, of_tiles = {0};
    size_t count = describe ? list(enumerate, device, all) : 0;
    for (size_t i = 0; i < count; i++) {
        struct zes_part_properties p = {.type = type};
        if (describe(all[i], &p) != ZES_SUCCESS || p.kind != kind)
            continue;
        struct parts *group = p.on_subdevice ? &of_tiles : &of_gpu;
        group->handles[group->count++] = all[i];
    }
    return of_gpu.count ? of_gpu : of_tiles;
}

// The GPU's own memory, of any technology.
static struct parts find_memories(const struct level_zero *zes, zes_handle device)
{
    zes_handle all[PARTS_MAX];
    struct parts found = {0};
    size_t count = zes->memory && zes->memory_state ? list(zes->memories, device, all) : 0;
    for (size_t i = 0; i < count; i++) {
        struct zes_part_properties p = {.type = ZES_MEMORY_PROPERTIES};
        if (zes->memory(all[i], &p) == ZES_SUCCESS && p.more[0] == ZES_MEMORY_DEVICE)
            found.handles[found.count++] = all[i];
    }
    return found;
}

static zes_handle find_power(const struct level_zero *zes, zes_handle device)
{
    zes_handle card = NULL, all[PARTS_MAX];
    if (!zes->energy)
        return NULL;
    if (zes->card_power && zes->card_power(device, &card) == ZES_SUCCESS && card)
        return card;
    size_t count = zes->power ? list(zes->powers, device, all) : 0;
    for (size_t i = 0; i < count; i++) {
        struct zes_power_properties p = {.type = ZES_POWER_PROPERTIES};
        if (zes->power(all[i], &p) == ZES_SUCCESS && !p.on_subdevice)
            return all[i];
    }
    return NULL;
}

static void find_all_parts(const struct level_zero *zes, struct intel_gpu *gpu)
{
    static const uint32_t engines[] = {ZES_ENGINE_ALL, ZES_ENGINE_COMPUTE,
                                       ZES_ENGINE_RENDER_AND_COMPUTE};
    for (size_t i = 0; zes->activity && i < sizeof engines / sizeof *engines && !gpu->engines.count;
         i++)
        gpu->engines =
            find_parts(zes->engines, zes->engine, ZES_ENGINE_PROPERTIES, engines[i], gpu->handle);
    gpu->memories = find_memories(zes, gpu->handle);
    gpu->power = find_power(zes, gpu->handle);
    if (zes->frequency_state) {
        gpu->clocks = find_parts(zes->frequencies, zes->frequency, ZES_FREQUENCY_PROPERTIES,
                                 ZES_FREQUENCY_GPU, gpu->handle);
        gpu->memory_clocks = find_parts(zes->frequencies, zes->frequency, ZES_FREQUENCY_PROPERTIES,
                                        ZES_FREQUENCY_MEMORY, gpu->handle);
    }
    if (zes->temperature) {
        gpu->sensors = find_parts(zes->sensors, zes->sensor, ZES_TEMPERATURE_PROPERTIES,
                                  ZES_TEMPERATURE_GPU, gpu->handle);
        if (!gpu->sensors.count)
            gpu->sensors = find_parts(zes->sensors, zes->sensor, ZES_TEMPERATURE_PROPERTIES,
                                      ZES_TEMPERATURE_GLOBAL, gpu->handle);
        gpu->memory_sensors = find_parts(zes->sensors, zes->sensor, ZES_TEMPERATURE_PROPERTIES,
                                         ZES_TEMPERATURE_MEMORY, gpu->handle);
    }
    if (zes->errors) {
        gpu->corrected = find_parts(zes->error_sets, zes->error_set, ZES_RAS_PROPERTIES,
                                    ZES_RAS_CORRECTABLE, gpu->handle);
        gpu->uncorrected = find_parts(zes->error_sets, zes->error_set, ZES_RAS_PROPERTIES,
                                      ZES_RAS_UNCORRECTABLE, gpu->handle);
    }
    if (zes->throughput)
        gpu->ports.count = list(zes->ports, gpu->handle, gpu->ports.handles);
}

// ---- readings: the last result that was not a success, or ZES_SUCCESS ----

// The share of time between two readings that each part was busy; the mean of the parts.
static int read_activity(const struct level_zero *zes, struct intel_gpu *gpu, struct gpu_device *d)
{
    int result = gpu->engines.count ? ZES_SUCCESS : ZES_UNSUPPORTED;
    double sum = 0;
    size_t counted = 0;
    for (size_t i = 0; i < gpu->engines.count && result == ZES_SUCCESS; i++) {
        struct zes_activity now, *before = &gpu->activity[i];
        result = zes->activity(gpu->engines.handles[i], &now);
        if (result != ZES_SUCCESS)
            break;
        if (before->time_us && now.time_us > before->time_us &&
            now.active_us >= before->active_us) {
            double share = 100 * (double)(now.active_us - before->active_us) /
                           (double)(now.time_us - before->time_us);
            // the two counters are not read at exactly the same moment
            sum += share < 100 ? share : 100;
            counted++;
        }
        *before = now;
    }
    if (counted && counted == gpu->engines.count)
        gpu_put(d, METRIC_GPU_UTILIZATION, sum / (double)counted);
    return result;
}

static int read_memory(const struct level_zero *zes, struct intel_gpu *gpu, struct gpu_device *d)
{
    int result = gpu->memories.count ? ZES_SUCCESS : ZES_UNSUPPORTED;
    double total = 0, used = 0;
    for (size_t i = 0; i < gpu->memories.count && result == ZES_SUCCESS; i++) {
        struct zes_memory_state now = {.type = ZES_MEMORY_STATE};
        result = zes->memory_state(gpu->memories.handles[i], &now);
        total += (double)now.size;
        used += (double)now.size - (double)now.free;
    }
    if (result == ZES_SUCCESS)
        gpu_put_memory(d, total, used);
    return result;
}

static int read_bandwidth(const struct level_zero *zes, struct intel_gpu *gpu, struct gpu_device *d)
{
    int result = gpu->memories.count && zes->bandwidth ? ZES_SUCCESS : ZES_UNSUPPORTED;
    double sum = 0;
    size_t counted = 0;
    for (size_t i = 0; i < gpu->memories.count && result == ZES_SUCCESS; i++) {
        struct zes_bandwidth now, *before = &gpu->bandwidth[i];
        result = zes->bandwidth(gpu->memories.handles[i], &now);
        if (result != ZES_SUCCESS)
            break;
        uint64_t bytes = now.read - before->read + now.written - before->written;
        bool forth = now.read >= before->read && now.written >= before->written;
        if (before->time_us && now.time_us > before->time_us && forth && now.most) {
            sum += 100 * (double)bytes * US_PER_S / (double)(now.time_us - before->time_us) /
                   (double)now.most;
            counted++;
        }
        *before = now;
    }
    if (counted && counted == gpu->memories.count)
        gpu_put(d, METRIC_GPU_DRAM_ACTIVE, sum / (double)counted);
    return result;
}

static int read_energy(const struct level_zero *zes, struct intel_gpu *gpu, struct gpu_device *d)
{
    struct zes_energy now, before = gpu->energy;
    int result = gpu->power ? zes->energy(gpu->power, &now) : ZES_UNSUPPORTED;
    if (result != ZES_SUCCESS)
        return result;
    gpu_put(d, METRIC_GPU_ENERGY, (double)now.microjoules * JOULES_PER_MICROJOULE);
    if (before.time_us && now.time_us > before.time_us && now.microjoules >= before.microjoules)
        gpu_put(d, METRIC_GPU_POWER,
                (double)(now.microjoules - before.microjoules) /
                    (double)(now.time_us - before.time_us));
    gpu->energy = now;
    return result;
}

static int read_highest(const struct level_zero *zes, const struct parts *sensors,
                        struct gpu_device *d, enum metric_symbol row)
{
    int result = sensors->count ? ZES_SUCCESS : ZES_UNSUPPORTED;
    for (size_t i = 0; i < sensors->count && result == ZES_SUCCESS; i++) {
        double celsius;
        result = zes->temperature(sensors->handles[i], &celsius);
        if (result == ZES_SUCCESS && !(celsius <= gpu_get(d, row)))
            gpu_put(d, row, celsius);
    }
    return result;
}

static int read_temperature(const struct level_zero *zes, struct intel_gpu *gpu,
                            struct gpu_device *d)
{
    return read_highest(zes, &gpu->sensors, d, METRIC_GPU_TEMPERATURE);
}

static int read_memory_temperature(const struct level_zero *zes, struct intel_gpu *gpu,
                                   struct gpu_device *d)
{
    return read_highest(zes, &gpu->memory_sensors, d, METRIC_GPU_MEMORY_TEMPERATURE);
}

static int read_clocks(const struct level_zero *zes, const struct parts *clocks,
                       struct gpu_device *d, enum metric_symbol row, uint32_t *throttle)
{
    int result = clocks->count ? ZES_SUCCESS : ZES_UNSUPPORTED;
    for (size_t i = 0; i < clocks->count && result == ZES_SUCCESS; i++) {
        struct zes_frequency_state now = {.type = ZES_FREQUENCY_STATE};
        result = zes->frequency_state(clocks->handles[i], &now);
        if (result != ZES_SUCCESS)
            break;
        if (now.actual >= 0 && !(now.actual * HERTZ_PER_MEGAHERTZ <= gpu_get(d, row)))
            gpu_put(d, row, now.actual * HERTZ_PER_MEGAHERTZ);
        *throttle |= now.throttle;
    }
    return result;
}

static int read_clock(const struct level_zero *zes, struct intel_gpu *gpu, struct gpu_device *d)
{
    uint32_t throttle = 0;
    int result = read_clocks(zes, &gpu->clocks, d, METRIC_GPU_SM_CLOCK, &throttle);
    if (result != ZES_SUCCESS)
        return result;
    gpu_put(d, METRIC_GPU_THROTTLE_POWER_CAP, (throttle & ZES_THROTTLE_POWER) != 0);
    gpu_put(d, METRIC_GPU_THROTTLE_POWER_BRAKE, (throttle & ZES_THROTTLE_SUPPLY) != 0);
    gpu_put(d, METRIC_GPU_THROTTLE_THERMAL, (throttle & ZES_THROTTLE_THERMAL) != 0);
    gpu_put(d, METRIC_GPU_THROTTLE_REASONS, throttle);
    return result;
}

static int read_memory_clock(const struct level_zero *zes, struct intel_gpu *gpu,
                             struct gpu_device *d)
{
    uint32_t unused = 0;
    return read_clocks(zes, &gpu->memory_clocks, d, METRIC_GPU_MEMORY_CLOCK, &unused);
}

static int read_error_sets(const struct level_zero *zes, const struct parts *sets,
                           struct gpu_device *d, enum metric_symbol row)
{
    int result = sets->count ? ZES_SUCCESS : ZES_UNSUPPORTED;
    double sum = 0;
    for (size_t i = 0; i < sets->count && result == ZES_SUCCESS; i++) {
        struct zes_ras_state now = {.type = ZES_RAS_STATE};
        result = zes->errors(sets->handles[i], false, &now);
        for (int k = ZES_RAS_HARDWARE_FIRST; k <= ZES_RAS_HARDWARE_LAST; k++)
            sum += (double)now.categories[k];
    }
    if (result == ZES_SUCCESS)
        gpu_put(d, row, sum);
    return result;
}

static int read_corrected(const struct level_zero *zes, struct intel_gpu *gpu, struct gpu_device *d)
{
    return read_error_sets(zes, &gpu->corrected, d, METRIC_GPU_ECC_CORRECTED);
}

static int read_uncorrected(const struct level_zero *zes, struct intel_gpu *gpu,
                            struct gpu_device *d)
{
    return read_error_sets(zes, &gpu->uncorrected, d, METRIC_GPU_ECC_UNCORRECTED);
}

static int read_pci(const struct level_zero *zes, struct intel_gpu *gpu, struct gpu_device *d)
{
    struct zes_pci_stats now;
    int result = zes->pci_stats ? zes->pci_stats(gpu->handle, &now) : ZES_UNSUPPORTED;
    if (result == ZES_SUCCESS) {
        gpu_put(d, METRIC_GPU_PCIE_RECEIVE, (double)now.received);
        gpu_put(d, METRIC_GPU_PCIE_TRANSMIT, (double)now.sent);
    }
    return result;
}

static int read_ports(const struct level_zero *zes, struct intel_gpu *gpu, struct gpu_device *d)
{
    int result = gpu->ports.count ? ZES_SUCCESS : ZES_UNSUPPORTED;
    double received = 0, sent = 0;
    for (size_t i = 0; i < gpu->ports.count && result == ZES_SUCCESS; i++) {
        struct zes_throughput now;
        result = zes->throughput(gpu->ports.handles[i], &now);
        received += result == ZES_SUCCESS ? (double)now.received : 0;
        sent += result == ZES_SUCCESS ? (double)now.sent : 0;
    }
    if (result == ZES_SUCCESS) {
        gpu_put(d, METRIC_GPU_LINK_RECEIVE, received);
        gpu_put(d, METRIC_GPU_LINK_TRANSMIT, sent);
    }
    return result;
}

static int read_processes(const struct level_zero *zes, struct intel_gpu *gpu, struct gpu_device *d)
{
    uint32_t count = PROCESSES_MAX;
    for (int i = 0; i < PROCESSES_MAX; i++)
        gpu->processes[i] = (struct zes_process){.type = ZES_PROCESS_STATE};
    int result =
        zes->processes ? zes->processes(gpu->handle, &count, gpu->processes) : ZES_UNSUPPORTED;
    if (result != ZES_SUCCESS)
        return result;
    double bytes = 0;
    for (uint32_t i = 0; i < count && i < PROCESSES_MAX; i++)
        bytes += (double)gpu->processes[i].memory;
    gpu_put(d, METRIC_GPU_PROCESSES, count);
    if (count <= PROCESSES_MAX)
        gpu_put(d, METRIC_GPU_PROCESS_MEMORY, bytes);
    return result;
}

static const struct {
    enum metric_symbol first, last;
    int (*read)(const struct level_zero *, struct intel_gpu *, struct gpu_device *);
} readings[] = {
    {METRIC_GPU_UTILIZATION, METRIC_GPU_UTILIZATION, read_activity},
    {METRIC_GPU_MEMORY_TOTAL, METRIC_GPU_MEMORY_USED_PERCENT, read_memory},
    {METRIC_GPU_DRAM_ACTIVE, METRIC_GPU_DRAM_ACTIVE, read_bandwidth},
    {METRIC_GPU_POWER, METRIC_GPU_ENERGY, read_energy},
    {METRIC_GPU_TEMPERATURE, METRIC_GPU_TEMPERATURE, read_temperature},
    {METRIC_GPU_MEMORY_TEMPERATURE, METRIC_GPU_MEMORY_TEMPERATURE, read_memory_temperature},
    {METRIC_GPU_SM_CLOCK, METRIC_GPU_SM_CLOCK, read_clock},
    {METRIC_GPU_MEMORY_CLOCK, METRIC_GPU_MEMORY_CLOCK, read_memory_clock},
    {METRIC_GPU_PCIE_TRANSMIT, METRIC_GPU_PCIE_RECEIVE, read_pci},
    {METRIC_GPU_LINK_TRANSMIT, METRIC_GPU_LINK_RECEIVE, read_ports},
    {METRIC_GPU_ECC_CORRECTED, METRIC_GPU_ECC_CORRECTED, read_corrected},
    {METRIC_GPU_ECC_UNCORRECTED, METRIC_GPU_ECC_UNCORRECTED, read_uncorrected},
    {METRIC_GPU_PROCESSES, METRIC_GPU_PROCESS_MEMORY, read_processes},
};
enum { READINGS = sizeof readings / sizeof *readings };

struct self_metrics {
    struct intel_gpu gpu;
    bool begun;
    bool off[READINGS];
};

// ---- one GPU ----

static struct gpu_answer open_gpu(void *library, unsigned index,
                                  struct gpu_device devices[1 + GPU_PARTS_MAX], size_t *count)
{
    const struct intel *intel = library;
    const struct card *card = &intel->cards[index];
    struct self_metrics *own = calloc(1, sizeof *own);
    if (!own)
        return (struct gpu_answer){.words = "no memory"};
    own->gpu.handle = card->handle;
    find_all_parts(&intel->zes, &own->gpu);
    if (card->address[0])
        own->gpu.files = sysfs_gpu_at(intel->root, card->address);
    size_t size = 0;
    for (size_t i = 0; i < sizeof card->uuid; i++)
        size += (size_t)snprintf(devices->uuid + size, sizeof devices->uuid - size, "%s%02x",
                                 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", card->uuid[i]);
    static const uint8_t none[sizeof card->uuid];
    if (memcmp(card->uuid, none, sizeof none) == 0)
        snprintf(devices->uuid, sizeof devices->uuid, "%s", card->address);
    devices->own = own;
    *count = 1;
    gpu_offer(devices, METRIC_GPU_UTILIZATION, METRIC_GPU_FP16_ACTIVE, false);
    return (struct gpu_answer){0};
}

static struct gpu_answer sample(void *library, struct gpu_device *d)
{
    const struct intel *intel = library;
    struct self_metrics *own = d->own;
    struct gpu_answer answer = {.down = true, .words = words_of(ZES_UNSUPPORTED)};
    bool any = false;
    for (int i = 0; i < READINGS; i++) {
        if (own->off[i])
            continue;
        int result = readings[i].read(&intel->zes, &own->gpu, d);
        if (result == ZES_DEVICE_LOST)
            return (struct gpu_answer){.lost = true, .words = words_of(result)};
        if (result == ZES_SUCCESS)
            any = true;
        else
            answer.words = words_of(result);
        // A reading that fails in the first sample is not repeated, unless the GPU only sleeps.
        if (!own->begun && result != ZES_SUCCESS && result != ZES_LOW_POWER)
            own->off[i] = true;
        if (!own->begun)
            gpu_offer(d, readings[i].first, readings[i].last, !own->off[i]);
    }
    for (int row = 0; row < GPU_ROWS && !own->begun; row++)
        if (!store_is_missing(d->values[row]))
            d->off[row] = false; // throttling comes with the clock
    if (own->gpu.files)
        any = sysfs_gpu_fill(own->gpu.files, d) || any;
    if (!own->begun && own->gpu.files)
        sysfs_gpu_offer(own->gpu.files, d);
    own->begun = true;
    return any ? (struct gpu_answer){0} : answer;
}

static void close_gpu(void *library, struct gpu_device *d)
{
    (void)library;
    struct self_metrics *own = d->own;
    sysfs_gpu_close(own->gpu.files);
    free(own);
}

const struct gpu_backend gpu_level_zero = {"level_zero", start, stop, open_gpu, sample, close_gpu};
