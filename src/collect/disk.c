// disk.c - /proc/diskstats: reads and writes of each disk.
//
//   254  0 vda 234169 19501 11196538 226346 677404 77721 48185504 137839 0 80664 401092 …
//              │      │     │        │      └ the same for writes ┘    │ │     └ weighted
//              reads  merged sectors ms                in flight now ──┘ └ ms with at least one
//
// Columns have fixed positions. A sector here is 512 bytes, whatever the disk's own size. Unlike
// disks, partitions are not in /sys/block. Disks on top of others (device mapper, software RAID)
// and disks in memory are left out: the former would be counted twice, and the latter cause no disk
// traffic. Disks without any traffic so far are left out, too.
#include "collect/procfile.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECTOR_BYTES = 512, NUMBERS = 10, MS_PER_S = NS_PER_S / NS_PER_MS };

static const struct {
    enum metric_symbol row; // METRIC_COUNT = unused
    double times, per;      // the metric is number × times / per
} places[NUMBERS] = {
    {METRIC_DISK_READS, 1, 1},
    {METRIC_COUNT, 1, 1},
    {METRIC_DISK_READ_BYTES, SECTOR_BYTES, 1},
    {METRIC_DISK_READ_SECONDS, 1, MS_PER_S},
    {METRIC_DISK_WRITES, 1, 1},
    {METRIC_COUNT, 1, 1},
    {METRIC_DISK_WRITTEN_BYTES, SECTOR_BYTES, 1},
    {METRIC_DISK_WRITE_SECONDS, 1, MS_PER_S},
    {METRIC_DISK_IN_FLIGHT, 1, 1},
    {METRIC_DISK_BUSY_SECONDS, 1, MS_PER_S},
};

static const struct str left_out[] = {{"loop", 4}, {"ram", 3}, {"zram", 4}, {"dm-", 3},
                                      {"md", 2},   {"sr", 2},  {"fd", 2},   {"nbd", 3}};

struct disk {
    struct procfile file;
    int block; // /sys/block
};

static bool is_disk(const struct disk *d, struct str name)
{
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (str_starts(name, left_out[i]))
            return false;
    char entry[SOURCE_TAG_SIZE];
    if (name.size >= sizeof entry || name.data[0] == '.')
        return false;
    for (size_t i = 0; i < name.size; i++)
        entry[i] = name.data[i] == '/' ? '!' : name.data[i];
    entry[name.size] = 0;
    return faccessat(d->block, entry, F_OK, 0) == 0;
}

static bool put_disk(struct source *s, double *values, struct str line)
{
    uint64_t major, minor, numbers[NUMBERS] = {0}, any = 0;
    if (!scan_u64(&line, &major) || !scan_u64(&line, &minor))
        return false;
    struct str name = str_word(&line);
    int count = 0;
    while (count < NUMBERS && scan_u64(&line, &numbers[count]))
        any |= numbers[count++];
    // Before kernel 2.6.25 partitions have four numbers with another meaning.
    if (name.size == 0 || count < NUMBERS)
        return false;
    ptrdiff_t instance = source_find(s, name, STR(""));
    if (instance < 0) {
        if (!any)
            return false;
        bool wanted = is_disk(s->state, name);
        instance = source_instance(s, name, STR(""));
        if (instance >= 0 && !wanted)
            source_ignore(s, instance);
    }
    if (instance < 0 || s->instances[instance].ignored)
        return false;
    for (int i = 0; i < NUMBERS; i++)
        if (places[i].row != METRIC_COUNT)
            source_put_at(s, values, instance, places[i].row,
                          (double)numbers[i] * places[i].times / places[i].per);
    return true;
}

static int disk_sample(struct source *s, double *values)
{
    struct disk *d = s->state;
    struct str text, line;
    int failed = procfile_read(&d->file, s, &text);
    if (failed)
        return failed;
    size_t disks = 0;
    while (scan_line(&text, &line))
        disks += put_disk(s, values, line);
    source_put(s, values, METRIC_DISKS, (double)disks);
    source_forget_unseen(s);
    return 0;
}

static void disk_close(struct source *s)
{
    struct disk *d = s->state;
    procfile_close(&d->file);
    if (d->block >= 0)
        close(d->block);
    free(d);
}

static int disk_open(struct source *s)
{
    struct disk *d = calloc(1, sizeof *d);
    if (!d)
        return source_fail(s, -ENOMEM, "no memory");
    s->state = d;
    d->block = procfile_folder(s, "/sys/block");
    int failed = d->block < 0 ? d->block : procfile_open(&d->file, s, "/proc/diskstats");
    if (failed) {
        if (d->block < 0)
            d->file.fd = -1;
        disk_close(s);
        return failed;
    }
    double unused[METRIC_COUNT];
    disk_sample(s, unused);
    return 0;
}

const struct source_kind source_disk = {
    .name = {"disk", 4},
    .open = disk_open,
    .sample = disk_sample,
    .close = disk_close,
    .keys = {"device"},
    .tagged_from = METRIC_DISK_READ_BYTES,
    .tagged_to = METRIC_DISK_IN_FLIGHT,
};
