// exchange.h - sends text to an agent and reads its answer. It sends and receives at the same time,
// so the two sides never wait for each other.
#ifndef SONDE_BASE_EXCHANGE_H
#define SONDE_BASE_EXCHANGE_H

#include "base/error.h"
#include "base/str.h"

// Connects to the agent whose socket has this path (base/agent_address.h). Returns a descriptor or
// a negative errno; -ENAMETOOLONG if the path is too long for a socket.
int exchange_open(const char *path);

struct exchange {
    const char *who; // name of the peer in error messages, such as "the agent"
    struct str text; // the text to send…
    int more;        // …followed by the contents of this descriptor; -1: none
    // how long the peer may neither read nor write (then -ETIMEDOUT); waiting for `more` has no
    // timeout
    int patience_ms;
    int64_t until_ns;   // deadline for the whole exchange (clock_monotonic_ns); 0: none
    struct buf *answer; // gets the answer; drops bytes past its limit
};

// Returns 0 if the peer has received everything and then closed the connection, -EPIPE if it has
// closed it earlier, or another negative errno. The caller still owns `fd`.
int exchange_run(int fd, const struct exchange *x, struct error *e);

#endif
