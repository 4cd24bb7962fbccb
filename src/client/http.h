// http.h - asking a job (or a `sonde replay`) over HTTP: one connection that is kept, one request
// at a time. Stands on libcurl.
//
// Which job is meant is the business of target.h. The client finds the token of an address, the
// first of these that there is:
//   the caller's, or the ?token=… of the address
//   SONDE_TOKEN_FILE, if the address is SONDE_URL     what `sonde run` gives to its command
//   that of the running job on this machine that has the address (launch/job.h)
// The client sends a token only to the address that it belongs to, and follows no redirections and
// no proxies. It sends the token only after the server has proved on the same connection that it
// knows the token (proved.h), or has shown its certificate (HTTPS).
//
// A job whose server listens on loopback is asked through the socket in its run folder
// (forwarded.h) on every node but the first. The client sends no token there.
//
// https:// is checked against the certificates that the system trusts, or those in the file
// SONDE_CA , else the certificate that job.json names for a job on this machine, else those in
// CURL_CA_BUNDLE.
//
// Not thread-safe: one client a thread. After fork() the child's first question opens a connection
// of its own. Nothing is printed. Answers other than 2xx are errors whose text is the server's
// message.
#ifndef SONDE_CLIENT_HTTP_H
#define SONDE_CLIENT_HTTP_H

#include "base/error.h"
#include "base/str.h"

#include <stdatomic.h>

enum {
    HTTP_TIMEOUT_DEFAULT_MS = 60000,
    HTTP_CONNECT_TIMEOUT_MS = 10000, // at most, of the whole
    // a stream that says nothing for so long is broken: sondes say something every 10 s
    HTTP_SILENCE_MS = 60000,
    HTTP_ANSWER_MAX = 1 << 30, // bytes; a longer answer is -EFBIG
    HTTP_LOOK_MS = 50,         // between two looks at `cancel`
};

struct http_client;

struct http_answer {
    int status;      // 200 …
    struct buf body; // owned by the answer
    char type[128];  // Content-Type
    char *missing;   // X-Sonde-Missing, owned; NULL: nobody was missing
};

// `url` NULL: SONDE_URL. `token` may be NULL (found as above). Does not connect yet.
int http_client_create(const char *url, const char *token, struct http_client **out,
                       struct error *e);
// For a job that runs on this machine: its address, and the token in its run folder unless `token`
// is one.
struct job;
int http_client_create_for(const struct job *job, const char *token, struct http_client **out,
                           struct error *e);
// One more connection to the same place.
int http_client_create_like(const struct http_client *other, struct http_client **out,
                            struct error *e);
void http_client_destroy(struct http_client *c);          // NULL is allowed
const char *http_client_url(const struct http_client *c); // without the token

// `stop` is asked wherever `cancel` is looked at, in the same thread: true cancels. NULL: nobody is
// asked.
void http_client_on_look(struct http_client *c, bool (*stop)(void *user), void *user);

// `path` begins with '/', query included; `body` with data NULL: GET, else POST with `type`.
// timeout_ms 0: the default. `cancel` (may be NULL) is looked at every HTTP_LOOK_MS: -ECANCELED.
// Nobody there: -ECONNREFUSED, -EHOSTUNREACH; too late: -ETIMEDOUT; the connection ended in the
// middle of the answer: -ECONNRESET; a certificate that is not trusted: -EKEYREJECTED. Of answers:
// 401, 403 -EACCES; 400 -EINVAL; 404 -ENOENT; 408 -ETIME; 413 -EFBIG; 503 -EBUSY; all others
// -EPROTO. On failure *out is empty but for `status`.
int http_ask(struct http_client *c, const char *path, struct str body, const char *type,
             int timeout_ms, const atomic_bool *cancel, struct http_answer *out, struct error *e);
void http_answer_free(struct http_answer *a);

// What an answer other than 2xx says, as http_ask has it. `who` is named where it says nothing.
// Returns the code.
int http_refused(const struct http_answer *a, const char *who, struct error *e);

// A stream: an answer that goes on. Between two calls of http_stream_next what comes waits in the
// system's buffers, and nothing runs.
struct http_stream;

// Takes over `c`, also when it fails. Does not wait for the server.
int http_stream_open(struct http_client *c, const char *path, struct http_stream **out,
                     struct error *e);
void http_stream_close(
    // NULL is allowed; in a child after fork() it leaves the parent's connection alone
    struct http_stream *s);

// Adds what has come to *out, a byte at least: 0. -EAGAIN, without words: nothing has, for
// timeout_ms. -ECANCELED. Anything else, as of http_ask, is its end; -ECONNRESET: the server has
// ended it.
int http_stream_next(struct http_stream *s, int timeout_ms, struct buf *out, struct error *e);

#endif
