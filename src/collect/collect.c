// collect.c - the table of sources, and what all of them have alike: their series, when they are due, why they give nothing.
#include "base/clock.h"
#include "collect/source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const struct source_kind *const kinds[] = {&source_load, &source_cpu, &source_memory, &source_processes,
                                                  &source_nvidia};

enum { SOURCES = sizeof kinds / sizeof *kinds };

static const double RATE_DEFAULT_S = 0.5;

struct collect {
    struct collect_options options;
    struct source sources[SOURCES]; // in the order of `kinds`; also those that could not be opened, for their reasons
    size_t open[SOURCES];           // index of each set's source
    size_t open_count;
    int64_t rate_ns;
};

int source_fail(struct source *s, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->reason, sizeof s->reason, format, args);
    va_end(args);
    return code;
}

// One series for each row of the source that is not above the level.
static int make_series(struct source *s)
{
    struct str name = s->kind->name;
    s->row_count = catalogue_rows(str_cut(&name, '-'), &s->first_row);
    s->place = malloc(s->row_count * sizeof *s->place);
    s->series = malloc(s->row_count * sizeof *s->series);
    if (!s->place || !s->series)
        return source_fail(s, -ENOMEM, "no memory");
    for (size_t i = 0; i < s->row_count; i++) {
        const struct collect_metric *metric = &catalogue_metrics[s->first_row + i];
        s->place[i] = -1;
        if (metric->metric.level > s->options->level)
            continue;
        s->place[i] = (int16_t)s->count;
        s->series[s->count++] = (struct collect_series){metric, s->options->labels, s->options->label_count};
    }
    return 0;
}

int collect_create(const struct collect_options *options, struct collect **out, struct error *e)
{
    *out = NULL;
    struct collect *c = calloc(1, sizeof *c);
    if (!c)
        return error_set(e, -ENOMEM, "no memory for the collectors");
    c->options = *options;
    c->rate_ns = (int64_t)((options->rate_s > 0 ? options->rate_s : RATE_DEFAULT_S) * NS_PER_S);
    for (size_t i = 0; i < SOURCES; i++) {
        struct source *s = &c->sources[i];
        *s = (struct source){.kind = kinds[i], .options = &c->options, .generation = 1};
        if (make_series(s) != 0) {
            collect_destroy(c);
            return error_set(e, -ENOMEM, "no memory for the collectors");
        }
        if (s->count == 0)
            source_fail(s, 0, "needs a higher level than %d", options->level);
        else if (s->kind->open(s) == 0) {
            s->open = true;
            c->open[c->open_count++] = i;
        }
    }
    *out = c;
    return 0;
}

void collect_destroy(struct collect *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < SOURCES; i++) {
        struct source *s = &c->sources[i];
        if (s->open)
            s->kind->close(s);
        free(s->place);
        free(s->series);
    }
    free(c);
}

size_t collect_set_count(const struct collect *c)
{
    return c->open_count;
}

void collect_get_set(const struct collect *c, size_t set, struct collect_set *out)
{
    const struct source *s = &c->sources[c->open[set]];
    *out = (struct collect_set){s->kind->name, s->series, s->count, s->generation};
}

// Half a period early is in time. An instant far ahead was set before the clock stepped back.
static bool is_due(const struct collect *c, const struct source *s, int64_t t_ns)
{
    return t_ns >= s->due_ns - c->rate_ns / 2 || s->due_ns - t_ns > s->period_ns + c->rate_ns;
}

int collect_sample(struct collect *c, size_t set, int64_t t_ns, double *values)
{
    struct source *s = &c->sources[c->open[set]];
    for (size_t i = 0; i < s->count; i++)
        values[i] = store_missing();
    if (!is_due(c, s, t_ns))
        return 0;
    char before[SOURCE_REASON_MAX];
    memcpy(before, s->reason, sizeof before);
    s->reason[0] = 0;
    int failed = s->kind->sample(s, values);
    s->due_ns = t_ns + s->period_ns;
    if (failed)
        return failed;
    int given = 0;
    for (size_t i = 0; i < s->count; i++)
        given += !store_is_missing(values[i]);
    // A part of it may be missing for a reason of its own, said just now; where nothing came, an older reason still holds.
    if (!given && !s->reason[0])
        memcpy(s->reason, before, sizeof before);
    return given;
}

struct str collect_reason(const struct collect *c, struct str source)
{
    for (size_t i = 0; i < SOURCES; i++)
        if (str_eq(c->sources[i].kind->name, source))
            return str_of(c->sources[i].reason);
    return STR("there is no such source");
}
