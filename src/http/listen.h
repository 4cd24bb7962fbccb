// listen.h - listening sockets: of the HTTP server on an address and the first free port, of the
// hub on any port.
//
// The launcher makes these sockets and hands them to every aggregator that it starts. So the ports
// stay the job's between two aggregators, and after the last one. Clients would send another
// program that took a port their requests, and the token with them.
#ifndef SONDE_HTTP_LISTEN_H
#define SONDE_HTTP_LISTEN_H

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
int listen_on(const char *address, int port, bool exact, bool loopback_only, struct listener *out,
              struct error *e);

// For nodes to connect to, on `address` (a number; NULL: all of this machine's) and any free port.
int listen_for_nodes(const char *address, struct listener *out, struct error *e);

// Describes a socket that another process has made and passed, as listen_on would. -EINVAL: it does
// not listen.
int listen_take(int fd, struct listener *out, struct error *e);

// No server will accept connections there any more: refuses them, but keeps the port from other
// programs.
void listen_refuse(int fd);

#endif
