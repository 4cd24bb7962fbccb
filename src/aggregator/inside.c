#include "aggregator/inside.h"

#include "base/clock.h"
#include "faces/native/handlers.h"
#include "store/no_recording.h"
#include "wire/drain.h"

#include <errno.h>
#include <stdlib.h>

struct inside {
    struct sources *sources;
    struct drainer *drainer; // of the agent that writes the first of them; NULL: none does
    const struct inside_names *names;
};

// What recordings can be asked. (routes.c would bring all of the server with it.)
static const struct {
    struct str path;
    route_fn *handle;
    enum request_method method;
} paths[] = {
    {STR("/sonde/v1/status"), native_status, METHOD_GET},
    {STR("/sonde/v1/nodes"), native_nodes, METHOD_GET},
    {STR("/sonde/v1/metrics"), native_metrics, METHOD_GET},
    {STR("/sonde/v1/series"), native_series, METHOD_GET},
    {STR("/sonde/v1/query"), native_query, METHOD_POST},
    {STR("/sonde/v1/spans"), native_spans, METHOD_GET},
    {STR("/sonde/v1/annotations"), native_annotations, METHOD_GET},
    {STR("/sonde/v1/findings"), native_findings, METHOD_GET},
    {STR("/sonde/v1/tags"), native_tags, METHOD_GET},
};

// A folder without a recording in it is a mistake here: nobody is going to write one.
static int check_any(struct inside *in, const char *path, struct error *e)
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

static int open_drainer(struct inside *in, const char *recording, struct error *e)
{
    char socket[DRAIN_SOCKET_MAX];
    return drain_find_socket(recording, socket)
               ? drainer_create(socket, DRAIN_CELLS, &in->drainer, e)
               : 0;
}

int inside_open(const char *const *given, size_t count, const struct inside_names *names,
                struct inside **out, struct error *e)
{
    struct inside *in = calloc(1, sizeof *in);
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

static const char *file_name(const struct source *file)
{
    const char *path = source_path(file), *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Files that cannot be read are missing in the answer, as nodes are that do not answer; so are
// damaged blocks that the question came across. NULL: nothing is.
static char *name_missing(struct inside *in, struct arena *arena)
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

static struct service make_service(struct inside *in, int64_t timeout_ns)
{
    return (struct service){
        .reads = {.sources = in->sources,
                  .drainer = in->drainer,
                  .resolve_alias = in->names->resolve_alias,
                  .alias_at = in->names->alias_at},
        .describe_run = in->names->describe_run,
        .limits = {.query_deadline_ns = timeout_ns,
                   .query_memory_bytes = INSIDE_QUERY_BYTES,
                   .answer_bytes = INSIDE_ANSWER_BYTES},
        .started_ns = clock_monotonic_ns(),
    };
}

void inside_ask(struct inside *in, struct str target, struct str body, int64_t timeout_ns,
                struct answer *out, char **missing)
{
    struct service service = make_service(in, timeout_ns);
    struct request r = {.method = body.data ? METHOD_POST : METHOD_GET,
                        .body = body,
                        .arrived_ns = clock_monotonic_ns()};
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
    *missing = name_missing(in, &r.arena);
    answer_finish(out, &r);
    request_free(&r);
}

// What the metric of each series says of its values; series of one metric follow each other.
static int describe(struct reading *d, struct inside_points *out, struct error *e)
{
    struct inside_metric known = {0};
    const struct query_series *before = NULL;
    out->metrics = arena_array(&out->arena, out->result.count, sizeof *out->metrics);
    for (size_t i = 0; out->metrics && i < out->result.count; i++) {
        const struct query_series *s = &out->result.series[i];
        if (!before || !str_eq(before->metric, s->metric)) {
            const struct store_metric *m = reading_metric(d, s);
            known = (struct inside_metric){arena_str(&out->arena, m ? m->unit : STR("")),
                                           m && m->kind == STORE_COUNTER};
            if (!known.unit.data)
                return error_set(e, -ENOMEM, "no memory for the answer");
        }
        out->metrics[i] = known;
        before = s;
    }
    return out->metrics ? 0 : error_set(e, -ENOMEM, "no memory for the answer");
}

bool inside_query(struct inside *in, struct str body, int64_t timeout_ns, struct inside_points *out,
                  struct answer *failure)
{
    struct service service = make_service(in, timeout_ns);
    struct request r = {.method = METHOD_POST, .body = body, .arrived_ns = clock_monotonic_ns()};
    struct query_request request;
    struct reading d;
    struct error e = {0};
    *out = (struct inside_points){0};
    answer_begin(failure, INSIDE_ANSWER_BYTES);
    bool good = native_query_open(&service, &r, &request, &d, failure);
    if (good) {
        int rc = request.count == 1 ? native_run(&d, &request, 0, &out->arena, &out->result, &e)
                                    : error_set(&e, -EINVAL, "this is a question of one query");
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
