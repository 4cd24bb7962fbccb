// request.h - a parsed HTTP request, independent of the library that received it.
//
// Handlers see nothing else, so tests call them without a socket. Everything lives in the request's
// arena. All input is limited: parameters by REQUEST_PARAMETERS_MAX, the body by the server's
// limit, also while it is inflated.
#ifndef SONDE_HTTP_REQUEST_H
#define SONDE_HTTP_REQUEST_H

#include "base/arena.h"
#include "base/error.h"
#include "http/peer.h"
#include "http/tokens.h"

#include <stdbool.h>

enum { REQUEST_PARAMETERS_MAX = 1024 };

// Bits, so that a route can name several methods.
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
    HEADER_COOKIE,
    HEADER_ACCEPT,
    HEADER_ACCEPT_ENCODING,
    HEADER_CONTENT_ENCODING,
    HEADER_FETCH_SITE,
    HEADER_ORIGIN,
    HEADER_IF_NONE_MATCH,
    HEADER_FORWARDED, // these three come from a proxy
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
    struct request_parameter *parameters; // in the order of their arrival
    size_t parameter_count;
    struct str headers[HEADER_COUNT]; // empty if absent
    struct str body;
    int64_t arrived_ns; // clock_monotonic_ns
    int fd;             // of the connection
    struct peer peer;   // the client, as far as the kernel knows it
    enum role role;     // the permissions of the request (auth.h)
    bool by_cookie;     // the role comes from a browser's session
};

enum request_method request_method_of(struct str name);

// Fills target, path and parameters. -EINVAL: invalid % escapes, a NUL, not a path. -E2BIG: too
// many parameters.
int request_parse_target(struct request *r, struct str target, struct error *e);

// Finds the last parameter of that name; false if it is absent. A parameter without '=' has an
// empty value.
bool request_parameter(const struct request *r, const char *name, struct str *value);

// A flag as OpenTSDB reads it: true if present, whatever its value.
bool request_flag(const struct request *r, const char *name);

// Reads a whole number from 0 on; `otherwise` if it is absent. -EINVAL with OpenTSDB's message.
int request_count(const struct request *r, const char *name, int64_t otherwise, int64_t *out,
                  struct error *e);

// True if the header, a list with weights ("gzip, deflate;q=0"), accepts `token`. `any` says if "*"
// counts.
bool request_accepts(struct str header, struct str token, bool any);

// Inflates the body if Content-Encoding is gzip or deflate. -E2BIG: above limit_bytes. -EINVAL:
// damaged. -ENOTSUP: another encoding.
int request_decode_body(struct request *r, size_t limit_bytes, struct error *e);

void request_free(struct request *r);

// True if its headers show that a proxy has forwarded it.
bool request_is_proxied(const struct request *r);

#endif
