// top_model.h - what `sonde top` shows: tables of rows (nodes, GPUs, processes, metrics, series)
// with the last buckets of each column, and the job's facts. No terminal and no network: top_feed.h
// fills it in, top_view.h draws it.
//
// Time is cut into buckets of bucket_ns, at whole multiples of it. A table keeps TOP_BUCKETS of
// them, the newest of number `newest`; bucket b of a cell lies at [b % TOP_BUCKETS]. NaN: no value.
//
// Sizes: a row takes columns × TOP_BUCKETS × 8 bytes. 1,000 nodes × 9 columns: 4.3 MB.
#ifndef SONDE_CLI_TOP_MODEL_H
#define SONDE_CLI_TOP_MODEL_H

#include "base/arena.h"
#include "base/map.h"

enum {
    TOP_BUCKETS = 60,
    TOP_COLUMNS_MAX = 9,
    TOP_TABLES_MAX = 3,
    TOP_ROWS_MAX = 10000,   // of a table; more are counted
    TOP_METRICS_MAX = 1000, // that users emit; more are counted
    TOP_EVENTS_MAX = 500,
    TOP_TEXT_MAX = 256,
    TOP_KEYS_MAX = 3,
};

enum top_kind {
    TOP_NODES,
    TOP_GPUS,
    TOP_PROCESSES,
    TOP_METRICS,
    TOP_EVENTS,
    TOP_NODE,
    TOP_SERIES,
    TOP_KIND_COUNT
};

// A column, and the query that fills it.
struct top_column {
    const char *title;
    const char *metric;     // NULL: the row's own
    const char *aggregator; // over the series of a row
    const char *function;   // of a gauge's points in a bucket: "avg", "min", "max"
    bool counter;           // shown per second
    const char *unit;
    double factor; // of values; 0: 1
};

struct top_row {
    const char *name; // for people and for sorting
    const char *metric, *unit;
    bool counter;
    double *values; // [column][TOP_BUCKETS]
    size_t series;  // that went into it
};

struct top_table {
    const char *title, *empty; // what is said when there are no rows
    const struct top_column *columns;
    size_t column_count;
    const char *keys[TOP_KEYS_MAX]; // tags that make a row; none: a row for each query or series
    bool all_tags;                  // a row for each series
    bool rows_end;                  // rows without any value are hidden
    int64_t bucket_ns, newest;      // newest: INT64_MIN when empty
    struct top_row *rows;
    size_t count, capacity;
    uint64_t left_out;
    struct map by_key;
    struct arena arena; // names, keys and values of rows
};

struct top_event {
    const char *text, *node, *tags;
    int64_t start_ns, end_ns; // end 0: it goes on
    bool annotation;
};

struct top_job {
    char id[TOP_TEXT_MAX], command[TOP_TEXT_MAX], missing[TOP_TEXT_MAX], trouble[TOP_TEXT_MAX];
    size_t nodes, missing_count;
    int level;
    bool live;  // a node is still recorded
    bool ended; // exit_code counts
    int exit_code;
    uint64_t points, dropped;
    int64_t start_ns, end_ns, first_ns, last_ns; // 0: not known
};

struct top_model {
    struct top_job job;
    enum top_kind kind;
    char node[TOP_TEXT_MAX], metric[TOP_TEXT_MAX]; // of TOP_NODE and TOP_SERIES
    struct top_table tables[TOP_TABLES_MAX];
    size_t table_count;
    struct top_event events[TOP_EVENTS_MAX];
    size_t event_count;
    struct arena events_arena;

    int64_t bucket_ns; // the least of a table's
    int64_t at_ns;     // the end of what is shown; 0: the newest there is
    bool paused;

    // How it is shown.
    int sort; // column; -1: the name
    bool descending;
    size_t selected, scroll; // rows, over all tables
    char filter[TOP_TEXT_MAX];
    bool typing, help;
};

void top_model_create(struct top_model *m);
void top_model_free(struct top_model *m);

// Shows another view from its start: tables without rows. `of`: the node or the metric; else NULL.
void top_model_show(struct top_model *m, enum top_kind kind, const char *of);
// Forgets all values and rows: the time has jumped.
void top_model_forget(struct top_model *m);

// The row of the key, made when it is new. NULL: no memory, or TOP_ROWS_MAX are reached.
struct top_row *top_table_row(struct top_table *t, struct str key, const char *name);
// Makes `bucket` the newest where it is newer.
void top_table_advance(struct top_table *t, int64_t bucket);
void top_table_put(struct top_table *t, struct top_row *row, size_t column, int64_t bucket,
                   double value);

// The newest value, as long as it is at most 15 s (and at least 3 buckets) old; NaN: none.
double top_table_last(const struct top_table *t, const struct top_row *row, size_t column);
// The values of the last `count` buckets, oldest first.
void top_table_history(const struct top_table *t, const struct top_row *row, size_t column,
                       int count, double *out);
bool top_table_has(const struct top_table *t, size_t column); // any row has a value

// Rows that pass the filter, sorted: indices into t->rows. `out` has room for t->count.
size_t top_table_order(const struct top_model *m, const struct top_table *t, size_t *out);
size_t top_table_shown(const struct top_model *m, const struct top_table *t); // how many those are
// The row under the cursor. NULL: there is none.
const struct top_row *top_model_selected(const struct top_model *m, const struct top_table **table);
// that are shown, in all tables; of TOP_EVENTS the events
size_t top_model_rows(const struct top_model *m);

#endif
