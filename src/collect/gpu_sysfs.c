// gpu_sysfs.c - AMD and Intel GPUs, as far as their kernel drivers (amdgpu, i915, xe) tell in /sys: no library, no privileges.
//
//   /sys/class/drm/card0/device/vendor               0x1002 AMD, 0x8086 Intel
//                               gpu_busy_percent …   one number a file
//                               hwmon/hwmon3/temp2_input, and what it is in temp2_label
//
// Which sensor is which is read from its label, never from its number. The GPUs of a vendor are numbered in the order of their cards; the tag uuid is
// the serial number that amdgpu gives, else the PCI address. A driver may hang over a GPU that is gone, so these sources are sampled apart.
#include "collect/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GPUS_MAX = 32, CARDS_MAX = 256, SENSORS_MAX = 16, PATH_SIZE = 1024, TEXT_SIZE = 64 };

static const enum metric_symbol ROW_FIRST = METRIC_GPU_UTILIZATION;
enum { ROWS = METRIC_GPU_MEMORY_CLOCK + 1 - METRIC_GPU_UTILIZATION };

// In a card's folder. Of two files for one row the first that is there is taken.
static const struct {
    const char *path;
    enum metric_symbol row;
    double scale;
} files[] = {
    {"device/gpu_busy_percent", METRIC_GPU_UTILIZATION, 1},
    {"device/mem_busy_percent", METRIC_GPU_MEMORY_ACTIVITY, 1},
    {"device/mem_info_vram_total", METRIC_GPU_MEMORY_TOTAL, 1},
    {"device/mem_info_vram_used", METRIC_GPU_MEMORY_USED, 1},
    {"gt_act_freq_mhz", METRIC_GPU_SM_CLOCK, 1e6},
    {"device/tile0/gt0/freq0/act_freq", METRIC_GPU_SM_CLOCK, 1e6},
};

// In its hwmon folder: KIND, a number, ENDING; label NULL = where there is none to read, "" = whatever it says. Likewise the first counts.
static const struct {
    const char *kind, *ending, *label;
    enum metric_symbol row;
    double scale;
} sensors[] = {
    {"power", "average", "", METRIC_GPU_POWER, 1e-6},
    {"power", "input", "", METRIC_GPU_POWER, 1e-6},
    {"energy", "input", "card", METRIC_GPU_ENERGY, 1e-6},
    {"energy", "input", NULL, METRIC_GPU_ENERGY, 1e-6},
    {"temp", "input", "edge", METRIC_GPU_TEMPERATURE, 1e-3},
    {"temp", "input", "junction", METRIC_GPU_TEMPERATURE, 1e-3},
    {"temp", "input", "pkg", METRIC_GPU_TEMPERATURE, 1e-3},
    {"temp", "input", NULL, METRIC_GPU_TEMPERATURE, 1e-3},
    {"temp", "input", "mem", METRIC_GPU_MEMORY_TEMPERATURE, 1e-3},
    {"temp", "input", "vram", METRIC_GPU_MEMORY_TEMPERATURE, 1e-3},
    {"freq", "input", "sclk", METRIC_GPU_SM_CLOCK, 1},
    {"freq", "input", "mclk", METRIC_GPU_MEMORY_CLOCK, 1},
};

struct sysfs_gpu {
    ptrdiff_t instance;
    int fds[ROWS]; // -1 = there is no such file
    double scales[ROWS];
};

struct sysfs_gpus {
    size_t count;
    struct sysfs_gpu gpus[GPUS_MAX];
};

// One line without its end. False when there is nothing.
static bool read_text(int fd, char out[TEXT_SIZE])
{
    ssize_t got = pread(fd, out, TEXT_SIZE - 1, 0);
    while (got > 0 && (out[got - 1] == '\n' || out[got - 1] == ' '))
        got--;
    out[got > 0 ? got : 0] = 0;
    return got > 0;
}

static int open_in(const char *folder, const char *name)
{
    char path[PATH_SIZE];
    int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    return size > 0 && (size_t)size < sizeof path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
}

