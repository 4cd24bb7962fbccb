// acceptor.h - accepts connections. The first byte shows the protocol: the acceptor passes HTTP
// clients to the HTTP library, and serves clients of a line protocol itself.
//
//   listening socket ── accept ── first byte ── no small letter ── `give` (the HTTP library)
//                                          └── a small letter ── line_protocol.h ── its socket
//
// Without a line protocol, it passes every connection on at once. The library itself never listens,
// because of a defect: if it stops listening while requests arrive, it aborts the process about
// once in a hundred times. Its threads and its caller both remove the socket from an epoll (seen
// with 0.9.75; newer versions have the defect, too).
//
// Connections that have no place in the table (connections.h) wait in the acceptor. The oldest one
// that has sent something gets the next place; a silent connection gets none.
//
// One thread waits for all connections at once. Connections that the acceptor serves itself are in
// the table from the start, so the table's limits and timeouts also apply to silent ones. The other
// connections enter the table when the library takes them over.
#ifndef SONDE_HTTP_ACCEPTOR_H
#define SONDE_HTTP_ACCEPTOR_H

#include "http/connections.h"
#include "http/line_protocol.h"

#include <sys/socket.h>

typedef void acceptor_give_fn(void *user, int fd, const struct sockaddr *address, socklen_t size);

struct acceptor;

// The objects behind the pointers must outlive the acceptor. The caller still owns `listening`.
struct acceptor_options {
    int listening;
    struct connections *connections;
    unsigned connections_max;          // places in the table
    int64_t idle_timeout_ns;           // timeout of connections that wait for a place
    const struct line_protocol *lines; // NULL: each connection is passed on at once
    acceptor_give_fn *give;            // takes over the descriptor
    void *user;
};
int acceptor_create(const struct acceptor_options *options, struct acceptor **out, struct error *e);
void acceptor_destroy(struct acceptor *a); // closes all connections that the acceptor still has

#endif
