// source.h - the interface of a source of metrics. Inside src/collect only.
//
// A source is one file with one `const struct source_kind`, and its rows in catalogue.def. To add
// one: write the file, add the rows, add the kind to the table in collect.c. series.c makes the
// series, leaves out rows above the level, and source_put finds the place of a value:
//
//   plain rows    one series each, with the labels that all series have
//   tagged rows   one series for each instance (a network interface, a disk) and row, with the
//                 instance's tags. An instance that appears gets its series after that sample (a
//                 new generation of the set).
#ifndef SONDE_COLLECT_SOURCE_H
#define SONDE_COLLECT_SOURCE_H

#include "collect/catalogue.h"

enum {
    SOURCE_REASON_MAX = 256,
    SOURCE_TAGS_MAX = 2,  // of an instance
    SOURCE_TAG_SIZE = 64, // with its NUL
    SOURCE_INSTANCES_MAX = 2048,
    SOURCE_GONE_AFTER = 20, // samples without an instance before its series are removed
};

struct deadline;
struct source;

struct source_kind {
    // as in the catalogue. The kinds gpu-nvidia, gpu-amd and gpu-intel share the rows of "gpu", and
    // have only tagged rows
    struct str name;

    // Opens the files for sampling. Returns 0, or a negative errno after source_fail: then the
    // source is left out, and close is not called.
    int (*open)(struct source *s);

    // Puts its values (source_put); other values are missing. Returns 0, or a negative errno after
    // source_fail if it has no values.
    int (*sample)(struct source *s, double *values);

    void (*close)(struct source *s);

    // See collect_ended. NULL for most kinds, and for those with `apart`.
    void (*ended)(struct source *s, uint64_t pid, double seconds);

    // For a kind with own_series that sets s->changed in `sample`: rebuilds its series for later
    // samples. NULL: the kind never sets it.
    int (*remake)(struct source *s);

    // Tagged rows: [tagged_from, tagged_to] of the catalogue; keys[0] = NULL without tagged rows.
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
    int32_t base;    // place of its first series; -1 without series
    uint32_t unseen; // samples since it was last found
    bool ignored;    // known, but unwanted
};

struct source {
    const struct source_kind *kind;
    const struct collect_options *options;
    void *state;
    bool open;
    char reason[SOURCE_REASON_MAX]; // "" while it gives all its values
    int64_t rate_ns;                // interval of samples
    bool rate_fixed;    // the user has set it for this source, so it is kept whatever the cost
    int64_t instant_ns; // of the current sample; unused for sources in their own thread
    enum metric_symbol first_row;
    size_t row_count;
    // for each row the index of its series, for a tagged row within its instance; -1 above the
    // level
    int16_t *place;
    struct collect_series *series;
    struct store_label *labels; // of tagged series
    size_t count;
    uint32_t generation;

    struct source_instance *instances;
    size_t instance_count, instance_capacity, hint; // hint: the probable index of the next lookup
    size_t plain_rows, tagged_rows;                 // rows up to the level
    // the part that did not answer in time at this sample; unused for sources in their own thread
    char hangs[SOURCE_TAG_SIZE];
    int64_t hangs_ns; // how long the part has hung
    bool late_only;   // this sample takes only late answers: see source_is_seldom
    bool owes;        // a part has not answered in time, and may still answer
    bool changed;     // instances came or went: the series must be rebuilt
};

extern const struct source_kind source_load, source_cpu, source_memory, source_processes,
    source_vmstat, source_pressure, source_network, source_disk, source_filesystem, source_cgroup,
    source_infiniband, source_slingshot, source_energy, source_temperature, source_fan,
    source_frequency, source_lustre, source_nfs, source_interrupts, source_amd, source_intel,
    source_nvidia;

// True if the source is sampled so seldom that a late answer (deadline.h) would be outdated at the
// next sample. So such answers are taken in between (collect_sample_late), and no call begins ahead
// of a sample.
bool source_is_seldom(const struct source *s);

// True if a value of a call that began so long ago is recent enough to be recorded.
bool source_recent(int64_t age_ns);

// Asks a source, or a part of it, that may hang: deadline_run, or deadline_take for late answers.
int source_ask(const struct source *s, struct deadline *d, int64_t *late_ns);

// Sets the reason of a source that gives late values; `who` is a part of it, or "".
void source_late(struct source *s, const char *who, int64_t took_ns);

// Sets the reason for missing values; returns `code`.
int source_fail(struct source *s, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Returns the name in the catalogue: "gpu" for "gpu-nvidia".
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

// Returns the index of the instance with these tags (`second` empty for kinds with one key), or -1.
// Marks it as seen.
ptrdiff_t source_find(struct source *s, struct str first, struct str second);

// Like source_find, but adds a missing instance. Returns -1 if there are too many instances
// (s->reason says so), without memory, or after source_ignore.
ptrdiff_t source_instance(struct source *s, struct str first, struct str second);

// Marks an instance that gets no series.
void source_ignore(struct source *s, ptrdiff_t instance);

// Removes instances not seen for SOURCE_GONE_AFTER calls; indices change. For sources that look
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

// In series.c, for collect.c. They select the rows up to the level (0, or -ENOMEM), make the series
// of all instances, and free them.
int series_begin(struct source *s);
int series_make(struct source *s);
void series_free(struct source *s);

#endif
