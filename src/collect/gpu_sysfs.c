// gpu_sysfs.c - AMD and Intel GPUs from the files of their kernel drivers (amdgpu, i915, xe) in
// /sys, without library or privileges.
//
//   /sys/class/drm/card0/device/vendor               0x1002 AMD, 0x8086 Intel
//                               gpu_busy_percent …   one number a file
//                               hwmon/hwmon3/temp2_input, and its name in temp2_label
//                               gpu_metrics          amdgpu: a table (amdgpu_metrics.c)
//                               ras/umc_err_count    amdgpu: memory errors, "ue: 0" and "ce: 0"
//
// A sensor is identified by its label, never by its number. The GPUs of a vendor are numbered in
// the order of their cards; the tag uuid is amdgpu's serial number, otherwise the PCI address.
//
// Not read: pcie_bw, for which amdgpu stops for a second, and the table's own count of PCIe
// traffic, whose unit differs from revision to revision.
#include "collect/gpu_sysfs.h"
#include "collect/kfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    GPUS_MAX = 64,
    CARDS_MAX = 256,
    SENSORS_MAX = 16,
    PATH_SIZE = 1024,
    TEXT_SIZE = 64,
    TABLE_SIZE = 4096
};

// Files in a card's folder. Of two files for one row the first existing one is used.
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

// Files in its hwmon folder: KIND, a number, ENDING. label NULL = only without a label file, "" =
// any label. Of two files for one row, the first existing one is used here, too.
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
    int fds[GPU_ROWS]; // -1 = no such file
    double scales[GPU_ROWS];
    int table, errors; // gpu_metrics, umc_err_count
    struct kfd *kfd;   // NULL = kfd does not know the GPU
    bool offered[GPU_ROWS];
};

// The cards of a vendor, in the order of their numbers.
struct sysfs_gpus {
    const char *root; // owned by the caller
    char drm[PATH_SIZE / 2];
    unsigned count;
    int cards[GPUS_MAX];
};

// Reads one line without its end. Returns false for an empty file.
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
    return size > 0 && (size_t)size < sizeof path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                                                  : -1;
}

static bool read_file(const char *folder, const char *name, char out[TEXT_SIZE])
{
    int fd = open_in(folder, name);
    bool have = fd >= 0 && read_text(fd, out);
    if (fd >= 0)
        close(fd);
    return have;
}

// Reads a text that is only a whole number.
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

