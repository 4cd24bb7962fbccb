// nvidia_device.c - the readings of one GPU: a table of calls, each for one or more rows of the
// catalogue.
//
// A call that fails permanently (not supported, no permission, too old a driver) is not repeated,
// and its rows get no series. After any other failure the rows are missing in this sample. A lost
// GPU ends the sample, because each further call could block.
//
// A MIG instance has memory, processes and GPM metrics of its own; the driver's other values for it
// are the whole GPU's, and would count twice.
//
// PCIe traffic is read from the driver's 64-bit counters. Older drivers have only
// nvmlDeviceGetPcieThroughput, which blocks for 20 ms a call, and 32-bit counters, which wrap
// several times a second and would be wrong. With those drivers the PCIe metrics are left out.
#include "collect/nvidia_device.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

// NVML's shortest between two samples
static const int64_t GPM_INTERVAL_NS = 100 * (int64_t)NS_PER_MS;
static const double HERTZ_PER_MEGAHERTZ = 1e6, WATTS_PER_MILLIWATT = 1e-3,
                    JOULES_PER_MILLIJOULE = 1e-3;
static const double BYTES_PER_KIBIBYTE = 1024;

static void put(struct nvidia_device *d, enum metric_symbol row, double value)
{
    gpu_put(d->gpu, row, value);
}

// ---- readings ----

static int read_utilization(const struct nvml *nvml, struct nvidia_device *d)
{
    struct nvml_utilization now;
    int result = nvml->utilization(d->handle, &now);
    if (result == NVML_SUCCESS) {
        put(d, METRIC_GPU_UTILIZATION, now.gpu);
        put(d, METRIC_GPU_MEMORY_ACTIVITY, now.memory);
    }
    return result;
}

// The second layout's `used` excludes the driver's own memory, as nvidia-smi does.
static int read_memory(const struct nvml *nvml, struct nvidia_device *d)
{
    struct nvml_memory_v2 now = {.version = NVML_MEMORY_V2};
    int result = nvml->memory_v2 ? nvml->memory_v2(d->handle, &now) : NVML_FUNCTION_NOT_FOUND;
    if (nvml_is_final(result) && nvml->memory) {
        struct nvml_memory older;
        result = nvml->memory(d->handle, &older);
        now.total = older.total;
        now.used = older.used;
    }
    if (result != NVML_SUCCESS)
        return result;
    gpu_put_memory(d->gpu, (double)now.total, (double)now.used);
    return result;
}

static int read_power(const struct nvml *nvml, struct nvidia_device *d)
{
    unsigned milliwatts;
    int result = nvml->power(d->handle, &milliwatts);
    if (result == NVML_SUCCESS)
        put(d, METRIC_GPU_POWER, milliwatts * WATTS_PER_MILLIWATT);
    return result;
}

static int read_energy(const struct nvml *nvml, struct nvidia_device *d)
{
    unsigned long long millijoules;
    int result = nvml->energy(d->handle, &millijoules);
    if (result == NVML_SUCCESS)
        put(d, METRIC_GPU_ENERGY, (double)millijoules * JOULES_PER_MILLIJOULE);
    return result;
}

// Prefers the newer call, because newer libraries guarantee only that one.
static int read_temperature(const struct nvml *nvml, struct nvidia_device *d)
{
    struct nvml_temperature now = {.version = NVML_TEMPERATURE_V1, .sensor = NVML_TEMPERATURE_GPU};
    int result =
        nvml->temperature_v ? nvml->temperature_v(d->handle, &now) : NVML_FUNCTION_NOT_FOUND;
    if (nvml_is_final(result) && nvml->temperature) {
        unsigned celsius = 0;
        result = nvml->temperature(d->handle, NVML_TEMPERATURE_GPU, &celsius);
        now.celsius = (int32_t)celsius;
    }
    if (result == NVML_SUCCESS)
        put(d, METRIC_GPU_TEMPERATURE, now.celsius);
    return result;
}

