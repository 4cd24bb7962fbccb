// detect.h - who is slower than the others: nodes, GPUs, ranks, by any measure of which more (or
// less) is worse.
//
// Members (up to DETECT_MEMBERS_MAX) each give one value a round: the time of a probe, the length
// of a step. After each round every member has a verdict. All arithmetic is on logarithms, because
// disturbances multiply times:
//
//   level     median of a member's last `window` values: one outlier moves nothing. From more than half a window on, where the better of the two in the middle
//             counts
//   peers     level minus the median of the OTHERS' levels (leave one out: a slow one does not hide itself, however few they are), of all that are not silent
//   own       level minus the best stretch of the member's own past, minus what the others have lost since their best (a common slow-down, such as
//             a larger batch, is nobody's fault)
//   noise     what levels scatter by: the members' own jumps from value to value, pooled, and the others' spread; at least `noise_floor`
//
// A member is over the line when it is slower by `slowdown` at least AND by `score` times the
// noise, against its peers or against its own past; slow when it was so in `persistence` rounds
// running, not counting those in which it gave no value. One that gives none in so many rounds
// while others do is silent: a probe that never comes back is as slow as can be. Members of
// different make are slower than their peers for ever: leave out the peers then.
//
// What the noise is, the first rounds can only guess: each round judges those before it anew (the
// last 32), by the noise as it is known then.
//
// So with the usual options one that gets much slower, or was from its first value on, is found
// with its fifth value; at the latest with its sixth when one of them was as fast as ever.
//
// What that finds and how often it errs is in docs/detect.md, from simulations that the tests run.
// No input or output, no clock, no threads: one struct belongs to one thread. What is measured is
// said by the caller.
#ifndef SONDE_DETECT_DETECT_H
#define SONDE_DETECT_DETECT_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DETECT_MEMBERS_MAX = 65536,
    DETECT_WINDOW_MAX = 32,
    // values in a stretch of the own past: long enough that its mean is worth remembering as the
    // best
    DETECT_STRETCH = 16,
};

struct detect_options {
    unsigned window;      // values a level is the median of; 0 = 3
    unsigned persistence; // rounds running; 0 = 4
    double slowdown;      // ratio from which on a member can be slow; 0 = 1.25
    // how many times the noise, between two members; of more members the line lies higher; 0 = 4
    double score;
    double noise_floor; // least noise of a level, as a ratio; 0 = 0.02
    bool less_is_worse; // values are rates: less is slower
    bool not_peers;     // do not compare with peers
    bool not_own;       // do not compare with the own past
};

enum detect_state {
    DETECT_WAITING, // not enough values yet, of this one or of the others
    DETECT_GOOD,
    DETECT_SUSPECT, // over the line, not yet long enough
    DETECT_SLOW,
    DETECT_SILENT
};

struct detect_verdict {
    enum detect_state state;
    // how many times slower than the others' median: 1 = as fast, 1.5 = takes half as long again.
    // NaN: not known
    double peers;
    double own;      // likewise against its own best, without what all have lost
    double score;    // of the worse of the two, in units of the noise
    bool by_peers;   // over the line against its peers; else, when over it, against its own past
    unsigned rounds; // running: over the line, or without a value
};

struct detect;

// NULL: no memory, or options that make no sense (window too large, slowdown < 1, both comparisons
// left out).
struct detect *detect_create(const struct detect_options *options);
void detect_destroy(struct detect *d);

// The member of that name, made when there is none. Its number, from 0 in the order of their
// making, or -1: no memory, or too many.
long detect_member(struct detect *d, struct str name);
long detect_find(const struct detect *d, struct str name); // -1: there is none
size_t detect_members(const struct detect *d);
struct str detect_name(const struct detect *d, size_t member);

// One value of this round. What is not finite or not above 0 counts as none; a second value
// replaces the first.
void detect_value(struct detect *d, size_t member, double value);

// A member is there no more: it has no verdicts, and its peers go on without it, until it gives a
// value again.
void detect_leave(struct detect *d, size_t member);

// Ends the round: all verdicts are made. A round in which nobody gave a value is none.
void detect_round(struct detect *d);

// Of the last round.
const struct detect_verdict *detect_verdict_of(const struct detect *d, size_t member);

#endif
