#include "aggregator/inside.h"

#include "aggregator/routes.h"
#include "base/clock.h"
#include "store/no_recording.h"
#include "wire/drain.h"

#include <errno.h>
#include <stdlib.h>

struct inside {
    struct sources *sources;
    struct drainer *drainer; // of the agent that writes the first of them; NULL: none does
    aggregator_alias_fn *resolve_alias;
    aggregator_alias_at_fn *alias_at;
};

// What recordings can be asked. (routes.c would bring all of the server with it.)
static const struct {
    struct str path;
    route_fn *handle;
    enum request_method method;
} paths[] = {
    {STR("/sonde/v1/nodes"), native_nodes, METHOD_GET},
    {STR("/sonde/v1/metrics"), native_metrics, METHOD_GET},
    {STR("/sonde/v1/series"), native_series, METHOD_GET},
    {STR("/sonde/v1/query"), native_query, METHOD_POST},
    {STR("/sonde/v1/spans"), native_spans, METHOD_GET},
    {STR("/sonde/v1/annotations"), native_annotations, METHOD_GET},
};

// A folder without a recording in it is a mistake here: nobody is going to write one.
static int check_any(struct inside *in, const char *path, struct error *e)
{
    struct arena arena = {0};
    struct sources_view view;
    int rc = sources_open(in->sources, &arena, &view, e);
    if (!rc) {
        if (!view.count)
            rc = view.unreadable_count ? error_set(e, -EBADMSG, "%s", source_problem(view.unreadable[0]))
                                       : no_recording(path, e);
        sources_close(&view);
    }
    arena_free(&arena);
    return rc;
}

static int open_drainer(struct inside *in, const char *recording, struct error *e)
{
    char socket[DRAIN_SOCKET_MAX];
    return drain_find_socket(recording, socket) ? drainer_create(socket, DRAIN_CELLS, &in->drainer, e) : 0;
}

int inside_open(const char *const *given, size_t count, aggregator_alias_fn *resolve_alias,
                aggregator_alias_at_fn *alias_at, struct inside **out, struct error *e)
{
    struct inside *in = calloc(1, sizeof *in);
    *out = NULL;
    if (!in)
        return error_set(e, -ENOMEM, "out of memory");
    in->resolve_alias = resolve_alias;
    in->alias_at = alias_at;
    int rc = sources_create(given, count, true, &in->sources, e);
    if (!rc)
        rc = check_any(in, given[0], e);
    if (!rc)
        rc = open_drainer(in, given[0], e);
    if (rc) {
        inside_close(in);
        return rc;
    }
    *out = in;
    return 0;
}

void inside_close(struct inside *in)
{
    if (!in)
        return;
    drainer_destroy(in->drainer);
    if (in->sources)
        sources_destroy(in->sources);
    free(in);
}

// Files that cannot be read are missing in the answer, as nodes are that do not answer. NULL: there are none.
static char *name_unreadable(struct inside *in, struct arena *arena)
{
    struct sources_view view;
    struct buf names = {0};
    if (sources_open(in->sources, arena, &view, NULL) != 0)
        return NULL;
    for (size_t i = 0; i < view.unreadable_count; i++) {
        const char *path = source_path(view.unreadable[i]), *name = strrchr(path, '/');
        buf_printf(&names, "%s%s (unreadable)", i ? ", " : "", name ? name + 1 : path);
    }
    sources_close(&view);
    char *text = names.size ? strdup(buf_cstr(&names)) : NULL;
    buf_free(&names);
    return text;
}

void inside_ask(struct inside *in, struct str target, struct str body, int64_t timeout_ns, struct answer *out,
                char **missing)
{
    struct service service = {
        .sources = in->sources,
        .drainer = in->drainer,
        .resolve_alias = in->resolve_alias,
        .alias_at = in->alias_at,
        .limits = {.query_deadline_ns = timeout_ns,
                   .query_memory_bytes = INSIDE_QUERY_BYTES,
                   .answer_bytes = INSIDE_ANSWER_BYTES},
        .started_ns = clock_monotonic_ns(),
    };
    struct request r = {
        .method = body.data ? METHOD_POST : METHOD_GET, .body = body, .arrived_ns = clock_monotonic_ns()};
    struct error e = {0};
    answer_begin(out, INSIDE_ANSWER_BYTES);
    size_t i = 0;
    const size_t count = sizeof paths / sizeof *paths;
    int rc = request_parse_target(&r, target, &e);
    while (!rc && i < count && !(str_eq(paths[i].path, r.path) && paths[i].method == r.method))
        i++;
    if (rc)
        answer_failure(out, &e);
    else if (i == count)
        answer_error(out, 404, "a recording cannot be asked this; a running job can", NULL);
    else
        paths[i].handle(&service, &r, out);
    *missing = name_unreadable(in, &r.arena);
    answer_finish(out, &r);
    request_free(&r);
}
