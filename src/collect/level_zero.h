// level_zero.h - the functions that sonde uses of Sysman, the monitoring part of Intel's Level
// Zero, opened at run time.
//
// The declarations are sonde's own, made from the public specification: only the functions in use
// and their layouts. Handles are opaque. Structures begin with their type and a link to extensions,
// which is always NULL here. Every function but those that list drivers and devices may be missing
// (NULL).
#ifndef SONDE_COLLECT_LEVEL_ZERO_H
#define SONDE_COLLECT_LEVEL_ZERO_H

#include <stdbool.h>
#include <stdint.h>

enum zes_result {
    ZES_SUCCESS = 0,
    ZES_DEVICE_LOST = 0x70000001,
    ZES_REQUIRES_RESET = 0x70000006,
    ZES_LOW_POWER = 0x70000007,
    ZES_NO_PERMISSION = 0x70010000,
    ZES_NOT_AVAILABLE = 0x70010001,
    ZES_DEPENDENCY_MISSING = 0x70020000,
    ZES_UNINITIALIZED = 0x78000001,
    ZES_UNSUPPORTED_VERSION = 0x78000002,
    ZES_UNSUPPORTED = 0x78000003,
};

// Types of structures.
enum zes_type {
    ZES_DEVICE_PROPERTIES = 0x1,
    ZES_PCI_PROPERTIES = 0x2,
    ZES_ENGINE_PROPERTIES = 0x5,
    ZES_FREQUENCY_PROPERTIES = 0x9,
    ZES_MEMORY_PROPERTIES = 0xb,
    ZES_POWER_PROPERTIES = 0xd,
    ZES_RAS_PROPERTIES = 0xf,
    ZES_TEMPERATURE_PROPERTIES = 0x14,
    ZES_PROCESS_STATE = 0x16,
    ZES_FREQUENCY_STATE = 0x1b,
    ZES_MEMORY_STATE = 0x1e,
    ZES_RAS_STATE = 0x22,
    ZE_DEVICE_PROPERTIES = 0x3,
};

enum { ZE_DEVICE_GPU = 1, ZE_INIT_GPU_ONLY = 1, ZES_VENDOR_INTEL = 0x8086 };
enum { ZES_ENGINE_ALL = 0, ZES_ENGINE_COMPUTE = 1, ZES_ENGINE_RENDER_AND_COMPUTE = 11 };
enum { ZES_FREQUENCY_GPU = 0, ZES_FREQUENCY_MEMORY = 1 };
enum { ZES_TEMPERATURE_GLOBAL = 0, ZES_TEMPERATURE_GPU = 1, ZES_TEMPERATURE_MEMORY = 2 };
enum { ZES_MEMORY_DEVICE = 1 };
enum { ZES_RAS_CORRECTABLE = 0, ZES_RAS_UNCORRECTABLE = 1 };

// Reasons for a reduced frequency, as bits.
enum {
    ZES_THROTTLE_POWER = 0x07, // average and burst power, current
    ZES_THROTTLE_THERMAL = 0x08,
    ZES_THROTTLE_SUPPLY = 0x10,
};

typedef void *zes_handle;

struct zes_core_properties {
    uint32_t type;
    void *next;
    uint32_t device_type, vendor_id, device_id, flags, subdevice_id, core_clock;
    uint64_t max_allocation;
    uint32_t counts[7];
    uint64_t timer_resolution;
    uint32_t timestamp_bits, kernel_timestamp_bits;
    uint8_t uuid[16];
    char name[256];
};

struct zes_device_properties {
    uint32_t type;
    void *next;
    struct zes_core_properties core;
    uint32_t subdevices;
    char texts[6][64]; // serial number, board number, brand, model, vendor, driver version
};

struct zes_pci_speed {
    int32_t generation, width;
    int64_t max_bandwidth;
};

struct zes_pci_properties {
    uint32_t type;
    void *next;
    uint32_t domain, bus, device, function;
    struct zes_pci_speed max_speed;
    uint8_t counters[3];
};

struct zes_pci_stats {
    uint64_t time, replays, packets, received, sent; // bytes
    struct zes_pci_speed speed;
};

// The common form for engines, memory modules, error sets, power domains, temperature sensors and
// frequencies: the kind of each, and whether it belongs to a tile.
struct zes_part_properties {
    uint32_t type;
    void *next;
    uint32_t kind;
    uint8_t on_subdevice;
    uint32_t subdevice_id;
    uint32_t more[16]; // for memory modules the location comes first
};

struct zes_power_properties {
    uint32_t type;
    void *next;
    uint8_t on_subdevice;
    uint32_t subdevice_id;
    uint32_t more[16];
};

struct zes_activity {
    uint64_t active_us, time_us;
};

struct zes_energy {
    uint64_t microjoules, time_us;
};

struct zes_frequency_state {
    uint32_t type;
    const void *next;
    double volt, request, tdp, efficient, actual; // MHz; negative = unknown
    uint32_t throttle;
};

struct zes_memory_state {
    uint32_t type;
    const void *next;
    uint32_t health;
    uint64_t free, size;
};

struct zes_bandwidth {
    uint64_t read, written; // bytes
    uint64_t most;          // bytes a second
    uint64_t time_us;
};

