#include "ask/reading_internal.h"

#include "base/clock.h"
#include "base/storable_name.h"
#include "wire/drain.h"

#include <errno.h>
#include <stdlib.h>

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "no memory for the request");
}

int64_t reading_until(const struct query_request *request)
{
    int64_t until_ns = INT64_MIN;
    for (size_t i = 0; i < request->count; i++)
        until_ns = request->queries[i].end_ns > until_ns ? request->queries[i].end_ns : until_ns;
    return until_ns;
}

int reading_open(const struct reading_from *from, const struct reading_for *request,
                 int64_t until_ns, struct reading *out, struct error *e)
{
    *out = (struct reading){.from = from, .request = *request};
    if (from->drainer && drain_reaches(until_ns))
        // the drainer counts the points that it could not take over in time
        drainer_wait(from->drainer);
    int rc = sources_open(from->sources, request->arena, &out->view, e);
    if (rc || !from->hub)
        return rc;
    rc = sources_wire_view(&out->view, request->arena, &out->local, e);
    if (rc)
        sources_close(&out->view);
    return rc;
}

// ---- missing nodes ----

static int compare_missing(const void *a, const void *b)
{
    return str_compare(((const struct wire_missing *)a)->host,
                       ((const struct wire_missing *)b)->host);
}

static bool is_missing(const struct reading *d, struct str host)
{
    struct wire_missing key = {.host = host};
    return d->missing_count &&
           bsearch(&key, d->missing, d->missing_count, sizeof *d->missing, compare_missing) != NULL;
}

int reading_note_missing(struct reading *d, const struct hub_absent *absent, struct error *e)
{
    if (!absent->count)
        return 0;
    struct arena *arena = d->request.arena;
    struct wire_missing *all = arena_array(arena, d->missing_count + absent->count, sizeof *all);
    size_t count = d->missing_count;
    if (!all)
        return no_memory(e);
    if (count)
        memcpy(all, d->missing, count * sizeof *all);
    for (size_t i = 0; i < absent->count; i++) {
        const struct wire_missing *m = &absent->nodes[i];
        if (is_missing(d, m->host))
            continue;
        all[count] =
            (struct wire_missing){arena_str(arena, m->host), m->reason, arena_str(arena, m->text)};
        if (!all[count].host.data || !all[count++].text.data)
            return no_memory(e);
    }
    qsort(all, count, sizeof *all, compare_missing);
    d->missing = all;
    d->missing_count = count;
    return 0;
}

// Adds text to the value of a header, without the characters that could end the header.
static void add_plain(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        buf_add_char(out, c < ' ' || c >= 0x7f ? '?' : (char)c);
    }
}

// Adds "HOST (REASON: TEXT)" to the list. Returns false if it does not fit.
static bool add_name(struct buf *value, size_t left, struct str host, const char *reason,
                     struct str text)
{
    if (value->size > READING_MISSING_MAX) {
        buf_printf(value, ", and %zu more", left);
        return false;
    }
    buf_add_str(value, value->size ? STR(", ") : STR(""));
    add_plain(value, host);
    buf_printf(value, " (%s%s", reason, text.size ? ": " : "");
    add_plain(value, text);
    buf_add_char(value, ')');
    return true;
}

void reading_name_missing(const struct reading *d, struct buf *out)
{
    const struct wire_missing *m = d->missing;
    for (size_t i = 0; i < d->missing_count; i++)
        if (!add_name(out, d->missing_count - i, m[i].host, wire_reason_name(m[i].reason),
                      m[i].text))
            break;
}

void reading_close(struct reading *d)
{
    reading_drop_prepared(d);
    sources_close(&d->view);
}

void reading_write_missing(const struct reading *d, struct json_writer *w)
{
    if (!d->from->hub)
        return;
    json_key(w, STR("missing"));
    json_begin_array(w);
    for (size_t i = 0; i < d->missing_count; i++) {
        json_begin_object(w);
        json_key_string(w, "host", d->missing[i].host);
        json_key_string(w, "reason", str_of(wire_reason_name(d->missing[i].reason)));
        if (d->missing[i].text.size)
            json_key_string(w, "text", d->missing[i].text);
        json_end_object(w);
    }
    json_end_array(w);
}

// ---- nodes to ask ----

int reading_where(struct reading *d, struct hub_where *out, struct error *e)
{
    int64_t deadline_ns = clock_monotonic_ns() + d->request.node_deadline_ns,
            last_ns = d->request.deadline_ns;
    *out = (struct hub_where){.deadline_ns = deadline_ns < last_ns ? deadline_ns : last_ns,
                              .watch = d->request.watch,
                              .local = &d->local,
                              .local_deadline_ns = last_ns};
    if (!d->missing_count)
        return 0;
    struct arena *arena = d->request.arena;
    const struct hub_node *nodes;
    size_t count, n = 0;
    struct str own = hub_host(d->from->hub);
    struct str *hosts = hub_nodes(d->from->hub, arena, &nodes, &count)
                            ? NULL
                            : arena_array(arena, count + 1, sizeof *hosts);
    if (!hosts)
        return no_memory(e);
    hosts[n++] = own; // always included, because an empty list would mean all nodes
    for (size_t i = 0; i < count; i++)
        if (!is_missing(d, nodes[i].host))
            hosts[n++] = nodes[i].host;
    out->hosts = hosts;
    out->host_count = n;
    return 0;
}

