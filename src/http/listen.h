// listen.h - listening sockets: for the HTTP server on an address and the first free port, for the
// hub on any port.
//
// The launcher makes these sockets and passes them to every aggregator that it starts. So the ports
// belong to the job even between two aggregators, and after the last one has ended. Otherwise
// another program could take such a port, and clients would send it their requests with the token.
#ifndef SONDE_HTTP_LISTEN_H
#define SONDE_HTTP_LISTEN_H

#include "base/error.h"

#include <stdbool.h>

enum { LISTEN_PORT_DEFAULT = 4242, LISTEN_PORT_TRIES = 100 };

struct listener {
    int fd;
    int port;
    bool loopback; // only this machine can reach it
};

// Listens on `address`, a numeric address or a name. `port` 0 = LISTEN_PORT_DEFAULT. If the port is
// taken and `exact` is false, it tries the following ports. With `loopback_only`, it refuses any
// other address before binding it. Returns 0, or -EADDRINUSE, -EACCES, -EINVAL…
int listen_on(const char *address, int port, bool exact, bool loopback_only, struct listener *out,
              struct error *e);

// Listens for nodes on a numeric `address` (NULL: all addresses of this machine) and any free port.
int listen_for_nodes(const char *address, struct listener *out, struct error *e);

// Describes a socket that another process has made and passed to this one. Returns 0, or -EINVAL if
// the socket does not listen.
int listen_take(int fd, struct listener *out, struct error *e);

// Refuses connections on a port without a server, and keeps the port from other programs.
void listen_refuse(int fd);

#endif
