// proved.h - connects to a server, and checks its proof that it knows the client's token
// (http/server_proof.h), before the client sends the token.
#ifndef SONDE_CLIENT_PROVED_H
#define SONDE_CLIENT_PROVED_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

// Connects, and blocks until deadline_ns (clock_monotonic_ns) at most. With `same_address`, the
// server must have the address that the client connects to; without it, a tunnel or proxy that the
// user has chosen may be in between. Returns the descriptor, or a negative errno with a message:
// -EACCES (the server does not know the token), -ECONNREFUSED, -ETIMEDOUT, …
int proved_connect(const struct sockaddr *address, socklen_t size, struct str token,
                   bool same_address, int64_t deadline_ns, struct error *e);

#endif
