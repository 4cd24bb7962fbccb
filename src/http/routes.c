// routes.c - the table of routes, and the way through it.
#include "http/routes.h"

#include "aggregator/request_times.h"
#include "base/clock.h"
#include "faces/web/page.h"

#include <errno.h>
#include <stdio.h>

enum { READ = METHOD_GET, ASK = METHOD_GET | METHOD_POST };

static const struct route routes[] = {
    {STR("/"), READ, ACCESS_VIEW, native_page, "the page for browsers", NULL},
    {STR("/page.js"), READ, ACCESS_VIEW, native_page, "the page's script", "v"},
    {STR("/page.css"), READ, ACCESS_VIEW, native_page, "the page's style sheet", "v"},
    {STR("/healthz"), READ, ACCESS_OPEN, native_health, "whether the server is up; needs no token", NULL},
    {STR("/sonde/v1/proof"), READ, ACCESS_OPEN, native_proof,
     "a proof that this server knows the token, for clients that have it; needs no token", "nonce!"},
    {STR("/metrics"), READ, ACCESS_VIEW, openmetrics_latest, "the latest value of every series, for Prometheus", NULL},
    {STR("/sonde/v1/status"), READ, ACCESS_VIEW, native_status,
     "what is served: files, series, points, damage; connections, workers, limits", NULL},
    {STR("/sonde/v1/nodes"), READ, ACCESS_VIEW, native_nodes, "the nodes, each with its job and times", "points"},
    {STR("/sonde/v1/metrics"), READ, ACCESS_VIEW, native_metrics, "metrics: kind, unit, help, level", "q"},
    {STR("/sonde/v1/series"), READ, ACCESS_VIEW, native_series, "series, with their latest points",
     "match limit latest points start end grid job_tag"},
    {STR("/sonde/v1/tags"), READ, ACCESS_VIEW, native_tags, "the tags of a metric's series, with their values",
     "metric! examples"},
    {STR("/sonde/v1/query"), METHOD_POST, ACCESS_VIEW, native_query,
     "points, in nanoseconds, by column; JSON, Arrow or binary", "format"},
    {STR("/sonde/v1/spans"), READ, ACCESS_VIEW, native_spans, "spans", "start end name tag limit unfinished job_tag"},
    {STR("/sonde/v1/annotations"), READ, ACCESS_VIEW, native_annotations, "annotations", "start end tag limit job_tag"},
    {STR("/sonde/v1/stream"), READ, ACCESS_VIEW, native_stream,
     "new points as they come, as server-sent events or in columns", "m! since format"},
    {STR("/sonde/v1/reboot"), METHOD_POST, ACCESS_CONTROL, native_reboot,
     "starts the command again without some hosts; resilient jobs only", "hosts"},
    {STR("/sonde/v1/dump"), METHOD_POST, ACCESS_CONTROL, native_dump,
     "copies every node's data into a folder on the first node; running jobs only", "to since"},
    {STR("/sonde/v1/collectors"), METHOD_POST, ACCESS_HERE, native_collectors,
     "runs a command on every node, whose lines are points, or no more; only from this machine, with the token",
     "name! command input rate timeout per_gpu"},
    {STR("/sonde/v1/openapi.json"), READ, ACCESS_VIEW, native_openapi, "these routes as an OpenAPI document", NULL},
    {STR("/api/query"), ASK, ACCESS_VIEW, opentsdb_query, "points, as OpenTSDB answers",
     "start! m! tsuid end ms arrays show_query show_tsuids show_summary show_stats no_annotations global_annotations "
     "tz "
     "use_calendar jsonp"},
    {STR("/api/query/last"), ASK, ACCESS_VIEW, opentsdb_last, "the latest point of each series",
     "timeseries tsuids resolve back_scan jsonp"},
    {STR("/api/query/gexp"), READ, ACCESS_VIEW, opentsdb_gexp, "functions over queries, as Graphite writes them",
     "start! exp! end ms arrays show_tsuids show_query tz use_calendar jsonp"},
    {STR("/api/query/exp"), METHOD_POST, ACCESS_VIEW, opentsdb_exp, "formulas over metrics, answered as tables", NULL},
    {STR("/api/put"), METHOD_POST, ACCESS_WRITE, opentsdb_put, "takes points, as OpenTSDB does; running jobs only",
     NULL},
    {STR("/api/metrics"), METHOD_POST, ACCESS_WRITE, dragon_metrics, "takes points in Dragon's form; running jobs only",
     NULL},
    {STR("/api/ready"), READ, ACCESS_VIEW, dragon_ready, "whether the server is up, as Dragon's clients ask", NULL},
    {STR("/api/suggest"), ASK, ACCESS_VIEW, opentsdb_suggest, "names of metrics, tag keys, tag values",
     "type q max jsonp"},
    {STR("/api/search/lookup"), ASK, ACCESS_VIEW, opentsdb_lookup, "series of a metric", "m! limit jsonp"},
    {STR("/api/aggregators"), ASK, ACCESS_VIEW, opentsdb_aggregators, "names of the aggregators", "jsonp"},
    {STR("/api/config"), ASK, ACCESS_VIEW, opentsdb_configuration, "what is configured, by OpenTSDB's names", "jsonp"},
    {STR("/api/config/filters"), ASK, ACCESS_VIEW, opentsdb_filters, "the tag filters, described", "jsonp"},
    {STR("/api/annotation"), ASK | METHOD_PUT | METHOD_DELETE, ACCESS_NOTES, opentsdb_annotation,
     "an annotation, by its time; takes one, running jobs only",
     "start_time! end_time description notes tsuid method_override"},
    {STR("/api/annotation/bulk"), METHOD_POST | METHOD_PUT | METHOD_DELETE, ACCESS_NOTES, opentsdb_annotation_bulk,
     "takes annotations, running jobs only", NULL},
    {STR("/api/annotations"), ASK | METHOD_PUT | METHOD_DELETE, ACCESS_NOTES, opentsdb_annotations,
     "the annotations of a time range; takes one, running jobs only", "start_time! end_time"},
    {STR("/api/stats"), ASK, ACCESS_VIEW, opentsdb_stats, "counts of the server itself", "jsonp"},
    {STR("/api/dropcaches"), ASK, ACCESS_VIEW, opentsdb_drop_caches,
     "does nothing: what is kept never differs from the files", "jsonp"},
    {STR("/api/uid/assign"), ASK, ACCESS_VIEW, opentsdb_assign, "ids of names: hashes, as nothing has to be assigned",
     "metric tagk tagv jsonp"},
    {STR("/api/token"), METHOD_POST, ACCESS_OPEN, dragon_token,
     "the token for the key, as Dragon's clients ask; needs no token", NULL},
    {STR("/api/telemetry_shutdown"), READ, ACCESS_VIEW, dragon_shutdown, "does nothing: telemetry ends with its job",
     NULL},
    {STR("/api/set_shutdown"), READ, ACCESS_VIEW, dragon_nothing, "does nothing: telemetry ends with its job", NULL},
    {STR("/api/tsdb_cleanup"), METHOD_POST, ACCESS_WRITE, dragon_nothing, "does nothing: --window says what is kept",
     NULL},
    {STR("/api/reboot"), METHOD_POST, ACCESS_CONTROL, dragon_reboot,
     "the same as Dragon's clients ask: hostnames=HOST,HOST", NULL},
    {STR("/api/version"), ASK, ACCESS_VIEW, opentsdb_version, "versions", "jsonp"},
};

