// acceptor.h - who knocks: HTTP clients are handed on by their first byte, clients of a line
// protocol are served here.
//
//   listening socket ── accept ── first byte ── a capital letter, or anything else that is no small letter ── `give` (the HTTP library)
//                                          └── a small letter ── line_protocol.h ── its socket
//
// Without a line protocol each is handed on at once. The library never listens by itself: told to
// stop that, it aborts the process once in some hundred times when requests come in just then: its
// threads and its caller both take the socket out of an epoll (seen with 0.9.75; in newer ones,
// too).
//
// Connections for which the table has no place wait here (connections.h). The oldest one that has
// sent something gets the next place; a silent connection takes none.
//
// One thread, which waits for all of them at once. Connections that it keeps are in the table of
// connections (connections.h) from the start, so its limits and time-outs hold for those that say
// nothing, too; those that it hands on enter it when the library takes them.
#ifndef SONDE_HTTP_ACCEPTOR_H
#define SONDE_HTTP_ACCEPTOR_H

#include "http/connections.h"
#include "http/line_protocol.h"

#include <sys/socket.h>

typedef void acceptor_give_fn(void *user, int fd, const struct sockaddr *address, socklen_t size);

struct acceptor;

// What pointers lead to outlives the acceptor; `listening` stays the caller's.
struct acceptor_options {
    int listening;
    struct connections *connections;
    unsigned connections_max;          // in the table
    int64_t idle_timeout_ns;           // of connections that wait for a place in it
    const struct line_protocol *lines; // NULL: each connection is handed on at once
    acceptor_give_fn *give;            // takes the descriptor over
    void *user;
};
int acceptor_create(const struct acceptor_options *options, struct acceptor **out, struct error *e);
void acceptor_destroy(struct acceptor *a); // closes all that it still has

#endif
