// rounds.h - plays recorded samples to detect.h, and remembers when each member was slow.
//
//   samples (round, time, member, value), in any order ─▶ sorted ─▶ detect.h, round by round
//                                                                      └─▶ a record for each member
//
// A round is a bucket of time, or the number of a span among its member's. One thread owns it.
#ifndef SONDE_DETECT_ROUNDS_H
#define SONDE_DETECT_ROUNDS_H

#include "detect/detect.h"

enum {
    ROUNDS_SAMPLES_MAX = 20000000, // 640 MB of them
    ROUNDS_BRIDGED = 8,            // a pause of so many rounds does not end a member's slow time
};

struct rounds_sample {
    int64_t round;
    int64_t t_ns;
    size_t member; // of detect.h
    double value;
};

// What the rounds say of a member beside its last verdict.
struct rounds_record {
    bool bad;                   // now: slow, or silent with evidence
    bool was_silent;            // the last time that it was bad, it was silent
    int64_t since_ns, until_ns; // of that time
    unsigned rounds;            // in all of which it was bad
    // The greatest factor by which it was slow, and against whom; 0: it was never slow.
    double worst;
    int64_t slow_since_ns; // as since_ns, with short pauses bridged
    size_t slow_round;     // the last one in which it was slow
    bool worst_by_peers;   // else against its own past
    // Present rounds without a value: they count if it gives values again, or if there is evidence.
    unsigned missed;
    int64_t missed_since_ns, missed_until_ns;
};

struct rounds {
    struct detect *detect; // the caller's
    struct rounds_sample *samples;
    size_t count, capacity;
    struct rounds_record *records; // by member, once played
    size_t rounds;                 // that were played
};

// 0; -E2BIG: more than ROUNDS_SAMPLES_MAX; -ENOMEM.
int rounds_add(struct rounds *r, struct rounds_sample sample);

// Once, after all samples. Makes a record for each member of r->detect. 0 or -ENOMEM.
int rounds_play(struct rounds *r);

// There is evidence that the member should have given values in the rounds that it missed.
void rounds_count_missed(struct rounds_record *record);

void rounds_free(struct rounds *r);

#endif
