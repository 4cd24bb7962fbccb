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
    for (char *slash = strchr(full + strlen(t->root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
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

static int remove_each(const char *path, const struct stat *about, int type, struct FTW *at)
{
    (void)about, (void)type, (void)at;
    return remove(path);
}

static struct tree *copy_to;
static size_t copy_from_size;

static int copy_each(const char *path, const struct stat *about, int type, struct FTW *at)
{
    (void)about, (void)at;
    static char text[1 << 17];
    if (type != FTW_F)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    assert_in_range(got, 1, sizeof text - 2);
    text[got] = 0;
    tree_write(copy_to, path + copy_from_size + 1, text);
    return 0;
}

void tree_copy(struct tree *t, const char *recorded)
{
    char from[512];
    snprintf(from, sizeof from, "%s/%s", TREES, recorded);
    copy_to = t;
    copy_from_size = strlen(from);
    assert_int_equal(nftw(from, copy_each, 8, FTW_PHYS), 0);
}

void tree_link(struct tree *t, const char *path, const char *target)
{
    char full[512];
    path_in(t, path, full);
    assert_int_equal(symlink(target, full), 0);
}

void tree_remove_all(struct tree *t, const char *path)
{
    char full[512];
    path_in(t, path, full);
    assert_int_equal(nftw(full, remove_each, 8, FTW_DEPTH | FTW_PHYS), 0);
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

void tree_free(struct tree *t)
{
    assert_int_equal(nftw(t->root, remove_each, 8, FTW_DEPTH | FTW_PHYS), 0);
}

// Long enough that a busy machine does not count as a hanging source.
int64_t probe_deadline_ns = INT64_C(60000000000);

struct probe probe_make(const char *root, int level, uid_t uid)
{
    return probe_make_with(root, level, uid, NULL, NULL);
}

struct probe probe_make_with(const char *root, int level, uid_t uid, const char *job,
                             const char *sources)
{
    static const struct store_label host = {{"host", 4}, {"node1", 5}};
    struct probe p;
    struct collect_options options = {.root = root,
                                      .labels = &host,
                                      .label_count = 1,
                                      .level = level,
                                      .rate_s = 0.5,
                                      .folder = "/tmp",
                                      .uid = uid,
                                      .job = job,
                                      .sources = sources,
                                      .deadline_ns = probe_deadline_ns};
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

static int sample_with(int (*sample)(struct collect *, size_t, int64_t, double *), struct probe *p,
                       const char *source, int64_t t_ns)
{
    size_t index;
    struct collect_set set;
    if (!find_set(p, source, &index, &set))
        return -ENXIO;
    assert_in_range(set.count, 1, STORE_SET_SERIES_MAX);
    // A row belongs to the previous series; a series that this sample found has no value in it.
    for (size_t i = set.count; i < STORE_SET_SERIES_MAX; i++)
        last_values[i] = store_missing();
    return sample(p->c, index, t_ns, last_values);
}

int probe_sample(struct probe *p, const char *source, int64_t t_ns)
{
    return sample_with(collect_sample, p, source, t_ns);
}

int probe_sample_late(struct probe *p, const char *source, int64_t t_ns)
{
    return sample_with(collect_sample_late, p, source, t_ns);
}

bool probe_owes(struct probe *p, const char *source)
{
    size_t index;
    struct collect_set set;
    assert_true(find_set(p, source, &index, &set));
    return collect_owes(p->c, index);
}

static bool has_tags(const struct collect_series *series, const char *first, const char *second)
{
    const char *wanted[] = {first, second};
    size_t count = 1; // the host's label
    for (int i = 0; i < 2 && wanted[i]; i++, count++)
        if (count >= series->label_count || !str_eq(series->labels[count].value, str_of(wanted[i])))
            return false;
    return series->label_count == count;
}

static bool find_value(struct probe *p, const char *source, const char *name, const char *first,
                       const char *second, double *out)
{
    size_t index;
    struct collect_set set;
    assert_true(find_set(p, source, &index, &set));
    for (size_t i = 0; i < set.count; i++)
        if (str_eq(set.series[i].metric->metric.name, str_of(name)) &&
            has_tags(&set.series[i], first, second)) {
            *out = last_values[i];
            return true;
        }
    return false;
}

double probe_tagged(struct probe *p, const char *source, const char *name, const char *first,
                    const char *second)
{
    double value;
    if (!find_value(p, source, name, first, second, &value))
        fail_msg("%s{%s,%s} is not a series of %s", name, first ? first : "", second ? second : "",
                 source);
    return value;
}

double probe_value(struct probe *p, const char *source, const char *name)
{
    return probe_tagged(p, source, name, NULL, NULL);
}

bool probe_has(struct probe *p, const char *source, const char *name, const char *tag)
{
    double value;
    return find_value(p, source, name, tag, NULL, &value);
}

uint32_t probe_generation(struct probe *p, const char *source)
{
    size_t index;
    struct collect_set set;
    assert_true(find_set(p, source, &index, &set));
    return set.generation;
}
