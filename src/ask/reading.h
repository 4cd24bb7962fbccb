// reading.h - the data that one request reads: our own files and, if a hub exists, the files of all
// other nodes as if they were local, too.
//
//   handler ─▶ reading ─┬─▶ sources_view (snapshots of our own files)
//                       └─▶ hub ─▶ every node; X-Sonde-Missing lists those that answer too late
//
// Each question to the nodes has the timeout node_deadline_ns; reading our own files may take as
// long as the request. If a node was missing once, the request does not ask it again. So a node
// delays a request only once, and is either in all parts of the answer or listed as missing.
// Without a hub, no node can be missing.
#ifndef SONDE_ASK_READING_H
#define SONDE_ASK_READING_H

#include "ask/known_metrics.h"
#include "ask/lists_wire.h"
#include "ask/series_list.h"
#include "base/json_writer.h"

enum {
    // maximum bytes of reading_name_missing's text, which ends with the number of hosts that do not
    // fit
    READING_MISSING_MAX = 4096,
};

// Returns the name in stores of the built-in metric that has `name` as its name or alias; empty if
// no such metric exists. A query for a built-in metric without series returns an empty result; a
// query for any other name without series fails.
typedef struct str metric_alias_fn(struct str name);

// Stores the alias with this index, and its built-in metric. Returns false if the index is too
// large.
typedef bool metric_alias_at_fn(size_t index, struct str *alias, struct str *metric);

struct drainer;

// The data sources of a process. Constant, except for the objects behind the pointers, which are
// thread-safe.
struct reading_from {
    struct sources *sources; // our own files
    struct hub *hub;         // connections to the job's other nodes; NULL: there are none
    struct str job;          // the running job; empty: recordings of any job
    // requests drains of this node's agent (wire/drain.h); NULL: no data are live
    struct drainer *drainer;
    struct known_metrics *known_metrics; // NULL without a hub: our own files keep their metrics
    metric_alias_fn *resolve_alias;      // NULL = no built-in metrics
    metric_alias_at_fn *alias_at;        // NULL = no aliases
    int64_t window_ns;                   // answers leave out older points; 0 = they include all
};

// The limits of one request.
struct reading_for {
    struct arena *arena;
    const struct work_watch *watch; // NULL: nothing can end the request
    int64_t deadline_ns;            // CLOCK_MONOTONIC
    int64_t node_deadline_ns;       // timeout of each question to the nodes
    size_t memory_bytes;            // memory limit of each query
};

struct reading {
    const struct reading_from *from;
    struct reading_for request;
    struct sources_view view; // our own files
    struct wire_view local;   // the same view, for the hub
    struct wire_missing *missing;
    size_t missing_count;
    struct reading_prepared *prepared; // NULL: nothing was prepared
};

// Opens the files of a request. `until_ns` is the end of the period that the request covers
// (INT64_MAX: now). If it covers the present of a running job, the agent first stores the points
// that programs of this node have emitted so far (wire/drain.h).
int reading_open(const struct reading_from *from, const struct reading_for *request,
                 int64_t until_ns, struct reading *out, struct error *e);

// Returns the latest end of the request's queries.
int64_t reading_until(const struct query_request *request);

void reading_close(struct reading *d);

// Writes "HOST (REASON: TEXT), …" of the missing nodes, for a header; nothing if none is missing.
void reading_name_missing(const struct reading *d, struct buf *out);

// Sends all queries that reading_run will run to the nodes in one question, and keeps the merged
// answers for reading_run. Without a hub, or for fewer than two queries, it does nothing. It
// reports no error: reading_run asks for the queries that it could not send.
//
// The question has the timeout node_deadline_ns. Nodes that are late, but have answered some of the
// queries, do not count as missing: reading_run asks for the other queries one by one.
void reading_prepare(struct reading *d, const struct query *queries, size_t count);

// Runs one query as query_run does, under the limits of the service. Results are in `arena`.
int reading_query(struct reading *d, const struct query *query, struct arena *arena,
                  struct query_result *out, struct error *e);

// Like reading_query. If the metric is unknown, it also tries the metric's alias. A query by spans
// has a result for each span.
int reading_run(struct reading *d, struct query q, struct arena *arena, struct query_result *out,
                struct error *e);

// Like query_suggest. `kind` is "metrics", "tagk" or "tagv".
int reading_names(struct reading *d, struct str kind, struct str text, bool anywhere, size_t most,
                  const struct str **out, size_t *count, struct error *e);

// Like series_list.
int reading_series(struct reading *d, const struct query_series_filter *filter,
                   const struct query_listed **out, size_t *count, struct error *e);

// True if any file has the metric.
bool reading_metric_known(struct reading *d, struct str metric);

// Finds the metric that a request names. Returns true if a file has it; *metric is then its name in
// the files. If no file has it, *metric is empty if the name is a mistake. It is not empty if the
// metric may have no series: a built-in metric, a metric that the job had before, or one that a
// missing node may have.
bool reading_find_metric(struct reading *d, struct str name, struct str *metric);

// Returns the stored name of the built-in metric that has `name` as its name or alias. Empty: no
// such metric exists.
struct str reading_built_in(const struct reading *d, struct str name);

// Returns the second name under which files may have the metric `name`: the built-in metric with
// this alias, or the storable form of the name (base/storable_name.h). Empty: there is no second
// name.
struct str reading_other_name(const struct reading_from *from, struct arena *arena,
                              struct str name);

// Call it after a search for `name` and its second name found nothing. Returns true if the metric
// may have no series, and false if the name is a mistake.
bool reading_may_be_empty(const struct reading *d, struct str name);

// Returns the first definition of a result's metric, or NULL if none is found. If the series has a
// host, it asks only nodes that hold series of this host.
const struct store_metric *reading_metric(struct reading *d, const struct query_series *of);

// Calls `take` with each selected event until `take` returns false. Events come file by file; if
// nodes are asked, they come sorted by start. `file_label` is the label that the file adds, or
// NULL.
typedef bool reading_event_fn(const struct store_event *event, struct str host,
                              const struct store_label *file_label, void *user);
int reading_events(struct reading *d, const struct store_event_selection *selection,
                   reading_event_fn *take, void *user, struct error *e);

// Returns one entry for each file. With `counts`, entries include the numbers of points and of
// dropped points.
int reading_status(struct reading *d, bool counts, const struct ask_status **out, size_t *count,
                   struct error *e);

// Adds the nodes that were missing from a question that the caller sent itself (with `local`).
// Returns 0 or -ENOMEM.
int reading_note_missing(struct reading *d, const struct hub_absent *absent, struct error *e);

// Writes "missing":[{"host":…,"reason":…}]; writes nothing without a hub.
void reading_write_missing(const struct reading *d, struct json_writer *w);

#endif