static void keep(struct sysfs_gpu *gpu, enum metric_symbol row, double scale, const char *folder,
                 const char *name)
{
    int *fd = &gpu->fds[row - GPU_ROW_FIRST];
    double number;
    if (*fd >= 0)
        return;
    *fd = open_in(folder, name);
    if (*fd >= 0 && !read_number(*fd, &number)) {
        close(*fd);
        *fd = -1;
    }
    gpu->scales[row - GPU_ROW_FIRST] = scale;
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

// Writes the name of the folder to which the link `device` points.
static void address_of(const char *card, char out[TEXT_SIZE])
{
    char path[PATH_SIZE], target[PATH_SIZE];
    snprintf(path, sizeof path, "%s/device", card);
    ssize_t size = readlink(path, target, sizeof target - 1);
    target[size > 0 ? size : 0] = 0;
    const char *slash = strrchr(target, '/');
    out[0] = 0;
    if (slash && strlen(slash + 1) < TEXT_SIZE)
        memcpy(out, slash + 1, strlen(slash + 1) + 1);
}

// ---- values ----

static void fill(struct gpu_device *d, enum metric_symbol row, double value)
{
    if (store_is_missing(gpu_get(d, row)))
        gpu_put(d, row, value);
}

// Reads lines "ue: N" and "ce: N".
static void fill_errors(int fd, struct gpu_device *d)
{
    char text[TEXT_SIZE];
    struct str rest = {text, read_text(fd, text) ? strlen(text) : 0};
    while (rest.size) {
        struct str line = str_cut(&rest, '\n');
        struct str key = str_word(&line), value = str_word(&line);
        uint64_t number;
        if (!str_to_u64(value, &number))
            continue;
        if (str_eq(key, STR("ue:")))
            fill(d, METRIC_GPU_ECC_UNCORRECTED, (double)number);
        else if (str_eq(key, STR("ce:")))
            fill(d, METRIC_GPU_ECC_CORRECTED, (double)number);
    }
}

bool sysfs_gpu_fill(struct sysfs_gpu *gpu, struct gpu_device *d)
{
    bool any = false;
    for (int row = 0; row < GPU_ROWS; row++) {
        double value;
        if (gpu->fds[row] < 0 || !read_number(gpu->fds[row], &value))
            continue;
        any = true;
        fill(d, (enum metric_symbol)(GPU_ROW_FIRST + row), value * gpu->scales[row]);
    }
    unsigned char table[TABLE_SIZE];
    ssize_t size = gpu->table >= 0 ? pread(gpu->table, table, sizeof table, 0) : -1;
    if (size > 0)
        any = amdgpu_metrics_fill(table, (size_t)size, d) || any;
    if (gpu->errors >= 0)
        fill_errors(gpu->errors, d);
    if (gpu->kfd && store_is_missing(gpu_get(d, METRIC_GPU_PROCESSES)))
        kfd_fill(gpu->kfd, d);
    double total = gpu_get(d, METRIC_GPU_MEMORY_TOTAL), used = gpu_get(d, METRIC_GPU_MEMORY_USED);
    if (store_is_missing(gpu_get(d, METRIC_GPU_MEMORY_USED_PERCENT)) && !store_is_missing(total) &&
        !store_is_missing(used))
        gpu_put_memory(d, total, used);
    return any;
}

// ---- one GPU ----

void sysfs_gpu_close(struct sysfs_gpu *gpu)
{
    for (int row = 0; gpu && row < GPU_ROWS; row++)
        if (gpu->fds[row] >= 0)
            close(gpu->fds[row]);
    if (gpu && gpu->table >= 0)
        close(gpu->table);
    if (gpu && gpu->errors >= 0)
        close(gpu->errors);
    if (gpu)
        kfd_close(gpu->kfd);
    free(gpu);
}

static struct sysfs_gpu *open_card(const char *root, const char *card)
{
    char address[TEXT_SIZE];
    struct sysfs_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return NULL;
    for (int row = 0; row < GPU_ROWS; row++)
        gpu->fds[row] = -1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        keep(gpu, files[i].row, files[i].scale, card, files[i].path);
    find_sensors(gpu, card);
    gpu->table = open_in(card, "device/gpu_metrics");
    gpu->errors = open_in(card, "device/ras/umc_err_count");
    address_of(card, address);
    gpu->kfd = kfd_open(root, address);
    // The GPU offers the values of this trial: unreadable files were dropped, and a table marks its
    // absent fields.
    struct gpu_device trial;
    for (int row = 0; row < GPU_ROWS; row++)
        trial.values[row] = store_missing();
    bool any = sysfs_gpu_fill(gpu, &trial);
    for (int row = 0; row < GPU_ROWS; row++)
        gpu->offered[row] = !store_is_missing(trial.values[row]);
    if (any)
        return gpu;
    sysfs_gpu_close(gpu);
    return NULL;
}

void sysfs_gpu_offer(const struct sysfs_gpu *gpu, struct gpu_device *d)
{
    for (int row = 0; row < GPU_ROWS; row++)
        if (gpu->offered[row])
            d->off[row] = false;
}

// Finds the cards: returns 0, or a negative errno.
static int list_cards(const char *drm, bool cards[CARDS_MAX])
{
    DIR *dir = opendir(drm);
    if (!dir)
        return -errno;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char *end;
        if (strncmp(entry->d_name, "card", 4) != 0)
            continue;
        unsigned long number = strtoul(entry->d_name + 4, &end, 10);
        if (end != entry->d_name + 4 && *end == 0 && number < CARDS_MAX)
            cards[number] = true; // card0-DP-1 is a connector of card0
    }
    closedir(dir);
    return 0;
}

static bool drm_path(const char *root, char out[PATH_SIZE / 2])
{
    int size = snprintf(out, PATH_SIZE / 2, "%s/sys/class/drm", root);
    return size > 0 && size < PATH_SIZE / 2;
}

