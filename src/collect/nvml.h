// nvml.h - the functions that sonde uses of NVIDIA's management library, opened at run time.
//
// The declarations are sonde's own, made from NVML's public documentation: only the functions in
// use and their layouts. Handles are opaque. Every function but `init`, `device_count` and
// `device_handle` may be missing (NULL) in an older library: only its metrics are lost then. Of
// several names of a function, which behave alike for our use, the first existing one is used.
#ifndef SONDE_COLLECT_NVML_H
#define SONDE_COLLECT_NVML_H

#include "collect/gpu_backend.h"

enum nvml_return {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_INSUFFICIENT_POWER = 8,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_IRQ_ISSUE = 11,
    NVML_LIBRARY_NOT_FOUND = 12,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_OPERATING_SYSTEM = 17,
    NVML_VERSION_MISMATCH = 18, // between library and kernel module
    NVML_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_DEPRECATED = 26,
    NVML_UNKNOWN = 999,
};

typedef struct nvml_device_opaque *nvml_device;
typedef struct nvml_events_opaque *nvml_events;
typedef struct nvml_gpm_sample_opaque *nvml_gpm_sample;

enum {
    NVML_TEMPERATURE_GPU = 0,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_EVENT_XID = 8,
    NVML_MEMORY_V2 = 40 | 2 << 24, // the size of its layout, and its version
    NVML_TEMPERATURE_V1 = 12 | 1 << 24,
    NVML_GPM_VERSION = 1,
};

// Bits of nvmlDeviceGetCurrentClocksEventReasons.
enum {
    NVML_CLOCKS_SW_POWER_CAP = 0x04,
    NVML_CLOCKS_HW_SLOWDOWN = 0x08,
    NVML_CLOCKS_SW_THERMAL = 0x20,
    NVML_CLOCKS_HW_THERMAL = 0x40,
    NVML_CLOCKS_HW_POWER_BRAKE = 0x80,
};

// Field values: read in batches, each with a result of its own.
enum {
    NVML_FIELD_ECC_SINGLE_VOLATILE = 3,
    NVML_FIELD_ECC_DOUBLE_VOLATILE = 4,
    NVML_FIELD_MEMORY_TEMPERATURE = 82, // °C
    NVML_FIELD_NVLINK_DATA_TX = 138,    // KiB; scope: the link, or all
    NVML_FIELD_NVLINK_DATA_RX = 139,
    NVML_FIELD_PCIE_TX = 197, // bytes
    NVML_FIELD_PCIE_RX = 198,
    NVML_FIELD_LINK_TX = 202, // bytes of one NVLink, which is the scope; NVLink 5 and later
    NVML_FIELD_LINK_RX = 204,
};
#define NVML_SCOPE_ALL_LINKS UINT32_MAX
enum { NVML_LINKS_MAX = 36 };

enum nvml_type { NVML_DOUBLE, NVML_U32, NVML_ULONG, NVML_U64, NVML_I64, NVML_I32, NVML_U16 };

struct nvml_field {
    uint32_t id;
    uint32_t scope;
    int64_t time_us;
    int64_t latency_us;
    uint32_t type; // enum nvml_type
    int32_t result;
    union {
        double f64;
        uint32_t u32;
        uint64_t u64; // also unsigned long
        int64_t i64;
        int32_t i32;
        uint16_t u16;
    } value;
};
_Static_assert(sizeof(struct nvml_field) == 40, "as NVML lays it out");

struct nvml_utilization {
    uint32_t gpu, memory; // percent of the last sampling period (1/6 s to 1 s)
};

struct nvml_memory {
    uint64_t total, free, used; // `used` includes the driver's own memory
};

struct nvml_memory_v2 {
    uint32_t version; // NVML_MEMORY_V2
    uint64_t total, reserved, free, used;
};
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "as NVML lays it out");

struct nvml_temperature {
    uint32_t version; // NVML_TEMPERATURE_V1
    uint32_t sensor;
    int32_t celsius;
};
_Static_assert(sizeof(struct nvml_temperature) == 12, "as NVML lays it out");

// The structure of the call's second version. The third version's has 32 bytes in some drivers
// (535.43 to 535.86), and 24 in all others, so the third is called only if the second is missing.
struct nvml_process {
    uint32_t pid;
    uint64_t memory; // NVML_NOT_AVAILABLE if the driver does not know it
    uint32_t gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_process) == 24, "as NVML lays it out");
#define NVML_NOT_AVAILABLE UINT64_MAX

struct nvml_process_v1 {
    uint32_t pid;
    uint64_t memory;
};
_Static_assert(sizeof(struct nvml_process_v1) == 16, "as NVML lays it out");

struct nvml_event {
    nvml_device device;
    uint64_t type;
    uint64_t data; // of an Xid event: its number
    uint32_t gpu_instance, compute_instance;
};

struct nvml_gpm_support {
    uint32_t version; // NVML_GPM_VERSION
    uint32_t supported;
};

// Percentages over the time between two samples, which must be ≥ 100 ms apart.
enum {
    NVML_GPM_SM_ACTIVE = 2,
    NVML_GPM_SM_OCCUPANCY = 3,
    NVML_GPM_TENSOR_ACTIVE = 5,
    NVML_GPM_DRAM_ACTIVE = 10,
    NVML_GPM_FP64_ACTIVE = 11,
    NVML_GPM_FP32_ACTIVE = 12,
    NVML_GPM_FP16_ACTIVE = 13,
};

