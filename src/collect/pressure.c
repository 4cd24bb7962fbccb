// pressure.c - /proc/pressure/cpu, memory, io: the time that tasks lost waiting for them.
//
//   some avg10=39.06 avg60=23.56 avg300=24.09 total=813822751
//       at least one task waited; total in microseconds
//   full avg10=0.00 avg60=0.00 avg300=0.00 total=0
//       all non-idle tasks waited; older kernels lack this line for the processor
#include "collect/procfile.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

enum { RESOURCES = 3, KINDS = 2 };

static const struct {
    const char *path;
    enum metric_symbol percent[KINDS], seconds[KINDS]; // some, full
} resources[RESOURCES] = {
    {"/proc/pressure/cpu",
     {METRIC_PRESSURE_CPU_SOME, METRIC_PRESSURE_CPU_FULL},
     {METRIC_PRESSURE_CPU_SOME_SECONDS, METRIC_PRESSURE_CPU_FULL_SECONDS}},
    {"/proc/pressure/memory",
     {METRIC_PRESSURE_MEMORY_SOME, METRIC_PRESSURE_MEMORY_FULL},
     {METRIC_PRESSURE_MEMORY_SOME_SECONDS, METRIC_PRESSURE_MEMORY_FULL_SECONDS}},
    {"/proc/pressure/io",
     {METRIC_PRESSURE_IO_SOME, METRIC_PRESSURE_IO_FULL},
     {METRIC_PRESSURE_IO_SOME_SECONDS, METRIC_PRESSURE_IO_FULL_SECONDS}},
};

struct pressure {
    struct procfile files[RESOURCES];
};

static size_t put_line(struct source *s, double *values, int resource, struct str line)
{
    static const struct str kinds[KINDS] = {{"some", 4}, {"full", 4}};
    struct str kind = str_word(&line);
    size_t found = 0;
    for (int k = 0; k < KINDS; k++) {
        if (!str_eq(kind, kinds[k]))
            continue;
        for (struct str word = str_word(&line); word.size; word = str_word(&line)) {
            struct str value = word, key = str_cut(&value, '=');
            uint64_t us;
            double percent;
            if (str_eq(key, STR("avg10")) && scan_decimal(value, &percent)) {
                source_put(s, values, resources[resource].percent[k], percent);
                found++;
            } else if (str_eq(key, STR("total")) && scan_u64(&value, &us) && value.size == 0) {
                source_put(s, values, resources[resource].seconds[k],
                           (double)us * NS_PER_US / NS_PER_S);
                found++;
            }
        }
    }
    return found;
}

static int pressure_sample(struct source *s, double *values)
{
    struct pressure *p = s->state;
    size_t found = 0;
    int failed = 0;
    for (int i = 0; i < RESOURCES; i++) {
        struct str text, line;
        if (p->files[i].fd < 0)
            continue;
        int code = procfile_read(&p->files[i], s, &text);
        if (code) {
            failed = code; // its reason stays; the other files are read
            continue;
        }
        while (scan_line(&text, &line))
            found += put_line(s, values, i, line);
    }
    if (found)
        return 0;
    return failed
               ? failed
               : source_fail(s, -EBADMSG, "/proc/pressure holds no shares of time that are known");
}

static void pressure_close(struct source *s)
{
    struct pressure *p = s->state;
    for (int i = 0; i < RESOURCES; i++)
        procfile_close(&p->files[i]);
    free(p);
}

static int pressure_open(struct source *s)
{
    struct pressure *p = calloc(1, sizeof *p);
    if (!p)
        return source_fail(s, -ENOMEM, "no memory");
    int opened = 0, failed = 0;
    for (int i = 0; i < RESOURCES; i++) {
        int code = procfile_open(&p->files[i], s, resources[i].path);
        opened += code == 0;
        failed = code ? code : failed;
    }
    s->state = p;
    if (opened)
        return 0;
    pressure_close(s);
    // A kernel started without pressure information returns this error for reads.
    return failed == -EOPNOTSUPP
               ? source_fail(s, failed,
                             "the kernel does not measure pressure (start it with psi=1)")
               : failed;
}

const struct source_kind source_pressure = {.name = {"pressure", 8},
                                            .rate_s = 1,
                                            .open = pressure_open,
                                            .sample = pressure_sample,
                                            .close = pressure_close};