static void card_path(const char *drm, int number, char out[PATH_SIZE])
{
    snprintf(out, PATH_SIZE, "%s/card%d", drm, number);
}

struct sysfs_gpu *sysfs_gpu_at(const char *root, const char *address)
{
    char drm[PATH_SIZE / 2], card[PATH_SIZE], own[TEXT_SIZE];
    bool cards[CARDS_MAX] = {false};
    if (!drm_path(root, drm) || list_cards(drm, cards) < 0)
        return NULL;
    for (int number = 0; number < CARDS_MAX; number++) {
        if (!cards[number])
            continue;
        card_path(drm, number, card);
        address_of(card, own);
        if (strcmp(own, address) == 0)
            return open_card(root, card);
    }
    return NULL;
}

// ---- the backends ----

static bool start(const char *vendor, const char *root, void **library, unsigned *count,
                  char why[GPU_WORDS_MAX])
{
    bool cards[CARDS_MAX] = {false};
    struct sysfs_gpus *all = calloc(1, sizeof *all);
    int failed = !all                       ? -ENOMEM
                 : drm_path(root, all->drm) ? list_cards(all->drm, cards)
                                            : -ENAMETOOLONG;
    if (failed) {
        snprintf(why, GPU_WORDS_MAX, "cannot open %.80s/sys/class/drm: %s", root,
                 strerror(-failed));
        free(all);
        return false;
    }
    for (int number = 0; number < CARDS_MAX && all->count < GPUS_MAX; number++) {
        char card[PATH_SIZE], text[TEXT_SIZE];
        card_path(all->drm, number, card);
        if (!cards[number] || !read_file(card, "device/vendor", text) || strcmp(text, vendor) != 0)
            continue;
        struct sysfs_gpu *gpu = open_card(root, card);
        if (gpu)
            all->cards[all->count++] = number;
        sysfs_gpu_close(gpu);
    }
    all->root = root;
    *count = all->count;
    *library = all;
    if (all->count)
        return true;
    snprintf(why, GPU_WORDS_MAX,
             "there is no such GPU in %.80s/sys/class/drm, or its driver tells nothing", root);
    free(all);
    return false;
}

static bool start_amd(const char *root, void **library, unsigned *count, char why[GPU_WORDS_MAX])
{
    return start("0x1002", root, library, count, why);
}

static bool start_intel(const char *root, void **library, unsigned *count, char why[GPU_WORDS_MAX])
{
    return start("0x8086", root, library, count, why);
}

static void stop(void *library, bool lost)
{
    (void)lost; // only libraries use it
    free(library);
}

static struct gpu_answer open_gpu(void *library, unsigned index,
                                  struct gpu_device devices[1 + GPU_PARTS_MAX], size_t *count)
{
    const struct sysfs_gpus *all = library;
    char card[PATH_SIZE], id[TEXT_SIZE];
    card_path(all->drm, all->cards[index], card);
    struct sysfs_gpu *gpu = open_card(all->root, card);
    if (!gpu)
        return (struct gpu_answer){.words = "its driver tells nothing"};
    if (!read_file(card, "device/unique_id", id))
        address_of(card, id);
    memcpy(devices->uuid, id, sizeof id);
    devices->own = gpu;
    gpu_offer(devices, METRIC_GPU_UTILIZATION, METRIC_GPU_FP16_ACTIVE, false);
    sysfs_gpu_offer(gpu, devices);
    *count = 1;
    return (struct gpu_answer){0};
}

static struct gpu_answer sample(void *library, struct gpu_device *d)
{
    (void)library;
    if (sysfs_gpu_fill(d->own, d))
        return (struct gpu_answer){0};
    return (struct gpu_answer){.down = true, .words = "its driver no longer answers"};
}

static void close_gpu(void *library, struct gpu_device *d)
{
    (void)library;
    sysfs_gpu_close(d->own);
}

const struct gpu_backend gpu_sysfs_amd = {"sysfs", start_amd, stop, open_gpu, sample, close_gpu};
const struct gpu_backend gpu_sysfs_intel = {"sysfs",  start_intel, stop,
                                            open_gpu, sample,      close_gpu};
