// request.h - an HTTP request, taken apart, without the library that received it.
//
// Handlers see nothing else: they can be tested without a socket. All of it lives in the request's
// own arena. What came from outside is bounded: parameters by REQUEST_PARAMETERS_MAX, the body by
// the server's limit, also while it is inflated.
#ifndef SONDE_HTTP_REQUEST_H
#define SONDE_HTTP_REQUEST_H

#include "base/arena.h"
#include "base/error.h"
#include "http/peer.h"
#include "http/tokens.h"

#include <stdbool.h>

enum { REQUEST_PARAMETERS_MAX = 1024 };

// Bits, so that a route can name several.
enum request_method {
    METHOD_GET = 1,
    METHOD_HEAD = 2,
    METHOD_POST = 4,
    METHOD_PUT = 8,
    METHOD_DELETE = 16,
    METHOD_OPTIONS = 32,
    METHOD_OTHER = 64,
};

// The headers that are looked at; the rest is ignored.
enum request_header {
    HEADER_HOST,
    HEADER_AUTHORIZATION,
    HEADER_COOKIE,
    HEADER_ACCEPT,
    HEADER_ACCEPT_ENCODING,
    HEADER_CONTENT_ENCODING,
    HEADER_FETCH_SITE,
    HEADER_ORIGIN,
    HEADER_IF_NONE_MATCH,
    HEADER_FORWARDED, // these three: a proxy's
    HEADER_FORWARDED_FOR,
    HEADER_VIA,
    HEADER_COUNT
};
extern const char *const request_header_names[HEADER_COUNT];

struct request_parameter {
    struct str name, value; // decoded
};

struct request {
    struct arena arena;
    enum request_method method;
    struct str target;                    // as it came: path, '?', parameters
    struct str path;                      // decoded
    struct request_parameter *parameters; // in the order they came
    size_t parameter_count;
    struct str headers[HEADER_COUNT]; // empty when absent
    struct str body;
    int64_t arrived_ns; // clock_monotonic_ns
    int fd;             // the connection
    struct peer peer;   // who asks, as far as the kernel tells
    enum role role;     // what the request may do (auth.h)
    bool by_cookie;     // it is a browser's session that may
};

enum request_method request_method_of(struct str name);

// Fills target, path and parameters. -EINVAL: broken % escapes, a NUL, not a path. -E2BIG: too many
// parameters.
int request_parse_target(struct request *r, struct str target, struct error *e);

// The last parameter of that name; false when there is none. A parameter without '=' has an empty
// value.
bool request_parameter(const struct request *r, const char *name, struct str *value);

// A flag as OpenTSDB reads them: given at all, whatever its value.
bool request_flag(const struct request *r, const char *name);

// A whole number from 0 on; `otherwise` where it is not given. -EINVAL with OpenTSDB's words.
int request_count(const struct request *r, const char *name, int64_t otherwise, int64_t *out,
                  struct error *e);

// Whether the header, a list with weights ("gzip, deflate;q=0"), accepts `token`. `any` says
// whether "*" counts.
bool request_accepts(struct str header, struct str token, bool any);

// The body in clear: inflates it where Content-Encoding says gzip or deflate. -E2BIG: past
// limit_bytes. -EINVAL: broken. -ENOTSUP: another encoding.
int request_decode_body(struct request *r, size_t limit_bytes, struct error *e);

void request_free(struct request *r);

// Whether a proxy has passed it on, as its headers say.
bool request_is_proxied(const struct request *r);

#endif
