// request.h - a parsed HTTP request, independent of the library that received it.
//
// Handlers get no other data, so tests call them without a socket. All data live in the request's
// arena. All input is limited: parameters by REQUEST_PARAMETERS_MAX, the body by the server's
// limit, which also applies while it is inflated.
#ifndef SONDE_HTTP_REQUEST_H
#define SONDE_HTTP_REQUEST_H

#include "base/arena.h"
#include "base/error.h"
#include "http/peer.h"
#include "http/tokens.h"

#include <stdbool.h>

enum { REQUEST_PARAMETERS_MAX = 1024 };

// These are bits, so that a route can name several methods.
enum request_method {
    METHOD_GET = 1,
    METHOD_HEAD = 2,
    METHOD_POST = 4,
    METHOD_PUT = 8,
    METHOD_DELETE = 16,
    METHOD_OPTIONS = 32,
    METHOD_OTHER = 64,
};

// The headers that the server reads; it ignores the rest.
enum request_header {
    HEADER_HOST,
    HEADER_AUTHORIZATION,
    HEADER_TOKEN, // instead of Authorization, which some proxies keep for themselves
    HEADER_COOKIE,
    HEADER_ACCEPT,
    HEADER_ACCEPT_ENCODING,
    HEADER_CONTENT_ENCODING,
    HEADER_FETCH_SITE,
    HEADER_ORIGIN,
    HEADER_SESSION_KEY, // of a page that may write (sessions.h)
    HEADER_IF_NONE_MATCH,
    HEADER_FORWARDED, // a proxy adds this and the next two
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
    struct str target;                    // as received: path, '?', parameters
    struct str path;                      // decoded
    struct request_parameter *parameters; // in order of arrival
    size_t parameter_count;
    struct str headers[HEADER_COUNT]; // empty if absent
    struct str body;
    int64_t arrived_ns; // clock_monotonic_ns
    int fd;             // descriptor of the connection
    struct peer peer;   // the client, as far as the kernel knows it
    enum role role;     // the permissions of the request (auth.h)
    bool by_cookie;     // the role follows from a browser's session
};

enum request_method request_method_of(struct str name);

// Parses the target: fills target, path and parameters. Returns 0, -EINVAL (invalid % escapes, a
// NUL, or not a path) or -E2BIG (too many parameters).
int request_parse_target(struct request *r, struct str target, struct error *e);

// Finds the last parameter with this name. Returns false if it is absent. A parameter without '='
// has an empty value.
bool request_parameter(const struct request *r, const char *name, struct str *value);

// True if a flag is present, whatever its value. OpenTSDB reads flags in this way.
bool request_flag(const struct request *r, const char *name);

// Reads a whole number ≥ 0, or stores `otherwise` if it is absent. Returns 0, or -EINVAL with
// OpenTSDB's message.
int request_count(const struct request *r, const char *name, int64_t otherwise, int64_t *out,
                  struct error *e);

// True if the header, a list with weights ("gzip, deflate;q=0"), accepts `token`. With `any`, "*"
// accepts it, too.
bool request_accepts(struct str header, struct str token, bool any);

// Inflates the body if Content-Encoding is gzip or deflate. Returns 0, -E2BIG (larger than
// limit_bytes), -EINVAL (damaged) or -ENOTSUP (another encoding).
int request_decode_body(struct request *r, size_t limit_bytes, struct error *e);

void request_free(struct request *r);

// True if the headers show that a proxy has forwarded the request.
bool request_is_proxied(const struct request *r);

#endif
