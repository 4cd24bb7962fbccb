// reading.h - what one request reads: our own files and, where there is a hub, the files of all other nodes as if they lay beside ours.
//
//   handler ─▶ reading ─┬─▶ sources_view (snapshots of our own files)
//                       └─▶ hub ─▶ every node                          who does not answer in time is named: X-Sonde-Missing
//
// Each question to the nodes has limits.node_deadline_ns; our own files may be read for as long as the request may take. A node that was missing once is not
// asked again by the same request, so that it delays the answer once and is in all of it or named. Without a hub there is nobody to be missing.
#ifndef SONDE_ASK_READING_H
#define SONDE_ASK_READING_H

#include "ask/lists_wire.h"
#include "ask/series_list.h"
#include "http/routes.h"

enum {
    MISSING_HEADER_MAX = 4096, // bytes of X-Sonde-Missing; how many more there are stands at its end
};

struct reading {
    struct service *service;
    struct request *request;
    struct sources_view view; // our own files
    struct wire_view local;   // the same, for the hub
    struct wire_missing *missing;
    size_t missing_count;
};

// `until_ns`: the end of the times that the request is about (INT64_MAX: now). If it is about the present of a running job, the
// agent first takes over what programs of this node have emitted so far (wire/drain.h).
int reading_open(struct service *service, struct request *r, int64_t until_ns, struct reading *out, struct error *e);

// The latest end of the request's queries.
int64_t reading_until(const struct query_request *request);

// Says in *a (NULL: nowhere) who was missing.
void reading_close(struct reading *d, struct answer *a);

// One query under the limits of the service, as query_run has it. Results go into `arena`.
int reading_query(struct reading *d, const struct query *asked, struct arena *arena, struct query_result *out,
                  struct error *e);

// As query_suggest. `kind` "metrics", "tagk" or "tagv".
int reading_names(struct reading *d, struct str kind, struct str text, bool anywhere, size_t most,
                  const struct str **out, size_t *count, struct error *e);

// As series_list.
int reading_series(struct reading *d, const struct query_series_filter *filter, const struct query_listed **out,
                   size_t *count, struct error *e);

// Whether some file has the metric.
bool reading_metric_known(struct reading *d, struct str metric);

// The metric that a request names. True: *metric is it, by the name under which files have it. False: no file has it; *metric is
// empty if the name is a mistake, and not if it may have no series: that of a built-in metric, one that the job had, or one that a
// missing node may have.
bool reading_find_metric(struct reading *d, struct str name, struct str *metric);

// The name in stores of the built-in metric `name`, or of the one that has `name` as another name. Empty: there is no such metric.
struct str reading_built_in(const struct reading *d, struct str name);

// The name, besides `name`, under which files may have the metric: that of the built-in metric that it means, or the
// one by which it is stored (base/storable_name.h). Empty: there is none.
struct str reading_other_name(const struct service *service, struct arena *arena, struct str name);

// After no file has `name`, nor its built-in metric: whether the name is one without series, and no mistake.
bool reading_may_be_empty(const struct reading *d, struct str name);

// The first definition of the metric of a result that is found, NULL: none. Only nodes that hold series of its host are asked, where it has one.
const struct store_metric *reading_metric(struct reading *d, const struct query_series *of);

// Calls take with each event that is wanted, file by file, or sorted by start where nodes are asked; until it returns false. `file_label`: what the file adds to the
// labels, NULL: nothing.
typedef bool reading_event_fn(const struct store_event *event, struct str host, const struct store_label *file_label,
                              void *user);
int reading_events(struct reading *d, const struct store_events_wanted *wanted, reading_event_fn *take, void *user,
                   struct error *e);

// One for each file. `counts`: with points and dropped.
int reading_status(struct reading *d, bool counts, const struct wire_status **out, size_t *count, struct error *e);

// Names those that a question of our own (with `local`) has found missing. -ENOMEM.
int reading_note_missing(struct reading *d, const struct hub_absent *absent, struct error *e);

// "missing":[{"host":…,"reason":…}]; nothing without a hub.
void reading_write_missing(const struct reading *d, struct json_writer *w);

#endif
