// sampler.h - the thread that samples, and the queue on which its rows reach the thread that owns
// the store.
//
// Sources of one rate are sampled at one instant, a multiple of that rate since the epoch; each
// rate has instants of its own. The first instant of all takes every source, so that a short job
// has a value of each. The queue has a fixed number of places and one thread at each end; no locks.
// If the store's thread is so late that no place is free, rows are dropped and counted, so the
// store never delays sampling.
#ifndef SONDE_AGENT_SAMPLER_H
#define SONDE_AGENT_SAMPLER_H

#include "base/arena.h"
#include "collect/collect.h"

enum { SAMPLER_PART_MAX = 64 };
enum { SAMPLER_PLACES = 128 }; // a few instants of all sources

// A copy of the series of a source, which the receiver can define in the store while the next
// sample is taken.
struct sampler_set {
    uint32_t generation;
    size_t count;
    struct collect_series *series;
    struct sampler_set *older; // the sets that this one replaces
    struct arena memory;

    // Members that only the receiver uses:
    bool defined;
    int failed; // the errno if the set could not be defined
    uint32_t store_id;
};

struct sampler_figures {
    int64_t lateness_ns; // of the last sample
    int64_t sampling_ns; // spent sampling, ever
    uint64_t skipped;    // instants
    uint64_t dropped;    // values of rows that found no place
};

struct sampler_row {
    int64_t t_ns; // the instant's nominal time
    // NULL: an instant of the sampler's own rate is complete, and `figures` is set
    struct sampler_set *set;
    struct sampler_figures figures;
    // not empty: the row has no values and ends no instant; it reports that this source has been
    // cut off at t_ns, or answers again
    struct str source;
    bool cut_off;
    // the part of the source that does not answer, such as a folder; "" = all of it
    char part[SAMPLER_PART_MAX];
    double values[STORE_SET_SERIES_MAX]; // only pages that are used take memory
};

struct sampler;

// The sampling thread calls `wake` when there are rows. `rate_s` is the rate of the instants that
// end with a row without a set. `c` stays the caller's, and must outlive the sampler.
int sampler_create(struct collect *c, double rate_s, void (*wake)(void *user), void *user,
                   struct sampler **out, struct error *e);
int sampler_start(struct sampler *s, struct error *e);
// Waits for the end of the thread. Rows in the queue stay there.
void sampler_stop(struct sampler *s);
void sampler_destroy(struct sampler *s);

// Whether the store's thread has to wake at each instant (because it samples cells then). If not,
// `wake` is called for all instants of about half a second together: waking the other thread costs
// as much as a sample. The default is false. Any thread may call this function.
void sampler_be_prompt(struct sampler *s, bool prompt);

// Takes one sample of all sources at t_ns in the caller's thread. Only before sampler_start or
// after sampler_stop.
void sampler_take(struct sampler *s, int64_t t_ns);

// Returns the oldest row, or NULL. The row belongs to the receiver until sampler_done. If its set
// has `older` ones, the receiver has seen the last row of those.
struct sampler_row *sampler_next(struct sampler *s);
void sampler_done(struct sampler *s);
void sampler_forget_older(struct sampler_set *set);

#endif
