// amdgpu_metrics.c - reads the table that the amdgpu driver fills with one message to the GPU's
// firmware: device/gpu_metrics, little-endian.
//
//    0  size of the table, 16 bits
//    2  format: 1 = GPUs, 2 and 3 = processors with graphics
//    3  revision
//    4  fields, by revision
//
// Each revision has a row of offsets below; 0 = the revision lacks the field. All bits set = this
// GPU does not report it. The driver only adds revisions. The offsets are facts of its public
// header; unknown revisions are not read.
#include "collect/gpu_sysfs.h"

enum { LINKS = 8 }; // XGMI
static const double HERTZ_PER_MEGAHERTZ = 1e6, BYTES_PER_KILOBYTE = 1024;

// The unit is documented for revision 4 and later, and also holds for older GPUs with HBM; for
// others it is undocumented.
static const double JOULES_PER_ENERGY_UNIT = 1. / 65536;

struct layout {
    // minimum
    uint16_t size;
    // 16 bits
    uint16_t temperature, memory_temperature, activity, memory_activity, power, sm_clock,
        memory_clock;
    // 16 bits
    uint16_t hbm;
    // 64 bits
    uint16_t energy, throttle, link_read, link_write;
};

// clang-format off
static const struct layout layouts[] = {
    [1] = {96,   4, 8, 16, 18, 22,  54,  58, 88, 24,   0,   0,   0},
    [2] = {104,  4, 8, 16, 18, 22,  54,  58, 88, 24,   0,   0,   0},
    [3] = {120,  4, 8, 16, 18, 22,  54,  58, 88, 24, 112,   0,   0},
    [4] = {288,  4, 6, 12, 14, 10, 240, 280,  6, 24,   0, 104, 168},
    [5] = {360,  4, 6, 12, 14, 10, 312, 352,  6, 88,   0, 176, 240},
    // the driver has withdrawn an earlier form of 384 bytes
    [6] = {1664, 4, 6, 12, 14, 10, 264, 304,  6, 16,   0, 128, 192},
    // followed by the figures of each partition
    [7] = {344,  4, 6, 12, 14, 10, 296, 336,  6, 24,   0, 136, 200},
    [8] = {344,  4, 6, 12, 14, 10, 296, 336,  6, 24,   0, 136, 200},
};
// clang-format on
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

// Bits of the throttle status that mean the same on all GPUs.
static const struct {
    uint64_t mask;
    enum metric_symbol row;
} throttles[] = {
    // limits of power (0-7) and of current (16-23)
    {0x0000000000ff00ff, METRIC_GPU_THROTTLE_POWER_CAP},
    {0x00000fff00000000, METRIC_GPU_THROTTLE_THERMAL},
    {0x0000f00000000000, METRIC_GPU_THROTTLE_OVERHEATED}, // voltage regulators, and PROCHOT
};

static uint64_t number(const unsigned char *at, size_t bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | at[bytes];
    return value;
}

static void fill(struct gpu_device *d, enum metric_symbol row, double value)
{
    if (store_is_missing(gpu_get(d, row)))
        gpu_put(d, row, value);
}

static void fill_16(struct gpu_device *d, const unsigned char *table, size_t place,
                    enum metric_symbol row, double scale)
{
    uint64_t value = number(table + place, 2);
    if (place && value != UINT16_MAX)
        fill(d, row, (double)value * scale);
}

// Sums over all links; an absent link has all bits set.
static void fill_links(struct gpu_device *d, const unsigned char *table, size_t place,
                       enum metric_symbol row)
{
    double kilobytes = 0;
    bool any = false;
    for (size_t i = 0; place && i < LINKS; i++) {
        uint64_t value = number(table + place + 8 * i, 8);
        any = any || value != UINT64_MAX;
        kilobytes += value != UINT64_MAX ? (double)value : 0;
    }
    if (any)
        fill(d, row, kilobytes * BYTES_PER_KILOBYTE);
}

bool amdgpu_metrics_fill(const unsigned char *table, size_t size, struct gpu_device *d)
{
    if (size < 4 || table[2] != 1 || table[3] >= LAYOUTS || layouts[table[3]].size == 0)
        return false;
    const struct layout *l = &layouts[table[3]];
    if (size < l->size || number(table, 2) < l->size)
        return false;
    fill_16(d, table, l->temperature, METRIC_GPU_TEMPERATURE, 1);
    fill_16(d, table, l->memory_temperature, METRIC_GPU_MEMORY_TEMPERATURE, 1);
    fill_16(d, table, l->activity, METRIC_GPU_UTILIZATION, 1);
    fill_16(d, table, l->memory_activity, METRIC_GPU_MEMORY_ACTIVITY, 1);
    fill_16(d, table, l->power, METRIC_GPU_POWER, 1);
    fill_16(d, table, l->sm_clock, METRIC_GPU_SM_CLOCK, HERTZ_PER_MEGAHERTZ);
    fill_16(d, table, l->memory_clock, METRIC_GPU_MEMORY_CLOCK, HERTZ_PER_MEGAHERTZ);
    uint64_t energy = number(table + l->energy, 8);
    if (energy != UINT64_MAX && number(table + l->hbm, 2) != UINT16_MAX)
        fill(d, METRIC_GPU_ENERGY, (double)energy * JOULES_PER_ENERGY_UNIT);
    uint64_t throttle = l->throttle ? number(table + l->throttle, 8) : UINT64_MAX;
    if (throttle != UINT64_MAX) {
        for (size_t i = 0; i < sizeof throttles / sizeof *throttles; i++)
            fill(d, throttles[i].row, (throttle & throttles[i].mask) != 0);
        fill(d, METRIC_GPU_THROTTLE_REASONS, (double)throttle);
    }
    fill_links(d, table, l->link_read, METRIC_GPU_LINK_RECEIVE);
    fill_links(d, table, l->link_write, METRIC_GPU_LINK_TRANSMIT);
    return true;
}
