// nvml.c - a fake libnvidia-ml.so.1 whose GPUs follow a script (nvml.h).
//
// The library is also built as one of ten years ago (FAKE_OLD), without versions in names, field
// values, GPM and MIG; and as a new one (FAKE_NEW) without the deprecated functions, which are the
// older temperature and the counter of all NVLinks.
#include "fake/nvml.h"

#include "collect/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { MIG_MAX = 7, XIDS_MAX = 128, LINE_MAX_BYTES = 4096 };

enum key {
    KEY_HANDLE,
    KEY_UUID,
    KEY_UTILIZATION,
    KEY_ACTIVITY,
    KEY_MEMORY_TOTAL,
    KEY_MEMORY_USED,
    KEY_POWER,
    KEY_ENERGY,
    KEY_TEMPERATURE,
    KEY_SM_CLOCK,
    KEY_MEMORY_CLOCK,
    KEY_REASONS,
    KEY_PROCESSES,
    KEY_PROCESS_MEMORY,
    KEY_EVENTS,
    KEY_GPM,
    KEY_FIELDS,
    KEY_MEMORY_TEMPERATURE,
    KEY_PCIE_TX,
    KEY_PCIE_RX,
    KEY_NVLINK_TX,
    KEY_NVLINK_RX,
    KEY_ECC_SINGLE,
    KEY_ECC_DOUBLE,
    KEYS
};
_Static_assert((int)KEYS < (int)FAKE_KEYS_MAX, "and an end");

const struct fake_key fake_keys[] = {
    // The keys are in the order of enum key.
    {"handle", 0},
    {"uuid", 0},
    {"utilization", 42},
    {"activity", 17},
    {"memory_total", 80.0 * (1u << 30)},
    {"memory_used", 20.0 * (1u << 30)},
    {"power", 350500},
    {"energy", 7000250},
    {"temperature", 61},
    {"sm_clock", 1980},
    {"memory_clock", 2619},
    {"reasons", 0},
    {"processes", 2},
    {"process_memory", 1u << 30},
    {"events", 0},
    {"gpm", 50},
    {"fields", 0},
    {"memory_temperature", 72},
    {"pcie_tx", 1e12},
    {"pcie_rx", 2e12},
    {"nvlink_tx", 1e9},
    {"nvlink_rx", 2e9},
    {"ecc_corrected", 3},
    {"ecc_uncorrected", 1},
    {NULL, 0},
};

struct nvml_device_opaque {
    // `mig` counts MIG instances from 1. It is 0 for the GPU itself, which has the other members.
    unsigned index, mig;
    unsigned mig_count;
    unsigned row; // the next row of the file to play
    uint64_t xids[XIDS_MAX];
    unsigned xid_count, xid_taken;
};

struct nvml_events_opaque {
    struct nvml_device_opaque *device;
};

struct nvml_gpm_sample_opaque {
    double value;
    bool taken;
};

static struct nvml_device_opaque gpus[FAKE_GPUS_MAX], instances[FAKE_GPUS_MAX][MIG_MAX];
static unsigned init_count;
static bool init_blocked;
static double *play; // the file to play: rows × GPUs × 3 values
static size_t play_rows;
static unsigned play_gpus;

// ---- the script ----

static void begin(void)
{
    for (unsigned i = 0; i < FAKE_GPUS_MAX; i++) {
        gpus[i] = (struct nvml_device_opaque){.index = i};
        for (unsigned m = 0; m < MIG_MAX; m++)
            instances[i][m] = (struct nvml_device_opaque){.index = i, .mig = m + 1};
    }
    free(play);
    play = NULL;
    play_rows = 0;
}

static bool read_play(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t capacity = 0, count = 0;
    double value;
    while (fscanf(file, "%lf", &value) == 1) {
        if (count == capacity) {
            capacity = capacity ? capacity * 2 : 1024;
            double *larger = realloc(play, capacity * sizeof *play);
            if (!larger)
                abort();
            play = larger;
        }
        play[count++] = value;
    }
    fclose(file);
    play_gpus = fake_gpu_count();
    play_rows = play_gpus ? count / 3 / play_gpus : 0;
    return play_rows > 0;
}

