// cgroup.c - usage and limits of the job's control group: memory, processor time, throttling,
// out-of-memory kills; versions 1 and 2.
//
// /proc/self/cgroup names the group of this process, for each controller:
//
//   4:memory:/slurm/uid_1000/job_42/step_0                           version 1
//   0::/system.slice/job_42/step_0                                   version 2
//
// /proc/self/mountinfo has the mount points of the groups:
//
//   … /ROOT /sys/fs/cgroup/memory … - cgroup cgroup rw,memory
//
// The folder is the mount point plus the group's path without ROOT. Slurm puts the steps of a job,
// this agent among them, into groups below "job_N": then that is the job's group. Elsewhere it is
// the agent's own group.
//
// A group without a limit may be inside one with a limit: the smallest limit counts.
#include "collect/procfile.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATH_SIZE = 1024, LEVELS_MAX = 8, CONTROLLERS = 4, US_PER_S = NS_PER_S / NS_PER_US };

// Version 1 expresses "no limit" by the largest multiple of the page size.
static const double NO_LIMIT_BYTES = 4611686018427387904.0; // 2^62

enum controller { MEMORY, CPU, CPUACCT, PIDS };
static const struct str controller_names[CONTROLLERS] = {
    {"memory", 6}, {"cpu", 3}, {"cpuacct", 7}, {"pids", 4}};

// The file and key of each metric. Rows of the same file are adjacent.
static const struct item {
    int version;
    enum controller controller;
    const char *file;
    struct str key; // "" = the file has one number
    enum metric_symbol row;
    double per; // the metric is the number divided by this
} items[] = {
    {2, MEMORY, "memory.current", {"", 0}, METRIC_CGROUP_MEMORY, 1},
    {2, MEMORY, "memory.peak", {"", 0}, METRIC_CGROUP_MEMORY_PEAK, 1},
    {2, MEMORY, "memory.swap.current", {"", 0}, METRIC_CGROUP_SWAP, 1},
    {2, MEMORY, "memory.events", {"oom_kill", 8}, METRIC_CGROUP_OOM_KILLS, 1},
    {2, CPU, "cpu.stat", {"usage_usec", 10}, METRIC_CGROUP_CPU, US_PER_S},
    {2, CPU, "cpu.stat", {"nr_periods", 10}, METRIC_CGROUP_PERIODS, 1},
    {2, CPU, "cpu.stat", {"nr_throttled", 12}, METRIC_CGROUP_PERIODS_THROTTLED, 1},
    {2, CPU, "cpu.stat", {"throttled_usec", 14}, METRIC_CGROUP_THROTTLED, US_PER_S},
    {2, PIDS, "pids.current", {"", 0}, METRIC_CGROUP_TASKS, 1},
    {1, MEMORY, "memory.usage_in_bytes", {"", 0}, METRIC_CGROUP_MEMORY, 1},
    {1, MEMORY, "memory.max_usage_in_bytes", {"", 0}, METRIC_CGROUP_MEMORY_PEAK, 1},
    // the group's own and its descendants', as in memory.usage_in_bytes; missing if the kernel does
    // not account for swap space
    {1, MEMORY, "memory.stat", {"total_swap", 10}, METRIC_CGROUP_SWAP, 1},
    {1, MEMORY, "memory.oom_control", {"oom_kill", 8}, METRIC_CGROUP_OOM_KILLS, 1},
    {1, CPU, "cpu.stat", {"nr_periods", 10}, METRIC_CGROUP_PERIODS, 1},
    {1, CPU, "cpu.stat", {"nr_throttled", 12}, METRIC_CGROUP_PERIODS_THROTTLED, 1},
    {1, CPU, "cpu.stat", {"throttled_time", 14}, METRIC_CGROUP_THROTTLED, NS_PER_S},
    {1, CPUACCT, "cpuacct.usage", {"", 0}, METRIC_CGROUP_CPU, NS_PER_S},
    {1, PIDS, "pids.current", {"", 0}, METRIC_CGROUP_TASKS, 1},
};

enum { ITEMS = sizeof items / sizeof *items };

static const char *const limit_files[] = {[1] = "memory.limit_in_bytes", [2] = "memory.max"};

