// source.h - the interface of a source of metrics. Inside src/collect only.
//
// A source is one file with one `const struct source_kind`, and its rows in catalogue.def. To add
// one: write the file, add the rows, add the kind to the table in collect.c. series.c makes the
// series, leaves out rows above the level, and source_put finds the place of a value:
//
//   plain rows    one series each, with the labels that all series have
//   tagged rows   one series for each instance (a network interface, a disk) and row, with the instance's tags. An instance that
//                 appears gets its series after the sample that it was found in (a new generation of the set).
#ifndef SONDE_COLLECT_SOURCE_H
#define SONDE_COLLECT_SOURCE_H

#include "collect/catalogue.h"

enum {
    SOURCE_REASON_MAX = 256,
    SOURCE_TAGS_MAX = 2,  // of an instance
    SOURCE_TAG_SIZE = 64, // with its NUL
    SOURCE_INSTANCES_MAX = 2048,
    SOURCE_GONE_AFTER = 20, // samples without an instance before its series go
};

struct source;

struct source_kind {
    // as in the catalogue; of "gpu-amd" only "gpu": sources that give the same metrics share the
    // rows, and have only the tagged ones
    struct str name;

    // Opens what sampling needs. 0, or a negative errno and source_fail: then the source is left
    // out, and close is not called.
    int (*open)(struct source *s);

    // Puts its values (source_put); other values are missing. 0, or a negative errno and
    // source_fail if it has no values.
    int (*sample)(struct source *s, double *values);

    void (*close)(struct source *s);

    // Of a kind with own_series that sets s->changed in `sample`: makes its series anew, for the
    // samples to come. NULL: it never does.
    int (*remake)(struct source *s);

    // Tagged rows: [tagged_from, tagged_to] of the catalogue; keys[0] = NULL when there are none.
    const char *keys[SOURCE_TAGS_MAX];
    enum metric_symbol tagged_from, tagged_to;

    // Reading may take long or hang (a device, a file server): sampled in a thread of its own, cut
    // off after a deadline. `sample` and `close` then must not look at s->options.
    bool apart;

    // Least seconds between samples unless the user sets a rate, for values that change slowly or
    // are expensive to read. 0 = the collector's rate.
    double rate_s;

    // The source makes s->series and s->count itself, and raises s->generation when they change; a
    // sample that changes them returns -EAGAIN.
    bool own_series;
};

struct source_instance {
    char tags[SOURCE_TAGS_MAX][SOURCE_TAG_SIZE];
    int32_t base;    // place of its first series; -1 while it has none
    uint32_t unseen; // samples since it was found last
    bool ignored;    // known, and of no interest
};

struct source {
    const struct source_kind *kind;
    const struct collect_options *options;
    void *state;
    bool open;
    char reason[SOURCE_REASON_MAX]; // "" while it gives all its values
    int64_t rate_ns;                // between two samples
    bool rate_asked;                // by the user, for this source: it is kept, whatever it costs
    int64_t instant_ns;             // of the sample that is being taken; not for sources apart
    enum metric_symbol first_row;
    size_t row_count;
    // of each row, the index of its series, for a tagged row within its instance; -1 above the
    // level
    int16_t *place;
    struct collect_series *series;
    struct store_label *labels; // of tagged series
    size_t count;
    uint32_t generation;

    struct source_instance *instances;
    size_t instance_count, instance_capacity, hint; // hint: where the next is probably found
    size_t plain_rows, tagged_rows;                 // that are not above the level
    // a part of it did not answer in time at this sample; for sources that are not apart
    char hangs[SOURCE_TAG_SIZE];
    int64_t hangs_ns; // how long it has hung by then
    bool changed;     // instances came or went: the series are to be made anew
};

extern const struct source_kind source_load, source_cpu, source_memory, source_processes,
    source_vmstat, source_pressure, source_network, source_disk, source_filesystem, source_cgroup,
    source_infiniband, source_slingshot, source_energy, source_temperature, source_fan,
    source_frequency, source_lustre, source_nfs, source_interrupts, source_amd, source_intel,
    source_nvidia;

// Says why there is nothing; returns `code`.
int source_fail(struct source *s, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// What the catalogue calls it: "gpu" for "gpu-nvidia".
static inline struct str source_rows(const struct source_kind *kind)
{
    struct str name = kind->name;
    return str_cut(&name, '-');
}

static inline void source_put(const struct source *s, double *values, enum metric_symbol row,
                              double value)
{
    int place = s->place[row - s->first_row];
    if (place >= 0)
        values[place] = value;
}

// The index of the instance with these tags (`second` empty for kinds with one key), or -1. It
// counts as seen.
ptrdiff_t source_find(struct source *s, struct str first, struct str second);

// The same, and makes it where there is none. -1: too many (then the reason says so), no memory, or
// source_ignore was called for it.
ptrdiff_t source_instance(struct source *s, struct str first, struct str second);

// It is known, and has no series.
void source_ignore(struct source *s, ptrdiff_t instance);

// Instances not seen for SOURCE_GONE_AFTER calls go; indexes change. For sources that look
// instances up in each sample.
void source_forget_unseen(struct source *s);

static inline void source_put_at(const struct source *s, double *values, ptrdiff_t instance,
                                 enum metric_symbol row, double value)
{
    int place = s->place[row - s->first_row];
    int32_t base = s->instances[instance].base;
    if (place >= 0 && base >= 0)
        values[base + place] = value;
}

// series.c, for collect.c: which rows the level lets through (0, or -ENOMEM); makes the series of
// all instances; frees all.
int series_begin(struct source *s);
int series_make(struct source *s);
void series_free(struct source *s);

#endif
