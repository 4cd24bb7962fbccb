// sonde_client.h - queries a running job or a recording. C and C++; link with -lsonde_client.
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
// A client opens one of these:
//
// - NULL: the job around this program, else the newest job that runs on this machine, else the
//   newest recording;
// - an address: http://HOST:PORT, also with ?token=…;
// - the id of a running or recorded job;
// - the path of a recording: a file, a folder of files, or a folder of such folders.
//
// The same query has the same result for all of them, because the library queries a recording with
// the code of a running job's server.
//
// Functions return 0 or a negative errno; on failure they store a message in *error (which may be
// NULL). The library prints nothing and starts no thread. It handles no signal but SIGBUS, and that
// only while a recording is open: if another program truncates the recording, the rest counts as
// damaged, and the program continues. A SIGBUS at any other address goes to the program's own
// handler. Several threads may use a client at once, and so may a child after fork(). Results and
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
    const char *token; // NULL: the job's own, if the library finds it
    int timeout_ms;    // of each request; 0: a minute
    // Called some 20 times a second while a request to a running job waits. If it returns true, the
    // request ends with -ECANCELED. May be NULL.
    bool (*stop)(void *user);
    void *user;
};

// `options` may be NULL. -ENOENT: there is no such job or recording.
SONDE_API int sonde_client_open(const char *where, const struct sonde_client_options *options,
                                struct sonde_client **out, struct sonde_error *error);
SONDE_API void sonde_client_close(struct sonde_client *client); // NULL is allowed
// The address of the job, or the path of the recording.
SONDE_API const char *sonde_client_name(const struct sonde_client *client);

// ---- points ----

struct sonde_filter {
    const char *key;
    // "literal_or", "regexp", … (docs/query.md); NULL: wildcard if `value` has a '*', else
    // literal_or
    const char *type;
    const char *value; // "n1|n2", "n*"
    bool group;        // one result for each value
};

// A query is either `m`, an expression of OpenTSDB, or the metric with the members below it.
// docs/query.md explains all of them.
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
    // and the last recorded point; NULL: start at the epoch, end now.
    const char *start, *end;
    int64_t start_ns, end_ns; // replace them if they are not 0
    // One value for each span of this name (and with these tags; "*" is any value) that begins in
    // the range, at the span's start; downsample must be "0all-max" or similar. The span's tags
    // become tags of the result. A series with a tag of the same key counts only if its value is
    // the same.
    const char *span;
    const struct sonde_tag *span_tags;
    size_t span_tag_count;
    bool span_node; // only series of the span's node
};

struct sonde_series {
    const char *metric, *unit;
    enum sonde_kind kind;
    const struct sonde_tag *tags; // sorted by key
    size_t tag_count;
    // keys whose values differ among the aggregated series
    const char *const *aggregate_tags;
    size_t aggregate_tag_count;
    size_t source_series;   // number of aggregated series
    bool estimated;         // a quantile over more than 4096 series: off by at most 0.5 %
    const int64_t *time_ns; // since the epoch, ascending
    const double *values;   // NaN: a gap, with the fill policy nan or null
    size_t count;
};

SONDE_API int sonde_client_query(struct sonde_client *client, const struct sonde_query *query,
                                 struct sonde_result **out, struct sonde_error *error);
// Finds the highest point of each group over the whole range of `query`: one series of one point
// for each group, with all tags of the series that had the point. Of equal points the first one
// counts. `by` has the keys of the groups, and NULL at the end; if `by` is NULL, every series is a
// group. The function uses only the metric, filters, start and end of the query. For many points it
// reads summaries.
SONDE_API int sonde_client_peaks(struct sonde_client *client, const struct sonde_query *query,
                                 const char *const *by, struct sonde_result **out,
                                 struct sonde_error *error);

// ---- statistics ----

// Statistics of the points of one expression: those of `sonde stats` (docs/statistics.md).
struct sonde_stats_query {
    // METRIC or METRIC{tag=filter}: each series as recorded; otherwise like `m` of struct
    // sonde_query
    const char *expression;
    // Keys of tags, NULL at the end: series that have the same values of them make one row. NULL: a
    // row for each series.
    const char *const *by;
    // Only points within spans of this name that begin in the range; without `by`, each span has
    // rows of its own. NULL: no spans.
    const char *span;
    // as in struct sonde_query; NULL: the first and the last recorded point
    const char *start, *end;
    int64_t start_ns, end_ns; // replace them if they are not 0
};

