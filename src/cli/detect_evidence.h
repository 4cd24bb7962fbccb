// detect_evidence.h - why a member of `sonde detect` gives no more values: it hangs, or it has
// ended.
//
// That values stop proves nothing: the first member that is through gives none either. A member is silent only
// where something shows that it should have gone on:
//
//   a span of it is open                      it is still in there
//   nothing at all comes of its node          the node is lost
//   the metric is one that the node measures  measuring does not end with a program
//   it gave fewer values than every member    the others have done more; a member that is through has done as much. That
//   that goes on                              says nothing of values that come by the clock (samples of cells lie on a
//                                             grid, and go on as long as the process lives)
//
// Otherwise it has ended.
#ifndef SONDE_CLI_DETECT_EVIDENCE_H
#define SONDE_CLI_DETECT_EVIDENCE_H

#include "cli/recordings.h"
#include "detect/detect.h"

enum { EVIDENCE_TEXT_MAX = 256 };

struct evidence {
    uint64_t values; // as they were recorded, or spans; 0: not known
    int64_t last_ns; // of the last of them
    bool should_go_on;
    char text[EVIDENCE_TEXT_MAX]; // for people
};

struct evidence_question {
    const struct recordings *recordings;
    const struct detect *detect;
    struct str metric; // or the name of a span
    bool spans;
    int64_t start_ns, end_ns;
    int64_t patience_ns; // a node of which nothing came for so long, while others went on, is lost
    // The number of the member that a series or span belongs to, -1: none.
    long (*member_of)(void *user, const struct store_label *labels, size_t count);
    void *user;
};

// Fills in an entry for every member; those whose state is not silent have no text. 0 or -ENOMEM.
int evidence_gather(const struct evidence_question *q, struct evidence *out);

#endif