static bool read_file(const char *folder, const char *name, char out[TEXT_SIZE])
{
    int fd = open_in(folder, name);
    bool have = fd >= 0 && read_text(fd, out);
    if (fd >= 0)
        close(fd);
    return have;
}

// A whole number, and nothing else.
static bool read_number(int fd, double *out)
{
    char text[TEXT_SIZE], *end;
    if (!read_text(fd, text))
        return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    *out = (double)number;
    return errno == 0 && end != text && *end == 0;
}

static void keep(struct sysfs_gpu *gpu, enum metric_symbol row, double scale, const char *folder, const char *name)
{
    int *fd = &gpu->fds[row - ROW_FIRST];
    double number;
    if (*fd >= 0)
        return;
    *fd = open_in(folder, name);
    if (*fd >= 0 && !read_number(*fd, &number)) {
        close(*fd);
        *fd = -1;
    }
    gpu->scales[row - ROW_FIRST] = scale;
}

static void open_sensors(struct sysfs_gpu *gpu, const char *folder)
{
    for (size_t i = 0; i < sizeof sensors / sizeof *sensors; i++)
        for (int number = 1; number <= SENSORS_MAX; number++) {
            char name[TEXT_SIZE], label[TEXT_SIZE];
            snprintf(name, sizeof name, "%s%d_label", sensors[i].kind, number);
            bool labelled = read_file(folder, name, label);
            const char *wanted = sensors[i].label;
            if (wanted ? wanted[0] && (!labelled || strcmp(label, wanted) != 0) : labelled)
                continue;
            snprintf(name, sizeof name, "%s%d_%s", sensors[i].kind, number, sensors[i].ending);
            keep(gpu, sensors[i].row, sensors[i].scale, folder, name);
        }
}

static void find_sensors(struct sysfs_gpu *gpu, const char *card)
{
    char parent[PATH_SIZE], folder[PATH_SIZE + 256];
    snprintf(parent, sizeof parent, "%s/device/hwmon", card);
    DIR *dir = opendir(parent);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strncmp(entry->d_name, "hwmon", 5) == 0) {
            snprintf(folder, sizeof folder, "%s/%s", parent, entry->d_name);
            open_sensors(gpu, folder);
        }
    if (dir)
        closedir(dir);
}

static void name_gpu(const char *card, char out[SOURCE_TAG_SIZE])
{
    char path[PATH_SIZE], target[PATH_SIZE], id[TEXT_SIZE];
    out[0] = 0;
    if (read_file(card, "device/unique_id", id)) {
        snprintf(out, SOURCE_TAG_SIZE, "%s", id);
        return;
    }
    snprintf(path, sizeof path, "%s/device", card);
    ssize_t size = readlink(path, target, sizeof target - 1);
    target[size > 0 ? size : 0] = 0;
    const char *slash = strrchr(target, '/');
    if (slash && strlen(slash + 1) < SOURCE_TAG_SIZE)
        memcpy(out, slash + 1, strlen(slash + 1) + 1);
}

static void close_gpu(struct sysfs_gpu *gpu)
{
    for (int row = 0; row < ROWS; row++)
        if (gpu->fds[row] >= 0)
            close(gpu->fds[row]);
}

static void open_card(struct source *s, const char *drm, int number, const char *vendor)
{
    struct sysfs_gpus *all = s->state;
    struct sysfs_gpu *gpu = &all->gpus[all->count];
    char card[PATH_SIZE - 64], text[TEXT_SIZE], uuid[SOURCE_TAG_SIZE], index[12];
    snprintf(card, sizeof card, "%s/card%d", drm, number);
    if (all->count == GPUS_MAX || !read_file(card, "device/vendor", text) || strcmp(text, vendor) != 0)
        return;
    bool any = false;
    for (int row = 0; row < ROWS; row++)
        gpu->fds[row] = -1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        keep(gpu, files[i].row, files[i].scale, card, files[i].path);
    find_sensors(gpu, card);
    for (int row = 0; row < ROWS; row++)
        any = any || gpu->fds[row] >= 0;
    if (!any)
        return;
    name_gpu(card, uuid);
    snprintf(index, sizeof index, "%zu", all->count);
    gpu->instance = source_instance(s, str_of(index), str_of(uuid));
    if (gpu->instance < 0)
        close_gpu(gpu);
    else
        all->count++;
}

