// sampler.h - the thread that samples, and the queue on which its rows reach the thread that owns
// the store.
//
// All sources with the same rate are sampled at one instant, a multiple of this rate since the
// epoch. Each rate has instants of its own. At the first instant all sources are sampled, so that
// even a short job has a value of each. If a source that is sampled seldom answers late, its values
// make a row of their own between its instants. The queue has a fixed number of places and one
// thread at each end, so it needs no locks. If the store's thread is so late that no place is free,
// rows are dropped and counted. So the store never delays sampling.
#ifndef SONDE_AGENT_SAMPLER_H
#define SONDE_AGENT_SAMPLER_H

#include "base/arena.h"
#include "collect/collect.h"

enum { SAMPLER_PART_MAX = 64 };
enum { SAMPLER_PLACES = 128 }; // a few instants of all sources

// A copy of the series of a source. The receiver can define them in the store while the next sample
// is taken.
struct sampler_set {
    uint32_t generation;
    size_t count;
    struct collect_series *series;
    struct sampler_set *older; // the sets that this one replaces
    struct arena memory;

    // Members that only the receiver uses.
    bool defined;
    int failed; // the errno if the set could not be defined
    uint32_t store_id;
};

struct sampler_figures {
    int64_t lateness_ns; // delay of the last sample
    int64_t sampling_ns; // total time spent sampling
    uint64_t skipped;    // number of skipped instants
    uint64_t dropped;    // values of rows for which no place was free
};

struct sampler_row {
    int64_t t_ns; // the instant's nominal time
    // NULL: an instant of the sampler's own rate is complete, and `figures` is set
    struct sampler_set *set;
    struct sampler_figures figures;
    // if not empty, the row has no values and ends no instant; it reports that this source did not
    // answer at t_ns, or answers again
    struct str source;
    bool cut_off;
    // the part of the source that does not answer, such as a folder; "" = all of it
    char part[SAMPLER_PART_MAX];
    double values[STORE_SET_SERIES_MAX]; // only used pages take memory
};

struct sampler;

// The sampling thread calls `wake` when there are rows. `rate_s` is the rate of the sampler's own
// instants, each of which ends with a row without a set. The caller still owns `c`, which must
// outlive the sampler.
int sampler_create(struct collect *c, double rate_s, void (*wake)(void *user), void *user,
                   struct sampler **out, struct error *e);
int sampler_start(struct sampler *s, struct error *e);
// Waits until the thread has ended. Rows in the queue stay there.
void sampler_stop(struct sampler *s);
void sampler_destroy(struct sampler *s);

// Sets whether the store's thread wakes at each instant, which is needed if it samples cells. If
// false (the default), `wake` is called once for all instants of about half a second, because
// waking the other thread costs as much as a sample. Any thread may call this function.
void sampler_be_prompt(struct sampler *s, bool prompt);

// Takes one sample of all sources at t_ns in the caller's thread. Call it only before sampler_start
// or after sampler_stop.
void sampler_take(struct sampler *s, int64_t t_ns);

// Returns the oldest row, or NULL. The receiver owns the row until sampler_done. If the row's set
// has `older` sets, the receiver has seen their last row.
struct sampler_row *sampler_next(struct sampler *s);
void sampler_done(struct sampler *s);
void sampler_forget_older(struct sampler_set *set);

#endif