static bool tell_machine(const char *verb, const char *word)
{
    if (strcmp(verb, "play") == 0)
        return read_play(word);
    if (strcmp(word, "init") != 0)
        return false;
    init_blocked = verb[0] == 'b';
    return true;
}

static bool tell_gpu(unsigned gpu, const char *verb, const char *word)
{
    struct nvml_device_opaque *d = &gpus[gpu];
    if (strcmp(verb, "mig") == 0)
        d->mig_count = (unsigned)strtoul(word, NULL, 10);
    else if (strcmp(verb, "xid") == 0 && d->xid_count < XIDS_MAX)
        d->xids[d->xid_count++] = strtoul(word, NULL, 10);
    else
        return false;
    return true;
}

const struct fake_more fake_more = {begin, tell_machine, tell_gpu};

EXPORT void fake_nvml_wait_shut_down(void);
EXPORT void fake_nvml_wait_shut_down(void)
{
    fake_lock();
    while (init_count > 0)
        fake_wait();
    fake_leave(0);
}

static void read_script(const char *path)
{
    char line[LINE_MAX_BYTES];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (!fake_apply(line))
            fprintf(stderr, "fake NVML: unknown line: %s", line);
    if (file)
        fclose(file);
}

// ---- calls ----

// Begins a call for a device; it returns with the lock held.
static int enter(nvml_device d, enum key key)
{
    return fake_enter(d->index, (int)key);
}

// Returns a value of a GPU or an instance. Scripts set only values of GPUs; an instance has the
// initial ones.
static double value_of(nvml_device d, enum key key)
{
    return d->mig ? fake_keys[key].value : *fake_value(d->index, (int)key);
}

static int get_unsigned(nvml_device d, enum key key, unsigned *out)
{
    int result = enter(d, key);
    if (result == NVML_SUCCESS)
        *out = (unsigned)value_of(d, key);
    return fake_leave(result);
}

static int get_u64(nvml_device d, enum key key, unsigned long long *out)
{
    int result = enter(d, key);
    if (result == NVML_SUCCESS)
        *out = (unsigned long long)value_of(d, key);
    return fake_leave(result);
}

#define CALL(name, ...)           \
    EXPORT int name(__VA_ARGS__); \
    EXPORT int name(__VA_ARGS__)

static int start(void)
{
    const char *path = getenv("SONDE_FAKE_NVML");
    fake_lock();
    if (path && init_count == 0)
        read_script(path);
    while (init_blocked)
        fake_wait();
    int fails = fake_init_result();
    init_count += !fails;
    return fake_leave(fails);
}

CALL(nvmlShutdown, void)
{
    fake_lock();
    init_count -= init_count > 0;
    fake_changed();
    return fake_leave(NVML_SUCCESS);
}

static int count_devices(unsigned *out)
{
    fake_lock();
    *out = fake_gpu_count();
    return fake_leave(init_count ? NVML_SUCCESS : NVML_UNINITIALIZED);
}

static int find_device(unsigned index, nvml_device *out)
{
    if (index >= fake_gpu_count())
        return NVML_INVALID_ARGUMENT;
    *out = &gpus[index];
    return fake_leave(enter(*out, KEY_HANDLE));
}