static int open_vendor(struct source *s, const char *vendor)
{
    char drm[PATH_SIZE / 2];
    int size = snprintf(drm, sizeof drm, "%s/sys/class/drm", s->options->root ? s->options->root : "");
    if (size < 0 || (size_t)size >= sizeof drm)
        return source_fail(s, -ENAMETOOLONG, "the root folder's path is too long");
    DIR *dir = opendir(drm);
    if (!dir)
        return source_fail(s, -errno, "cannot open %s: %s", drm, strerror(errno));
    bool cards[CARDS_MAX] = {false};
    for (struct dirent *entry; (entry = readdir(dir));) {
        char *end;
        if (strncmp(entry->d_name, "card", 4) != 0)
            continue;
        unsigned long number = strtoul(entry->d_name + 4, &end, 10);
        if (end != entry->d_name + 4 && *end == 0 && number < CARDS_MAX)
            cards[number] = true; // card0-DP-1 is a socket of card0
    }
    closedir(dir);
    struct sysfs_gpus *all = calloc(1, sizeof *all);
    if (!all)
        return source_fail(s, -ENOMEM, "no memory");
    s->state = all;
    for (int number = 0; number < CARDS_MAX; number++)
        if (cards[number])
            open_card(s, drm, number, vendor);
    if (all->count)
        return 0;
    free(all);
    return source_fail(s, -ENODEV, "there is no such GPU in %s, or its driver tells nothing", drm);
}

static int open_amd(struct source *s)
{
    return open_vendor(s, "0x1002");
}

static int open_intel(struct source *s)
{
    return open_vendor(s, "0x8086");
}

static int sample(struct source *s, double *values)
{
    struct sysfs_gpus *all = s->state;
    size_t found = 0;
    for (size_t i = 0; i < all->count; i++) {
        struct sysfs_gpu *gpu = &all->gpus[i];
        double got[ROWS];
        for (int row = 0; row < ROWS; row++) {
            got[row] = store_missing();
            if (gpu->fds[row] < 0 || !read_number(gpu->fds[row], &got[row])) {
                got[row] = store_missing();
                continue;
            }
            got[row] *= gpu->scales[row];
            source_put_at(s, values, gpu->instance, ROW_FIRST + (enum metric_symbol)row, got[row]);
            found++;
        }
        double total = got[METRIC_GPU_MEMORY_TOTAL - ROW_FIRST], used = got[METRIC_GPU_MEMORY_USED - ROW_FIRST];
        if (!store_is_missing(total) && !store_is_missing(used) && total > 0 && used >= 0 && used <= total)
            source_put_at(s, values, gpu->instance, METRIC_GPU_MEMORY_USED_PERCENT, 100 * used / total);
    }
    return found ? 0 : source_fail(s, -ENODEV, "the GPUs no longer answer");
}

static void close_all(struct source *s)
{
    struct sysfs_gpus *all = s->state;
    for (size_t i = 0; i < all->count; i++)
        close_gpu(&all->gpus[i]);
    free(all);
}

#define SYSFS_GPUS(label, opener)                                                                             \
    {                                                                                                         \
        .name = {label, sizeof label - 1}, .open = opener, .sample = sample, .close = close_all,              \
        .keys = {"gpu", "uuid"}, .tagged_from = METRIC_GPU_UTILIZATION, .tagged_to = METRIC_GPU_MEMORY_CLOCK, \
        .apart = true,                                                                                        \
    }

const struct source_kind source_amd = SYSFS_GPUS("gpu-amd", open_amd);
const struct source_kind source_intel = SYSFS_GPUS("gpu-intel", open_intel);
