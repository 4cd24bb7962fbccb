// acceptor.h - who knocks: HTTP clients are handed on by their first byte, telnet clients are served here.
//
//   listening socket ── accept ── first byte ── a capital letter, or anything else that is no small letter ── `give` (the HTTP library)
//                                          └── a small letter ── telnet.c ── the agent's socket
//
// Over TLS, and where no agent takes points, there is no telnet: each is handed on at once. The library never listens by itself: told to stop that, it aborts
// the process once in some hundred times when requests come in just then: its threads and its caller both take
// the socket out of an epoll (seen with 0.9.75; in newer ones, too).
//
// Connections for which the table has no place wait here (connections.h). The oldest one that has sent something gets the next
// place; a silent connection takes none.
//
// One thread, which waits for all of them at once. Connections that it keeps are in the table of connections (connections.h) from the start, so its limits and
// time-outs hold for those that say nothing, too; those that it hands on enter it when the library takes them.
#ifndef SONDE_HTTP_ACCEPTOR_H
#define SONDE_HTTP_ACCEPTOR_H

#include "http/routes.h"

#include <sys/socket.h>

typedef void acceptor_give_fn(void *user, int fd, const struct sockaddr *address, socklen_t size);

struct acceptor;

// `listening` stays the caller's. `give` takes the descriptor over.
int acceptor_create(int listening, struct service *service, acceptor_give_fn *give, void *user, struct acceptor **out,
                    struct error *e);
void acceptor_destroy(struct acceptor *a); // closes all that it still has

#endif
