// http.h - sends requests to a job (or to a `sonde replay`) over HTTP: one connection, which is
// kept open, and one request at a time. Based on libcurl; without it (-Dhttp_client=disabled), no
// client can be created (-ENOTSUP).
//
// target.h chooses the job. The client uses the first of these tokens that exists:
//   the caller's, or the ?token=… of the address
//   SONDE_TOKEN_FILE, if the address is SONDE_URL     set by `sonde run` for its command
//   the token of the running job on this machine that has the address (launch/job.h)
// The client sends a token only to the address that it belongs to, and follows no redirections and
// no proxies. It sends the token only after the server has proved on the same connection that it
// knows the token (proved.h), or has shown its certificate (HTTPS).
//
// If a job's server listens on loopback, clients on the other nodes connect to the socket in its
// run folder (forwarded.h). They send no token there.
//
// For https://, the client trusts the certificates of the first of these sources that exists: the
// file SONDE_CA, the certificate that job.json names for a job on this machine, the file
// CURL_CA_BUNDLE, the system's certificates.
//
// Not thread-safe: use one client per thread. After fork(), the child's first request opens a
// connection of its own. The client prints nothing. A response other than 2xx is an error with the
// server's message.
#ifndef SONDE_CLIENT_HTTP_H
#define SONDE_CLIENT_HTTP_H

#include "base/error.h"
#include "base/str.h"

#include <stdatomic.h>

enum {
    HTTP_TIMEOUT_DEFAULT_MS = 60000,
    HTTP_CONNECT_TIMEOUT_MS = 10000, // limit of the whole connection setup
    // a stream without data for this long is broken: sonde's servers send something every 10 s
    HTTP_SILENCE_MS = 60000,
    HTTP_ANSWER_MAX = 1 << 30, // bytes; a longer answer fails with -EFBIG
    HTTP_LOOK_MS = 50,         // interval of checks of `cancel`
};

struct http_client;

struct http_answer {
    int status;      // 200 …
    struct buf body; // owned by the answer
    char type[128];  // Content-Type
    char *missing;   // X-Sonde-Missing, owned; NULL: no node was missing
};

// Creates a client. `url` NULL: SONDE_URL. `token` may be NULL (found as above). Does not connect
// yet.
int http_client_create(const char *url, const char *token, struct http_client **out,
                       struct error *e);
// Creates a client for a job that runs on this machine: uses its address, and the token in its run
// folder unless the caller passes one.
struct job;
int http_client_create_for(const struct job *job, const char *token, struct http_client **out,
                           struct error *e);
// Creates another client of the same server.
int http_client_create_like(const struct http_client *other, struct http_client **out,
                            struct error *e);
void http_client_destroy(struct http_client *c);          // NULL is allowed
const char *http_client_url(const struct http_client *c); // without the token

// Sets a callback that is called in the same thread whenever `cancel` is checked. If it returns
// true, the request is cancelled. NULL: no callback.
void http_client_on_look(struct http_client *c, bool (*stop)(void *user), void *user);

// Sends a request. `path` begins with '/' and includes the query string. If `body` has data NULL,
// the method is GET, else POST with the content type `type`. timeout_ms 0: the default. `cancel`
// (may be NULL) is checked every HTTP_LOOK_MS. Returns 0, -ECANCELED, -ECONNREFUSED or
// -EHOSTUNREACH (no server), -ETIMEDOUT, -ECONNRESET (the connection was lost during the response),
// -EKEYREJECTED (an untrusted certificate), or an error for a status: 401 and 403 give -EACCES, 400
// -EINVAL, 404 -ENOENT, 408 -ETIME, 413 -EFBIG, 503 -EBUSY, all others -EPROTO. After a failure,
// *out is empty except for `status`.
int http_ask(struct http_client *c, const char *path, struct str body, const char *type,
             int timeout_ms, const atomic_bool *cancel, struct http_answer *out, struct error *e);
void http_answer_free(struct http_answer *a);

// Converts a response other than 2xx to an error, as http_ask does. If the response has no message,
// the error names `who`. Returns the code.
int http_refused(const struct http_answer *a, const char *who, struct error *e);

// A stream: a response without an end. Between two calls of http_stream_next, new data wait in the
// kernel's buffers, and no thread runs.
struct http_stream;

// Opens a stream. Takes over `c`, also on failure. Does not wait for the server.
int http_stream_open(struct http_client *c, const char *path, struct http_stream **out,
                     struct error *e);
// NULL is allowed. In a child after fork(), this leaves the parent's connection open.
void http_stream_close(struct http_stream *s);

// Appends received data, at least one byte, to *out and returns 0. Returns -EAGAIN, without a
// message, if no data arrive within timeout_ms; -ECANCELED; or another error, as http_ask does,
// which ends the stream. -ECONNRESET: the server has ended it.
int http_stream_next(struct http_stream *s, int timeout_ms, struct buf *out, struct error *e);

#endif
