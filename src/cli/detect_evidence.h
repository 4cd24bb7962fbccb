// detect_evidence.h - finds out why a member in `sonde detect` has no more values: it hangs, or it
// has ended.
//
// The end of values alone proves nothing, because a member that finishes first stops, too. A member
// is silent only if the recording proves that it should have gone on:
//
//   one of its spans is open                  it has not left the span
//   its node sends no points at all           the node is lost
//   the node itself measures the metric       no program can have ended it
//   it has fewer values than every member     the others have done more; if it had finished, it
//   that continues                            would have as many. This does not hold for samples
//                                             by the clock (cells) of a live process
//
// Otherwise the member has ended.
#ifndef SONDE_CLI_DETECT_EVIDENCE_H
#define SONDE_CLI_DETECT_EVIDENCE_H

#include "cli/data_request.h"
#include "detect/detect.h"

enum { EVIDENCE_TEXT_MAX = 256 };

struct evidence {
    uint64_t values; // number of recorded values or spans; 0: unknown
    int64_t last_ns; // time of the last value
    bool should_go_on;
    char text[EVIDENCE_TEXT_MAX]; // the evidence, for users
};

struct evidence_question {
    struct data_request *asking;
    const struct detect *detect;
    struct str metric; // or the name of a span
    bool spans;
    struct data_range range;
    int64_t patience_ns; // if a node has sent nothing for this time while others have, it is lost
    // The number of the member that a series or span belongs to; -1: none.
    long (*member_of)(void *user, const struct store_label *labels, size_t count);
    void *user;
};

// Fills in an entry for every member; `text` is empty unless its state is silent. Returns 0,
// -ENOMEM, or the error of the request.
int evidence_gather(const struct evidence_question *q, struct evidence *out, struct error *e);

#endif
