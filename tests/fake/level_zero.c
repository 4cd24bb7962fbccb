// level_zero.c - a fake libze_loader.so.1 whose GPUs follow a script (script.h).
//
// A GPU has a component of each kind or, with `set G tiles 2`, one for each tile. It has two
// frequencies, two sensors and two sets of errors. With `set 0 drivers 2`, two drivers list all
// GPUs. `set G kind 5` makes G a device that is not a GPU. Counters advance by a second with each
// call. The library is also built as an old one (FAKE_OLD), which has no zesInit, and has Sysman
// only if the environment requests it before the start.
#include "fake/script.h"

#include "collect/level_zero.h"

#include <stdlib.h>
#include <string.h>

enum key {
    KIND,
    DRIVERS,
    TILES,
    PCI,
    ENGINE,
    TOTAL,
    USED,
    BANDWIDTH,
    POWER,
    TEMPERATURE,
    MEMORY_TEMPERATURE,
    CLOCK,
    MEMORY_CLOCK,
    THROTTLE,
    RECEIVED,
    SENT,
    LINK,
    CORRECTED,
    UNCORRECTED,
    PROCESSES
};

const struct fake_key fake_keys[] = {
    [KIND] = {"kind", ZE_DEVICE_GPU},
    [DRIVERS] = {"drivers", 1},
    [TILES] = {"tiles", 0},
    [PCI] = {"pci", 0},
    [ENGINE] = {"engine", 75}, // in percent
    [TOTAL] = {"total", 64. * (1 << 30)},
    [USED] = {"used", 16. * (1 << 30)},
    [BANDWIDTH] = {"bandwidth", 30}, // in percent
    [POWER] = {"power", 350},        // in watts
    [TEMPERATURE] = {"temperature", 51.5},
    [MEMORY_TEMPERATURE] = {"memory_temperature", 44},
    [CLOCK] = {"clock", 1600},
    [MEMORY_CLOCK] = {"memory_clock", 3200},
    [THROTTLE] = {"throttle", 0},
    [RECEIVED] = {"received", 2e12},
    [SENT] = {"sent", 1e12},
    [LINK] = {"link", 5e9},
    [CORRECTED] = {"corrected", 3},
    [UNCORRECTED] = {"uncorrected", 1},
    [PROCESSES] = {"processes", 2},
    {0},
};
const struct fake_more fake_more = {0};

#define CALL(name, ...)                                           \
    __attribute__((visibility("default"))) int name(__VA_ARGS__); \
    __attribute__((visibility("default"))) int name(__VA_ARGS__)

enum { DEVICES_ONLY = 0x78000004, TILES_MAX = 4 };

// A handle is a number: 1 + GPU. That of a component also has its key and its tile (0 = none).
static zes_handle handle_of(unsigned gpu, enum key key, unsigned tile)
{
    return (zes_handle)(uintptr_t)((1 + gpu) | (unsigned)key << 8 | tile << 16);
}

static unsigned gpu_of(zes_handle handle)
{
    return ((unsigned)(uintptr_t)handle & 0xff) - 1;
}

static enum key key_of(zes_handle handle)
{
    return (enum key)((uintptr_t)handle >> 8 & 0xff);
}

static unsigned tile_of(zes_handle handle)
{
    return (unsigned)((uintptr_t)handle >> 16);
}

static int ask(zes_handle handle, enum key key, double *out)
{
    return fake_ask(gpu_of(handle), (int)key, out);
}

static bool sysman(void)
{
#ifdef FAKE_OLD
    return getenv("ZES_ENABLE_SYSMAN") != NULL;
#else
    return true;
#endif
}

// Lists a component of each key, or one for each tile.
static int list(zes_handle device, const enum key *keys, size_t kinds, uint32_t *count,
                zes_handle *out)
{
    double tiles;
    int result = ask(device, TILES, &tiles);
    uint32_t given = 0, room = *count;
    for (unsigned tile = tiles > 0; result == ZES_SUCCESS && tile <= (unsigned)tiles; tile++)
        for (size_t i = 0; i < kinds && given < room; i++)
            out[given++] = handle_of(gpu_of(device), keys[i], tile);
    *count = given;
    return result;
}

#define LIST(name, ...)                                                    \
    CALL(name, zes_handle device, uint32_t *count, zes_handle *out)        \
    {                                                                      \
        static const enum key keys[] = {__VA_ARGS__};                      \
        return list(device, keys, sizeof keys / sizeof *keys, count, out); \
    }

