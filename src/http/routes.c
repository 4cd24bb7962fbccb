// routes.c - dispatches a request to its handler.
#include "http/routes.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>

static const struct {
    enum request_method method;
    const char *name;
} method_names[] = {
    {METHOD_GET, "GET"}, {METHOD_HEAD, "HEAD"},     {METHOD_POST, "POST"},
    {METHOD_PUT, "PUT"}, {METHOD_DELETE, "DELETE"},
};

// Turns "/api/v1/x" into "/api/x". For a higher version it returns false, and the answer is
// complete.
static bool strip_version(struct request *r, struct str *path, struct answer *a)
{
    static const struct str api = {"/api/v", sizeof "/api/v" - 1};
    *path = r->path;
    while (path->size > 1 && path->data[path->size - 1] == '/')
        path->size--;
    if (!str_starts(*path, api))
        return true;
    struct str rest = str_slice(*path, api.size, path->size), number = str_cut(&rest, '/');
    uint64_t version;
    if (!str_to_u64(number, &version))
        return true; // not a version: "/api/version"
    if (version != 1) {
        answer_error(a, 501, "this version of the API is not there; use /api/v1/ or /api/", NULL);
        return false;
    }
    char *plain = arena_printf(&r->arena, "/api/%.*s", STR_ARG(rest));
    *path = plain ? str_of(plain) : STR("");
    return true;
}

static const struct route *find(const struct site *site, struct str path)
{
    for (size_t i = 0; i < site->route_count; i++)
        if (str_eq(site->routes[i].path, path))
            return &site->routes[i];
    return NULL;
}

static unsigned methods_of(const struct route *route)
{
    return route->methods | (route->methods & METHOD_GET ? METHOD_HEAD : 0u);
}

static void refuse_method(const struct route *route, struct request *r, struct answer *a)
{
    struct buf allow = {0};
    for (size_t i = 0; i < sizeof method_names / sizeof *method_names; i++)
        if (methods_of(route) & method_names[i].method)
            buf_printf(&allow, "%s%s", allow.size ? ", " : "", method_names[i].name);
    answer_header(a, "Allow", arena_strdup(&r->arena, buf_str(&allow)));
    buf_free(&allow);
    answer_error(a, 405, "Method not allowed",
                 "The HTTP method is not allowed for this endpoint; see the Allow header.");
}

// Lets pages of an allowed origin read the answer.
static bool allow_origin(const struct site *site, const struct request *r, struct answer *a)
{
    struct str rest = site->cors, origin = r->headers[HEADER_ORIGIN];
    while (rest.data && origin.size) {
        struct str allowed = str_trim(str_cut(&rest, ','));
        if (!allowed.size || !(str_eq(allowed, STR("*")) || str_eq_nocase(allowed, origin)))
            continue;
        static char vary[] = "Origin";
        answer_header(a, "Access-Control-Allow-Origin", (char *)(uintptr_t)origin.data);
        answer_header(a, "Vary", vary);
        return true;
    }
    return false;
}

// Answers a preflight request, which a browser sends before a page's request. It cannot carry the
// token.
static void answer_preflight(struct answer *a)
{
    static char methods[] = "GET, POST, PUT, DELETE",
                headers[] = "Authorization, Content-Type, Content-Encoding, Accept",
                seconds[] = "600";
    answer_header(a, "Access-Control-Allow-Methods", methods);
    answer_header(a, "Access-Control-Allow-Headers", headers);
    answer_header(a, "Access-Control-Max-Age", seconds);
    a->content_type = NULL;
}

static enum role role_needed(const struct route *route, const struct request *r)
{
    bool reads = r->method == METHOD_GET || r->method == METHOD_HEAD;
    switch (route->access) {
    case ACCESS_OPEN:
        return ROLE_NOBODY;
    case ACCESS_VIEW:
        return ROLE_VIEW;
    case ACCESS_NOTES:
        return reads ? ROLE_VIEW : ROLE_WRITE;
    case ACCESS_WRITE:
        return ROLE_WRITE;
    case ACCESS_RESTART:
    case ACCESS_CONTROL:
    case ACCESS_HERE:
        break;
    }
    return ROLE_CONTROL;
}

// True if sonde's page has an action that sends such a request. A browser's session may do nothing
// else, whatever its key.
static bool is_for_pages(const struct route *route)
{
    return route->access == ACCESS_VIEW || route->access == ACCESS_NOTES ||
           route->access == ACCESS_RESTART;
}

