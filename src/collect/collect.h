// collect.h - metrics of the node: their sources and the catalogue of all metrics.
//
// A source is one file (cpu.c, memory.c, …) that registers its rows of the catalogue and a sample
// function. Files in /proc and /sys are kept open and re-read with one pread; a sample allocates
// nothing; a value that cannot be read is store_missing(), never 0. Used by the sampling thread
// only; any thread may read the constant catalogue.
#ifndef SONDE_COLLECT_COLLECT_H
#define SONDE_COLLECT_COLLECT_H

#include "store/store.h"

#include <sys/types.h>

// One built-in metric: a row of the catalogue (catalogue.def), from which the names here,
// docs/metrics.md and `sonde metrics` come.
struct collect_metric {
    struct store_metric metric;
    struct str source;  // "cpu"
    struct str aliases; // other names that queries may use, separated by blanks ("load_average")
};
const struct collect_metric *collect_catalogue(size_t *count);

// The built-in metric with this name or alias; NULL for an unknown name.
const struct collect_metric *collect_find(struct str name);

// Returns the index-th alias and its metric; false if the index is too large.
bool collect_alias(size_t index, struct str *alias, struct str *metric);

struct collect_options {
    // "" or a folder with other /proc and /sys trees, for tests
    const char *root;
    const struct store_label *labels; // added to every series (host)
    size_t label_count;
    int level;
    // seconds between samples of sources without a slower rate of their own; ≤ 0 = 0.5
    double rate_s;
    const char *folder; // the run folder
    uid_t uid;          // processes of this user are "own"
    const char *job;    // the SONDE_JOB of the job whose processes are counted; NULL = none
    // sources and their rates: see collect_check_sources; NULL or "" = all, each at its own rate
    const char *sources;
    int64_t deadline_ns; // how long to wait for a source that hangs; 0 = 20 ms
    int64_t silence_ns;  // collect_hangs reports a source after it has hung this long; 0 = 1 s
};

struct collect;

// A list of sources, separated by commas or blanks: "NAME=SECONDS" sets a rate, "NAME=off" and
// "-NAME" leave the source out, "NAME=on" changes nothing; if any NAME stands alone, only such
// names (and those with =) are sampled. Returns -EINVAL with e set if `list` is malformed; *unknown
// is then the unknown name, or empty.
#define COLLECT_RATE_MIN_S 0.01
#define COLLECT_RATE_MAX_S 3600.0
int collect_check_sources(const char *list, struct str *unknown, struct error *e);

// The names allowed in such a list, in the order of sampling; empty after the last.
struct str collect_source_name(size_t index);

// The least seconds between samples of this source if no list sets a rate; 0 = the collector's
// rate.
double collect_source_rate(struct str source);

// Opens the sources of this level. Leaves out missing sources with a reason (collect_reason).
// Returns -EINVAL if `sources` names an unknown source. The strings of the options must live until
// collect_destroy.
int collect_create(const struct collect_options *options, struct collect **out, struct error *e);
void collect_destroy(struct collect *c);

// The series of a sample: `count` series, each with its labels. They are unchanged as long as
// collect_series returns the same generation. The sampler defines them in the store as one set per
// source.
struct collect_series {
    const struct collect_metric *metric;
    const struct store_label *labels;
    size_t label_count;
};
struct collect_set {
    struct str source;
    const struct collect_series *series;
    size_t count;
    int64_t rate_ns; // the set is sampled at multiples of this since the epoch
    // changes whenever the series change (an interface came or went); define the set again then
    uint32_t generation;
};
size_t collect_set_count(const struct collect *c);
void collect_get_set(const struct collect *c, size_t set, struct collect_set *out);

// Reads set `set` into values[count] (store_missing() for missing values). Returns the number of
// values, 0 if the source has none now, or a negative errno if it failed completely (-ETIMEDOUT: it
// hangs, and the other sources continue). `t_ns` is the sampling instant.
int collect_sample(struct collect *c, size_t set, int64_t t_ns, double *values);

// The job's command has ended and was waited for; `seconds` is its processor time and that of its
// children. Only the last sample may follow, which reads everything, whatever it costs.
void collect_ended(struct collect *c, uint64_t pid, double seconds);

// Whether a part of the set hung at its last sample, and has hung for silence_ns. *part (may be
// NULL) is the part, "" for all of the set, valid until the next sample.
bool collect_hangs(const struct collect *c, size_t set, struct str *part);

// Whether values of the last sample of the set may still come, and would be outdated at the next
// one. If so, call collect_sample_late soon. It is like collect_sample, but gives only values that
// have come since the last sample; the others are missing.
bool collect_owes(const struct collect *c, size_t set);
int collect_sample_late(struct collect *c, size_t set, int64_t t_ns, double *values);

// Why a source gives no values, or not all; "" if it gives all.
struct str collect_reason(const struct collect *c, struct str source);

#endif
