// rocm_smi.c - a fake librocm_smi64.so whose GPUs follow a script (script.h).
//
// The library is also built as an old one (FAKE_OLD) without energy, current power and errors.
#include "fake/script.h"

#include "collect/rocm_smi.h"

#include <stdlib.h>

enum key {
    ID,
    PCI,
    BUSY,
    MEMORY_BUSY,
    TOTAL,
    USED,
    SOCKET,
    POWER,
    ENERGY,
    EDGE,
    JUNCTION,
    MEMORY,
    CORRECTED,
    UNCORRECTED
};

const struct fake_key fake_keys[] = {
    [ID] = {"id", 0},
    [PCI] = {"pci", 0},
    [BUSY] = {"busy", 93},
    [MEMORY_BUSY] = {"memory_busy", 41},
    [TOTAL] = {"total", 64. * (1 << 30)},
    [USED] = {"used", 16. * (1 << 30)},
    [SOCKET] = {"socket_power", 412e6},
    [POWER] = {"power", 300e6},
    [ENERGY] = {"energy", 1e9},
    [EDGE] = {"edge", 51000},
    [JUNCTION] = {"junction", 60000},
    [MEMORY] = {"memory_temperature", 58000},
    [CORRECTED] = {"corrected", 3},
    [UNCORRECTED] = {"uncorrected", 1},
    {0},
};
const struct fake_more fake_more = {0};

#define CALL(name, ...)                                           \
    __attribute__((visibility("default"))) int name(__VA_ARGS__); \
    __attribute__((visibility("default"))) int name(__VA_ARGS__)

static int ask_u64(uint32_t gpu, enum key key, uint64_t *out)
{
    double value;
    int status = gpu < fake_gpu_count() ? fake_ask(gpu, (int)key, &value) : ROCM_INVALID_ARGS;
    if (status == ROCM_SUCCESS)
        *out = (uint64_t)value;
    return status;
}

static int ask_u32(uint32_t gpu, enum key key, uint32_t *out)
{
    uint64_t value;
    int status = ask_u64(gpu, key, &value);
    if (status == ROCM_SUCCESS)
        *out = (uint32_t)value;
    return status;
}

CALL(rsmi_init, uint64_t flags)
{
    if (flags != ROCM_INIT_THREAD_LOCKS)
        abort(); // with other flags, the library would lock between processes
    return fake_init_result();
}

CALL(rsmi_shut_down, void)
{
    return ROCM_SUCCESS;
}

CALL(rsmi_num_monitor_devices, uint32_t *out)
{
    *out = fake_gpu_count();
    return ROCM_SUCCESS;
}

CALL(rsmi_dev_unique_id_get, uint32_t gpu, uint64_t *out)
{
    int status = ask_u64(gpu, ID, out);
    *out += 0xa1b2c3d4e5f60718 + gpu;
    return status;
}

CALL(rsmi_dev_pci_id_get, uint32_t gpu, uint64_t *out)
{
    int status = ask_u64(gpu, PCI, out);
    *out += (uint64_t)(0xc0 + gpu) << 8;
    return status;
}

CALL(rsmi_dev_busy_percent_get, uint32_t gpu, uint32_t *out)
{
    return ask_u32(gpu, BUSY, out);
}

CALL(rsmi_dev_memory_busy_percent_get, uint32_t gpu, uint32_t *out)
{
    return ask_u32(gpu, MEMORY_BUSY, out);
}

CALL(rsmi_dev_memory_total_get, uint32_t gpu, int type, uint64_t *out)
{
    return type == ROCM_MEMORY_VRAM ? ask_u64(gpu, TOTAL, out) : ROCM_INVALID_ARGS;
}

CALL(rsmi_dev_memory_usage_get, uint32_t gpu, int type, uint64_t *out)
{
    return type == ROCM_MEMORY_VRAM ? ask_u64(gpu, USED, out) : ROCM_INVALID_ARGS;
}

CALL(rsmi_dev_power_ave_get, uint32_t gpu, uint32_t sensor, uint64_t *out)
{
    return sensor == 0 ? ask_u64(gpu, POWER, out) : ROCM_INVALID_ARGS;
}

CALL(rsmi_dev_temp_metric_get, uint32_t gpu, uint32_t sensor, int metric, int64_t *out)
{
    uint64_t value = 0;
    if (sensor > ROCM_TEMPERATURE_MEMORY || metric != ROCM_TEMPERATURE_CURRENT)
        return ROCM_INVALID_ARGS;
    int status = ask_u64(gpu, EDGE + sensor, &value);
    *out = (int64_t)value;
    return status;
}

#ifndef FAKE_OLD

CALL(rsmi_dev_current_socket_power_get, uint32_t gpu, uint64_t *out)
{
    return ask_u64(gpu, SOCKET, out);
}

CALL(rsmi_dev_energy_count_get, uint32_t gpu, uint64_t *out, float *microjoules, uint64_t *time_ns)
{
    *microjoules = 15.25F;
    *time_ns = 1;
    return ask_u64(gpu, ENERGY, out);
}

CALL(rsmi_dev_ecc_count_get, uint32_t gpu, uint64_t block, struct rocm_errors *out)
{
    if (block != ROCM_BLOCK_MEMORY)
        return ROCM_NOT_SUPPORTED;
    int status = ask_u64(gpu, CORRECTED, &out->corrected);
    return status == ROCM_SUCCESS ? ask_u64(gpu, UNCORRECTED, &out->uncorrected) : status;
}

#endif