// Categories: resets, faults of programs, of drivers, of compute units, of other units, of caches,
// of displays.
enum { ZES_RAS_CATEGORIES = 7, ZES_RAS_HARDWARE_FIRST = 3, ZES_RAS_HARDWARE_LAST = 5 };
struct zes_ras_state {
    uint32_t type;
    const void *next;
    uint64_t categories[ZES_RAS_CATEGORIES];
    uint64_t later[9]; // room for fields of newer libraries
};

struct zes_throughput {
    uint64_t time_us, received, sent; // bytes
};

struct zes_process {
    uint32_t type;
    const void *next;
    uint32_t pid;
    uint64_t memory, shared;
    uint32_t engines;
};

_Static_assert(sizeof(struct zes_core_properties) == 368, "as Level Zero lays it out");
_Static_assert(sizeof(struct zes_device_properties) == 776, "as Level Zero lays it out");
_Static_assert(sizeof(struct zes_pci_properties) == 56, "as Level Zero lays it out");
_Static_assert(sizeof(struct zes_pci_stats) == 56, "as Level Zero lays it out");
_Static_assert(sizeof(struct zes_frequency_state) == 64, "as Level Zero lays it out");
_Static_assert(sizeof(struct zes_memory_state) == 40, "as Level Zero lays it out");
_Static_assert(sizeof(struct zes_process) == 48, "as Level Zero lays it out");

// FUNCTION(member, arguments, symbols)
#define ZES_LIST(FUNCTION, member, symbol) \
    FUNCTION(member, (zes_handle, uint32_t *, zes_handle *), symbol)
#define ZES_FUNCTIONS(FUNCTION)                                                                   \
    FUNCTION(init, (uint32_t), "zesInit")                                                         \
    FUNCTION(drivers, (uint32_t *, zes_handle *), "zesDriverGet")                                 \
    ZES_LIST(FUNCTION, devices, "zesDeviceGet")                                                   \
    FUNCTION(older_init, (uint32_t), "zeInit")                                                    \
    FUNCTION(older_drivers, (uint32_t *, zes_handle *), "zeDriverGet")                            \
    ZES_LIST(FUNCTION, older_devices, "zeDeviceGet")                                              \
    FUNCTION(properties, (zes_handle, struct zes_device_properties *), "zesDeviceGetProperties")  \
    FUNCTION(pci, (zes_handle, struct zes_pci_properties *), "zesDevicePciGetProperties")         \
    FUNCTION(pci_stats, (zes_handle, struct zes_pci_stats *), "zesDevicePciGetStats")             \
    ZES_LIST(FUNCTION, engines, "zesDeviceEnumEngineGroups")                                      \
    FUNCTION(engine, (zes_handle, struct zes_part_properties *), "zesEngineGetProperties")        \
    FUNCTION(activity, (zes_handle, struct zes_activity *), "zesEngineGetActivity")               \
    FUNCTION(card_power, (zes_handle, zes_handle *), "zesDeviceGetCardPowerDomain")               \
    ZES_LIST(FUNCTION, powers, "zesDeviceEnumPowerDomains")                                       \
    FUNCTION(power, (zes_handle, struct zes_power_properties *), "zesPowerGetProperties")         \
    FUNCTION(energy, (zes_handle, struct zes_energy *), "zesPowerGetEnergyCounter")               \
    ZES_LIST(FUNCTION, sensors, "zesDeviceEnumTemperatureSensors")                                \
    FUNCTION(sensor, (zes_handle, struct zes_part_properties *), "zesTemperatureGetProperties")   \
    FUNCTION(temperature, (zes_handle, double *), "zesTemperatureGetState")                       \
    ZES_LIST(FUNCTION, frequencies, "zesDeviceEnumFrequencyDomains")                              \
    FUNCTION(frequency, (zes_handle, struct zes_part_properties *), "zesFrequencyGetProperties")  \
    FUNCTION(frequency_state, (zes_handle, struct zes_frequency_state *), "zesFrequencyGetState") \
    ZES_LIST(FUNCTION, memories, "zesDeviceEnumMemoryModules")                                    \
    FUNCTION(memory, (zes_handle, struct zes_part_properties *), "zesMemoryGetProperties")        \
    FUNCTION(memory_state, (zes_handle, struct zes_memory_state *), "zesMemoryGetState")          \
    FUNCTION(bandwidth, (zes_handle, struct zes_bandwidth *), "zesMemoryGetBandwidth")            \
    ZES_LIST(FUNCTION, error_sets, "zesDeviceEnumRasErrorSets")                                   \
    FUNCTION(error_set, (zes_handle, struct zes_part_properties *), "zesRasGetProperties")        \
    FUNCTION(errors, (zes_handle, uint8_t, struct zes_ras_state *), "zesRasGetState")             \
    ZES_LIST(FUNCTION, ports, "zesDeviceEnumFabricPorts")                                         \
    FUNCTION(throughput, (zes_handle, struct zes_throughput *), "zesFabricPortGetThroughput")     \
    FUNCTION(processes, (zes_handle, uint32_t *, struct zes_process *),                           \
             "zesDeviceProcessesGetState")

struct level_zero {
#define FUNCTION(member, arguments, symbols) int(*member) arguments;
    ZES_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

#endif
