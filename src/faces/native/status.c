// status.c - sonde's own HTTP interface: what is served, and the health of the server.
#include "base/clock.h"
#include "base/process_memory.h"
#include "faces/native/dump.h"
#include "faces/native/handlers.h"
#include "http/workers.h"
#include "wire/drain.h"

#include <stdio.h>
#include <stdlib.h>

struct totals {
    uint64_t series, points, damaged_blocks, damaged_bytes;
    bool any_time;
    int64_t first_ns, last_ns;
};

static void write_range(struct json_writer *w, bool any, int64_t first_ns, int64_t last_ns)
{
    if (!any)
        return;
    json_key_i64(w, "first_ns", first_ns);
    json_key_i64(w, "last_ns", last_ns);
}

static void write_file(struct json_writer *w, struct sources *sources, struct source *file,
                       struct store_snapshot *snapshot, struct totals *t)
{
    static const char *const states[] = {
        [STORE_LIVE] = "live", [STORE_CLOSED] = "closed", [STORE_CRASHED] = "crashed"};
    const struct store_reader *reader = source_reader(file);
    uint64_t points = source_points(sources, file, snapshot);
    int64_t first_ns = 0, last_ns = 0;
    bool any = store_time_range(snapshot, &first_ns, &last_ns);
    struct store_damage damage = {0};
    store_reader_damage(reader, &damage);
    json_begin_object(w);
    json_key_string(w, "path", str_of(source_path(file)));
    json_key_string(w, "state", str_of(states[store_reader_state(reader)]));
    json_key_string(w, "host", store_reader_meta(reader, STR("host")));
    json_key_string(w, "job", store_reader_meta(reader, STR("job")));
    json_key_u64(w, "metrics", store_metric_count(snapshot));
    json_key_u64(w, "series", store_series_count(snapshot));
    json_key_u64(w, "points", points);
    write_range(w, any, first_ns, last_ns);
    json_key(w, STR("damage"));
    json_begin_object(w);
    json_key_u64(w, "blocks", damage.blocks);
    json_key_u64(w, "bytes", damage.bytes);
    json_key_string(w, "first", str_of(damage.first));
    json_end_object(w);
    json_end_object(w);
    t->series += store_series_count(snapshot);
    t->points += points;
    t->damaged_blocks += damage.blocks;
    t->damaged_bytes += damage.bytes;
    if (any && (!t->any_time || first_ns < t->first_ns))
        t->first_ns = first_ns;
    if (any && (!t->any_time || last_ns > t->last_ns))
        t->last_ns = last_ns;
    t->any_time |= any;
}

static void write_unreadable(struct json_writer *w, const struct source *file)
{
    json_begin_object(w);
    json_key_string(w, "path", str_of(source_path(file)));
    json_key_string(w, "state", STR("unreadable"));
    json_key_string(w, "error", str_of(source_problem(file)));
    json_end_object(w);
}

// Writes each run whose files are served; at most RUNS_MAX, because clients poll status.
static void write_runs(struct json_writer *w, const struct service *service,
                       const struct sources_view *view)
{
    enum { RUNS_MAX = 16, FOLDER_MAX = 4096 };
    char folder[FOLDER_MAX], before[FOLDER_MAX] = "";
    size_t written = 0;
    json_key(w, STR("runs"));
    json_begin_array(w);
    for (size_t i = 0; i < view->count && service->describe_run && written < RUNS_MAX; i++) {
        const char *path = source_path(view->files[i]), *slash = strrchr(path, '/');
        struct service_run run = {0};
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1,
                 slash ? path : ".");
        if (strcmp(folder, before) == 0 || !service->describe_run(folder, &run))
            continue;
        snprintf(before, sizeof before, "%s", folder);
        json_begin_object(w);
        json_key_string(w, "job", store_reader_meta(source_reader(view->files[i]), STR("job")));
        json_key_string(w, "command", str_of(run.command));
        json_key_i64(w, "level", run.level);
        json_key_i64(w, "start_ns", run.start_ns + service->shift_ns);
        if (run.end_ns) {
            json_key_i64(w, "end_ns", run.end_ns + service->shift_ns);
            json_key_i64(w, "exit_code", run.exit_code);
        }
        if (run.host && *run.host)
            json_key_string(w, "host", str_of(run.host));
        if (run.about) {
            json_key(w, STR("about"));
            json_put_raw(w, str_of(run.about));
        }
        json_end_object(w);
        free(run.command);
        free(run.host);
        free(run.about);
        written++;
    }
    json_end_array(w);
}