static int read_clock(const struct nvml *nvml, struct nvidia_device *d, unsigned which,
                      enum metric_symbol row)
{
    unsigned megahertz;
    int result = nvml->clock(d->handle, which, &megahertz);
    if (result == NVML_SUCCESS)
        put(d, row, megahertz * HERTZ_PER_MEGAHERTZ);
    return result;
}

static int read_sm_clock(const struct nvml *nvml, struct nvidia_device *d)
{
    return read_clock(nvml, d, NVML_CLOCK_SM, METRIC_GPU_SM_CLOCK);
}

static int read_memory_clock(const struct nvml *nvml, struct nvidia_device *d)
{
    return read_clock(nvml, d, NVML_CLOCK_MEMORY, METRIC_GPU_MEMORY_CLOCK);
}

static const struct {
    unsigned bit;
    enum metric_symbol row;
} clock_reasons[] = {
    {NVML_CLOCKS_SW_POWER_CAP, METRIC_GPU_THROTTLE_POWER_CAP},
    {NVML_CLOCKS_HW_POWER_BRAKE, METRIC_GPU_THROTTLE_POWER_BRAKE},
    {NVML_CLOCKS_SW_THERMAL, METRIC_GPU_THROTTLE_THERMAL},
    {NVML_CLOCKS_HW_THERMAL, METRIC_GPU_THROTTLE_OVERHEATED},
    {NVML_CLOCKS_HW_SLOWDOWN, METRIC_GPU_THROTTLE_HARDWARE},
};

static int read_clock_reasons(const struct nvml *nvml, struct nvidia_device *d)
{
    unsigned long long mask;
    int result = nvml->clock_reasons(d->handle, &mask);
    if (result != NVML_SUCCESS)
        return result;
    put(d, METRIC_GPU_THROTTLE_REASONS, (double)mask);
    for (size_t i = 0; i < sizeof clock_reasons / sizeof *clock_reasons; i++)
        put(d, clock_reasons[i].row, (mask & clock_reasons[i].bit) != 0);
    return result;
}

static int read_processes(const struct nvml *nvml, struct nvidia_device *d)
{
    unsigned count = NVIDIA_PROCESSES_MAX;
    int result = nvml->processes ? nvml->processes(d->handle, &count, d->processes)
                                 : nvml->processes_v1(d->handle, &count, d->processes_v1);
    if (result == NVML_INSUFFICIENT_SIZE) {
        put(d, METRIC_GPU_PROCESSES, count);
        return NVML_SUCCESS;
    }
    if (result != NVML_SUCCESS)
        return result;
    bool known = true;
    uint64_t bytes = 0;
    for (unsigned i = 0; i < count && i < NVIDIA_PROCESSES_MAX; i++) {
        uint64_t memory = nvml->processes ? d->processes[i].memory : d->processes_v1[i].memory;
        known = known && memory != NVML_NOT_AVAILABLE;
        bytes += memory;
        if (memory != NVML_NOT_AVAILABLE && d->gpu->holder_count < GPU_HOLDERS_MAX)
            d->gpu->holders[d->gpu->holder_count++] = (struct gpu_holder){
                .pid = nvml->processes ? d->processes[i].pid : d->processes_v1[i].pid,
                .bytes = (double)memory,
                .place = -1};
    }
    put(d, METRIC_GPU_PROCESSES, count);
    if (known)
        put(d, METRIC_GPU_PROCESS_MEMORY, (double)bytes);
    return result;
}

// Events counted so far are kept if the driver then fails.
static int read_events(const struct nvml *nvml, struct nvidia_device *d)
{
    if (!d->events)
        return NVML_NOT_SUPPORTED;
    int result = NVML_SUCCESS;
    for (int i = 0; i < NVIDIA_XID_BURST_MAX && result == NVML_SUCCESS; i++) {
        struct nvml_event event;
        result = nvml->events_wait(d->events, &event, 0);
        if (result == NVML_SUCCESS && (event.type & NVML_EVENT_XID)) {
            d->xid_count++;
            d->xid_last = (double)event.data;
        }
    }
    put(d, METRIC_GPU_XID_EVENTS, d->xid_count);
    put(d, METRIC_GPU_XID_LAST, d->xid_last);
    return result == NVML_TIMEOUT ? NVML_SUCCESS : result;
}

