// listen.h - a listening socket on an address and the first free port.
#ifndef SONDE_AGGREGATOR_LISTEN_H
#define SONDE_AGGREGATOR_LISTEN_H

#include "base/error.h"

#include <stdbool.h>

enum { LISTEN_PORT_DEFAULT = 4242, LISTEN_PORT_TRIES = 100 };

struct listener {
    int fd;
    int port;
    bool loopback; // reachable from this machine only
};

// `address` in digits or a name; `port` 0 = LISTEN_PORT_DEFAULT. Where the port is taken and not `exact`, the next ones are tried.
// With `loopback_only` any other address is refused before it is bound. -EADDRINUSE, -EACCES, -EINVAL…
int listen_on(const char *address, int port, bool exact, bool loopback_only, struct listener *out, struct error *e);

#endif