#ifdef FAKE_OLD
CALL(nvmlDeviceGetComputeRunningProcesses, nvml_device d, unsigned *count,
     struct nvml_process_v1 *out)
{
    int result = enter(d, KEY_PROCESSES);
    *count = (unsigned)value_of(d, KEY_PROCESSES);
    for (unsigned i = 0; i < *count; i++)
        out[i] = (struct nvml_process_v1){100 + i, (uint64_t)value_of(d, KEY_PROCESS_MEMORY)};
    return fake_leave(result);
}
CALL(nvmlInit, void)
{
    return start();
}
CALL(nvmlDeviceGetCount, unsigned *out)
{
    return count_devices(out);
}
CALL(nvmlDeviceGetHandleByIndex, unsigned index, nvml_device *out)
{
    return find_device(index, out);
}
CALL(nvmlDeviceGetCurrentClocksThrottleReasons, nvml_device d, unsigned long long *out)
{
    return get_u64(d, KEY_REASONS, out);
}
#else
CALL(nvmlInit_v2, void)
{
    return start();
}
// The entry point for pynvml.
CALL(nvmlInitWithFlags, unsigned flags)
{
    (void)flags;
    return start();
}
CALL(nvmlDeviceGetCount_v2, unsigned *out)
{
    return count_devices(out);
}
CALL(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvml_device *out)
{
    return find_device(index, out);
}
CALL(nvmlDeviceGetCurrentClocksEventReasons, nvml_device d, unsigned long long *out)
{
    return get_u64(d, KEY_REASONS, out);
}
CALL(nvmlDeviceGetTotalEnergyConsumption, nvml_device d, unsigned long long *out)
{
    return get_u64(d, KEY_ENERGY, out);
}
#endif

CALL(nvmlDeviceGetUUID, nvml_device d, char *out, unsigned size)
{
    int result = enter(d, KEY_UUID);
    if (result == NVML_SUCCESS && d->mig)
        snprintf(out, size, "MIG-%08u-0000-0000-0000-%012u", d->mig, d->index);
    else if (result == NVML_SUCCESS)
        snprintf(out, size, "GPU-%08u-0000-0000-0000-000000000000", d->index);
    return fake_leave(result);
}

CALL(nvmlDeviceGetUtilizationRates, nvml_device d, struct nvml_utilization *out)
{
    int result = enter(d, KEY_UTILIZATION);
    if (result == NVML_SUCCESS && (d->mig || d->mig_count))
        result = NVML_NOT_SUPPORTED; // like a real GPU in MIG mode
    if (result == NVML_SUCCESS && play_rows) {
        const double *row = play + ((d->row++ % play_rows) * play_gpus + d->index) * 3;
        *fake_value(d->index, KEY_UTILIZATION) = row[0];
        *fake_value(d->index, KEY_ACTIVITY) = row[1];
        *fake_value(d->index, KEY_MEMORY_USED) = row[2];
    }
    if (result == NVML_SUCCESS)
        *out = (struct nvml_utilization){(uint32_t)value_of(d, KEY_UTILIZATION),
                                         (uint32_t)value_of(d, KEY_ACTIVITY)};
    return fake_leave(result);
}

CALL(nvmlDeviceGetMemoryInfo, nvml_device d, struct nvml_memory *out)
{
    int result = enter(d, KEY_MEMORY_USED);
    if (result == NVML_SUCCESS)
        *out = (struct nvml_memory){(uint64_t)value_of(d, KEY_MEMORY_TOTAL), 0,
                                    (uint64_t)value_of(d, KEY_MEMORY_USED) + (1u << 20)};
    return fake_leave(result);
}

CALL(nvmlDeviceGetPowerUsage, nvml_device d, unsigned *out)
{
    return get_unsigned(d, KEY_POWER, out);
}

#ifdef FAKE_NEW
CALL(nvmlDeviceGetTemperatureV, nvml_device d, struct nvml_temperature *out)
{
    int result = enter(d, KEY_TEMPERATURE);
    if (out->version != NVML_TEMPERATURE_V1 || out->sensor != NVML_TEMPERATURE_GPU)
        return fake_leave(NVML_ARGUMENT_VERSION_MISMATCH);
    out->celsius = (int32_t)value_of(d, KEY_TEMPERATURE);
    return fake_leave(result);
}
#else
CALL(nvmlDeviceGetTemperature, nvml_device d, unsigned sensor, unsigned *out)
{
    return sensor == NVML_TEMPERATURE_GPU ? get_unsigned(d, KEY_TEMPERATURE, out)
                                          : NVML_INVALID_ARGUMENT;
}
#endif

CALL(nvmlDeviceGetClockInfo, nvml_device d, unsigned clock, unsigned *out)
{
    return get_unsigned(d, clock == NVML_CLOCK_SM ? KEY_SM_CLOCK : KEY_MEMORY_CLOCK, out);
}

#ifndef FAKE_OLD

