// routes.h - what is served where: one table, from which dispatch, 404, 405, the OpenAPI document and docs/http.md come.
#ifndef SONDE_HTTP_ROUTES_H
#define SONDE_HTTP_ROUTES_H

#include "aggregator/aggregator.h"
#include "ask/known_metrics.h"
#include "ask/sources.h"
#include "http/auth.h"
#include "http/connections.h"
#include "http/request.h"
#include "http/respond.h"
#include "query/query.h"
#include "wire/hub.h"

#include <stdatomic.h>

struct reading;

// What handlers may use. Constant after the start, except what is behind the pointers (thread-safe).
struct service {
    struct sources *sources;
    struct hub *hub;         // of the job's other nodes; NULL: there are none
    struct drainer *drainer; // asks this node's agent (wire/drain.h); NULL: nothing is live
    struct connections *connections;
    struct workers *workers;
    struct memory_account memory;        // of requests and of what is kept for the next ones
    struct memory_account stream_memory; // of it: what waits for clients that follow a stream
    struct auth auth;
    struct aggregator_limits limits; // no zeros
    aggregator_alias_fn *resolve_alias;
    aggregator_alias_at_fn *alias_at;
    aggregator_run_fn *describe_run;     // NULL: nothing is known of runs
    struct known_metrics *known_metrics; // NULL without a hub: our own files forget none
    struct str cors;                     // origins whose pages may read, separated by commas, or "*"; empty = none
    struct dump *dump;                   // the one that is being made
    const char *dump_node, *dump_dir;    // the destination of a dump that names none; empty: this node
    struct str job, agent_socket;        // agent_socket: NUL-terminated, empty for recordings
    int level;
    int64_t window_ns; // 0 = none
    bool only_dragon_points;
    bool dragon_compatible;
    aggregator_reboot_fn *reboot; // NULL: the command cannot be started again
    void *reboot_user;
    aggregator_collector_fn *collector; // NULL: nobody can start any
    void *collector_user;
    int64_t started_ns;       // clock_monotonic_ns
    _Atomic unsigned streams; // open now
    int64_t shift_ns;         // recordings are shown so much later than they were made
};

// The time of a recording that is shown as `t_ns`. At the ends of time it stays there.
static inline int64_t service_recorded_ns(const struct service *service, int64_t t_ns)
{
    int64_t recorded_ns;
    if (!__builtin_sub_overflow(t_ns, service->shift_ns, &recorded_ns))
        return recorded_ns;
    return service->shift_ns > 0 ? INT64_MIN : INT64_MAX;
}

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
    const char *help;       // for the OpenAPI document
    const char *parameters; // names, separated by blanks, those that are needed with a ! behind; NULL = none
};
enum { ROUTE_OPEN_BODY_MAX = 1024 };
const struct route *routes_all(size_t *count);

// Finds, checks and calls: the whole way from a request to an answer, but for answer_finish.
void routes_answer(struct service *service, struct request *r, struct answer *a);

// Whether a body is worth reading: false when the answer is known without it (no token, no such route…) and is in *a. Of the
// request, everything but the body must be there. *open says whether the route needs no token: then the body may have ROUTE_OPEN_BODY_MAX, and the answer takes no time.
bool routes_admit(struct service *service, struct request *r, struct answer *a, bool *open);

// faces/native/data.c
void native_nodes(struct service *service, struct request *r, struct answer *a);
void native_metrics(struct service *service, struct request *r, struct answer *a);
void native_series(struct service *service, struct request *r, struct answer *a);
void native_query(struct service *service, struct request *r, struct answer *a);
void native_spans(struct service *service, struct request *r, struct answer *a);
void native_annotations(struct service *service, struct request *r, struct answer *a);
void native_stream(struct service *service, struct request *r, struct answer *a);
// faces/native/question.c
// The queries of a body, as recorded. -EINVAL, -E2BIG.
int native_query_parse(const struct service *service, struct request *r, struct query_request *out, struct error *e);
// The same, and what they are asked of. False: the answer says why not.
bool native_query_open(struct service *service, struct request *r, struct query_request *out, struct reading *d,
                       struct answer *a);
