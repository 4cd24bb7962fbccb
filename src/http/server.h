// server.h - the HTTP server: serves a site (routes.h) on a socket that listens.
#ifndef SONDE_HTTP_SERVER_H
#define SONDE_HTTP_SERVER_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct MHD_Connection;
struct MHD_Response;
struct connection;
struct connections;
struct line_protocol;
struct site;
struct stream;
struct workers;

// What answers that never end need of the layer above (struct answer's `stream`).
struct server_streams {
    void *user;
    // The response that sends `stream`; takes the stream over. NULL: no memory, the stream is
    // closed.
    struct MHD_Response *(*response)(void *user, struct stream *stream, struct MHD_Connection *http,
                                     struct connection *connection);
    void (*close)(struct stream *stream); // one that was not taken over
};

// What pointers lead to outlives the server.
struct server_options {
    int fd; // listens; the server's once it has started
    const struct site *site;
    struct connections *connections;
    struct workers *workers; // of `threads` and more
    struct server_streams streams;
    const struct line_protocol *lines; // NULL: only HTTP is spoken
    const char *cert, *key;            // PEM: HTTPS; NULL: HTTP
    size_t header_bytes, answer_bytes; // limits
    unsigned connections_max;
    int64_t idle_timeout_ns, request_deadline_ns;
};

struct server;

// As many threads as should work at a time.
unsigned server_processors(void);

// -ENOTSUP: the HTTP library cannot speak TLS.
int server_check_tls(struct error *e);

int server_start(const struct server_options *options, struct server **out, struct error *e);

// Takes over a connection that another part of the process has accepted: one end of a pair of Unix
// sockets, which does not block. From any thread, until server_destroy.
void server_take(struct server *s, int fd);

void server_stop_accepting(struct server *s);
void server_destroy(struct server *s); // no request may be with the workers any more

#endif