struct nvml_gpm_metric {
    uint32_t id;
    int32_t result;
    double value;
    const char *names[3];
};

// The library's own array grows with each version; it reads only `count` elements.
enum { NVML_GPM_METRICS_MAX = 512 };
struct nvml_gpm_get {
    uint32_t version; // NVML_GPM_VERSION
    uint32_t count;
    nvml_gpm_sample from, to;
    struct nvml_gpm_metric metrics[NVML_GPM_METRICS_MAX];
};

// FUNCTION(member, arguments, symbols, newest first, separated by blanks)
#define NVML_FUNCTIONS(FUNCTION)                                                                   \
    FUNCTION(init, (void), "nvmlInit_v2 nvmlInit")                                                 \
    FUNCTION(shutdown, (void), "nvmlShutdown")                                                     \
    FUNCTION(device_count, (unsigned *), "nvmlDeviceGetCount_v2 nvmlDeviceGetCount")               \
    FUNCTION(device_handle, (unsigned, nvml_device *),                                             \
             "nvmlDeviceGetHandleByIndex_v2 nvmlDeviceGetHandleByIndex")                           \
    FUNCTION(device_uuid, (nvml_device, char *, unsigned), "nvmlDeviceGetUUID")                    \
    FUNCTION(utilization, (nvml_device, struct nvml_utilization *),                                \
             "nvmlDeviceGetUtilizationRates")                                                      \
    FUNCTION(memory_v2, (nvml_device, struct nvml_memory_v2 *), "nvmlDeviceGetMemoryInfo_v2")      \
    FUNCTION(memory, (nvml_device, struct nvml_memory *), "nvmlDeviceGetMemoryInfo")               \
    FUNCTION(power, (nvml_device, unsigned *), "nvmlDeviceGetPowerUsage")                          \
    FUNCTION(energy, (nvml_device, unsigned long long *), "nvmlDeviceGetTotalEnergyConsumption")   \
    FUNCTION(temperature, (nvml_device, unsigned, unsigned *), "nvmlDeviceGetTemperature")         \
    FUNCTION(temperature_v, (nvml_device, struct nvml_temperature *), "nvmlDeviceGetTemperatureV") \
    FUNCTION(clock, (nvml_device, unsigned, unsigned *), "nvmlDeviceGetClockInfo")                 \
    FUNCTION(clock_reasons, (nvml_device, unsigned long long *),                                   \
             "nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons")   \
    FUNCTION(fields, (nvml_device, int, struct nvml_field *), "nvmlDeviceGetFieldValues")          \
    FUNCTION(processes, (nvml_device, unsigned *, struct nvml_process *),                          \
             "nvmlDeviceGetComputeRunningProcesses_v2 nvmlDeviceGetComputeRunningProcesses_v3")    \
    FUNCTION(processes_v1, (nvml_device, unsigned *, struct nvml_process_v1 *),                    \
             "nvmlDeviceGetComputeRunningProcesses")                                               \
    FUNCTION(mig_mode, (nvml_device, unsigned *, unsigned *), "nvmlDeviceGetMigMode")              \
    FUNCTION(mig_count_max, (nvml_device, unsigned *), "nvmlDeviceGetMaxMigDeviceCount")           \
    FUNCTION(mig_handle, (nvml_device, unsigned, nvml_device *),                                   \
             "nvmlDeviceGetMigDeviceHandleByIndex")                                                \
    FUNCTION(mig_gpu_instance, (nvml_device, unsigned *), "nvmlDeviceGetGpuInstanceId")            \
    FUNCTION(events_create, (nvml_events *), "nvmlEventSetCreate")                                 \
    FUNCTION(events_register, (nvml_device, unsigned long long, nvml_events),                      \
             "nvmlDeviceRegisterEvents")                                                           \
    FUNCTION(events_wait, (nvml_events, struct nvml_event *, unsigned),                            \
             "nvmlEventSetWait_v2 nvmlEventSetWait")                                               \
    FUNCTION(events_free, (nvml_events), "nvmlEventSetFree")                                       \
    FUNCTION(gpm_support, (nvml_device, struct nvml_gpm_support *), "nvmlGpmQueryDeviceSupport")   \
    FUNCTION(gpm_alloc, (nvml_gpm_sample *), "nvmlGpmSampleAlloc")                                 \
    FUNCTION(gpm_free, (nvml_gpm_sample), "nvmlGpmSampleFree")                                     \
    FUNCTION(gpm_sample, (nvml_device, nvml_gpm_sample), "nvmlGpmSampleGet")                       \
    FUNCTION(gpm_sample_mig, (nvml_device, unsigned, nvml_gpm_sample), "nvmlGpmMigSampleGet")      \
    FUNCTION(gpm_get, (struct nvml_gpm_get *), "nvmlGpmMetricsGet")

struct nvml {
    void *library;
#define FUNCTION(member, arguments, symbols) int(*member) arguments;
    NVML_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

// Opens the library `name`; returns false with `why` on failure.
bool nvml_open(struct nvml *nvml, const char *name, char why[GPU_WORDS_MAX]);
void nvml_close(struct nvml *nvml);

// A message for the result, with advice where possible.
const char *nvml_words(int result);

// Whether a retry is useless: the device, the library or the permissions do not support the call.
bool nvml_is_final(int result);

#endif