static const struct {
    enum request_method method;
    const char *name;
} method_names[] = {
    {METHOD_GET, "GET"}, {METHOD_HEAD, "HEAD"}, {METHOD_POST, "POST"}, {METHOD_PUT, "PUT"}, {METHOD_DELETE, "DELETE"},
};

const struct route *routes_all(size_t *count)
{
    *count = sizeof routes / sizeof *routes;
    return routes;
}

// "/api/v1/x" is "/api/x"; of a higher version there is none: false, and the answer is made.
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
        return true; // "/api/version"
    if (version != 1) {
        answer_error(a, 501, "this version of the API is not there; use /api/v1/ or /api/", NULL);
        return false;
    }
    char *plain = arena_printf(&r->arena, "/api/%.*s", STR_ARG(rest));
    *path = plain ? str_of(plain) : STR("");
    return true;
}

static const struct route *find(struct str path)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (str_eq(routes[i].path, path))
            return &routes[i];
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
static bool allow_origin(const struct service *service, const struct request *r, struct answer *a)
{
    struct str rest = service->cors, origin = r->headers[HEADER_ORIGIN];
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

// A browser asks before it sends a page's request; it cannot give the token there.
static void answer_preflight(struct answer *a)
{
    static char methods[] = "GET, POST, PUT, DELETE",
                headers[] = "Authorization, Content-Type, Content-Encoding, Accept", seconds[] = "600";
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
    case ACCESS_CONTROL:
    case ACCESS_HERE:
        break;
    }
    return ROLE_CONTROL;
}

static bool refuse_role(struct answer *a, const struct request *r, enum role needed)
{
    answer_error(a, 403,
                 r->by_cookie ? "a browser's session may only view"
                 : needed == ROLE_WRITE
                     ? "this token may only view; putting points and annotations needs the write token"
                     : "this needs the job's control token",
                 needed == ROLE_WRITE
                     ? "sonde token --write prints it."
                     : "Send \"Authorization: Bearer TOKEN\" with the token that is in SONDE_TOKEN_FILE, or that "
                       "sonde token --control prints.");
    return false;
}

