// routes.h - routes as rows of a table, which defines dispatch, 404, 405, the OpenAPI document and
// docs/http.md.
#ifndef SONDE_HTTP_ROUTES_H
#define SONDE_HTTP_ROUTES_H

#include "http/auth.h"
#include "http/request.h"
#include "http/respond.h"

struct service; // the data of the handlers; defined by the layers above

typedef void route_fn(struct service *service, struct request *r, struct answer *a);

// The role (tokens.h) that a request needs.
enum access {
    ACCESS_OPEN,    // none; bodies have at most ROUTE_OPEN_BODY_MAX
    ACCESS_VIEW,    // VIEW
    ACCESS_NOTES,   // VIEW to read, WRITE to change
    ACCESS_WRITE,   // WRITE
    ACCESS_CONTROL, // CONTROL
    // CONTROL, and only from a program on this machine, because it is as powerful as a shell
    ACCESS_HERE,
};

struct route {
    struct str path;
    unsigned methods; // bits of enum request_method; HEAD uses the route of GET
    enum access access;
    route_fn *handle;
    const char *help; // for the OpenAPI document
    // names, separated by blanks; ! marks a required one; NULL = none
    const char *parameters;
};
enum { ROUTE_OPEN_BODY_MAX = 1024 };

// The contents of a server, and the access to them. Constant while it serves.
struct site {
    const struct route *routes;
    size_t route_count;
    struct service *service;
    struct auth auth;
    // origins whose pages may read responses, separated by commas, or "*"; empty = none
    struct str cors;
    size_t body_bytes; // limit of a request, also after inflating
    // A check besides the roles; if it returns false, the answer gives the reason. NULL: no such
    // check.
    bool (*admits)(const struct route *route, struct request *r, struct answer *a);
    // changes the 401 or 403 of a refused token; NULL = leave it unchanged
    void (*refused)(const struct request *r, struct answer *a);
    void (*took)(struct str path, int64_t took_ns); // called after each request; may be NULL
};

// Finds the route, checks the request and calls the handler: all steps from a request to an answer,
// except answer_finish.
void routes_answer(const struct site *site, struct request *r, struct answer *a);

// Decides from everything but the body of a request if the server should read the body. Returns
// false if the answer is known without it (no token, no such route…) and in *a. *open is set if the
// route needs no token: the body may then have ROUTE_OPEN_BODY_MAX bytes, and the handler returns
// at once.
bool routes_admit(const struct site *site, struct request *r, struct answer *a, bool *open);

#endif
