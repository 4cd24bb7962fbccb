// hub_clients.h - connects HTTP clients on other nodes to the hub's HTTP server.
//
// A program on another node cannot reach a server that listens on loopback. The node's relay
// accepts the program's connection (forwarder.h), and opens a session with the role
// WIRE_ROLE_CLIENT. When the session has proved that it knows the key, the hub gives the server one
// end of a pair of sockets, and forwards the bytes (forward.h).
#ifndef SONDE_WIRE_HUB_CLIENTS_H
#define SONDE_WIRE_HUB_CLIENTS_H

#include "base/list.h"
#include "wire/session.h"

// As many connections as the HTTP server accepts by default; it closes idle ones to make room. Each
// connection has two windows: at most 32 MiB in all.
enum { HUB_CLIENTS_MAX = 256 };

// Takes over `fd`, which is non-blocking. Called in the loop's thread, so it must not block.
typedef void hub_client_fn(void *user, int fd);

// Belongs to the loop's thread.
struct hub_clients {
    struct wire_loop *loop;
    const struct wire_settings *settings;
    hub_client_fn *take; // NULL: no server
    void *user;
    struct list_link forwards;
    unsigned count;
    uint64_t taken, refused;
};

void hub_clients_init(struct hub_clients *c, struct wire_loop *loop,
                      const struct wire_settings *settings);

// Takes over the session of a client that has proved the key, welcomes the client, and returns
// NULL. On failure returns the reason, and the caller keeps the session.
const char *hub_clients_add(struct hub_clients *c, struct wire_session *session);

// Ends all connections.
void hub_clients_stop(struct hub_clients *c, const char *why);

#endif
