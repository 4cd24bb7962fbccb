// acceptor.h - accepts connections. It passes HTTP clients on, by their first byte, and serves
// clients of a line protocol itself.
//
//   listening socket ── accept ── first byte ── no small letter ── `give` (the HTTP library)
//                                          └── a small letter ── line_protocol.h ── its socket
//
// Without a line protocol, it passes every connection on at once. The library itself never listens:
// if it is told to stop listening, it aborts the process about once in a hundred times when
// requests arrive at that moment, because its threads and its caller both remove the socket from an
// epoll (seen with 0.9.75; newer versions have it, too).
//
// Connections without a place in the table (connections.h) wait here. The oldest one that has sent
// something gets the next place; a silent connection gets none.
//
// One thread waits for all of them at once. Connections that the acceptor keeps are in the table
// (connections.h) from the start, so its limits and timeouts hold for silent ones, too; the others
// enter the table when the library takes them.
#ifndef SONDE_HTTP_ACCEPTOR_H
#define SONDE_HTTP_ACCEPTOR_H

#include "http/connections.h"
#include "http/line_protocol.h"

#include <sys/socket.h>

typedef void acceptor_give_fn(void *user, int fd, const struct sockaddr *address, socklen_t size);

struct acceptor;

// The objects behind the pointers must outlive the acceptor. The caller keeps `listening`.
struct acceptor_options {
    int listening;
    struct connections *connections;
    unsigned connections_max;          // in the table
    int64_t idle_timeout_ns;           // of connections that wait for a place
    const struct line_protocol *lines; // NULL: each connection is passed on at once
    acceptor_give_fn *give;            // takes over the descriptor
    void *user;
};
int acceptor_create(const struct acceptor_options *options, struct acceptor **out, struct error *e);
void acceptor_destroy(struct acceptor *a); // closes all connections that it still has

#endif