static const struct {
    uint32_t id;
    enum metric_symbol row;
} gpm_rows[] = {
    {NVML_GPM_SM_ACTIVE, METRIC_GPU_SM_ACTIVE},
    {NVML_GPM_SM_OCCUPANCY, METRIC_GPU_SM_OCCUPANCY},
    {NVML_GPM_TENSOR_ACTIVE, METRIC_GPU_TENSOR_ACTIVE},
    {NVML_GPM_DRAM_ACTIVE, METRIC_GPU_DRAM_ACTIVE},
    {NVML_GPM_FP64_ACTIVE, METRIC_GPU_FP64_ACTIVE},
    {NVML_GPM_FP32_ACTIVE, METRIC_GPU_FP32_ACTIVE},
    {NVML_GPM_FP16_ACTIVE, METRIC_GPU_FP16_ACTIVE},
};
enum { GPM_ROWS = sizeof gpm_rows / sizeof *gpm_rows };

static int read_gpm(const struct nvml *nvml, struct nvidia_device *d)
{
    if (!d->gpm_get)
        return NVML_NOT_SUPPORTED;
    int64_t now_ns = clock_monotonic_ns();
    if (d->gpm_newest >= 0 && now_ns - d->gpm_taken_ns < GPM_INTERVAL_NS)
        return NVML_SUCCESS;
    int next = d->gpm_newest == 0;
    int result = d->parent ? nvml->gpm_sample_mig(d->parent, d->mig_gpu_instance, d->gpm[next])
                           : nvml->gpm_sample(d->handle, d->gpm[next]);
    if (result != NVML_SUCCESS)
        return result;
    bool first = d->gpm_newest < 0;
    d->gpm_newest = next;
    d->gpm_taken_ns = now_ns;
    if (first)
        return result;
    struct nvml_gpm_get *get = d->gpm_get;
    get->version = NVML_GPM_VERSION;
    get->count = GPM_ROWS;
    get->from = d->gpm[!next];
    get->to = d->gpm[next];
    for (int i = 0; i < GPM_ROWS; i++)
        get->metrics[i] = (struct nvml_gpm_metric){.id = gpm_rows[i].id};
    result = nvml->gpm_get(get);
    for (int i = 0; result == NVML_SUCCESS && i < GPM_ROWS; i++) {
        if (get->metrics[i].result == NVML_SUCCESS && get->metrics[i].value >= 0)
            put(d, gpm_rows[i].row, get->metrics[i].value);
        else if (nvml_is_final(get->metrics[i].result))
            d->gpu->off[gpm_rows[i].row - GPU_ROW_FIRST] = true;
    }
    return result;
}

#define NEEDS(function) offsetof(struct nvml, function)