struct group {
    int version; // 0 = no group
    char path[PATH_SIZE];
    size_t mount_size; // length of the mount point in the path
};

struct opened {
    struct procfile file;
    char path[PATH_SIZE];
};

struct cgroup {
    struct group groups[CONTROLLERS];
    struct opened files[ITEMS]; // fd < 0: missing, or the same file as the previous row's
    struct opened limits[LEVELS_MAX];
    size_t limit_count;
};

// ---- which folder ----

static bool lists(struct str names, struct str name)
{
    while (names.data)
        if (str_eq(str_cut(&names, ','), name))
            return true;
    return false;
}

// The group's path and the version of its hierarchy.
static int find_path(struct str text, struct str controller, struct str *path)
{
    struct str line;
    int version = 0;
    while (scan_line(&text, &line)) {
        struct str number = str_cut(&line, ':'), controllers = str_cut(&line, ':');
        if (!line.data)
            continue;
        if (lists(controllers, controller)) {
            *path = line;
            return 1;
        }
        if (str_eq(number, STR("0")) && controllers.size == 0) {
            *path = line;
            version = 2;
        }
    }
    return version;
}

static bool find_mount(struct str text, int version, struct str controller, struct str *root,
                       struct str *point)
{
    struct str line;
    while (scan_line(&text, &line)) {
        ptrdiff_t dash = str_find(line, STR(" - "));
        if (dash < 0)
            continue;
        struct str behind = str_slice(line, (size_t)dash + 3, line.size), type = str_word(&behind);
        str_word(&behind); // the device
        if (!str_eq(type, version == 2 ? STR("cgroup2") : STR("cgroup")) ||
            (version == 1 && !lists(str_word(&behind), controller)))
            continue;
        for (int i = 0; i < 3; i++)
            str_word(&line);
        *root = str_word(&line);
        *point = str_word(&line);
        return root->size > 0 && point->size > 0;
    }
    return false;
}

// The length of the path up to and including "job_N", if it has such a part.
static struct str cut_at_job(struct str path)
{
    for (size_t at = 0; at < path.size;) {
        ptrdiff_t slash = str_find_char(str_slice(path, at, path.size), '/');
        size_t end = slash < 0 ? path.size : at + (size_t)slash;
        struct str part = str_slice(path, at, end);
        if (part.size > 4 && str_starts(part, STR("job_")))
            return str_slice(path, 0, end);
        at = end + 1;
    }
    return path;
}

static void find_group(struct group *g, struct str groups, struct str mounts,
                       enum controller controller)
{
    struct str path, root, point;
    int version = find_path(groups, controller_names[controller], &path);
    if (version == 0 || !find_mount(mounts, version, controller_names[controller], &root, &point))
        return;
    if (str_eq(root, STR("/")))
        root = STR("");
    // A path that does not begin with the root is outside of this mount: the mount point is the
    // nearest group.
    bool inside = str_starts(path, root) && str_find(path, STR("/..")) < 0;
    path = inside ? cut_at_job(str_slice(path, root.size, path.size)) : STR("");
    if (str_eq(path, STR("/")))
        path = STR("");
    int size = snprintf(g->path, sizeof g->path, "%.*s%.*s", STR_ARG(point), STR_ARG(path));
    if (size > 0 && (size_t)size < sizeof g->path) {
        g->version = version;
        g->mount_size = point.size;
    }
}

// ---- files ----

static int open_file(struct source *s, struct opened *o, struct str folder, const char *name)
{
    int size = snprintf(o->path, sizeof o->path, "%.*s/%s", STR_ARG(folder), name);
    if (size < 0 || (size_t)size >= sizeof o->path)
        return source_fail(s, -ENAMETOOLONG, "the path of the control group is too long");
    return procfile_open(&o->file, s, o->path);
}

static bool same_file(size_t item)
{
    return item > 0 && items[item].version == items[item - 1].version &&
           strcmp(items[item].file, items[item - 1].file) == 0;
}

