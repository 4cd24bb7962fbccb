#include "client/origin.h"

#include "base/clock.h"
#include "client/run_description.h"
#include "collect/collect.h"
#include "wire/drain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct origin {
    // only of a job: a template for other clients, which sends no requests itself
    struct http_client *first;
    // Idle connections, in slots rather than under a lock, because a fork may come at any time.
    _Atomic(struct http_client *) kept[ORIGIN_CONNECTIONS_KEPT];
    // connection to the agent of the job around this process; also a slot
    _Atomic(struct drain_line *) drain;
    char *agent_socket;             // NULL: no agent
    struct embedded_server *inside; // only of recordings
    char *path;
};

// ---------------------------------------------------------------- open and close

static struct str other_name(struct str name)
{
    const struct collect_metric *known = collect_find(name);
    return known ? known->metric.name : STR("");
}

static int open_recordings(struct origin *o, const struct target *targets, size_t count,
                           struct error *e)
{
    static const struct embedded_server_names names = {other_name, collect_alias,
                                                       run_description_read};
    const char **paths = calloc(count, sizeof *paths);
    o->path = strdup(targets[0].path);
    for (size_t i = 0; paths && i < count; i++)
        paths[i] = targets[i].path;
    int rc = paths && o->path ? embedded_server_open(paths, count, &names, &o->inside, e)
                              : error_set(e, -ENOMEM, "out of memory");
    free(paths);
    return rc;
}

int origin_open(struct target *targets, size_t count, struct origin **out, struct error *e)
{
    struct origin *o = calloc(1, sizeof *o);
    const char *socket = getenv("SONDE_SOCKET");
    *out = NULL;
    if (!o)
        return error_set(e, -ENOMEM, "out of memory");
    o->agent_socket = socket && *socket ? strdup(socket) : NULL;
    o->first = targets[0].client;
    targets[0].client = NULL;
    int rc = o->first ? 0 : open_recordings(o, targets, count, e);
    if (rc) {
        origin_close(o);
        return rc;
    }
    *out = o;
    return 0;
}

void origin_close(struct origin *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < ORIGIN_CONNECTIONS_KEPT; i++)
        http_client_destroy(atomic_load(&o->kept[i]));
    http_client_destroy(o->first);
    embedded_server_close(o->inside);
    drain_line_destroy(atomic_load(&o->drain));
    free(o->agent_socket);
    free(o->path);
    free(o);
}

bool origin_is_recording(const struct origin *o)
{
    return o->inside != NULL;
}

const char *origin_name(const struct origin *o)
{
    return o->path ? o->path : http_client_url(o->first);
}

// ---------------------------------------------------------------- a job

static int take(struct origin *o, struct http_client **out, struct error *e)
{
    for (size_t i = 0; i < ORIGIN_CONNECTIONS_KEPT; i++)
        if ((*out = atomic_exchange(&o->kept[i], NULL)))
            return 0;
    return http_client_create_like(o->first, out, e);
}

static void give_back(struct origin *o, struct http_client *c)
{
    for (size_t i = 0; i < ORIGIN_CONNECTIONS_KEPT; i++) {
        struct http_client *none = NULL;
        if (atomic_compare_exchange_strong(&o->kept[i], &none, c))
            return;
    }
    http_client_destroy(c);
}

// Makes the agent of this node store everything that this process has emitted, including its cells,
// even if the request goes over the network. If the agent does not answer in time, the request is
// sent anyway.
static void drain_own(struct origin *o)
{
    if (!o->agent_socket)
        return;
    struct drain_line *line = atomic_exchange(&o->drain, NULL), *none = NULL;
    if (!line && drain_line_create(o->agent_socket, DRAIN_CELLS, &line) != 0)
        return;
    drain_line_ask(line);
    if (!atomic_compare_exchange_strong(&o->drain, &none, line))
        drain_line_destroy(line);
}

static int ask_job(struct origin *o, const char *path, struct str body, const char *type,
                   int timeout_ms, const struct origin_look *look, struct http_answer *out,
                   struct error *e)
{
    struct http_client *c;
    int rc = take(o, &c, e);
    if (rc)
        return rc;
    drain_own(o);
    http_client_on_look(c, look ? look->stop : NULL, look ? look->user : NULL);
    rc = http_ask(c, path, body, type, timeout_ms, NULL, out, e);
    give_back(o, c);
    return rc;
}

int origin_stream(struct origin *o, const char *path, const struct origin_look *look,
                  struct http_stream **out, struct error *e)
{
    struct http_client *c;
    *out = NULL;
    if (o->inside)
        return error_set(e, -ENOTSUP, "a recording has no stream");
    int rc = http_client_create_like(o->first, &c, e);
    if (rc)
        return rc;
    http_client_on_look(c, look ? look->stop : NULL, look ? look->user : NULL);
    return http_stream_open(c, path, out, e);
}

// ---------------------------------------------------------------- a recording

static int64_t patience_ns(int timeout_ms)
{
    return (int64_t)(timeout_ms > 0 ? timeout_ms : HTTP_TIMEOUT_DEFAULT_MS) * NS_PER_MS;
}

// Returns 0 with the answer in *out, or an error as from http_ask.
static int take_answer(struct origin *o, struct answer *answer, struct http_answer *out,
                       struct error *e)
{
    out->status = answer->status;
    snprintf(out->type, sizeof out->type, "%s", answer->content_type ? answer->content_type : "");
    out->body = answer->body;
    if (answer->status == 200)
        return 0;
    int rc = http_refused(out, o->path, e);
    int status = out->status;
    http_answer_free(out);
    out->status = status;
    return rc;
}

static int ask_recording(struct origin *o, const char *path, struct str body, int timeout_ms,
                         struct http_answer *out, struct error *e)
{
    struct answer answer;
    embedded_server_ask(o->inside, str_of(path), body, patience_ns(timeout_ms), &answer,
                        &out->missing);
    return take_answer(o, &answer, out, e);
}

int origin_points(struct origin *o, struct str body, int timeout_ms,
                  struct embedded_server_points *out, struct error *e)
{
    struct answer answer;
    struct http_answer refused = {0};
    if (!o->inside)
        return -ENOTSUP;
    return embedded_server_query(o->inside, body, patience_ns(timeout_ms), out, &answer)
               ? 0
               : take_answer(o, &answer, &refused, e);
}

int origin_ask(struct origin *o, const char *path, struct str body, const char *type,
               int timeout_ms, const struct origin_look *look, struct http_answer *out,
               struct error *e)
{
    *out = (struct http_answer){0};
    return o->inside ? ask_recording(o, path, body, timeout_ms, out, e)
                     : ask_job(o, path, body, type, timeout_ms, look, out, e);
}