// Rows first … last come from one function; without it in the library, they have no values.
static const struct {
    enum metric_symbol first, last;
    int (*read)(const struct nvml *, struct nvidia_device *);
    size_t function, instead; // either one suffices
    bool mig;                 // also for an instance
} readings[] = {
    {METRIC_GPU_UTILIZATION, METRIC_GPU_MEMORY_ACTIVITY, read_utilization, NEEDS(utilization),
     NEEDS(utilization), false},
    {METRIC_GPU_MEMORY_TOTAL, METRIC_GPU_MEMORY_USED_PERCENT, read_memory, NEEDS(memory),
     NEEDS(memory_v2), true},
    {METRIC_GPU_POWER, METRIC_GPU_POWER, read_power, NEEDS(power), NEEDS(power), false},
    {METRIC_GPU_ENERGY, METRIC_GPU_ENERGY, read_energy, NEEDS(energy), NEEDS(energy), false},
    {METRIC_GPU_TEMPERATURE, METRIC_GPU_TEMPERATURE, read_temperature, NEEDS(temperature),
     NEEDS(temperature_v), false},
    {METRIC_GPU_SM_CLOCK, METRIC_GPU_SM_CLOCK, read_sm_clock, NEEDS(clock), NEEDS(clock), false},
    {METRIC_GPU_MEMORY_CLOCK, METRIC_GPU_MEMORY_CLOCK, read_memory_clock, NEEDS(clock),
     NEEDS(clock), false},
    {METRIC_GPU_THROTTLE_POWER_CAP, METRIC_GPU_THROTTLE_REASONS, read_clock_reasons,
     NEEDS(clock_reasons), NEEDS(clock_reasons), false},
    {METRIC_GPU_PROCESSES, METRIC_GPU_PROCESS_MEMORY, read_processes, NEEDS(processes),
     NEEDS(processes_v1), true},
    {METRIC_GPU_XID_EVENTS, METRIC_GPU_XID_LAST, read_events, NEEDS(events_wait),
     NEEDS(events_wait), false},
    {METRIC_GPU_SM_ACTIVE, METRIC_GPU_FP16_ACTIVE, read_gpm, NEEDS(gpm_get), NEEDS(gpm_get), true},
};
enum { READINGS = sizeof readings / sizeof *readings };

static bool has_function(const struct nvml *nvml, size_t function)
{
    void *address;
    memcpy(&address, (const char *)nvml + function, sizeof address);
    return address != NULL;
}

static bool all_off(const struct nvidia_device *d, enum metric_symbol first,
                    enum metric_symbol last)
{
    for (enum metric_symbol row = first; row <= last; row++)
        if (!d->gpu->off[row - GPU_ROW_FIRST])
            return false;
    return true;
}

// ---- field values: one call for all ----

static const struct {
    uint32_t id, scope;
    enum metric_symbol row;
    double scale;
    bool wide; // requires a 64-bit counter
} fields[] = {
    {NVML_FIELD_MEMORY_TEMPERATURE, 0, METRIC_GPU_MEMORY_TEMPERATURE, 1, false},
    {NVML_FIELD_PCIE_TX, 0, METRIC_GPU_PCIE_TRANSMIT, 1, true},
    {NVML_FIELD_PCIE_RX, 0, METRIC_GPU_PCIE_RECEIVE, 1, true},
    {NVML_FIELD_NVLINK_DATA_TX, NVML_SCOPE_ALL_LINKS, METRIC_GPU_NVLINK_TRANSMIT,
     BYTES_PER_KIBIBYTE, true},
    {NVML_FIELD_NVLINK_DATA_RX, NVML_SCOPE_ALL_LINKS, METRIC_GPU_NVLINK_RECEIVE, BYTES_PER_KIBIBYTE,
     true},
    {NVML_FIELD_ECC_SINGLE_VOLATILE, 0, METRIC_GPU_ECC_CORRECTED, 1, false},
    {NVML_FIELD_ECC_DOUBLE_VOLATILE, 0, METRIC_GPU_ECC_UNCORRECTED, 1, false},
};
enum { FIELDS = sizeof fields / sizeof *fields };
_Static_assert(FIELDS <= (int)NVIDIA_FIELDS_MAX, "each has its place");

static double field_number(const struct nvml_field *f)
{
    switch ((enum nvml_type)f->type) {
    case NVML_DOUBLE:
        return f->value.f64;
    case NVML_U32:
        return f->value.u32;
    case NVML_ULONG:
    case NVML_U64:
        return (double)f->value.u64;
    case NVML_I64:
        return (double)f->value.i64;
    case NVML_I32:
        return f->value.i32;
    case NVML_U16:
        return f->value.u16;
    }
    return store_missing();
}

