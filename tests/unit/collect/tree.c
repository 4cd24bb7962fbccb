// tree.c - temporary /proc folders and probes on them.
#include "tree.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static double last_values[STORE_SET_SERIES_MAX];

static void path_in(struct tree *t, const char *path, char out[512])
{
    int size = snprintf(out, 512, "%s/%s", t->root, path);
    assert_in_range(size, 1, 511);
}

void tree_make(struct tree *t)
{
    strcpy(t->root, "/tmp/sonde-collect-XXXXXX");
    assert_non_null(mkdtemp(t->root));
    char proc[512];
    path_in(t, "proc", proc);
    assert_int_equal(mkdir(proc, 0700), 0);
}

void tree_write(struct tree *t, const char *path, const char *text)
{
    char full[512];
    path_in(t, path, full);
    for (char *slash = strchr(full + strlen(t->root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(full, 0700) != 0)
            assert_int_equal(errno, EEXIST);
        *slash = '/';
    }
    int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

void tree_copy(struct tree *t, const char *recorded)
{
    static const char *const files[] = {"proc/stat", "proc/meminfo", "proc/loadavg"};
    static char text[1 << 17];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char from[512];
        snprintf(from, sizeof from, "%s/%s/%s", TREES, recorded, files[i]);
        int fd = open(from, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        ssize_t got = read(fd, text, sizeof text - 1);
        close(fd);
        assert_true(got > 0);
        text[got] = 0;
        tree_write(t, files[i], text);
    }
}

void tree_remove(struct tree *t, const char *path)
{
    char full[512];
    path_in(t, path, full);
    assert_int_equal(remove(full), 0);
}

void tree_chmod(struct tree *t, const char *path, unsigned mode)
{
    char full[512];
    path_in(t, path, full);
    assert_int_equal(chmod(full, mode), 0);
}

static int remove_each(const char *path, const struct stat *about, int type, struct FTW *at)
{
    (void)about, (void)type, (void)at;
    return remove(path);
}

void tree_free(struct tree *t)
{
    assert_int_equal(nftw(t->root, remove_each, 8, FTW_DEPTH | FTW_PHYS), 0);
}

struct probe probe_make(const char *root, int level, uid_t uid)
{
    static const struct store_label host = {{"host", 4}, {"node1", 5}};
    struct probe p;
    struct collect_options options = {
        .root = root, .labels = &host, .label_count = 1, .level = level, .rate_s = 0.5, .folder = "/tmp", .uid = uid};
    struct error e;
    assert_int_equal(collect_create(&options, &p.c, &e), 0);
    return p;
}

void probe_free(struct probe *p)
{
    collect_destroy(p->c);
}

static bool find_set(struct probe *p, const char *source, size_t *index, struct collect_set *set)
{
    for (*index = 0; *index < collect_set_count(p->c); ++*index) {
        collect_get_set(p->c, *index, set);
        if (str_eq(set->source, str_of(source)))
            return true;
    }
    return false;
}

int probe_sample(struct probe *p, const char *source, int64_t t_ns)
{
    size_t index;
    struct collect_set set;
    if (!find_set(p, source, &index, &set))
        return -ENXIO;
    assert_in_range(set.count, 1, STORE_SET_SERIES_MAX);
    return collect_sample(p->c, index, t_ns, last_values);
}

double probe_value(struct probe *p, const char *source, const char *name)
{
    size_t index;
    struct collect_set set;
    assert_true(find_set(p, source, &index, &set));
    for (size_t i = 0; i < set.count; i++) {
        assert_int_equal(set.series[i].label_count, 1);
        if (str_eq(set.series[i].metric->metric.name, str_of(name)))
            return last_values[i];
    }
    fail_msg("%s is not a series of %s", name, source);
    return 0;
}
