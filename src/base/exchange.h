// exchange.h - sends text to an agent and reads its answer. Serves both directions at once, so that
// the two sides never wait for each other.
#ifndef SONDE_BASE_EXCHANGE_H
#define SONDE_BASE_EXCHANGE_H

#include "base/error.h"
#include "base/str.h"

// Connects to the agent whose socket has this path (base/agent_address.h). Returns the stream or a
// negative errno; -ENAMETOOLONG if no socket can have that path.
int exchange_open(const char *path);

struct exchange {
    const char *who; // "the agent": the peer's name in error messages
    struct str text; // the text to send…
    int more;        // …followed by the contents of this descriptor; -1: nothing
    // how long the peer may neither read nor write (then -ETIMEDOUT); waiting for `more` has no
    // timeout
    int patience_ms;
    int64_t until_ns;   // a deadline for the whole exchange (clock_monotonic_ns); 0: none
    struct buf *answer; // gets the answer; drops bytes past its limit
};

// Returns 0 if the peer has received everything and then closed the connection; -EPIPE if it closed
// earlier. Otherwise a negative errno; `fd` stays the caller's.
int exchange_run(int fd, const struct exchange *x, struct error *e);

#endif
