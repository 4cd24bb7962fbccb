// query.h - one query plan for all interfaces.
//
//   select (metric, tag filters, time range) → downsample each series → rate of each series
//   → group and aggregate with interpolation → results
//
// Series are interpolated to their neighbours, the points just outside of the range (edges.h).
//
// The semantics are OpenTSDB's (docs/query.md). A plan comes from an `m=` expression, from
// OpenTSDB's JSON or is filled in by hand; it runs over snapshots of any number of stores (nodes,
// runs) as if they were one. No state: one call, one arena, bounded memory. With a cache, threads
// may decode ahead of the call (ahead.h), which ends them.
#ifndef SONDE_QUERY_QUERY_H
#define SONDE_QUERY_QUERY_H

#include "base/arena.h"
#include "base/error.h"
#include "base/reservation.h"
#include "store/read.h"

enum query_aggregator {
    QUERY_NONE, // each series by itself
    QUERY_SUM,
    QUERY_MIN,
    QUERY_MAX,
    QUERY_AVG,
    QUERY_MEDIAN,
    QUERY_MULT,
    QUERY_DEV,
    QUERY_DIFF,
    QUERY_COUNT,
    QUERY_FIRST,
    QUERY_LAST,
    QUERY_SQUARE_SUM,
    QUERY_ZIMSUM,
    QUERY_MIMMIN,
    QUERY_MIMMAX,
    QUERY_PFSUM,
    QUERY_P50,
    QUERY_P75,
    QUERY_P90,
    QUERY_P95,
    QUERY_P99,
    QUERY_P999,
    QUERY_EP50R3,
    QUERY_EP50R7,
    QUERY_EP75R3,
    QUERY_EP75R7,
    QUERY_EP90R3,
    QUERY_EP90R7,
    QUERY_EP95R3,
    QUERY_EP95R7,
    QUERY_EP99R3,
    QUERY_EP99R7,
    QUERY_EP999R3,
    QUERY_EP999R7,
    QUERY_P25, // OpenTSDB has no lower quartile
    QUERY_AGGREGATOR_COUNT
};

// "avg" … in OpenTSDB's spelling; QUERY_AGGREGATOR_COUNT for an unknown name.
enum query_aggregator query_aggregator_of(struct str name);
struct str query_aggregator_name(enum query_aggregator a);

enum query_fill { QUERY_FILL_NONE, QUERY_FILL_NAN, QUERY_FILL_NULL, QUERY_FILL_ZERO };

struct query_downsample {
    bool on;
    bool all;         // "0all": one bucket
    bool calendar;    // "1dc"
    int64_t interval; // number of units if calendar, otherwise ns
    char unit;        // as written: 'a' ms, s, m, h, d, w, n, y
    enum query_aggregator function;
    enum query_fill fill;
    struct str time_zone; // IANA name; empty = UTC
};

struct query_rate {
    bool on, counter, drop_resets;
    double counter_max; // 0 = 2^63 - 1
    double reset_value; // 0 = off
};

enum query_filter_kind {
    QUERY_LITERAL_OR,
    QUERY_ILITERAL_OR,
    QUERY_NOT_LITERAL_OR,
    QUERY_NOT_ILITERAL_OR,
    QUERY_WILDCARD,
    QUERY_IWILDCARD,
    QUERY_REGEXP,
    QUERY_NOT_KEY,
    QUERY_EQUAL_OR_ABSENT,
    QUERY_FILTER_COUNT
};

struct query_filter {
    enum query_filter_kind kind;
    struct str key, text;
    bool group_by;
};

// One value for each span of this name and with these tags ("*": any value); see spans.h.
struct query_spans {
    struct str name; // empty: the query is not per span
    const struct store_label *tags;
    size_t tag_count;
    bool node; // only series of the span's node
};

struct query {
    struct str metric;
    // OpenTSDB's identifiers of series, separated by commas; the aggregator process turns them into
    // a metric and filters
    struct str tsuids;
    enum query_aggregator aggregator;
    struct query_downsample downsample;
    struct query_rate rate;
    const struct query_filter *filters;
    size_t filter_count;
    bool explicit_tags;
    struct query_spans spans;
    int64_t start_ns, end_ns; // both inclusive
    // Labels that the stores do not contain: all series of stores[i] also carry store_labels[i],
    // unless they have its key. NULL, or an empty key: no label. (With recordings of several jobs,
    // each gets a "job".)
    const struct store_label *store_labels;
};

// Parses 'avg:1s-avg:rate:loss{host=*}{job=literal_or(a|b)}'. Strings in *out live in `arena`;
// start and end stay unchanged. Returns -EINVAL with the reason.
int query_parse_m(struct str expression, struct arena *arena, struct query *out, struct error *e);