CALL(nvmlDeviceGetMemoryInfo_v2, nvml_device d, struct nvml_memory_v2 *out)
{
    int result = enter(d, KEY_MEMORY_USED);
    if (out->version != NVML_MEMORY_V2)
        return fake_leave(NVML_ARGUMENT_VERSION_MISMATCH);
    if (result == NVML_SUCCESS) {
        out->total = (uint64_t)value_of(d, KEY_MEMORY_TOTAL);
        out->used = (uint64_t)value_of(d, KEY_MEMORY_USED);
        out->reserved = 1u << 20;
        out->free = out->total - out->used - out->reserved;
    }
    return fake_leave(result);
}

CALL(nvmlDeviceGetFieldValues, nvml_device d, int count, struct nvml_field *out)
{
    static const struct {
        uint32_t id, scope;
        enum key key;
        enum nvml_type type;
    } known[] = {
        {82, 0, KEY_MEMORY_TEMPERATURE, NVML_U32}, {197, 0, KEY_PCIE_TX, NVML_U64},
        {198, 0, KEY_PCIE_RX, NVML_U64},
#ifdef FAKE_NEW // has two links, each with its own counters
        {202, 0, KEY_NVLINK_TX, NVML_U64},         {202, 1, KEY_NVLINK_TX, NVML_U64},
        {204, 0, KEY_NVLINK_RX, NVML_U64},         {204, 1, KEY_NVLINK_RX, NVML_U64},
#else
        {138, UINT32_MAX, KEY_NVLINK_TX, NVML_U64},
        {139, UINT32_MAX, KEY_NVLINK_RX, NVML_U64},
#endif
        {3, 0, KEY_ECC_SINGLE, NVML_U64},          {4, 0, KEY_ECC_DOUBLE, NVML_U64},
    };
    int result = enter(d, KEY_FIELDS);
    for (int i = 0; i < count; i++) {
        out[i].result = d->mig ? NVML_NOT_SUPPORTED : NVML_INVALID_ARGUMENT;
        for (size_t k = 0; !d->mig && k < sizeof known / sizeof *known; k++) {
            if (known[k].id != out[i].id || known[k].scope != out[i].scope)
                continue;
            out[i].result = fake_fails(d->index, (int)known[k].key);
            out[i].type = known[k].type;
            // A negative PCIe counter simulates a driver with a counter of 32 bits.
            if (value_of(d, known[k].key) < 0)
                out[i].type = NVML_U32;
            if (out[i].type == NVML_U32)
                out[i].value.u32 = (uint32_t)(int64_t)value_of(d, known[k].key);
            else
                out[i].value.u64 = (uint64_t)value_of(d, known[k].key);
        }
    }
    return fake_leave(result);
}

// Fills the array in the layout of some drivers, with 32 bytes per process.
CALL(nvmlDeviceGetComputeRunningProcesses_v3, nvml_device d, unsigned *count, char *out)
{
    (void)d;
    memset(out, 0xee, (size_t)*count * 32);
    return NVML_SUCCESS;
}

CALL(nvmlDeviceGetComputeRunningProcesses_v2, nvml_device d, unsigned *count,
     struct nvml_process *out)
{
    int result = enter(d, KEY_PROCESSES);
    unsigned have = (unsigned)value_of(d, KEY_PROCESSES), room = *count;
    if (result == NVML_SUCCESS) {
        *count = have;
        if (have > room)
            result = NVML_INSUFFICIENT_SIZE;
        double memory = value_of(d, KEY_PROCESS_MEMORY);
        for (unsigned i = 0; i < have && i < room; i++)
            out[i] = (struct nvml_process){
                .pid = 100 + i, .memory = memory < 0 ? NVML_NOT_AVAILABLE : (uint64_t)memory};
    }
    return fake_leave(result);
}

CALL(nvmlDeviceGetMigMode, nvml_device d, unsigned *current, unsigned *pending)
{
    int result = enter(d, KEY_HANDLE);
    *current = *pending = d->mig_count > 0;
    return fake_leave(result);
}

