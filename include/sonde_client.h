// sonde_client.h - ask a running job, or a recording, and react. C and C++; link with
// -lsonde_client.
//
//     struct sonde_error error;
//     struct sonde_client *client;
//     struct sonde_result *result;
//     struct sonde_query query = {.m = "max:1s-max:gpu_memory_used_bytes{host=*}"};
//     if (sonde_client_open(NULL, NULL, &client, &error) == 0 &&
//         sonde_client_query(client, &query, &result, &error) == 0)
//         for (size_t i = 0; i < sonde_result_count(result); i++)
//             use(sonde_result_series(result, i));
//
// Where: NULL is the job around this program, else the newest job that runs on this machine, else
// the newest recording; otherwise an address (http://HOST:PORT, also with ?token=…), the id of a
// running or recorded job, or the path of a recording: a file, a folder of them, or a folder of
// such folders. The same queries have the same answers in all of them: this process queries a
// recording with the code that a running job answers with.
//
// Functions return 0 or a negative errno; on failure they fill in *error (which may be NULL) with a
// message. The library prints nothing and starts no thread. It handles no signal but SIGBUS, and
// that only while a recording is open: if another program truncates the recording, the rest counts
// as damaged, and the program goes on. A SIGBUS at any other address goes to the program's own
// handler. Several threads may use a client at once, and so may a child after fork(); results and
// lists belong to one thread at a time.
#ifndef SONDE_CLIENT_H
#define SONDE_CLIENT_H

#include <sonde.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sonde_client;
struct sonde_result;

struct sonde_error {
    int code; // a negative errno
    char text[512];
};

struct sonde_client_options {
    const char *token; // NULL: the job's own, where it can be found
    int timeout_ms;    // of each question; 0: a minute
    // Called some 20 times a second while a request to a running job waits: true ends it with
    // -ECANCELED. May be NULL.
    bool (*stop)(void *user);
    void *user;
};

// `options` may be NULL. -ENOENT: there is no such job or recording.
SONDE_API int sonde_client_open(const char *where, const struct sonde_client_options *options,
                                struct sonde_client **out, struct sonde_error *error);
SONDE_API void sonde_client_close(struct sonde_client *client); // NULL is allowed
// the address, or the path
SONDE_API const char *sonde_client_name(const struct sonde_client *client);

// ---- points ----

struct sonde_filter {
    const char *key;
    // "literal_or", "regexp", … (docs/query.md); NULL: literal_or, or wildcard where there is a '*'
    const char *type;
    const char *value; // "n1|n2", "n*"
    bool group;        // one result for each value
};

// Either `m`, in OpenTSDB's words, or the metric and what stands below it. docs/query.md says what
// everything means.
struct sonde_query {
    const char *m; // "avg:1s-avg:cpu_percent{host=*}"
    const char *metric;
    const char *aggregator; // NULL: "none", each series by itself
    const char *downsample; // "1s-avg", "1m-max-zero", "0all-p95"; NULL: the points as they are
    bool rate, counter, drop_resets;
    const struct sonde_filter *filters;
    size_t filter_count;
    bool explicit_tags; // only series that have exactly the filters' keys
    // "5m-ago", "2026/11/20-15:00:00", "1356998400.5"; "first" and "last": the times of the first
    // and the last point that is recorded; NULL: from the epoch, to now.
    const char *start, *end;
    int64_t start_ns, end_ns; // in place of them, where they are not 0
    // One value for each span of this name (and with these tags; "*" is any value) that begins in
    // the range, at its start: downsample is "0all-max" or the like. The span's tags become tags of
    // the result; of series that have a tag of the same key only those with the same value count.
    const char *span;
    const struct sonde_tag *span_tags;
    size_t span_tag_count;
    bool span_node; // only series of the node on which the span was
};

struct sonde_series {
    const char *metric, *unit;
    enum sonde_kind kind;
    const struct sonde_tag *tags; // sorted by key
    size_t tag_count;
    // keys whose values differ among the series that went into it
    const char *const *aggregate_tags;
    size_t aggregate_tag_count;
    size_t source_series;   // how many that were
    bool estimated;         // a quantile of too many series: within 0.5 %
    const int64_t *time_ns; // since the epoch, ascending
    const double *values;   // NaN: a gap that was asked for
    size_t count;
};

SONDE_API int sonde_client_query(struct sonde_client *client, const struct sonde_query *query,
                                 struct sonde_result **out, struct sonde_error *error);
