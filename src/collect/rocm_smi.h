// rocm_smi.h - the functions that sonde uses of AMD's ROCm SMI library, opened at run time.
//
// The declarations are sonde's own, made from the library's public documentation. Only functions
// whose arguments have been the same since ROCm 4 are used, and no structure whose layout has
// changed: clocks and XGMI, which the library returns in such structures, are read from /sys.
// Devices are numbers from 0. Every function but `init` and `device_count` may be missing (NULL).
#ifndef SONDE_COLLECT_ROCM_SMI_H
#define SONDE_COLLECT_ROCM_SMI_H

#include <stdint.h>

enum rocm_status {
    ROCM_SUCCESS = 0,
    ROCM_INVALID_ARGS = 1,
    ROCM_NOT_SUPPORTED = 2,
    ROCM_FILE_ERROR = 3, // also for a lost GPU
    ROCM_PERMISSION = 4,
    ROCM_INIT_ERROR = 8,
    ROCM_NOT_YET_IMPLEMENTED = 9,
    ROCM_BUSY = 16,
};

enum {
    ROCM_MEMORY_VRAM = 0,
    ROCM_TEMPERATURE_EDGE = 0,
    ROCM_TEMPERATURE_JUNCTION = 1,
    ROCM_TEMPERATURE_MEMORY = 2,
    ROCM_TEMPERATURE_CURRENT = 0,
};

// Uses locks between threads only: with locks between processes, a dead process could block all
// others. Libraries without the flag ignore it.
static const uint64_t ROCM_INIT_THREAD_LOCKS = 0x400000000000000;

static const uint64_t ROCM_BLOCK_MEMORY = 1; // the controller of the GPU's memory (UMC)

struct rocm_errors {
    uint64_t corrected, uncorrected;
    uint64_t later[6]; // room for fields of newer libraries
};

// FUNCTION(member, arguments, symbols)
#define ROCM_FUNCTIONS(FUNCTION)                                                               \
    FUNCTION(init, (uint64_t), "rsmi_init")                                                    \
    FUNCTION(shut_down, (void), "rsmi_shut_down")                                              \
    FUNCTION(device_count, (uint32_t *), "rsmi_num_monitor_devices")                           \
    FUNCTION(unique_id, (uint32_t, uint64_t *), "rsmi_dev_unique_id_get")                      \
    FUNCTION(pci_id, (uint32_t, uint64_t *), "rsmi_dev_pci_id_get")                            \
    FUNCTION(busy, (uint32_t, uint32_t *), "rsmi_dev_busy_percent_get")                        \
    FUNCTION(memory_busy, (uint32_t, uint32_t *), "rsmi_dev_memory_busy_percent_get")          \
    FUNCTION(memory_total, (uint32_t, int, uint64_t *), "rsmi_dev_memory_total_get")           \
    FUNCTION(memory_used, (uint32_t, int, uint64_t *), "rsmi_dev_memory_usage_get")            \
    FUNCTION(socket_power, (uint32_t, uint64_t *), "rsmi_dev_current_socket_power_get")        \
    FUNCTION(power, (uint32_t, uint32_t, uint64_t *), "rsmi_dev_power_ave_get")                \
    FUNCTION(energy, (uint32_t, uint64_t *, float *, uint64_t *), "rsmi_dev_energy_count_get") \
    FUNCTION(temperature, (uint32_t, uint32_t, int, int64_t *), "rsmi_dev_temp_metric_get")    \
    FUNCTION(errors, (uint32_t, uint64_t, struct rocm_errors *), "rsmi_dev_ecc_count_get")

struct rocm_smi {
#define FUNCTION(member, arguments, symbols) int(*member) arguments;
    ROCM_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

#endif
