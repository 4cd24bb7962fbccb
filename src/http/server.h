// server.h - the HTTP server: serves a site (routes.h) on a listening socket.
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

// Functions of the layer above for responses without an end (struct answer's `stream`).
struct server_streams {
    void *user;
    // Makes the response that sends `stream`, and takes over the stream. NULL: out of memory; the
    // stream is closed.
    struct MHD_Response *(*response)(void *user, struct stream *stream, struct MHD_Connection *http,
                                     struct connection *connection);
    void (*close)(struct stream *stream); // for a stream that was not taken over
};

// The objects behind the pointers must outlive the server.
struct server_options {
    int fd; // a listening socket; the server owns it after it has started
    const struct site *site;
    struct connections *connections;
    struct workers *workers; // at least `threads` workers
    struct server_streams streams;
    const struct line_protocol *lines; // NULL: the server speaks only HTTP
    const char *cert, *key;            // PEM: HTTPS; NULL: HTTP
    size_t header_bytes, answer_bytes; // limits
    unsigned connections_max;
    int64_t idle_timeout_ns, request_deadline_ns;
};

struct server;

// Returns the default number of threads that work at the same time.
unsigned server_processors(void);

// Checks that the HTTP library supports TLS. Returns 0, or -ENOTSUP.
int server_check_tls(struct error *e);

int server_start(const struct server_options *options, struct server **out, struct error *e);

// Takes over a connection that another part of the process has accepted: a non-blocking end of a
// pair of Unix sockets. Any thread may call it until server_destroy.
void server_take(struct server *s, int fd);

void server_stop_accepting(struct server *s);
// call it only after all workers have finished their requests
void server_destroy(struct server *s);

#endif
