// rounds.h - feeds recorded samples to detect.h, and records when each member was slow.
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
    ROUNDS_BRIDGED = 8, // pauses of at most so many rounds do not end a member's slow time
};

struct rounds_sample {
    int64_t round;
    int64_t t_ns;
    size_t member; // number of the member in detect.h
    double value;
};

// The history of a member in addition to its last verdict.
struct rounds_record {
    bool bad;                   // now: slow, or silent with evidence
    bool was_silent;            // in its last bad period it was silent
    int64_t since_ns, until_ns; // of that period
    unsigned rounds;            // total number of bad rounds
    // The largest factor of its slowness; 0: it was never slow.
    double worst;
    int64_t slow_since_ns; // like since_ns, with short pauses bridged
    size_t slow_round;     // the last round in which it was slow
    bool worst_by_peers;   // relative to its peers; otherwise to its own past
    // Consecutive rounds without a value. They count once the member gives values again, or with
    // evidence that it should have given them.
    unsigned missed;
    int64_t missed_since_ns, missed_until_ns;
};

struct rounds {
    struct detect *detect; // owned by the caller
    struct rounds_sample *samples;
    size_t count, capacity;
    struct rounds_record *records; // by member, after rounds_play
    size_t rounds;                 // number of played rounds
};

// Returns 0, -E2BIG past ROUNDS_SAMPLES_MAX, or -ENOMEM.
int rounds_add(struct rounds *r, struct rounds_sample sample);

// Makes a record for each member of r->detect. Call it once, after all samples. Returns 0 or
// -ENOMEM.
int rounds_play(struct rounds *r);

// Counts the missed rounds of a member, because evidence shows that it should have given values in
// them.
void rounds_count_missed(struct rounds_record *record);

void rounds_free(struct rounds *r);

#endif