// Runs the i-th of them, as opentsdb_run.
int native_run(struct reading *d, const struct query_request *request, size_t i, struct arena *arena,
               struct query_result *out, struct error *e);
// The job that the reading is of: where it is several jobs', the first one's.
struct str native_job(const struct reading *d);
// faces/native/tags.c
void native_tags(struct service *service, struct request *r, struct answer *a);
// faces/native/arrow.c
#define NATIVE_ARROW_TYPE "application/vnd.apache.arrow.stream"
void native_query_arrow(struct service *service, struct request *r, struct answer *a);
// faces/native/binary.c
void native_query_binary(struct service *service, struct request *r, struct answer *a);
// openapi.c
void native_openapi(struct service *service, struct request *r, struct answer *a);
// faces/opentsdb/query.c
// Runs one query, under the limits of the service; a metric that nobody knows is tried by its other name.
struct reading;
int opentsdb_run(struct reading *d, struct query q, struct arena *arena, struct query_result *out, struct error *e);
void opentsdb_query(struct service *service, struct request *r, struct answer *a);
// faces/opentsdb/annotation.c
void opentsdb_annotation(struct service *service, struct request *r, struct answer *a);
void opentsdb_annotation_bulk(struct service *service, struct request *r, struct answer *a);
void opentsdb_annotations(struct service *service, struct request *r, struct answer *a);
// faces/opentsdb/exp.c
void opentsdb_exp(struct service *service, struct request *r, struct answer *a);
// faces/opentsdb/gexp.c
void opentsdb_gexp(struct service *service, struct request *r, struct answer *a);
// faces/opentsdb/lookup.c
void opentsdb_lookup(struct service *service, struct request *r, struct answer *a);
// openmetrics.c
void openmetrics_latest(struct service *service, struct request *r, struct answer *a);
// faces/opentsdb/last.c
void opentsdb_last(struct service *service, struct request *r, struct answer *a);
// faces/opentsdb/put.c
void opentsdb_put(struct service *service, struct request *r, struct answer *a);
void dragon_metrics(struct service *service, struct request *r, struct answer *a);
void dragon_nothing(struct service *service, struct request *r, struct answer *a);
void dragon_ready(struct service *service, struct request *r, struct answer *a);
// faces/opentsdb/admin.c
void opentsdb_stats(struct service *service, struct request *r, struct answer *a);
void opentsdb_drop_caches(struct service *service, struct request *r, struct answer *a);
void opentsdb_assign(struct service *service, struct request *r, struct answer *a);
void dragon_token(struct service *service, struct request *r, struct answer *a);
void dragon_shutdown(struct service *service, struct request *r, struct answer *a);
// dump.c
void native_dump(struct service *service, struct request *r, struct answer *a);
// collectors.c
void native_collectors(struct service *service, struct request *r, struct answer *a);
// reboot.c
void native_reboot(struct service *service, struct request *r, struct answer *a);
void dragon_reboot(struct service *service, struct request *r, struct answer *a);
// faces/opentsdb/metadata.c
void opentsdb_suggest(struct service *service, struct request *r, struct answer *a);
void opentsdb_aggregators(struct service *service, struct request *r, struct answer *a);
void opentsdb_configuration(struct service *service, struct request *r, struct answer *a);
void opentsdb_filters(struct service *service, struct request *r, struct answer *a);
void opentsdb_version(struct service *service, struct request *r, struct answer *a);
// native.c
void native_status(struct service *service, struct request *r, struct answer *a);
void native_proof(struct service *service, struct request *r, struct answer *a);
void native_health(struct service *service, struct request *r, struct answer *a);
void native_page(struct service *service, struct request *r, struct answer *a);

#endif