// The highest point of each group over the whole range of `query`, and its time: one series of one
// point a group. `by`: the keys of the groups, NULL at the end; NULL: every series by itself. Of
// the query count the metric, filters, start and end.
SONDE_API int sonde_client_peaks(struct sonde_client *client, const struct sonde_query *query,
                                 const char *const *by, struct sonde_result **out,
                                 struct sonde_error *error);

SONDE_API size_t sonde_result_count(const struct sonde_result *result);
// Valid until sonde_result_free.
SONDE_API const struct sonde_series *sonde_result_series(const struct sonde_result *result,
                                                         size_t index);
SONDE_API const char *sonde_result_missing(
    // nodes that did not answer in time: "n2 (late)"; NULL: none
    const struct sonde_result *result);
SONDE_API void sonde_result_free(struct sonde_result *result); // NULL is allowed

// The result as one table through Arrow's C stream interface: time (timestamp[ns, UTC]), value
// (float64), metric, and a column for each tag (dictionaries; null where a series lacks it).
// Columns of long series are not copied. Independent of the result, which may be freed; whoever
// takes it calls stream->release.
struct ArrowArrayStream;
SONDE_API int sonde_result_arrow(const struct sonde_result *result, struct ArrowArrayStream *out,
                                 struct sonde_error *error);

// ---- points as they come ----

// New points of all series of the query's metric and filters that come from now on. What comes
// while nobody waits is kept for the next call (the last minute). A job that is started again, or
// cannot be reached for a while, is waited for.
struct sonde_watch;
SONDE_API int sonde_client_watch(struct sonde_client *client, const struct sonde_query *query,
                                 struct sonde_watch **out, struct sonde_error *error);
// Waits until there are new points: 0, and *out has them. -ETIMEDOUT after timeout_ms; -ECANCELED
// when `stop` says so. Other failures that waiting cannot cure (the token is wrong, the metric's
// filter is none) are returned.
SONDE_API int sonde_watch_next(struct sonde_watch *watch, int timeout_ms, struct sonde_result **out,
                               struct sonde_error *error);
SONDE_API void sonde_watch_close(struct sonde_watch *watch); // before its client; NULL is allowed

// ---- what there is ----

struct sonde_node {
    const char *host, *job, *state; // "live", "closed", "crashed"
    size_t series;
    int64_t first_ns, last_ns; // 0: no points
};
struct sonde_metric_info {
    const char *name, *kind, *unit, *help;
    int level;
};
struct sonde_series_info {
    const char *metric;
    const struct sonde_tag *tags;
    size_t tag_count;
    int64_t time_ns; // of the latest point
    double value;
};
struct sonde_event {          // a span, or an annotation
    const char *text;         // the name of a span
    int64_t start_ns, end_ns; // end 0: it goes on; of an annotation the start again
    uint64_t id, parent;
    const char *node;
    const struct sonde_tag *tags;
    size_t tag_count;
};

// Each fills *out with an array of *count, which sonde_list_free frees. NULL texts select nothing.
SONDE_API int sonde_client_nodes(struct sonde_client *client, struct sonde_node **out,
                                 size_t *count, struct sonde_error *error);
SONDE_API int sonde_client_metrics(struct sonde_client *client, const char *part_of_name,
                                   struct sonde_metric_info **out, size_t *count,
                                   struct sonde_error *error);
SONDE_API int sonde_client_list(struct sonde_client *client, const char *match,
                                struct sonde_series_info **out, size_t *count,
                                struct sonde_error *error); // "loss{rank=*}"
SONDE_API int sonde_client_spans(struct sonde_client *client, const char *name, const char *start,
                                 const char *end, struct sonde_event **out, size_t *count,
                                 struct sonde_error *error);
SONDE_API int sonde_client_annotations(struct sonde_client *client, const char *start,
                                       const char *end, struct sonde_event **out, size_t *count,
                                       struct sonde_error *error);
SONDE_API void sonde_list_free(void *list);

// Any question of docs/http.md: the answer's bytes, with a 0 behind them, which sonde_list_free
// frees. `body` NULL: GET, else POST of JSON.
SONDE_API int sonde_client_ask(struct sonde_client *client, const char *path, const char *body,
                               char **out, size_t *size, struct sonde_error *error);

#ifdef __cplusplus
}
#endif

#endif