static bool field_is_wide(const struct nvml_field *f)
{
    return f->type == NVML_U64 || f->type == NVML_ULONG || f->type == NVML_I64;
}

// Sums the bytes of all NVLinks from the newer counters, one per link. Absent and disabled links
// return an error.
static int read_links(const struct nvml *nvml, struct nvidia_device *d)
{
    struct nvml_field requests[2 * NVML_LINKS_MAX];
    double sum[2] = {0};
    bool any[2] = {false};
    for (uint32_t i = 0; i < 2 * NVML_LINKS_MAX; i++)
        requests[i] = (struct nvml_field){.id = i % 2 ? NVML_FIELD_LINK_RX : NVML_FIELD_LINK_TX,
                                          .scope = i / 2};
    int result = nvml->fields(d->handle, 2 * NVML_LINKS_MAX, requests);
    for (int i = 0; i < 2 * NVML_LINKS_MAX && result == NVML_SUCCESS; i++) {
        if (requests[i].result == NVML_GPU_IS_LOST)
            return requests[i].result;
        if (requests[i].result != NVML_SUCCESS || !field_is_wide(&requests[i]))
            continue;
        any[i % 2] = true;
        sum[i % 2] += field_number(&requests[i]);
    }
    for (int way = 0; way < 2; way++) {
        enum metric_symbol row = METRIC_GPU_NVLINK_TRANSMIT + (enum metric_symbol)way;
        if (d->by_link[way] && any[way])
            put(d, row, sum[way]);
        if (d->by_link[way] && !any[way] && (result == NVML_SUCCESS || nvml_is_final(result))) {
            d->by_link[way] = false;
            gpu_offer(d->gpu, row, row, false);
        }
    }
    return result;
}

// Stops reading an unavailable field; NVLink's fields are then read link by link.
static void give_up_field(struct nvidia_device *d, size_t field)
{
    enum metric_symbol row = fields[field].row;
    d->field_off[field] = true;
    if (row == METRIC_GPU_NVLINK_TRANSMIT || row == METRIC_GPU_NVLINK_RECEIVE)
        d->by_link[row - METRIC_GPU_NVLINK_TRANSMIT] = true;
    else
        gpu_offer(d->gpu, row, row, false);
}

static int read_fields(const struct nvml *nvml, struct nvidia_device *d)
{
    struct nvml_field requests[FIELDS];
    size_t row_of[FIELDS];
    int count = 0;
    for (size_t i = 0; i < FIELDS; i++) {
        if (d->field_off[i])
            continue;
        row_of[count] = i;
        requests[count++] = (struct nvml_field){.id = fields[i].id, .scope = fields[i].scope};
    }
    int result = count ? nvml->fields(d->handle, count, requests) : NVML_NOT_SUPPORTED;
    for (int i = 0; i < count; i++) {
        size_t field = row_of[i];
        int each = result == NVML_SUCCESS ? requests[i].result : result;
        if (each == NVML_GPU_IS_LOST)
            return each;
        if (nvml_is_final(each) ||
            (each == NVML_SUCCESS && fields[field].wide && !field_is_wide(&requests[i])))
            give_up_field(d, field);
        else if (each == NVML_SUCCESS)
            put(d, fields[field].row, field_number(&requests[i]) * fields[field].scale);
    }
    int by_link = d->by_link[0] || d->by_link[1] ? read_links(nvml, d) : result;
    return by_link == NVML_GPU_IS_LOST || result != NVML_SUCCESS ? by_link : result;
}

// ---- the whole GPU ----

static void open_events(const struct nvml *nvml, struct nvidia_device *d)
{
    if (d->parent || !nvml->events_create || !nvml->events_register || !nvml->events_wait ||
        !nvml->events_free)
        return;
    if (nvml->events_create(&d->events) != NVML_SUCCESS)
        d->events = NULL;
    else if (nvml->events_register(d->handle, NVML_EVENT_XID, d->events) != NVML_SUCCESS) {
        nvml->events_free(d->events);
        d->events = NULL;
    }
}

