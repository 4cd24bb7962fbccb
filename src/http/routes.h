// routes.h - routes as rows of a table, from which dispatch, 404, 405, the OpenAPI document and
// docs/http.md come.
#ifndef SONDE_HTTP_ROUTES_H
#define SONDE_HTTP_ROUTES_H

#include "http/auth.h"
#include "http/request.h"
#include "http/respond.h"

struct service; // what handlers work on; of the layers above

typedef void route_fn(struct service *service, struct request *r, struct answer *a);

// Which role (tokens.h) a request needs.
enum access {
    ACCESS_OPEN,    // none: bodies of up to ROUTE_OPEN_BODY_MAX
    ACCESS_VIEW,    // VIEW
    ACCESS_NOTES,   // VIEW to read, WRITE to change
    ACCESS_WRITE,   // WRITE
    ACCESS_CONTROL, // CONTROL
    ACCESS_HERE,    // CONTROL, and only from a program on this machine: as good as a shell
};

struct route {
    struct str path;
    unsigned methods; // enum request_method; HEAD goes where GET goes
    enum access access;
    route_fn *handle;
    const char *help; // for the OpenAPI document
    // names, separated by blanks, those that are needed with a ! behind; NULL = none
    const char *parameters;
};
enum { ROUTE_OPEN_BODY_MAX = 1024 };

// What a server serves, and to whom. Constant while it is served.
struct site {
    const struct route *routes;
    size_t route_count;
    struct service *service;
    struct auth auth;
    struct str cors;   // origins whose pages may read, separated by commas, or "*"; empty = none
    size_t body_bytes; // of a request, also after inflating
    // Beside roles; false: the answer says why not. NULL: all may ask.
    bool (*admits)(const struct route *route, struct request *r, struct answer *a);
    // *a refuses a token; NULL = leave it so
    void (*refused)(const struct request *r, struct answer *a);
    void (*took)(struct str path, int64_t took_ns); // after each request; may be NULL
};

// Finds, checks and calls: the whole way from a request to an answer, but for answer_finish.
void routes_answer(const struct site *site, struct request *r, struct answer *a);

// Whether a body is worth reading: false when the answer is known without it (no token, no such
// route…) and is in *a. Of the request, everything but the body must be there. *open says whether
// the route needs no token: then the body may have ROUTE_OPEN_BODY_MAX, and the answer takes no
// time.
bool routes_admit(const struct site *site, struct request *r, struct answer *a, bool *open);

#endif
