// exchange.h - text to an agent, and what it answers. Both directions are served, or both sides might wait for each other.
#ifndef SONDE_BASE_EXCHANGE_H
#define SONDE_BASE_EXCHANGE_H

#include "base/error.h"
#include "base/str.h"

// A stream that is connected to the agent whose socket has this path (base/agent_address.h), or a negative errno.
// -ENAMETOOLONG: no socket can have that path.
int exchange_open(const char *path);

struct exchange {
    const char *who; // "the agent": for the words of failures
    struct str text; // what is sent…
    int more;        // …and after it what comes from this descriptor, to its end; -1: nothing
    int patience_ms; // the other side neither takes nor says anything for so long: -ETIMEDOUT. For `more` nobody is in a hurry
    int64_t until_ns;   // the same at this instant (clock_monotonic_ns), however far it is; 0: no such instant
    struct buf *answer; // gets all that is said; what is past its limit is dropped
};

// 0 when all was taken and the other side has hung up then. -EPIPE: it hung up before. Otherwise a negative errno; `fd` stays the caller's.
int exchange_run(int fd, const struct exchange *x, struct error *e);

#endif