static void close_gpm(const struct nvml *nvml, struct nvidia_device *d)
{
    for (int i = 0; i < 2; i++)
        if (d->gpm[i])
            nvml->gpm_free(d->gpm[i]);
    d->gpm[0] = d->gpm[1] = NULL;
    free(d->gpm_get);
    d->gpm_get = NULL;
}

static void open_gpm(const struct nvml *nvml, struct nvidia_device *d)
{
    struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};
    if (!nvml->gpm_support || !nvml->gpm_alloc || !nvml->gpm_free || !nvml->gpm_get)
        return;
    if (d->parent ? !nvml->gpm_sample_mig || !nvml->mig_gpu_instance : !nvml->gpm_sample)
        return;
    if (d->parent && nvml->mig_gpu_instance(d->handle, &d->mig_gpu_instance) != NVML_SUCCESS)
        return;
    if (nvml->gpm_support(d->parent ? d->parent : d->handle, &support) != NVML_SUCCESS ||
        !support.supported)
        return;
    d->gpm_get = calloc(1, sizeof *d->gpm_get);
    if (!d->gpm_get || nvml->gpm_alloc(&d->gpm[0]) != NVML_SUCCESS ||
        nvml->gpm_alloc(&d->gpm[1]) != NVML_SUCCESS)
        close_gpm(nvml, d);
}

int nvidia_device_open(const struct nvml *nvml, struct nvidia_device *d, nvml_device handle,
                       nvml_device parent)
{
    *d = (struct nvidia_device){.gpu = d->gpu,
                                .handle = handle,
                                .parent = parent,
                                .gpm_newest = -1,
                                .xid_last = store_missing()};
    // NVLink has metrics of its own
    gpu_offer(d->gpu, METRIC_GPU_LINK_TRANSMIT, METRIC_GPU_LINK_RECEIVE, false);
    int result = nvml->device_uuid ? nvml->device_uuid(handle, d->gpu->uuid, sizeof d->gpu->uuid)
                                   : NVML_FUNCTION_NOT_FOUND;
    d->gpu->uuid[result == NVML_SUCCESS ? sizeof d->gpu->uuid - 1 : 0] = 0;
    if (result == NVML_GPU_IS_LOST)
        return result;
    open_events(nvml, d);
    open_gpm(nvml, d);
    for (int i = 0; i < READINGS; i++)
        if ((parent && !readings[i].mig) ||
            (!has_function(nvml, readings[i].function) && !has_function(nvml, readings[i].instead)))
            gpu_offer(d->gpu, readings[i].first, readings[i].last, false);
    for (int i = 0; i < FIELDS; i++)
        if (parent || !nvml->fields)
            gpu_offer(d->gpu, fields[i].row, fields[i].row, false);
    return NVML_SUCCESS;
}

void nvidia_device_close(const struct nvml *nvml, struct nvidia_device *d)
{
    if (d->events)
        nvml->events_free(d->events);
    d->events = NULL;
    close_gpm(nvml, d);
}

int nvidia_device_sample(const struct nvml *nvml, struct nvidia_device *d)
{
    int failed = NVML_NOT_SUPPORTED;
    bool any = false;
    for (int i = 0; i <= READINGS; i++) {
        // The rows of a reading become unavailable together; those of the fields one by one.
        bool is_fields = i == READINGS;
        if (is_fields ? !nvml->fields || d->parent
                      : all_off(d, readings[i].first, readings[i].last))
            continue;
        int result = is_fields ? read_fields(nvml, d) : readings[i].read(nvml, d);
        if (result == NVML_GPU_IS_LOST)
            return result;
        if (result == NVML_SUCCESS)
            any = true;
        else
            failed = result;
        if (!is_fields && nvml_is_final(result))
            gpu_offer(d->gpu, readings[i].first, readings[i].last, false);
    }
    return any ? NVML_SUCCESS : failed;
}
