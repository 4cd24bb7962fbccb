// respond.h - a response: a status, a body that handlers write with the JSON writer, and a few
// headers.
//
// A handler fills a struct answer and knows nothing of sockets. Errors have OpenTSDB's form:
// {"error":{"code":…,"message":…}}.
#ifndef SONDE_HTTP_RESPOND_H
#define SONDE_HTTP_RESPOND_H

#include "base/json_writer.h"
#include "http/request.h"

enum {
    ANSWER_HEADERS_MAX = 8,
    ANSWER_GZIP_FROM_BYTES = 64 * 1024, // compressing smaller bodies gains nothing
    JSONP_NAME_MAX = 128,
};

struct stream;

struct answer_header {
    const char *name;
    char *value; // in the request's arena
};

struct answer {
    int status; // 200, …
    struct buf body;
    const char *content_type;
    struct answer_header headers[ANSWER_HEADERS_MAX];
    size_t header_count;
    const char *policy; // Content-Security-Policy; NULL: the page may neither load nor run anything
    const char *cache;  // Cache-Control; NULL: no-store
    bool jsonp;         // a script for pages of other servers (answer_finish)
    // instead of a body: data that is sent as it arrives. The answer owns it until the server takes
    // it
    struct stream *stream;
};

// Appends a text to an HTML page, with < > & " ' escaped.
void answer_add_html(struct buf *out, const char *text);

void answer_begin(struct answer *a, size_t limit_bytes);
void answer_free(struct answer *a);

// Adds a header. `value` must live as long as the answer. NULL (after a failed allocation): no
// header is added.
void answer_header(struct answer *a, const char *name, char *value);

// Discards the body and writes the error instead. `details` may be NULL.
void answer_error(struct answer *a, int status, const char *message, const char *details);

// Does the same for the error of a function: -EINVAL and -ENOENT become 400, -E2BIG 413, -ETIMEDOUT
// 408, -EBUSY and -ECANCELED 503, any other error 500.
void answer_failure(struct answer *a, const struct error *e);

// Finishes an answer: replaces an answer above its limit by a 413, wraps it for ?jsonp=, and
// compresses a large one if the client accepts gzip.
void answer_finish(struct answer *a, const struct request *r);

#endif
