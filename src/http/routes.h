// routes.h - routes as rows of a table. The table defines the dispatch, 404, 405, the OpenAPI
// document and docs/http.md.
#ifndef SONDE_HTTP_ROUTES_H
#define SONDE_HTTP_ROUTES_H

#include "http/auth.h"
#include "http/request.h"
#include "http/respond.h"

struct service; // the data of the handlers, which the layers above define

typedef void route_fn(struct service *service, struct request *r, struct answer *a);

// The role (tokens.h) that a request needs.
enum access {
    ACCESS_OPEN,    // no role; bodies have at most ROUTE_OPEN_BODY_MAX bytes
    ACCESS_VIEW,    // VIEW
    ACCESS_NOTES,   // VIEW to read, WRITE to change
    ACCESS_WRITE,   // WRITE, not for a browser's session
    ACCESS_RESTART, // CONTROL
    ACCESS_CONTROL, // CONTROL, not for a browser's session
    // CONTROL, and only from a program on this machine, because it is as powerful as a shell
    ACCESS_HERE,
};

struct route {
    struct str path;
    unsigned methods; // bits of enum request_method; HEAD uses the row of GET
    enum access access;
    route_fn *handle;
    const char *help; // for the OpenAPI document
    // names, separated by blanks; ! marks a required one; NULL = none
    const char *parameters;
};
enum { ROUTE_OPEN_BODY_MAX = 1024 };

// The contents of a server, and who may access them. Constant while it serves.
struct site {
    const struct route *routes;
    size_t route_count;
    struct service *service;
    struct auth auth;
    // origins whose pages may read responses, separated by commas, or "*"; empty = none
    struct str cors;
    size_t body_bytes; // size limit of a request's body, also after inflating
    // A check besides the roles; if it returns false, the answer gives the reason. NULL: no such
    // check.
    bool (*admits)(const struct route *route, struct request *r, struct answer *a);
    // may change the 401 or 403 for a refused token; NULL = it stays unchanged
    void (*refused)(const struct request *r, struct answer *a);
    void (*took)(struct str path, int64_t took_ns); // called after each request; may be NULL
};

// Does all steps from a request to an answer, except answer_finish: finds the route, checks the
// request, and calls the handler.
void routes_answer(const struct site *site, struct request *r, struct answer *a);

// Decides, from everything but the body, whether the server should read the body. Returns false if
// the answer is known without it (no token, no such route…); it is then in *a. *open is set if the
// route needs no token. In this case the body may have ROUTE_OPEN_BODY_MAX bytes, and the handler
// must return at once.
bool routes_admit(const struct site *site, struct request *r, struct answer *a, bool *open);

#endif