static void write_connections(struct json_writer *w, struct service *service)
{
    struct connection_counts c;
    connections_counts(service->connections, &c);
    json_key(w, STR("connections"));
    json_begin_object(w);
    json_key_u64(w, "open", c.open);
    json_key_u64(w, "busy", c.busy);
    json_key_u64(w, "accepted", c.accepted);
    json_key_u64(w, "evicted", c.evicted);
    json_key_u64(w, "refused", c.refused);
    json_key_u64(w, "timed_out", c.timed_out);
    json_key_u64(w, "unproved", c.unproved);
    json_key_u64(w, "waiting", c.waiting);
    json_end_object(w);
}

static void write_workers(struct json_writer *w, struct service *service)
{
    struct workers_counts c;
    workers_counts(service->workers, &c);
    json_key(w, STR("workers"));
    json_begin_object(w);
    json_key_u64(w, "threads", c.threads);
    json_key_u64(w, "running", c.running);
    json_key_u64(w, "slow", c.slow);
    json_key_u64(w, "queued", c.queued);
    json_key_u64(w, "held_bytes", c.held_bytes);
    json_key_u64(w, "answered", c.answered);
    json_key_u64(w, "hung_up", c.hung_up);
    json_key_u64(w, "refused_slow", c.refused_slow);
    json_key_u64(w, "refused_memory", c.refused_memory);
    json_end_object(w);
}

static void write_limits(struct json_writer *w, const struct service_limits *l)
{
    json_key(w, STR("limits"));
    json_begin_object(w);
    json_key_u64(w, "connections", l->connections);
    json_key_u64(w, "connections_per_client", l->connections_per_client);
    json_key_double(w, "query_deadline_seconds", (double)l->query_deadline_ns / NS_PER_S);
    json_key_double(w, "node_deadline_seconds", (double)l->node_deadline_ns / NS_PER_S);
    json_key_u64(w, "query_memory_bytes", l->query_memory_bytes);
    json_key_u64(w, "total_memory_bytes", l->total_memory_bytes);
    json_end_object(w);
}

static void write_node(struct json_writer *w, const struct hub_node *n, int64_t now_ns)
{
    json_begin_object(w);
    json_key_string(w, "host", n->host);
    json_key_bool(w, "connected", n->connected);
    if (n->via.size)
        json_key_string(w, "via", n->via);
    json_key_bool(w, "expected", n->expected);
    json_key_u64(w, "connections", n->connections);
    json_key_u64(w, "questions", n->questions);
    if (n->connected)
        json_key_double(w, "heard_seconds_ago", (double)(now_ns - n->last_frame_ns) / NS_PER_S);
    if (n->offset_known) {
        json_key_double(w, "clock_offset_seconds", (double)n->offset_ns / NS_PER_S);
        json_key_double(w, "clock_offset_error_seconds", (double)n->offset_error_ns / NS_PER_S);
        json_key_double(w, "round_trip_seconds", (double)n->round_trip_ns / NS_PER_S);
    }
    if (n->transport.size)
        json_key_string(w, "transport", n->transport);
    if (n->transport_problem.size)
        json_key_string(w, "transport_problem", n->transport_problem);
    json_key_u64(w, "transport_bytes", n->transport_bytes);
    json_key_u64(w, "bytes_in", n->bytes_in);
    json_key_u64(w, "bytes_out", n->bytes_out);
    json_end_object(w);
}

