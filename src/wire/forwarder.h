// forwarder.h - a node's end for HTTP clients: a Unix socket in the run folder that leads to the
// HTTP server of the job's first node.
//
//   client                       forwarder                                   hub of the first node
//     connect, request ────────▶  is it our own user?
//                                 HELLO, role client ──────────────────────▶
//                                          … handshake.h …
//                                 ◀──────────────────── WELCOME, or BYE "why not"
//     HTTP ◀──────────────────▶  forward.h ◀──────────────────────────────▶ HTTP
//     ◀── the refusal, where there is no connection
//
// Every client has a connection to the hub of its own, so clients do not delay each other or the
// node's answers. They send no token: the run folder and the socket's credentials show that the
// client is our own user, who can read the key. So no token travels over the network.
#ifndef SONDE_WIRE_FORWARDER_H
#define SONDE_WIRE_FORWARDER_H

#include "wire/handshake.h"
#include "wire/transport.h"

#define WIRE_FORWARDER_SOCKET "http.sock" // its name in the run folder

enum {
    // Connections at a time; further ones are refused with this reason. Two windows each: at most 4
    // MiB.
    WIRE_FORWARDER_CLIENTS_MAX = 32,
    WIRE_FORWARDER_TEXT_MAX = 512, // bytes of the reason for a refusal
    // a refused client has this long to read the reason and to close
    WIRE_FORWARDER_REFUSED_MS = 2000,
    // at the end, clients with a request get this long for their answers
    WIRE_FORWARDER_LAST_MS = 1000,
};

struct wire_forwarder_options {
    struct wire_settings settings;          // `questions` is not needed
    const struct wire_transport *transport; // NULL: wire_tcp
    const char *path;                       // of the socket; replaces an existing one
    struct str host;                        // our own name
    const char *hub_host;                   // of the first node
    int hub_port;
    // Writes the refusal for a client without a connection, in the client's protocol. In the loop's
    // thread.
    void (*refusal)(const char *why, struct buf *out);
};

struct wire_forwarder;

// Callable from any thread but the loop's, like all functions here. Returns -EADDRINUSE,
// -ENAMETOOLONG, … with words.
int wire_forwarder_create(struct wire_loop *loop, const struct wire_forwarder_options *options,
                          struct wire_forwarder **out, struct error *e);
// Sets the hub's address from now on. Returns -ENOMEM on failure.
int wire_forwarder_set_hub(struct wire_forwarder *f, const char *host, int port);
// Removes the socket and accepts no further clients; then ends all connections as soon as no client
// waits for an answer. So a program on a node reads the answer to a request that ends this node
// (faces/native/reboot.c). NULL is allowed.
void wire_forwarder_destroy(struct wire_forwarder *f);

#endif