// Opens the limits from the group up to the mount point.
static void open_limits(struct source *s, struct cgroup *c)
{
    const struct group *g = &c->groups[MEMORY];
    struct str folder = str_of(g->path);
    while (g->version && c->limit_count < LEVELS_MAX) {
        if (open_file(s, &c->limits[c->limit_count], folder, limit_files[g->version]) == 0)
            c->limit_count++;
        if (folder.size <= g->mount_size)
            break;
        while (folder.size > g->mount_size && folder.data[folder.size - 1] != '/')
            folder.size--;
        while (folder.size > g->mount_size && folder.data[folder.size - 1] == '/')
            folder.size--;
    }
}

static void cgroup_close(struct source *s)
{
    struct cgroup *c = s->state;
    for (size_t i = 0; i < ITEMS; i++)
        procfile_close(&c->files[i].file);
    for (size_t i = 0; i < c->limit_count; i++)
        procfile_close(&c->limits[i].file);
    free(c);
}

static int read_groups(struct source *s, struct cgroup *c)
{
    struct procfile groups, mounts;
    struct str groups_text, mounts_text;
    int failed = procfile_open(&groups, s, "/proc/self/cgroup");
    if (failed)
        return failed;
    failed = procfile_open(&mounts, s, "/proc/self/mountinfo");
    if (!failed) {
        if (!(failed = procfile_read(&groups, s, &groups_text)) &&
            !(failed = procfile_read(&mounts, s, &mounts_text)))
            for (int i = 0; i < CONTROLLERS; i++)
                find_group(&c->groups[i], groups_text, mounts_text, (enum controller)i);
        procfile_close(&mounts);
    }
    procfile_close(&groups);
    return failed;
}

static int cgroup_open(struct source *s)
{
    struct cgroup *c = calloc(1, sizeof *c);
    if (!c)
        return source_fail(s, -ENOMEM, "no memory");
    for (size_t i = 0; i < ITEMS; i++)
        c->files[i].file.fd = -1;
    s->state = c;
    int failed = read_groups(s, c);
    size_t opened = 0;
    for (size_t i = 0; i < ITEMS && !failed; i++) {
        const struct group *g = &c->groups[items[i].controller];
        if (g->version == items[i].version && !same_file(i))
            opened += open_file(s, &c->files[i], str_of(g->path), items[i].file) == 0;
    }
    if (!failed)
        open_limits(s, c);
    if (opened)
        return 0;
    if (!failed)
        failed =
            source_fail(s, -ENOENT, "this process is in no control group whose files can be read");
    cgroup_close(s);
    return failed;
}

static bool find_number(struct str text, struct str key, uint64_t *number)
{
    struct str line;
    while (scan_line(&text, &line)) {
        if (key.size && !str_eq(str_word(&line), key))
            continue;
        return scan_u64(&line, number) && line.size == 0;
    }
    return false;
}

static void put_limit(struct source *s, struct cgroup *c, double *values)
{
    double smallest = NO_LIMIT_BYTES;
    for (size_t i = 0; i < c->limit_count; i++) {
        struct str text;
        uint64_t bytes;
        if (procfile_read(&c->limits[i].file, s, &text) == 0 &&
            find_number(text, STR(""), &bytes) && (double)bytes < smallest)
            smallest = (double)bytes;
    }
    if (smallest < NO_LIMIT_BYTES)
        source_put(s, values, METRIC_CGROUP_MEMORY_LIMIT, smallest);
}

static int cgroup_sample(struct source *s, double *values)
{
    struct cgroup *c = s->state;
    size_t found = 0;
    int failed = 0;
    struct str text = {0};
    for (size_t i = 0; i < ITEMS; i++) {
        uint64_t number;
        if (c->files[i].file.fd >= 0) {
            int code = procfile_read(&c->files[i].file, s, &text);
            failed = code ? code : failed;
            if (code)
                text = STR("");
        } else if (!same_file(i)) {
            text = STR("");
        }
        if (text.size && find_number(text, items[i].key, &number)) {
            source_put(s, values, items[i].row, (double)number / items[i].per);
            found++;
        }
    }
    put_limit(s, c, values);
    if (found)
        return 0;
    return failed ? failed
                  : source_fail(s, -EBADMSG, "the control group's files do not hold numbers");
}

const struct source_kind source_cgroup = {.name = {"cgroup", 6},
                                          .rate_s = 1,
                                          .open = cgroup_open,
                                          .sample = cgroup_sample,
                                          .close = cgroup_close};
