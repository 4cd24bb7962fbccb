// forwarder.h - a node's end for HTTP clients: a Unix socket in the run folder that leads to the
// HTTP server of the job's first node.
//
//   client                       forwarder                                   hub of the first node
//     connect, request ────────▶  is it our own user?
//                                 HELLO, role client ──────────────────────▶
//                                          … handshake.h …
//                                 ◀──────────────────── WELCOME, or BYE "why not"
//     HTTP ◀──────────────────▶  forward.h ◀──────────────────────────────▶ HTTP
//     ◀── the refusal, if no connection is possible
//
// Every client has its own connection to the hub, so clients delay neither each other nor the
// node's answers. Clients send no token over the network: the run folder and the socket's
// credentials show that the client is our own user, who can read the key.
#ifndef SONDE_WIRE_FORWARDER_H
#define SONDE_WIRE_FORWARDER_H

#include "wire/handshake.h"
#include "wire/transport.h"

#define WIRE_FORWARDER_SOCKET "http.sock" // its name in the run folder

enum {
    // Maximum number of connections; further clients are refused with this reason. Each connection
    // has two windows: at most 4 MiB in all.
    WIRE_FORWARDER_CLIENTS_MAX = 32,
    WIRE_FORWARDER_TEXT_MAX = 512, // bytes of the reason for a refusal
    // a refused client has this long to read the reason and to close
    WIRE_FORWARDER_REFUSED_MS = 2000,
    // when the forwarder ends, clients with a request get this long for their responses
    WIRE_FORWARDER_LAST_MS = 1000,
};

struct wire_forwarder_options {
    struct wire_settings settings;          // its `questions` is not needed
    const struct wire_transport *transport; // NULL: wire_tcp
    const char *path;                       // path of the socket; an existing file is replaced
    struct str host;                        // our own name
    const char *hub_host;                   // host of the first node
    int hub_port;
    // Writes the refusal, in the client's protocol, for a client that gets no connection. Called in
    // the loop's thread.
    void (*refusal)(const char *why, struct buf *out);
};

struct wire_forwarder;

// All functions here may be called from any thread but the loop's. Returns 0, or -EADDRINUSE,
// -ENAMETOOLONG, … with a message.
int wire_forwarder_create(struct wire_loop *loop, const struct wire_forwarder_options *options,
                          struct wire_forwarder **out, struct error *e);
// Changes the hub's address for new connections. Returns 0 or -ENOMEM.
int wire_forwarder_set_hub(struct wire_forwarder *f, const char *host, int port);
// Removes the socket and accepts no further clients; then ends all connections as soon as no client
// waits for an answer. So a program on a node reads the answer to a request that ends this node
// (faces/native/reboot.c). NULL is allowed.
void wire_forwarder_destroy(struct wire_forwarder *f);

#endif
