#include "launch/folder_list.h"
#include "launch/runs.h"
#include "launch/runs_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

// Sorts runs in the order of removal: the highest grade first, and in it the oldest.
static int first_to_go(const void *a, const void *b)
{
    const struct runs_line *x = a, *y = b;
    if (x->grade != y->grade)
        return (x->grade < y->grade) - (x->grade > y->grade);
    return folder_list_newest_first(y->start_ns, y->name, x->start_ns, x->name);
}

static struct runs_line line_of(const struct runs_entry *one)
{
    return (struct runs_line){.start_ns = one->start_ns,
                              .bytes = one->size.bytes,
                              .grade = one->grade,
                              .keep = one->keep,
                              .name = strrchr(one->path, '/') + 1};
}

// Reads the folders of all runs.
static int read_all(const char *runs, int64_t now_ns, struct runs_index *out, struct error *e)
{
    struct runs_entry *list;
    size_t count;
    *out = (struct runs_index){.read_ns = now_ns};
    int status = runs_list(runs, &list, &count, e);
    if (status)
        return status;
    for (size_t i = 0; i < count && !status; i++) {
        struct runs_line line = line_of(&list[i]);
        if (!runs_index_put(out, &line))
            status = error_set(e, -ENOMEM, "out of memory");
    }
    free(list);
    if (status)
        runs_index_free(out);
    return status;
}

struct pruning {
    const char *runs, *newest; // newest: stays; may be NULL
    const struct runs_limits *limits;
    int64_t now_ns;
    struct runs_removed *removed;
};

struct total {
    uint64_t bytes;
    size_t minor, old;
};

static bool is_old(const struct pruning *p, const struct runs_line *line)
{
    return p->limits->age_ns && p->now_ns - line->start_ns > p->limits->age_ns;
}

static struct total total_of(const struct pruning *p, const struct runs_index *all)
{
    struct total total = {0};
    for (size_t i = 0; i < all->count; i++) {
        const struct runs_line *line = &all->lines[i];
        if (line->keep)
            continue;
        total.bytes += line->bytes;
        total.minor += line->grade >= 2;
        total.old += is_old(p, line);
    }
    return total;
}

static bool is_too_much(const struct pruning *p, uint64_t bytes)
{
    return p->limits->bytes && bytes > p->limits->bytes;
}

// Removes the run's folder. Returns 1 if it is gone, 0 if it stays, -ESTALE if the line is not that
// of the folder, or another negative errno.
static int remove_run(const struct pruning *p, const struct runs_line *line, struct error *e)
{
    struct runs_entry one;
    struct runs_removed *removed = p->removed;
    if (!runs_look(p->runs, line->name, &one) || one.start_ns != line->start_ns ||
        one.size.bytes != line->bytes || one.grade != line->grade || one.keep != line->keep)
        return -ESTALE;
    if (runs_being_written(one.path))
        return 0;
    int status = removed->dry ? 0 : folder_remove(one.path, e);
    if (status < 0)
        return status;
    removed->count++;
    removed->worthy += line->grade < 2;
    removed->bytes += line->bytes;
    buf_printf(&removed->names, "%s%s", removed->names.size ? ", " : "", line->name);
    return 1;
}

static void drop_line(struct runs_line *line)
{
    free(line->name);
    line->name = NULL;
}

static void close_gaps(struct runs_index *all)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++)
        if (all->lines[i].name)
            all->lines[kept++] = all->lines[i];
    all->count = kept;
}

// Removes runs beyond the limits, and their lines. Returns 0, -ESTALE if a line is not that of its
// folder, or another negative errno.
static int prune(const struct pruning *p, struct runs_index *all, struct error *e)
{
    struct total total = total_of(p, all);
    int status = 0;
    if (all->count > 0)
        qsort(all->lines, all->count, sizeof *all->lines, first_to_go);
    enum { TOO_OLD, TOO_MANY, TOO_MUCH, REASONS };
    for (size_t turn = 0; turn < REASONS * all->count && status >= 0; turn++) {
        struct runs_line *line = &all->lines[turn % all->count];
        if (!line->name || line->keep || (p->newest && strcmp(line->name, p->newest) == 0))
            continue;
        size_t reason = turn / all->count;
        bool goes = (reason == TOO_OLD && is_old(p, line)) ||
                    (reason == TOO_MANY && line->grade >= 2 && total.minor > RUNS_MINOR_MAX) ||
                    (reason == TOO_MUCH && is_too_much(p, total.bytes));
        status = goes ? remove_run(p, line, e) : 0;
        if (status > 0) {
            total.bytes -= line->bytes;
            total.minor -= line->grade >= 2;
            drop_line(line);
        }
    }
    close_gaps(all);
    return status < 0 ? status : 0;
}

static int prune_all(const struct pruning *p, struct error *e)
{
    struct runs_index all;
    int status = read_all(p->runs, p->now_ns, &all, e);
    if (status)
        return status;
    status = prune(p, &all, e);
    if (!status && !p->removed->dry)
        runs_index_write(p->runs, &all);
    runs_index_free(&all);
    // A run that has changed in this moment stays until the next time.
    return status == -ESTALE ? 0 : status;
}

int runs_prune(const char *runs, const struct runs_limits *limits, int64_t now_ns,
               struct runs_removed *removed, struct error *e)
{
    const struct pruning p = {.runs = runs, .limits = limits, .now_ns = now_ns, .removed = removed};
    return prune_all(&p, e);
}

// The line of the newest run replaces older ones of its name.
static bool put_newest(struct runs_index *all, const struct runs_line *newest)
{
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->lines[i].name, newest->name) == 0)
            drop_line(&all->lines[i]);
    close_gaps(all);
    return runs_index_put(all, newest);
}

// A user may have removed the folder of any run.
static void drop_missing(const char *runs, struct runs_index *all)
{
    for (size_t i = 0; i < all->count; i++) {
        char path[FOLDER_PATH_MAX + NAME_MAX + 2];
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", runs, all->lines[i].name);
        if (lstat(path, &info) < 0 && errno == ENOENT)
            drop_line(&all->lines[i]);
    }
    close_gaps(all);
}

// Makes room with the index. Returns -ESTALE if it is of no use.
static int prune_indexed(const struct pruning *p, struct error *e)
{
    struct runs_index all;
    struct runs_entry own;
    if (!runs_look(p->runs, p->newest, &own) || runs_index_read(p->runs, p->now_ns, &all) < 0)
        return -ESTALE;
    const struct runs_line line = line_of(&own);
    int status = put_newest(&all, &line) ? 0 : error_set(e, -ENOMEM, "out of memory");
    const struct total total = total_of(p, &all);
    if (total.old || total.minor > RUNS_MINOR_MAX || is_too_much(p, total.bytes)) {
        drop_missing(p->runs, &all);
        if (!status)
            status = prune(p, &all, e);
        if (!status)
            runs_index_write(p->runs, &all);
    } else if (!status) {
        runs_index_add(p->runs, &line);
    }
    runs_index_free(&all);
    return status;
}

int runs_make_room(const char *runs, const struct runs_limits *limits, int64_t now_ns,
                   const char *newest, struct runs_removed *removed, struct error *e)
{
    const struct pruning p = {
        .runs = runs, .newest = newest, .limits = limits, .now_ns = now_ns, .removed = removed};
    int status = prune_indexed(&p, e);
    return status == -ESTALE ? prune_all(&p, e) : status;
}
