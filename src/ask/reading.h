// reading.h - what one request reads: our own files and, where there is a hub, the files of all
// other nodes as if they lay beside ours.
//
//   handler ─▶ reading ─┬─▶ sources_view (snapshots of our own files)
//                       └─▶ hub ─▶ every node                          who does not answer in time is named: X-Sonde-Missing
//
// Each question to the nodes has node_deadline_ns; our own files may be read for as long as the
// request may take. A node that was missing once is not asked again by the same request, so that it
// delays the answer once and is in all of it or named. Without a hub there is nobody to be missing.
#ifndef SONDE_ASK_READING_H
#define SONDE_ASK_READING_H

#include "ask/known_metrics.h"
#include "ask/lists_wire.h"
#include "ask/series_list.h"
#include "base/json_writer.h"

enum {
    // bytes of reading_name_missing; how many more there are stands at its end
    READING_MISSING_MAX = 4096,
};

// `name` is that of a built-in metric, or another name of it. Returns its name in stores; empty: no
// metric has that name. A built-in metric without series is answered with nothing; any other name
// without series is refused.
typedef struct str metric_alias_fn(struct str name);

// The index-th of the other names, and the built-in metric that it names. False: there are fewer.
typedef bool metric_alias_at_fn(size_t index, struct str *alias, struct str *metric);

struct drainer;

// What a process can read. Constant, except what is behind the pointers (thread-safe).
struct reading_from {
    struct sources *sources; // our own files
    struct hub *hub;         // of the job's other nodes; NULL: there are none
    struct str job;          // that is running; empty: recordings of any are read
    // asks this node's agent (wire/drain.h); NULL: nothing is live
    struct drainer *drainer;
    struct known_metrics *known_metrics; // NULL without a hub: our own files forget none
    metric_alias_fn *resolve_alias;      // NULL = there are no built-in metrics
    metric_alias_at_fn *alias_at;        // NULL = none of them has another name
    int64_t window_ns;                   // answers have no older points; 0 = they have all
};

// What one request may take.
struct reading_for {
    struct arena *arena;
    const struct work_watch *watch; // NULL: nobody ends it
    int64_t deadline_ns;            // CLOCK_MONOTONIC
    int64_t node_deadline_ns;       // so long each question to the nodes
    size_t memory_bytes;            // of a query
};

struct reading {
    const struct reading_from *from;
    struct reading_for request;
    struct sources_view view; // our own files
    struct wire_view local;   // the same, for the hub
    struct wire_missing *missing;
    size_t missing_count;
};

// `until_ns`: the end of the times that the request is about (INT64_MAX: now). If it is about the
// present of a running job, the agent first takes over what programs of this node have emitted so
// far (wire/drain.h).
int reading_open(const struct reading_from *from, const struct reading_for *request,
                 int64_t until_ns, struct reading *out, struct error *e);

// The latest end of the request's queries.
int64_t reading_until(const struct query_request *request);

void reading_close(struct reading *d);

// "HOST (REASON: TEXT), …" of the nodes that were missing, for a header; nothing if none was.
void reading_name_missing(const struct reading *d, struct buf *out);

// One query under the limits of the service, as query_run has it. Results go into `arena`.
int reading_query(struct reading *d, const struct query *asked, struct arena *arena,
                  struct query_result *out, struct error *e);

// The same; a metric that nobody knows is tried by its other name, and a query by spans has a
// result for each.
int reading_run(struct reading *d, struct query q, struct arena *arena, struct query_result *out,
                struct error *e);

// As query_suggest. `kind` "metrics", "tagk" or "tagv".
int reading_names(struct reading *d, struct str kind, struct str text, bool anywhere, size_t most,
                  const struct str **out, size_t *count, struct error *e);

// As series_list.
int reading_series(struct reading *d, const struct query_series_filter *filter,
                   const struct query_listed **out, size_t *count, struct error *e);

// Whether some file has the metric.
bool reading_metric_known(struct reading *d, struct str metric);

// The metric that a request names. True: *metric is it, by the name under which files have it.
// False: no file has it; *metric is empty if the name is a mistake, and not if it may have no
// series: that of a built-in metric, one that the job had, or one that a missing node may have.
bool reading_find_metric(struct reading *d, struct str name, struct str *metric);

// The name in stores of the built-in metric `name`, or of the one that has `name` as another name.
// Empty: there is no such metric.
struct str reading_built_in(const struct reading *d, struct str name);

// The name, besides `name`, under which files may have the metric: that of the built-in metric that
// it means, or the one by which it is stored (base/storable_name.h). Empty: there is none.
struct str reading_other_name(const struct reading_from *from, struct arena *arena,
                              struct str name);

// After no file has `name`, nor its built-in metric: whether the name is one without series, and no
// mistake.
bool reading_may_be_empty(const struct reading *d, struct str name);

// The first definition of the metric of a result that is found, NULL: none. Only nodes that hold
// series of its host are asked, where it has one.
const struct store_metric *reading_metric(struct reading *d, const struct query_series *of);

// Calls take with each event that is wanted, file by file, or sorted by start where nodes are
// asked; until it returns false. `file_label`: what the file adds to the labels, NULL: nothing.
typedef bool reading_event_fn(const struct store_event *event, struct str host,
                              const struct store_label *file_label, void *user);
int reading_events(struct reading *d, const struct store_events_wanted *wanted,
                   reading_event_fn *take, void *user, struct error *e);

// One for each file. `counts`: with points and dropped.
int reading_status(struct reading *d, bool counts, const struct ask_status **out, size_t *count,
                   struct error *e);

// Names those that a question of our own (with `local`) has found missing. -ENOMEM.
int reading_note_missing(struct reading *d, const struct hub_absent *absent, struct error *e);

// "missing":[{"host":…,"reason":…}]; nothing without a hub.
void reading_write_missing(const struct reading *d, struct json_writer *w);

#endif