static bool refuse_role(struct answer *a, const struct request *r, enum role needed)
{
    answer_error(
        a, 403,
        r->by_cookie && r->role == ROLE_VIEW ? "a browser's session may only view"
        : needed == ROLE_WRITE
            ? "this token may only view; putting points and annotations needs the write token"
            : "this needs the job's control token",
        needed == ROLE_WRITE ? "sonde token --write prints it."
                             : "Send \"Authorization: Bearer TOKEN\" with the token that is in "
                               "SONDE_TOKEN_FILE, or that "
                               "sonde token --control prints.");
    return false;
}

// Checks the role. A route for programs on this machine also checks the process, so a stolen
// control token is useless to another user.
static bool check_role(const struct route *route, struct request *r, struct answer *a)
{
    enum role needed = role_needed(route, r);
    if (r->role < needed)
        return refuse_role(a, r, needed);
    if (r->by_cookie && !is_for_pages(route)) {
        answer_error(a, 403, "a browser's session may not send this request",
                     "Programs send a token.");
        return false;
    }
    if (needed < ROLE_CONTROL || !r->peer.local)
        return true;
    peer_look_in_proc(&r->peer);
    if (peer_is_own(&r->peer))
        return true;
    answer_error(a, 403, "only the job's own user on this machine may send this request",
                 r->peer.known ? NULL : "The kernel does not tell which user sent it.");
    return false;
}

static bool check_here(const struct request *r, struct answer *a)
{
    if (!request_is_proxied(r) && peer_is_program_here(&r->peer))
        return true;
    answer_error(
        a, 403, "only programs on this machine may send this request",
        "It has to come from the node that sonde run runs on, through no tunnel and no proxy.");
    return false;
}

// Takes the method from the address. OpenTSDB's clients that can only send GET use this for
// requests that change something.
static bool override_method(const struct route *route, struct request *r, struct answer *a)
{
    struct str name;
    if (r->method != METHOD_GET || route->access != ACCESS_NOTES ||
        !request_parameter(r, "method_override", &name))
        return true;
    for (size_t i = 0; i < sizeof method_names / sizeof *method_names; i++)
        if (str_eq_nocase(name, str_of(method_names[i].name)) &&
            method_names[i].method != METHOD_HEAD) {
            r->method = method_names[i].method;
            return true;
        }
    answer_error(a, 405,
                 name.size ? "Unknown or unsupported method override value"
                           : "Missing method override value",
                 "method_override has to be get, post, put or delete.");
    return false;
}

// Finds the route and checks the access. Returns NULL if the answer is complete.
static const struct route *admit(const struct site *site, struct request *r, struct answer *a)
{
    if (allow_origin(site, r, a) && r->method == METHOD_OPTIONS) {
        answer_preflight(a);
        return NULL;
    }
    struct str path;
    const struct route *route = strip_version(r, &path, a) ? find(site, path) : NULL;
    bool open = route && route->access == ACCESS_OPEN;
    // Check the token first, so that a client without it cannot learn which routes exist.
    if (!open && !auth_check(&site->auth, r, a)) {
        if (site->refused)
            site->refused(r, a);
        return NULL;
    }
    if (a->status != 200)
        return NULL; // unknown version
    if (!route) {
        answer_error(a, 404, "Endpoint not found", "/sonde/v1/openapi.json lists the endpoints.");
        return NULL;
    }
    if (site->admits && !site->admits(route, r, a))
        return NULL;
    if (!override_method(route, r, a))
        return NULL;
    if (!(methods_of(route) & r->method)) {
        refuse_method(route, r, a);
        return NULL;
    }
    return check_role(route, r, a) ? route : NULL;
}

bool routes_admit(const struct site *site, struct request *r, struct answer *a, bool *open)
{
    const struct route *route = admit(site, r, a);
    *open = route && route->access == ACCESS_OPEN;
    return route != NULL;
}

// Decodes the body. Bodies for routes without a token are not inflated, because the thread that
// answers them also serves all connections.
static int decode_body(const struct site *site, const struct route *route, struct request *r,
                       struct error *e)
{
    if (route->access != ACCESS_OPEN)
        return request_decode_body(r, site->body_bytes, e);
    struct str encoding = str_trim(r->headers[HEADER_CONTENT_ENCODING]);
    return !encoding.size || str_eq_nocase(encoding, STR("identity"))
               ? 0
               : error_set(e, -ENOTSUP,
                           "the body of a request without a token may not be compressed");
}

void routes_answer(const struct site *site, struct request *r, struct answer *a)
{
    const struct route *route = admit(site, r, a);
    if (!route || (route->access == ACCESS_HERE && !check_here(r, a)))
        return;
    struct error e = {0};
    int64_t began_ns = clock_monotonic_ns();
    if (decode_body(site, route, r, &e) != 0)
        answer_failure(a, &e);
    else
        route->handle(site->service, r, a);
    if (site->took)
        site->took(route->path, clock_monotonic_ns() - began_ns);
}