// Writes the other nodes from the hub's state, without requests. A node that is neither connected
// nor behind a connected relay is missing.
static void write_hub(struct json_writer *w, struct hub *hub, struct arena *arena)
{
    struct hub_stats s;
    const struct hub_node *nodes;
    size_t count = 0;
    int64_t now_ns = clock_monotonic_ns();
    if (hub_nodes(hub, arena, &nodes, &count) != 0)
        count = 0;
    hub_get_stats(hub, &s);
    json_key(w, STR("missing"));
    json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        if (!nodes[i].within_reach)
            json_put_string(w, nodes[i].host);
    json_end_array(w);
    json_key(w, STR("hub"));
    json_begin_object(w);
    json_key_i64(w, "port", hub_port(hub));
    json_key_u64(w, "accepted", s.accepted);
    json_key_u64(w, "refused_key", s.refused_key);
    json_key_u64(w, "refused_other",
                 s.refused_garbage + s.refused_time + s.refused_room + s.refused_old +
                     s.refused_excluded);
    json_key_u64(w, "replaced", s.replaced);
    json_key_u64(w, "lost", s.lost + s.dead);
    json_key_u64(w, "clients", s.clients);
    json_key_u64(w, "clients_taken", s.clients_taken);
    json_key_u64(w, "clients_refused", s.clients_refused);
    json_key_u64(w, "questions", s.questions);
    json_key_u64(w, "asked", s.node_questions);
    json_key_u64(w, "spared", s.spared);
    json_key_u64(w, "late", s.late);
    json_key_u64(w, "cancelled", s.cancelled);
    json_key(w, STR("nodes"));
    json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        write_node(w, &nodes[i], now_ns);
    json_end_array(w);
    json_end_object(w);
}

static void write_drains(struct json_writer *w, struct drainer *drainer)
{
    struct drainer_stats s;
    drainer_get_stats(drainer, &s);
    json_key(w, STR("drains"));
    json_begin_object(w);
    json_key_u64(w, "requests", s.requests);
    json_key_u64(w, "questions", s.questions);
    json_key_u64(w, "late", s.late);
    json_end_object(w);
}

void native_status(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct sources_view view;
    if (sources_open(service->reads.sources, &r->arena, &view, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    struct totals t = {0};
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    json_key_string(&w, "job", service->reads.job);
    json_key_string(&w, "version", STR(SONDE_VERSION));
    json_key_i64(&w, "level", service->level);
    json_key_double(&w, "uptime_seconds",
                    (double)(clock_monotonic_ns() - service->started_ns) / NS_PER_S);
    json_key_u64(&w, "memory_bytes", process_memory_resident_bytes());
    json_key_u64(&w, "own_memory_bytes", process_memory_bytes());
    if (service->site) { // NULL without an HTTP server
        write_connections(&w, service);
        write_workers(&w, service);
    }
    write_limits(&w, &service->limits);
    json_key_u64(&w, "decoded_bytes", query_cache_bytes(view.cache));
    if (service->reads.drainer)
        write_drains(&w, service->reads.drainer);
    if (service->reads.hub)
        write_hub(&w, service->reads.hub, &r->arena);
    if (service->agent_socket.size)
        dump_write(service->dump, service, &w);
    write_runs(&w, service, &view);
    json_key(&w, STR("files"));
    json_begin_array(&w);
    for (size_t i = 0; i < view.count; i++)
        write_file(&w, service->reads.sources, view.files[i], view.snapshots[i], &t);
    for (size_t i = 0; i < view.unreadable_count; i++)
        write_unreadable(&w, view.unreadable[i]);
    json_end_array(&w);
    json_key_i64(&w, "shift_ns", service->shift_ns);
    json_key_u64(&w, "files_left_out", view.left_out);
    json_key_u64(&w, "files_unreadable", view.unreadable_count);
    json_key_u64(&w, "series", t.series);
    json_key_u64(&w, "points", t.points);
    write_range(&w, t.any_time, t.first_ns, t.last_ns);
    json_key(&w, STR("damage"));
    json_begin_object(&w);
    json_key_u64(&w, "blocks", t.damaged_blocks);
    json_key_u64(&w, "bytes", t.damaged_bytes);
    json_end_object(&w);
    json_end_object(&w);
    sources_close(&view);
}

void native_health(struct service *service, struct request *r, struct answer *a)
{
    (void)service, (void)r;
    a->content_type = "text/plain; charset=UTF-8";
    buf_add_str(&a->body, STR("ok\n"));
}