CALL(nvmlDeviceGetMaxMigDeviceCount, nvml_device d, unsigned *out)
{
    int result = enter(d, KEY_HANDLE);
    *out = MIG_MAX;
    return fake_leave(result);
}

// Instances have the indices 0, 2, 4 …; the odd ones are empty.
CALL(nvmlDeviceGetMigDeviceHandleByIndex, nvml_device d, unsigned index, nvml_device *out)
{
    int result = enter(d, KEY_HANDLE);
    if (result == NVML_SUCCESS && (index % 2 || index / 2 >= d->mig_count))
        result = NVML_NOT_FOUND;
    if (result == NVML_SUCCESS)
        *out = &instances[d->index][index / 2];
    return fake_leave(result);
}

CALL(nvmlDeviceGetGpuInstanceId, nvml_device d, unsigned *out)
{
    *out = d->mig;
    return d->mig ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
}

CALL(nvmlEventSetCreate, nvml_events *out)
{
    *out = calloc(1, sizeof **out);
    return *out ? NVML_SUCCESS : NVML_UNKNOWN;
}

CALL(nvmlEventSetFree, nvml_events set)
{
    free(set);
    return NVML_SUCCESS;
}

CALL(nvmlDeviceRegisterEvents, nvml_device d, unsigned long long types, nvml_events set)
{
    int result = enter(d, KEY_EVENTS);
    if (types != NVML_EVENT_XID)
        result = NVML_NOT_SUPPORTED;
    set->device = d;
    return fake_leave(result);
}

CALL(nvmlEventSetWait_v2, nvml_events set, struct nvml_event *out, unsigned timeout_ms)
{
    nvml_device d = set->device;
    int result = enter(d, KEY_EVENTS);
    if (timeout_ms != 0)
        abort(); // a sample must not wait for events
    if (result == NVML_SUCCESS && d->xid_taken == d->xid_count)
        result = NVML_TIMEOUT;
    if (result == NVML_SUCCESS)
        *out = (struct nvml_event){
            .device = d, .type = NVML_EVENT_XID, .data = d->xids[d->xid_taken++]};
    return fake_leave(result);
}

CALL(nvmlGpmQueryDeviceSupport, nvml_device d, struct nvml_gpm_support *out)
{
    int result = enter(d, KEY_HANDLE);
    out->supported = value_of(d, KEY_GPM) >= 0;
    return fake_leave(out->version == NVML_GPM_VERSION ? result : NVML_ARGUMENT_VERSION_MISMATCH);
}

CALL(nvmlGpmSampleAlloc, nvml_gpm_sample *out)
{
    *out = calloc(1, sizeof **out);
    return *out ? NVML_SUCCESS : NVML_UNKNOWN;
}

CALL(nvmlGpmSampleFree, nvml_gpm_sample sample)
{
    free(sample);
    return NVML_SUCCESS;
}

static int take_gpm(nvml_device d, double value, nvml_gpm_sample out)
{
    int result = enter(d, KEY_GPM);
    if (result == NVML_SUCCESS)
        *out = (struct nvml_gpm_sample_opaque){value, true};
    return fake_leave(result);
}

CALL(nvmlGpmSampleGet, nvml_device d, nvml_gpm_sample out)
{
    return take_gpm(d, value_of(d, KEY_GPM), out);
}

CALL(nvmlGpmMigSampleGet, nvml_device d, unsigned instance, nvml_gpm_sample out)
{
    return d->mig ? NVML_INVALID_ARGUMENT : take_gpm(d, instance, out);
}

// The value of a metric is that of the newer sample plus a hundredth of the metric's number.
CALL(nvmlGpmMetricsGet, struct nvml_gpm_get *get)
{
    if (get->version != NVML_GPM_VERSION || !get->from->taken || !get->to->taken ||
        get->from == get->to)
        return NVML_INVALID_ARGUMENT;
    for (unsigned i = 0; i < get->count; i++) {
        get->metrics[i].result =
            get->metrics[i].id == NVML_GPM_FP64_ACTIVE ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
        get->metrics[i].value = get->to->value + get->metrics[i].id / 100.;
    }
    return NVML_SUCCESS;
}

#endif
