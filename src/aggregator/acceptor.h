// acceptor.h - who knocks: HTTP clients are handed on by their first byte, telnet clients are served here.
//
//   listening socket ── accept ── first byte ── a capital letter, or anything else that is no small letter ── `give` (the HTTP library)
//                                          └── a small letter ── telnet.c ── the agent's socket
//
// One thread, which waits for all of them at once. Connections are in the table of connections (connections.h) from the start, so its limits and
// time-outs hold for those that say nothing, too.
#ifndef SONDE_AGGREGATOR_ACCEPTOR_H
#define SONDE_AGGREGATOR_ACCEPTOR_H

#include "aggregator/routes.h"

#include <sys/socket.h>

typedef void acceptor_give_fn(void *user, int fd, const struct sockaddr *address, socklen_t size);

struct acceptor;

// `listening` stays the caller's. `give` takes the descriptor over.
int acceptor_create(int listening, struct service *service, acceptor_give_fn *give, void *user, struct acceptor **out,
                    struct error *e);
void acceptor_destroy(struct acceptor *a); // closes all that it still has

#endif
