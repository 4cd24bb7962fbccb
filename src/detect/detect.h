// detect.h - finds stragglers: nodes, GPUs or ranks that are slower than the others, by any measure
// of which more (or less) is worse.
//
// Each member (up to DETECT_MEMBERS_MAX) gives one value per round: the time of a probe, the length
// of a step. After each round every member has a verdict. All arithmetic uses logarithms, because
// disturbances multiply times:
//
//   level     median of a member's last `window` values: one outlier moves nothing. It counts once
//             there are values for more than half a window; of two middle values, the better one
//   peers     level minus the median of the levels of all OTHERS that are not silent (leave one
//             out: a slow member does not hide itself, even among few)
//   own       level minus the best stretch of the member's own past, minus the others' loss since
//             their best (a common slow-down, such as a larger batch, blames no member)
//   noise     the scatter of levels: the members' own jumps from value to value, pooled, and the
//             others' spread; at least `noise_floor`
//
// A member is over the line if it is slower by at least `slowdown` AND by `score` times the noise,
// against its peers or its own past. It is slow after `persistence` such rounds in a row, not
// counting rounds without its value. A member without a value for so many rounds, while others give
// values, is silent: a probe that never returns is the slowest of all. Members of different
// hardware are always slower than their peers: then leave out the peers.
//
// The first rounds can only guess the noise. So each round judges the last 32 rounds again, by the
// current noise.
//
// So with the default options a member that becomes much slower, or is slow from its first value
// on, is found at its fifth slow value, or at its sixth if one value in between is as fast as
// before.
//
// docs/detect.md gives the detection and error rates, from simulations that the tests run. No input
// or output, no clock, no threads: one struct belongs to one thread. The caller supplies the
// measured values.
#ifndef SONDE_DETECT_DETECT_H
#define SONDE_DETECT_DETECT_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DETECT_MEMBERS_MAX = 65536,
    DETECT_WINDOW_MAX = 32,
    // values per stretch of the own past: enough for a reliable mean
    DETECT_STRETCH = 16,
};

struct detect_options {
    unsigned window;      // number of values for the median of a level; 0 = 3
    unsigned persistence; // consecutive rounds; 0 = 4
    double slowdown;      // minimum ratio of a slow member; 0 = 1.25
    // multiple of the noise between two members; the limit is higher for more members; 0 = 4
    double score;
    double noise_floor; // minimum noise of a level, as a ratio; 0 = 0.02
    bool less_is_worse; // values are rates: less is slower
    bool not_peers;     // do not compare with peers
    bool not_own;       // do not compare with the own past
};

enum detect_state {
    DETECT_WAITING, // not enough values yet, from this member or the others
    DETECT_GOOD,
    DETECT_SUSPECT, // over the line, but not for long enough
    DETECT_SLOW,
    DETECT_SILENT
};

struct detect_verdict {
    enum detect_state state;
    // time relative to the others' median: 1 = as fast as they, 1.5 = half as long again; NaN:
    // unknown
    double peers;
    double own;   // likewise relative to its own best, without the loss common to all
    double score; // of the larger of the two factors, in units of the noise
    // over the line against its peers; false: against its own past, if over the line at all
    bool by_peers;
    unsigned rounds; // consecutive rounds over the line, or without a value
};

struct detect;

// Returns NULL without memory, or for invalid options (window too large, slowdown < 1, both
// comparisons left out).
struct detect *detect_create(const struct detect_options *options);
void detect_destroy(struct detect *d);

// The most memory that a comparison of `members` takes, not counting the members' names.
size_t detect_bytes(size_t members);

// Finds or adds the member of that name. Returns its number, counted from 0 in the order of adding,
// or -1 without memory or with too many members.
long detect_member(struct detect *d, struct str name);
long detect_find(const struct detect *d, struct str name); // -1 if it is unknown
size_t detect_members(const struct detect *d);
struct str detect_name(const struct detect *d, size_t member);

// Gives a value for this round. A value that is not finite or not above 0 counts as missing; a
// second value replaces the first.
void detect_value(struct detect *d, size_t member, double value);

// Removes a member: it has no verdicts and does not count for its peers until it gives a value
// again.
void detect_leave(struct detect *d, size_t member);

// Ends the round and makes all verdicts. A round without any value does not count.
void detect_round(struct detect *d);

// The verdict of the last round.
const struct detect_verdict *detect_verdict_of(const struct detect *d, size_t member);

#endif