// Parses "1s-avg-nan", "0all-sum", "1dc-max". Returns -EINVAL with OpenTSDB's words.
int query_parse_downsample(struct str text, struct query_downsample *out, struct error *e);

// Whether both queries select and compute the same over the same time range.
bool query_equal(const struct query *a, const struct query *b);

// Applies the useCalendar of a request: "1d" then means "1dc". Queries without an interval, or with
// a calendar, stay unchanged.
void query_downsample_use_calendar(struct query_downsample *d);

// For answers with one value per whole second: lengthens buckets of less than a second to a second.
// Otherwise the value would be that of the last bucket of the second, and a rate would cover a
// fraction of the second.
void query_downsample_to_seconds(struct query_downsample *d);

// Converts "now", "1h-ago", "2012/12/20-12:42:42", or seconds or milliseconds since the epoch to
// ns. Returns -EINVAL with the reason.
int query_parse_time(struct str text, int64_t now_ns, struct str time_zone, int64_t *out_ns,
                     struct error *e);

// A whole request: OpenTSDB's POST /api/query body.
struct query_request {
    struct query *queries;
    size_t count;
    bool ms_resolution, show_query, show_tsuids, show_summary, show_stats;
    bool no_annotations, global_annotations, delete_requested;
    // a wildcard filter groups even without groupBy. Not part of the body: the caller sets it
    // before parsing
    bool dragon_compatible;
    // Not part of the body either: allows the times "first" and "last", which set the two flags
    // below. The caller knows the data and then fills in start_ns and end_ns.
    bool named_times;
    bool from_first, to_last;
    bool job_tag; // every series carries the tag job
};
// Reads out->dragon_compatible and out->named_times, so the caller initialises them. Returns
// -EINVAL with the reason.
int query_parse_json(struct str body, int64_t now_ns, struct arena *arena,
                     struct query_request *out, struct error *e);

struct query_cache;

struct query_limits {
    size_t memory_bytes; // 0 = 256 MiB
    uint64_t series_max; // 0 = 1,000,000 matched series
    uint64_t points_max; // 0 = 100,000,000 points read
    // 0 = 4096: quantiles over more series than that are estimated (sketch.h)
    size_t exact_max;
    int64_t deadline_ns;            // CLOCK_MONOTONIC; 0 = none. After it: -ETIMEDOUT
    const struct work_watch *watch; // checked between blocks of points; NULL = none
    struct query_cache *cache;      // NULL = none
};

// A cache of the decoded points of sealed blocks, which never change. Answers do not depend on it.
// Thread-safe. Returns 0 or -ENOMEM.
int query_cache_create(size_t limit_bytes, struct query_cache **out);
void query_cache_destroy(struct query_cache *c);
// Takes memory for the first queries, so that they need not wait for it: 4 MiB, if the limit of the
// cache is 32 MiB or more. Any thread may call it.
void query_cache_prepare(struct query_cache *c);
size_t query_cache_bytes(struct query_cache *c); // in use

// Counts the cache's memory in the account, which also calls it to make room. Call it once, before
// the first use; the account outlives the cache.
struct memory_account;
void query_cache_charge(struct query_cache *c, struct memory_account *account);
// Drops unused entries, least recently used first, until `bytes` are free or none is left.
void query_cache_shrink(struct query_cache *c, size_t bytes);

struct query_series {
    struct str metric;
    const struct store_label *tags; // sorted by key
    size_t tag_count;
    const struct str *aggregate_tags; // sorted
    size_t aggregate_tag_count;
    const int64_t *t_ns;  // ascending, in [start, end]
    const double *values; // NaN where a fill policy inserted it (query_fill gives its notation)
    size_t count;
    size_t source_series; // number of series in this result
    bool estimated;       // quantiles of too many series: values may be off by 0.5 %
};

struct query_result {
    const struct query_series *series; // ordered by their tags
    size_t count;
    uint64_t points_read, points_from_summaries, series_read;
};

// Everything in *out lives in `arena`. Returns -ENOENT: no such metric (e says "No such name for
// 'metrics': 'x'"); a known metric without data in the range gives an empty result. -E2BIG: a
// limit, named in e; -ETIMEDOUT: past the deadline; or the error of limits->watch.
int query_run(const struct query *q, struct store_snapshot *const *stores, size_t store_count,
              const struct query_limits *limits, struct arena *arena, struct query_result *out,
              struct error *e);

// Finds matching names, sorted, each once: for /api/suggest and completion. `kind` is "metrics",
// "tagk" or "tagv"; `text` is a prefix, or with `anywhere` a substring. At most `max` names.
int query_suggest(struct store_snapshot *const *stores, size_t store_count, struct str kind,
                  struct str text, bool anywhere, size_t max, struct arena *arena,
                  const struct str **out, size_t *count, struct error *e);

#endif
