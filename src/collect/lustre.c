// lustre.c - the Lustre client: bytes and operations of each mounted file system.
//
//   LLITE/scratch-ffff8c1f/stats:
//   snapshot_time   1700000000.123456789 secs.nsecs
//   read_bytes      12 samples [bytes] 4096 1048576 8392704   count, …, smallest, largest, sum
//   open            34 samples [regs]                         (newer: [usecs] and times)
//
// LLITE is /proc/fs/lustre/llite, for newer clients /sys/kernel/debug/lustre/llite, which often
// only root may read. The source has a thread of its own.
#include "collect/procfile.h"
#include "collect/valuefiles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { RATE_S = 1 }; // seconds between samples

enum { MOUNTS_MAX = 32 };

static const char *const folders[] = {"/proc/fs/lustre/llite", "/sys/kernel/debug/lustre/llite"};

static const struct {
    struct str name;
    enum metric_symbol count, sum; // METRIC_COUNT = unused
} lines[] = {
    {{"read_bytes", 10}, METRIC_LUSTRE_READS, METRIC_LUSTRE_READ_BYTES},
    {{"write_bytes", 11}, METRIC_LUSTRE_WRITES, METRIC_LUSTRE_WRITTEN_BYTES},
    {{"open", 4}, METRIC_LUSTRE_OPENS, METRIC_COUNT},
    {{"close", 5}, METRIC_LUSTRE_CLOSES, METRIC_COUNT},
    {{"getattr", 7}, METRIC_LUSTRE_GETATTRS, METRIC_COUNT},
    {{"unlink", 6}, METRIC_LUSTRE_UNLINKS, METRIC_COUNT},
};

enum { LINES = sizeof lines / sizeof *lines };

struct mount {
    struct procfile file;
    char path[VALUEFILES_PATH];
    ptrdiff_t instance;
};

struct lustre {
    struct mount mounts[MOUNTS_MAX];
    size_t count;
};

static bool add_mount(struct source *s, const char *folder, const char *name, void *user)
{
    (void)user;
    struct lustre *l = s->state;
    struct mount *mount = &l->mounts[l->count];
    int size = snprintf(mount->path, sizeof mount->path, "%s/%s/stats", folder, name);
    if (size < 0 || (size_t)size >= sizeof mount->path ||
        procfile_open(&mount->file, s, mount->path) != 0)
        return true;
    // "scratch-ffff8c1f": the file system, and the number of this mount, which changes with each
    // boot.
    struct str file_system = str_of(name);
    const char *dash = strrchr(name, '-');
    if (dash && dash > name)
        file_system.size = (size_t)(dash - name);
    if (source_find(s, file_system, STR("")) >= 0)
        file_system = str_of(name); // another mount of the same file system
    mount->instance = source_instance(s, file_system, STR(""));
    if (mount->instance < 0)
        procfile_close(&mount->file);
    else
        l->count++;
    return l->count < MOUNTS_MAX;
}

static int lustre_open(struct source *s)
{
    struct lustre *l = calloc(1, sizeof *l);
    if (!l)
        return source_fail(s, -ENOMEM, "no memory");
    s->state = l;
    bool refused = false;
    for (size_t i = 0; i < sizeof folders / sizeof *folders && l->count == 0; i++) {
        int listed = valuefiles_list(s, folders[i], "", add_mount, NULL);
        refused |= listed > 0 || listed == -EACCES;
    }
    if (l->count)
        return 0;
    free(l);
    return source_fail(s, -ENOENT,
                       refused ? "Lustre's counters cannot be read without more rights"
                               : "no Lustre file system is mounted");
}

static size_t put_line(struct source *s, double *values, ptrdiff_t instance, struct str line)
{
    struct str name = str_word(&line);
    for (size_t i = 0; i < LINES; i++) {
        if (!str_eq(name, lines[i].name))
            continue;
        uint64_t count, number;
        if (!scan_u64(&line, &count))
            return 0;
        source_put_at(s, values, instance, lines[i].count, (double)count);
        // "samples [bytes] smallest largest sum"; a line without samples ends there
        bool bytes =
            str_eq(str_word(&line), STR("samples")) && str_eq(str_word(&line), STR("[bytes]"));
        if (lines[i].sum != METRIC_COUNT && bytes && scan_u64(&line, &number) &&
            scan_u64(&line, &number) && scan_u64(&line, &number))
            source_put_at(s, values, instance, lines[i].sum, (double)number);
        return 1;
    }
    return 0;
}

static int lustre_sample(struct source *s, double *values)
{
    struct lustre *l = s->state;
    size_t found = 0;
    int failed = 0;
    for (size_t i = 0; i < l->count; i++) {
        struct str text, line;
        int code = procfile_read(&l->mounts[i].file, s, &text);
        failed = code ? code : failed;
        while (!code && scan_line(&text, &line))
            found += put_line(s, values, l->mounts[i].instance, line);
    }
    if (found)
        return 0;
    return failed ? failed : source_fail(s, 0, "nothing was read or written yet");
}

static void lustre_close(struct source *s)
{
    struct lustre *l = s->state;
    for (size_t i = 0; i < l->count; i++)
        procfile_close(&l->mounts[i].file);
    free(l);
}

const struct source_kind source_lustre = {
    .name = {"lustre", 6},
    .rate_s = RATE_S,
    .open = lustre_open,
    .sample = lustre_sample,
    .close = lustre_close,
    .keys = {"filesystem"},
    .tagged_from = METRIC_LUSTRE_READ_BYTES,
    .tagged_to = METRIC_LUSTRE_UNLINKS,
    .apart = true,
};
