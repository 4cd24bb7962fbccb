// listen.h - listening sockets: of the HTTP server on an address and the first free port, of the
// hub on any port.
//
// The launcher makes them and hands them to every aggregator that it starts: between two of them,
// and when there is none any more, the ports stay the job's. Another program that took them would
// be sent what clients say, the token included.
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

// `address` in digits or a name; `port` 0 = LISTEN_PORT_DEFAULT. Where the port is taken and not
// `exact`, the next ones are tried. With `loopback_only` any other address is refused before it is
// bound. -EADDRINUSE, -EACCES, -EINVAL…
int listen_on(const char *address, int port, bool exact, bool loopback_only, struct listener *out, struct error *e);

// For nodes to connect to, on `address` (a number; NULL: all of this machine's) and any free port.
int listen_for_nodes(const char *address, struct listener *out, struct error *e);

// One that was made before, and handed to us: what listen_on would say of it. -EINVAL: it does not
// listen.
int listen_take(int fd, struct listener *out, struct error *e);

// Nobody is to be answered there any more: connections are refused, but the port is given to nobody
// else.
void listen_refuse(int fd);

#endif