// ---- questions ----

// The store removes only whole extents, so some points from before the window remain. Answers leave
// them out.
struct query reading_within_window(const struct reading_from *from, struct query q)
{
    int64_t oldest_ns = clock_realtime_ns() - from->window_ns;
    if (from->window_ns && q.start_ns < oldest_ns)
        q.start_ns = oldest_ns;
    if (q.end_ns < q.start_ns)
        q.end_ns = q.start_ns;
    return q;
}

int reading_query(struct reading *d, const struct query *query, struct arena *arena,
                  struct query_result *out, struct error *e)
{
    struct query within = reading_within_window(d->from, *query);
    const struct query *q = &within;
    struct query_limits limits = {.memory_bytes = d->request.memory_bytes,
                                  .deadline_ns = d->request.deadline_ns,
                                  .watch = d->request.watch};
    if (!d->from->hub) {
        struct query own = *q;
        own.store_labels = d->view.labels;
        limits.cache = d->view.cache;
        return query_run(&own, d->view.snapshots, d->view.count, &limits, arena, out, e);
    }
    struct hub_where where;
    struct hub_absent absent = {0};
    int rc = reading_where(d, &where, e);
    struct query_gather *prepared = rc ? NULL : reading_take_prepared(d, query);
    if (prepared)
        rc = hub_query_finish(d->from->hub, prepared, &where, arena, out, e);
    else if (!rc)
        rc = hub_query(d->from->hub, q, &limits, &where, arena, out, &absent, e);
    query_gather_destroy(prepared);
    if (!rc)
        known_metrics_add(d->from->known_metrics, q->metric);
    struct error lost = {0};
    int noted = reading_note_missing(d, &absent, &lost);
    if (noted && !rc)
        *e = lost;
    return rc ? rc : noted;
}

int reading_names(struct reading *d, struct str kind, struct str text, bool anywhere, size_t most,
                  const struct str **out, size_t *count, struct error *e)
{
    struct arena *arena = d->request.arena;
    if (!d->from->hub)
        return query_suggest(d->view.snapshots, d->view.count, kind, text, anywhere, most, arena,
                             out, count, e);
    struct ask_names_request m = {.kind = kind, .text = text, .anywhere = anywhere, .most = most};
    struct hub_where where;
    struct hub_absent absent = {0};
    int rc = reading_where(d, &where, e);
    if (!rc)
        rc = hub_names(d->from->hub, &m, &where, arena, out, count, &absent, e);
    return rc ? rc : reading_note_missing(d, &absent, e);
}

int reading_series(struct reading *d, const struct query_series_filter *filter,
                   const struct query_listed **out, size_t *count, struct error *e)
{
    struct arena *arena = d->request.arena;
    if (!d->from->hub)
        return series_list(&d->view, filter, d->request.deadline_ns, arena, out, count, e);
    struct hub_where where;
    struct hub_absent absent = {0};
    *out = NULL;
    *count = 0;
    int rc = reading_where(d, &where, e);
    if (!rc)
        rc = hub_series(d->from->hub, filter, &where, arena, out, count, &absent, e);
    return rc ? rc : reading_note_missing(d, &absent, e);
}

bool reading_metric_known(struct reading *d, struct str metric)
{
    const struct str *names;
    size_t count;
    if (series_metric_known(&d->view, metric))
        return true;
    // The list is sorted, so the exact name comes first among the names that begin with it.
    return d->from->hub &&
           reading_names(d, STR("metrics"), metric, false, 1, &names, &count, NULL) == 0 && count &&
           str_eq(names[0], metric);
}

struct str reading_built_in(const struct reading *d, struct str name)
{
    return d->from->resolve_alias ? d->from->resolve_alias(name) : STR("");
}

struct str reading_other_name(const struct reading_from *from, struct arena *arena, struct str name)
{
    struct str other = from->resolve_alias ? from->resolve_alias(name) : STR("");
    if (other.size)
        return str_eq(other, name) ? STR("") : other;
    if (!name.size || storable_name_is(name, STORE_NAME_MAX))
        return STR("");
    struct buf stored = {0};
    storable_name_add(&stored, name, STORE_NAME_MAX);
    other = arena_str(arena, buf_str(&stored));
    buf_free(&stored);
    return other.data ? other : STR("");
}

bool reading_may_be_empty(const struct reading *d, struct str name)
{
    return reading_built_in(d, name).size || d->missing_count ||
           (d->from->hub && known_metrics_has(d->from->known_metrics, name));
}