LIST(zesDeviceEnumEngineGroups, ENGINE)
LIST(zesDeviceEnumTemperatureSensors, TEMPERATURE, MEMORY_TEMPERATURE)
LIST(zesDeviceEnumFrequencyDomains, CLOCK, MEMORY_CLOCK)
LIST(zesDeviceEnumMemoryModules, TOTAL)
LIST(zesDeviceEnumRasErrorSets, CORRECTED, UNCORRECTED)
LIST(zesDeviceEnumFabricPorts, LINK)

static int describe(zes_handle handle, enum zes_type type, uint32_t kind,
                    struct zes_part_properties *out)
{
    if (out->type != type || out->next)
        return DEVICES_ONLY;
    out->kind = kind;
    out->on_subdevice = tile_of(handle) > 0;
    out->subdevice_id = tile_of(handle);
    return ZES_SUCCESS;
}

CALL(zesEngineGetProperties, zes_handle handle, struct zes_part_properties *out)
{
    return describe(handle, ZES_ENGINE_PROPERTIES, ZES_ENGINE_COMPUTE, out);
}

CALL(zesTemperatureGetProperties, zes_handle handle, struct zes_part_properties *out)
{
    return describe(handle, ZES_TEMPERATURE_PROPERTIES,
                    key_of(handle) == TEMPERATURE ? ZES_TEMPERATURE_GPU : ZES_TEMPERATURE_MEMORY,
                    out);
}

CALL(zesFrequencyGetProperties, zes_handle handle, struct zes_part_properties *out)
{
    return describe(handle, ZES_FREQUENCY_PROPERTIES,
                    key_of(handle) == CLOCK ? ZES_FREQUENCY_GPU : ZES_FREQUENCY_MEMORY, out);
}

CALL(zesMemoryGetProperties, zes_handle handle, struct zes_part_properties *out)
{
    out->more[0] = ZES_MEMORY_DEVICE;
    return describe(handle, ZES_MEMORY_PROPERTIES, 0, out);
}

CALL(zesRasGetProperties, zes_handle handle, struct zes_part_properties *out)
{
    return describe(handle, ZES_RAS_PROPERTIES,
                    key_of(handle) == CORRECTED ? ZES_RAS_CORRECTABLE : ZES_RAS_UNCORRECTABLE, out);
}

// Returns the seconds by which a counter has advanced. Each tile of a GPU has its own counter for
// each key.
static double seconds(zes_handle handle, enum key key)
{
    return fake_count(gpu_of(handle), (int)key + (int)(tile_of(handle) % 2) * FAKE_KEYS_MAX, 1);
}

CALL(zesEngineGetActivity, zes_handle handle, struct zes_activity *out)
{
    double percent;
    int result = ask(handle, ENGINE, &percent);
    double time = seconds(handle, ENGINE);
    *out = (struct zes_activity){(uint64_t)(time * percent * 1e4), (uint64_t)(time * 1e6)};
    return result;
}

CALL(zesMemoryGetState, zes_handle handle, struct zes_memory_state *out)
{
    double total, used;
    int result = ask(handle, TOTAL, &total);
    ask(handle, USED, &used);
    out->size = (uint64_t)total;
    out->free = (uint64_t)(int64_t)(total - used);
    return result;
}

CALL(zesMemoryGetBandwidth, zes_handle handle, struct zes_bandwidth *out)
{
    double percent;
    int result = ask(handle, BANDWIDTH, &percent);
    double time = seconds(handle, BANDWIDTH);
    *out = (struct zes_bandwidth){.read = (uint64_t)(time * percent * 6e9),
                                  .written = (uint64_t)(time * percent * 4e9),
                                  .most = 1000000000000,
                                  .time_us = (uint64_t)(time * 1e6)};
    return result;
}

CALL(zesDeviceGetCardPowerDomain, zes_handle device, zes_handle *out)
{
    *out = handle_of(gpu_of(device), POWER, 0);
    return ZES_SUCCESS;
}

CALL(zesPowerGetEnergyCounter, zes_handle handle, struct zes_energy *out)
{
    double watts;
    int result = ask(handle, POWER, &watts);
    double time = seconds(handle, POWER);
    *out = (struct zes_energy){(uint64_t)(time * watts * 1e6), (uint64_t)(time * 1e6)};
    return result;
}