// A control token that was stolen is worth nothing to another user of this machine.
static bool check_role(const struct route *route, struct request *r, struct answer *a)
{
    enum role needed = role_needed(route, r);
    if (r->role < needed)
        return refuse_role(a, r, needed);
    if (needed < ROLE_CONTROL || !r->peer.local)
        return true;
    peer_look_in_proc(&r->peer);
    if (peer_is_own(&r->peer))
        return true;
    answer_error(a, 403, "on this machine only the job's own user may ask this",
                 r->peer.known ? NULL : "The kernel does not tell which user asks.");
    return false;
}

static bool is_proxied(const struct request *r)
{
    return r->headers[HEADER_FORWARDED].size || r->headers[HEADER_FORWARDED_FOR].size || r->headers[HEADER_VIA].size;
}

static bool check_here(const struct request *r, struct answer *a)
{
    if (!is_proxied(r) && peer_is_program_here(&r->peer))
        return true;
    answer_error(a, 403, "only programs on this machine may ask this",
                 "It has to come from the node that sonde run runs on, through no tunnel and no proxy.");
    return false;
}

// OpenTSDB's clients that can only GET name the method in the address, where that changes something.
static bool override_method(const struct route *route, struct request *r, struct answer *a)
{
    struct str name;
    if (r->method != METHOD_GET || route->access != ACCESS_NOTES || !request_parameter(r, "method_override", &name))
        return true;
    for (size_t i = 0; i < sizeof method_names / sizeof *method_names; i++)
        if (str_eq_nocase(name, str_of(method_names[i].name)) && method_names[i].method != METHOD_HEAD) {
            r->method = method_names[i].method;
            return true;
        }
    answer_error(a, 405, name.size ? "Unknown or unsupported method override value" : "Missing method override value",
                 "method_override has to be get, post, put or delete.");
    return false;
}

// What Dragon's programs send to the server of their node; another user's programs are not ours.
static bool check_dragon(const struct route *route, struct request *r, struct answer *a)
{
    static const struct str paths[] = {STR("/api/metrics"), STR("/api/ready"), STR("/api/set_shutdown"),
                                       STR("/api/tsdb_cleanup"), STR("/api/telemetry_shutdown")};
    peer_look_in_proc(&r->peer);
    if (!r->peer.local || !peer_is_own(&r->peer) || is_proxied(r)) {
        answer_error(a, 403, "only programs of the job's own user on this machine may ask here", NULL);
        return false;
    }
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (str_eq(route->path, paths[i]))
            return true;
    answer_error(a, 404, "Endpoint not found",
                 "This port takes points of Dragon's programs; the job's URL answers the rest.");
    return false;
}

// NULL when the answer is made already.
static const struct route *admit(struct service *service, struct request *r, struct answer *a)
{
    if (allow_origin(service, r, a) && r->method == METHOD_OPTIONS) {
        answer_preflight(a);
        return NULL;
    }
    struct str path;
    const struct route *route = strip_version(r, &path, a) ? find(path) : NULL;
    bool open = route && route->access == ACCESS_OPEN;
    // Without the token nobody learns which routes there are.
    if (!open && !auth_check(&service->auth, r, a)) {
        page_for_people(r, a);
        return NULL;
    }
    if (a->status != 200)
        return NULL; // the version
    if (!route) {
        answer_error(a, 404, "Endpoint not found", "/sonde/v1/openapi.json lists the endpoints.");
        return NULL;
    }
    if (service->only_dragon_points && !check_dragon(route, r, a))
        return NULL;
    if (!override_method(route, r, a))
        return NULL;
    if (!(methods_of(route) & r->method)) {
        refuse_method(route, r, a);
        return NULL;
    }
    return check_role(route, r, a) ? route : NULL;
}

bool routes_admit(struct service *service, struct request *r, struct answer *a, bool *open)
{
    const struct route *route = admit(service, r, a);
    *open = route && route->access == ACCESS_OPEN;
    return route != NULL;
}

// What needs no token is answered in a thread that serves all connections: nothing is inflated for it.
static int decode_body(const struct service *service, const struct route *route, struct request *r, struct error *e)
{
    if (route->access != ACCESS_OPEN)
        return request_decode_body(r, service->limits.body_bytes, e);
    struct str encoding = str_trim(r->headers[HEADER_CONTENT_ENCODING]);
    return !encoding.size || str_eq_nocase(encoding, STR("identity"))
               ? 0
               : error_set(e, -ENOTSUP, "the body of a request without a token may not be compressed");
}

void routes_answer(struct service *service, struct request *r, struct answer *a)
{
    const struct route *route = admit(service, r, a);
    if (!route || (route->access == ACCESS_HERE && !check_here(r, a)))
        return;
    struct error e = {0};
    int64_t began_ns = clock_monotonic_ns();
    if (decode_body(service, route, r, &e) != 0)
        answer_failure(a, &e);
    else
        route->handle(service, r, a);
    request_times_note(route->path, clock_monotonic_ns() - began_ns);
}
