// load.c - /proc/loadavg: "0.41 0.12 0.04 1/93 7740", the only file here with positions instead of
// names.
#include "collect/procfile.h"

#include <errno.h>
#include <stdlib.h>

static int load_open(struct source *s)
{
    struct procfile *file = malloc(sizeof *file);
    if (!file)
        return source_fail(s, -ENOMEM, "no memory");
    int failed = procfile_open(file, s, "/proc/loadavg");
    if (failed) {
        free(file);
        return failed;
    }
    s->state = file;
    return 0;
}

static void load_close(struct source *s)
{
    procfile_close(s->state);
    free(s->state);
}

static int load_sample(struct source *s, double *values)
{
    static const enum metric_symbol averages[] = {METRIC_LOAD_1M, METRIC_LOAD_5M, METRIC_LOAD_15M};
    struct str rest, line;
    int failed = procfile_read(s->state, s, &rest);
    if (failed)
        return failed;
    if (!scan_line(&rest, &line))
        line = rest;
    size_t found = 0;
    for (size_t i = 0; i < sizeof averages / sizeof *averages; i++) {
        double value;
        if (scan_decimal(str_word(&line), &value)) {
            source_put(s, values, averages[i], value);
            found++;
        }
    }
    struct str all = str_word(&line), runnable = str_cut(&all, '/');
    uint64_t count;
    if (scan_u64(&runnable, &count) && runnable.size == 0 && all.data) {
        source_put(s, values, METRIC_LOAD_TASKS_RUNNABLE, (double)count);
        found++;
        if (scan_u64(&all, &count) && all.size == 0) {
            source_put(s, values, METRIC_LOAD_TASKS, (double)count);
            found++;
        }
    }
    return found ? 0 : source_fail(s, -EBADMSG, "/proc/loadavg does not hold load averages");
}

const struct source_kind source_load = {.name = {"load", 4},
                                        .rate_s = 1,
                                        .open = load_open,
                                        .sample = load_sample,
                                        .close = load_close};