// The second tile is a degree warmer and a megahertz faster.
CALL(zesTemperatureGetState, zes_handle handle, double *out)
{
    int result = ask(handle, key_of(handle), out);
    *out += tile_of(handle);
    return result;
}

CALL(zesFrequencyGetState, zes_handle handle, struct zes_frequency_state *out)
{
    double throttle;
    if (out->type != ZES_FREQUENCY_STATE)
        return DEVICES_ONLY;
    int result = ask(handle, key_of(handle), &out->actual);
    out->actual += tile_of(handle);
    ask(handle, THROTTLE, &throttle);
    out->throttle = (uint32_t)throttle;
    return result;
}

CALL(zesRasGetState, zes_handle handle, uint8_t clear, struct zes_ras_state *out)
{
    double errors;
    if (clear)
        abort(); // sonde must not clear the counts, because all programs share them
    int result = ask(handle, key_of(handle), &errors);
    for (int i = 0; i < ZES_RAS_CATEGORIES; i++)
        out->categories[i] = 1000; // errors of other categories, which sonde must not count
    for (int i = ZES_RAS_HARDWARE_FIRST; i <= ZES_RAS_HARDWARE_LAST; i++)
        out->categories[i] = 0;
    out->categories[ZES_RAS_HARDWARE_LAST] = (uint64_t)errors;
    return result;
}

CALL(zesFabricPortGetThroughput, zes_handle handle, struct zes_throughput *out)
{
    double bytes;
    int result = ask(handle, LINK, &bytes);
    *out = (struct zes_throughput){1, (uint64_t)bytes, (uint64_t)bytes / 2};
    return result;
}

CALL(zesDevicePciGetStats, zes_handle device, struct zes_pci_stats *out)
{
    double received, sent;
    int result = ask(device, RECEIVED, &received);
    ask(device, SENT, &sent);
    *out = (struct zes_pci_stats){.received = (uint64_t)received, .sent = (uint64_t)sent};
    return result;
}

CALL(zesDeviceProcessesGetState, zes_handle device, uint32_t *count, struct zes_process *out)
{
    double processes;
    int result = ask(device, PROCESSES, &processes);
    uint32_t room = *count;
    *count = (uint32_t)processes;
    for (uint32_t i = 0; i < *count && i < room; i++) {
        if (out[i].type != ZES_PROCESS_STATE)
            return DEVICES_ONLY;
        out[i].memory = 1 << 30;
    }
    return result;
}

CALL(zesDeviceGetProperties, zes_handle device, struct zes_device_properties *out)
{
    double kind;
    if (!sysman())
        return ZES_UNINITIALIZED;
    int result = ask(device, KIND, &kind);
    out->core.device_type = (uint32_t)kind;
    out->core.vendor_id = ZES_VENDOR_INTEL;
    memset(out->core.uuid, 0x11, sizeof out->core.uuid);
    out->core.uuid[15] = (uint8_t)gpu_of(device);
    return result;
}

CALL(zesDevicePciGetProperties, zes_handle device, struct zes_pci_properties *out)
{
    double domain;
    int result = ask(device, PCI, &domain);
    out->domain = (uint32_t)domain;
    out->bus = 0xc0 + gpu_of(device);
    return result;
}

static int drivers(uint32_t *count, zes_handle *out)
{
    double number;
    fake_ask(0, DRIVERS, &number);
    uint32_t room = *count;
    *count = (uint32_t)number;
    for (uint32_t i = 0; i < *count && i < room; i++)
        out[i] = (zes_handle)(uintptr_t)(i + 1);
    return ZES_SUCCESS;
}

static int devices(uint32_t *count, zes_handle *out)
{
    uint32_t room = *count;
    *count = fake_gpu_count();
    for (uint32_t i = 0; i < *count && i < room; i++)
        out[i] = handle_of(i, KIND, 0);
    return ZES_SUCCESS;
}

#ifdef FAKE_OLD
#define INIT zeInit
#define DRIVERS_GET zeDriverGet
#define DEVICES_GET zeDeviceGet
#else
#define INIT zesInit
#define DRIVERS_GET zesDriverGet
#define DEVICES_GET zesDeviceGet
#endif

CALL(INIT, uint32_t flags)
{
    (void)flags;
    return fake_init_result();
}

CALL(DRIVERS_GET, uint32_t *count, zes_handle *out)
{
    return drivers(count, out);
}

CALL(DEVICES_GET, zes_handle driver, uint32_t *count, zes_handle *out)
{
    (void)driver;
    return devices(count, out);
}
