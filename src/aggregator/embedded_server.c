#include "aggregator/embedded_server.h"

#include "base/clock.h"
#include "faces/native/handlers.h"
#include "store/no_recording.h"
#include "wire/drain.h"

#include <errno.h>
#include <stdlib.h>

struct embedded_server {
    struct sources *sources;
    // requests drains of the agent that writes the first recording; NULL: no agent writes it
    struct drainer *drainer;
    const struct embedded_server_names *names;
};

static const struct route routes[] = {
#include "aggregator/recording_routes.def"
};

// Fails if a folder has no recording, because no agent is about to write one.
static int check_any(struct embedded_server *in, const char *path, struct error *e)
{
    struct arena arena = {0};
    struct sources_view view;
    int rc = sources_open(in->sources, &arena, &view, e);
    if (!rc) {
        if (!view.count)
            rc = view.unreadable_count
                     ? error_set(e, -EBADMSG, "%s", source_problem(view.unreadable[0]))
                     : no_recording(path, e);
        sources_close(&view);
    }
    arena_free(&arena);
    return rc;
}

static int open_drainer(struct embedded_server *in, const char *recording, struct error *e)
{
    char socket[DRAIN_SOCKET_MAX];
    return drain_find_socket(recording, socket)
               ? drainer_create(socket, DRAIN_CELLS, &in->drainer, e)
               : 0;
}

int embedded_server_open(const char *const *given, size_t count,
                         const struct embedded_server_names *names, struct embedded_server **out,
                         struct error *e)
{
    struct embedded_server *in = calloc(1, sizeof *in);
    *out = NULL;
    if (!in)
        return error_set(e, -ENOMEM, "out of memory");
    in->names = names;
    int rc = sources_create(given, count, true, &in->sources, e);
    if (!rc)
        rc = check_any(in, given[0], e);
    if (!rc)
        rc = open_drainer(in, given[0], e);
    if (rc) {
        embedded_server_close(in);
        return rc;
    }
    *out = in;
    return 0;
}

void embedded_server_close(struct embedded_server *in)
{
    if (!in)
        return;
    drainer_destroy(in->drainer);
    if (in->sources)
        sources_destroy(in->sources);
    free(in);
}

static const char *file_name(const struct source *file)
{
    const char *path = source_path(file), *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Lists the unreadable files and damaged blocks whose data the answer lacks, in the same form as
// nodes that do not answer. NULL: the answer is complete.
static char *name_missing(struct embedded_server *in, struct arena *arena)
{
    struct sources_view view;
    struct buf names = {0};
    if (sources_open(in->sources, arena, &view, NULL) != 0)
        return NULL;
    for (size_t i = 0; i < view.unreadable_count; i++)
        buf_printf(&names, "%s%s (unreadable: %s)", names.size ? ", " : "",
                   file_name(view.unreadable[i]), source_problem(view.unreadable[i]));
    for (size_t i = 0; i < view.count; i++) {
        struct store_damage damage;
        store_reader_damage(source_reader(view.files[i]), &damage);
        if (damage.blocks)
            buf_printf(&names, "%s%s (%llu blocks are damaged and left out: %s)",
                       names.size ? ", " : "", file_name(view.files[i]),
                       (unsigned long long)damage.blocks, damage.first);
    }
    sources_close(&view);
    char *text = names.size ? strdup(buf_cstr(&names)) : NULL;
    buf_free(&names);
    return text;
}

static struct service make_service(struct embedded_server *in, int64_t timeout_ns)
{
    return (struct service){
        .reads = {.sources = in->sources,
                  .drainer = in->drainer,
                  .resolve_alias = in->names->resolve_alias,
                  .alias_at = in->names->alias_at},
        .describe_run = in->names->describe_run,
        .limits = {.query_deadline_ns = timeout_ns,
                   .query_memory_bytes = EMBEDDED_QUERY_BYTES,
                   .answer_bytes = EMBEDDED_ANSWER_BYTES},
        .started_ns = clock_monotonic_ns(),
    };
}

void embedded_server_ask(struct embedded_server *in, struct str target, struct str body,
                         int64_t timeout_ns, struct answer *out, char **missing)
{
    struct service service = make_service(in, timeout_ns);
    struct request r = {.method = body.data ? METHOD_POST : METHOD_GET,
                        .body = body,
                        .arrived_ns = clock_monotonic_ns()};
    struct error e = {0};
    answer_begin(out, EMBEDDED_ANSWER_BYTES);
    size_t i = 0;
    const size_t count = sizeof routes / sizeof *routes;
    int rc = request_parse_target(&r, target, &e);
    while (!rc && i < count && !(str_eq(routes[i].path, r.path) && routes[i].methods & r.method))
        i++;
    if (rc)
        answer_failure(out, &e);
    else if (i == count)
        answer_error(out, 404, "recordings do not answer this request; running jobs do", NULL);
    else
        routes[i].handle(&service, &r, out);
    *missing = name_missing(in, &r.arena);
    answer_finish(out, &r);
    request_free(&r);
}

// Finds unit and kind of each series. Series of one metric are adjacent.
static int describe(struct reading *d, struct embedded_server_points *out, struct error *e)
{
    struct embedded_server_metric known = {0};
    const struct query_series *before = NULL;
    out->metrics = arena_array(&out->arena, out->result.count, sizeof *out->metrics);
    for (size_t i = 0; out->metrics && i < out->result.count; i++) {
        const struct query_series *s = &out->result.series[i];
        if (!before || !str_eq(before->metric, s->metric)) {
            const struct store_metric *m = reading_metric(d, s);
            known = (struct embedded_server_metric){arena_str(&out->arena, m ? m->unit : STR("")),
                                                    m && m->kind == STORE_COUNTER};
            if (!known.unit.data)
                return error_set(e, -ENOMEM, "no memory for the answer");
        }
        out->metrics[i] = known;
        before = s;
    }
    return out->metrics ? 0 : error_set(e, -ENOMEM, "no memory for the answer");
}

bool embedded_server_query(struct embedded_server *in, struct str body, int64_t timeout_ns,
                           struct embedded_server_points *out, struct answer *failure)
{
    struct service service = make_service(in, timeout_ns);
    struct request r = {.method = METHOD_POST, .body = body, .arrived_ns = clock_monotonic_ns()};
    struct query_request request;
    struct reading d;
    struct error e = {0};
    *out = (struct embedded_server_points){0};
    answer_begin(failure, EMBEDDED_ANSWER_BYTES);
    bool good = native_query_open(&service, &r, &request, &d, failure);
    if (good) {
        int rc = request.count == 1
                     ? native_run(&d, &request, 0, &out->arena, &out->result, &e)
                     : error_set(&e, -EINVAL, "the request has to have a single query");
        if (!rc)
            rc = describe(&d, out, &e);
        service_read_end(&d, NULL);
        if (rc)
            answer_failure(failure, &e);
        good = !rc;
    }
    if (good)
        out->missing = name_missing(in, &r.arena);
    else
        arena_free(&out->arena);
    request_free(&r);
    if (good)
        answer_free(failure);
    return good;
}
