// proved.h - a connection to a server that has proved that it knows our token
// (wire/server_proof.h), which has not been sent.
#ifndef SONDE_CLIENT_PROVED_H
#define SONDE_CLIENT_PROVED_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

// Connects, blocking until deadline_ns (clock_monotonic_ns) at most. With `same_address` the server
// has to be at the address that we connect to; without, something may stand between (a tunnel, a
// proxy) that the user has chosen. Returns the descriptor, or -EACCES: it does not know the token,
// -ECONNREFUSED, -ETIMEDOUT, …, in words.
int proved_connect(const struct sockaddr *address, socklen_t size, struct str token, bool same_address,
                   int64_t deadline_ns, struct error *e);

#endif