struct sonde_stats_row {
    const struct sonde_tag *tags; // sorted by key; with `by` only those keys
    size_t tag_count;
    int64_t span_start_ns, span_end_ns; // of the row's one span; INT64_MAX: it is open; 0: no span
    size_t series;          // number of series; with spans, a series counts once for each span
    uint64_t count;         // number of values, at least 1; NaN does not count
    double mean, deviation; // deviation: of the population
    double min, max;
    int64_t min_ns, max_ns;           // the first times at which they occur
    const struct sonde_tag *max_tags; // all tags of the series that had the largest value
    size_t max_tag_count;
    double p50, p95, p99;
    bool estimated; // true: quantiles of more than 16,000,000 values, off by at most 0.5 %
    int64_t first_ns, last_ns;
    double last; // the value at last_ns
    // sum over all series; NaN: the values of a counter itself, or no two neighbouring points
    double integral;
    int64_t covered_ns; // time that the integral covers, summed over all series
};

struct sonde_stats {
    const char *metric, *unit, *integral_unit; // NULL: the range has no point
    bool rate;                                 // values are per second
    const struct sonde_stats_row *rows;        // by span, then by tags
    size_t count;
    const char *missing; // like sonde_result_missing
};

SONDE_API int sonde_client_stats(struct sonde_client *client, const struct sonde_stats_query *query,
                                 struct sonde_stats **out, struct sonde_error *error);
SONDE_API void sonde_stats_free(struct sonde_stats *stats); // NULL is allowed

// ---- results ----

SONDE_API size_t sonde_result_count(const struct sonde_result *result);
// Valid until sonde_result_free.
SONDE_API const struct sonde_series *sonde_result_series(const struct sonde_result *result,
                                                         size_t index);
// Returns the nodes that did not answer in time: "n2 (late)". NULL: all nodes answered.
SONDE_API const char *sonde_result_missing(const struct sonde_result *result);
SONDE_API void sonde_result_free(struct sonde_result *result); // NULL is allowed

// Exports the result as one table through Arrow's C stream interface: time (timestamp[ns, UTC]),
// value (float64), metric, and a column for each tag (dictionaries; null where a series lacks it).
// Columns of long series are not copied. The stream is independent of the result, which may be
// freed. The consumer calls stream->release.
struct ArrowArrayStream;
SONDE_API int sonde_result_arrow(const struct sonde_result *result, struct ArrowArrayStream *out,
                                 struct sonde_error *error);

// ---- watches ----

// Watches the series that the query's metric and filters select, from now on. Points that arrive
// between two calls of sonde_watch_next are kept for the next call (the last minute). The watch
// survives a restart of the job, and times in which the job cannot be reached.
struct sonde_watch;
SONDE_API int sonde_client_watch(struct sonde_client *client, const struct sonde_query *query,
                                 struct sonde_watch **out, struct sonde_error *error);
// Waits for new points. Returns 0 and stores them in *out; -ETIMEDOUT after timeout_ms; -ECANCELED
// if `stop` returned true; another errno for an error that does not pass (a wrong token, an invalid
// filter).
SONDE_API int sonde_watch_next(struct sonde_watch *watch, int timeout_ms, struct sonde_result **out,
                               struct sonde_error *error);
SONDE_API void sonde_watch_close(struct sonde_watch *watch); // before its client; NULL is allowed

// ---- lists ----

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
struct sonde_event {          // a span or an annotation
    const char *text;         // the name of a span
    int64_t start_ns, end_ns; // end_ns 0: the span is open; for an annotation, end_ns is start_ns
    uint64_t id, parent;
    const char *node;
    const struct sonde_tag *tags;
    size_t tag_count;
};

// Each function stores an array of *count elements in *out; free it with sonde_list_free. A text
// that is NULL does not restrict the list.
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

// Sends any request of docs/http.md: a GET if `body` is NULL, else a POST of JSON. Stores the bytes
// of the response, with a 0 behind them, in *out; free them with sonde_list_free.
SONDE_API int sonde_client_ask(struct sonde_client *client, const char *path, const char *body,
                               char **out, size_t *size, struct sonde_error *error);

#ifdef __cplusplus
}
#endif

#endif