bool reading_find_metric(struct reading *d, struct str name, struct str *metric)
{
    *metric = name;
    if (reading_metric_known(d, name))
        return true;
    struct str other = reading_other_name(d->from, d->request.arena, name);
    if (other.size && reading_metric_known(d, other)) {
        *metric = other;
        return true;
    }
    if (!reading_may_be_empty(d, name))
        *metric = STR("");
    return false;
}

const struct store_metric *reading_metric(struct reading *d, const struct query_series *of)
{
    uint32_t id;
    for (size_t i = 0; i < d->view.count; i++)
        if (store_metric_find(d->view.snapshots[i], of->metric, &id))
            return store_metric_get(d->view.snapshots[i], id);
    struct query_series_filter f = {.metric = of->metric, .from_ns = INT64_MIN};
    for (size_t i = 0; i < of->tag_count && !f.tag_count; i++)
        if (str_eq(of->tags[i].key, STR("host")))
            f = (struct query_series_filter){
                .metric = of->metric, .tags = &of->tags[i], .tag_count = 1, .from_ns = INT64_MIN};
    const struct query_listed *all;
    size_t count;
    bool found = d->from->hub && reading_series(d, &f, &all, &count, NULL) == 0 && count;
    return found ? all[0].metric : NULL;
}

// ---- events ----

struct walk {
    reading_event_fn *take;
    void *user;
    const struct store_reader *reader;
    struct str host; // of the file; NULL until its first event, because most files have none
    const struct store_label *file_label;
    bool over;
};

static bool pass_on(const struct store_event *event, void *user)
{
    struct walk *w = user;
    if (!w->host.data)
        w->host = store_reader_meta(w->reader, STR("host"));
    w->over = !w->take(event, w->host, w->file_label, w->user);
    return !w->over;
}

static int own_events(struct reading *d, const struct store_event_selection *selection,
                      reading_event_fn *take, void *user, struct error *e)
{
    struct walk w = {.take = take, .user = user};
    int rc = 0;
    for (size_t i = 0; i < d->view.count && !rc && !w.over; i++) {
        w.file_label = d->view.labels ? &d->view.labels[i] : NULL;
        w.reader = source_reader(d->view.files[i]);
        w.host = (struct str){0};
        rc = store_events_find(d->view.snapshots[i], selection, pass_on, &w);
    }
    return rc ? error_set(e, rc, "cannot read events: %s", strerror(-rc)) : 0;
}

int reading_events(struct reading *d, const struct store_event_selection *selection,
                   reading_event_fn *take, void *user, struct error *e)
{
    if (!d->from->hub)
        return own_events(d, selection, take, user, e);
    const struct ask_event *all;
    size_t count = 0;
    struct hub_where where;
    struct hub_absent absent = {0};
    int rc = reading_where(d, &where, e);
    if (!rc)
        rc =
            hub_events(d->from->hub, selection, &where, d->request.arena, &all, &count, &absent, e);
    if (!rc)
        rc = reading_note_missing(d, &absent, e);
    for (size_t i = 0; i < count && !rc; i++)
        if (!take(&all[i].event, all[i].host, NULL, user))
            break;
    return rc;
}

// ---- files ----

static int own_status(struct reading *d, bool counts, const struct ask_status **out, size_t *count,
                      struct error *e)
{
    struct ask_status *all = arena_array(d->request.arena, d->view.count, sizeof *all);
    if (!all)
        return no_memory(e);
    for (size_t i = 0; i < d->view.count; i++) {
        const struct store_reader *reader = source_reader(d->view.files[i]);
        struct store_snapshot *snapshot = d->view.snapshots[i];
        all[i] = (struct ask_status){.host = store_reader_meta(reader, STR("host")),
                                     .job = store_reader_meta(reader, STR("job")),
                                     .state = store_reader_state(reader),
                                     .metrics = store_metric_count(snapshot),
                                     .series = store_series_count(snapshot)};
        struct store_losses losses = {0};
        if (counts)
            store_reader_losses(reader, &losses);
        all[i].dropped = losses.dropped;
        all[i].points = counts ? source_points(d->from->sources, d->view.files[i], snapshot) : 0;
        all[i].has_points = store_time_range(snapshot, &all[i].first_ns, &all[i].last_ns);
    }
    *out = all;
    *count = d->view.count;
    return 0;
}

int reading_status(struct reading *d, bool counts, const struct ask_status **out, size_t *count,
                   struct error *e)
{
    if (!d->from->hub)
        return own_status(d, counts, out, count, e);
    struct hub_where where;
    struct hub_absent absent = {0};
    int rc = reading_where(d, &where, e);
    if (!rc)
        rc = hub_status(d->from->hub, counts, &where, d->request.arena, out, count, &absent, e);
    return rc ? rc : reading_note_missing(d, &absent, e);
}
