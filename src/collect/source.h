// source.h - what a source of metrics is, for the files that are one. Inside src/collect only.
//
// A source is one file with one `const struct source_kind`, and its rows in catalogue.def. To add one: write the file, add the rows, add
// the kind to the table in collect.c. A source whose rows are all there is (one series each, no labels of their own) does nothing about
// series: collect.c makes them, leaves out rows above the level, and source_put finds the place of a value.
#ifndef SONDE_COLLECT_SOURCE_H
#define SONDE_COLLECT_SOURCE_H

#include "collect/catalogue.h"

enum { SOURCE_REASON_MAX = 256 };

struct source;

struct source_kind {
    struct str
        name; // as in the catalogue; of "gpu-nvidia" only "gpu": sources that give the same metrics share the rows

    // Opens what sampling needs. 0, or a negative errno and source_fail: then the source is left out, and close is not called.
    int (*open)(struct source *s);

    // Puts its values (source_put); what it leaves is missing. 0, or a negative errno and source_fail when there was nothing to be had.
    int (*sample)(struct source *s, double *values);

    void (*close)(struct source *s);
};

struct source {
    const struct source_kind *kind;
    const struct collect_options *options;
    void *state;
    bool open;
    char reason[SOURCE_REASON_MAX]; // "" while it gives all its values
    int64_t period_ns;              // a source may ask to be sampled less often; 0 = at every instant
    int64_t due_ns;                 // not before this instant
    enum metric_symbol first_row;
    size_t row_count;
    int16_t *place; // of each row, the index of its series; -1 above the level
    struct collect_series *series;
    size_t count;
    uint32_t generation;
};

extern const struct source_kind source_load, source_cpu, source_memory, source_processes, source_nvidia;

// Says why there is nothing; returns `code`.
int source_fail(struct source *s, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

static inline void source_put(const struct source *s, double *values, enum metric_symbol row, double value)
{
    int place = s->place[row - s->first_row];
    if (place >= 0)
        values[place] = value;
}

#endif
