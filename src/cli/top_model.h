// top_model.h - what `sonde top` shows: tables of rows (nodes, GPUs, ranks, processes, metrics,
// series) with the last buckets of each column, events, findings, and the job's facts. No terminal
// and no network: top_feed.h fills it in, top_view.h draws it.
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
    TOP_TABLES_MAX = 4,
    TOP_ROWS_MAX = 10000,   // of a table; more are counted
    TOP_METRICS_MAX = 1000, // that users emit; more are counted
    TOP_EVENTS_MAX = 500,
    TOP_FINDINGS_MAX = 100, // that /sonde/v1/findings answers with at most
    TOP_TEXT_MAX = 256,
    TOP_KEYS_MAX = 3,
};

enum top_kind {
    TOP_NODES,
    TOP_GPUS,
    TOP_PROCESSES,
    TOP_METRICS,
    TOP_EVENTS,
    TOP_RANKS,
    TOP_FINDINGS,
    TOP_VIEWS, // the views above have a key each, those below are opened from a row
    TOP_NODE = TOP_VIEWS,
    TOP_MEMBER, // a GPU or a rank
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
    double *values;                       // [column][TOP_BUCKETS]
    size_t series;                        // that went into it
    const char *key_values[TOP_KEYS_MAX]; // of the table's keys; NULL: none
};

struct top_table {
    const char *title, *empty; // what is said when there are no rows
    const struct top_column *columns;
    size_t column_count;
    const char *keys[TOP_KEYS_MAX]; // tags that make a row; none: a row for each query or series
    bool all_tags;                  // a row for each series
    bool rows_end;                  // rows without any value are hidden
    bool by_metric;                 // a row for each metric
    bool own_columns;               // columns are metrics that users emit: top_table_column
    bool optional;                  // without rows it is not drawn
    struct top_column own[TOP_COLUMNS_MAX];
    int64_t bucket_ns, newest; // newest: INT64_MIN when empty
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
    const char *process; // the rank, worker or pid among its tags; "": none
    int64_t id, parent;  // of a span; 0: none
    int depth;           // of a span within those of its process
};

// A member that /sonde/v1/findings names.
struct top_finding {
    const char *member;            // "rank 3 on n2"
    const char *what;              // the metric, or the span's name
    const char *host, *gpu, *rank; // its tags; "": none
    const char *against;           // "others" or "own best"
    bool span, now;                // now: slow at the time shown, not only before it
    double factor;
    int64_t since_ns, until_ns, rounds;
};

struct top_job {
    char id[TOP_TEXT_MAX], command[TOP_TEXT_MAX], missing[TOP_TEXT_MAX], trouble[TOP_TEXT_MAX];
    size_t nodes, missing_count;
    int restarts;         // of the command
    int64_t recording_ns; // since then the recording answers in place of the job; 0: it does not
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
    // What the opened rows were; empty: none. TOP_MEMBER: member_key is "gpu" or "rank".
    char node[TOP_TEXT_MAX], member_key[TOP_TEXT_MAX], member[TOP_TEXT_MAX], metric[TOP_TEXT_MAX];
    struct top_table tables[TOP_TABLES_MAX];
    size_t table_count;
    struct top_event events[TOP_EVENTS_MAX];
    size_t event_count;
    struct arena events_arena;
    struct top_finding findings[TOP_FINDINGS_MAX];
    size_t finding_count, slow_count; // slow_count: of those that are slow now
    struct arena findings_arena;
    char findings_trouble[TOP_TEXT_MAX]; // why there are none; "": they are all there are

    int64_t bucket_ns; // the least of a table's
    int64_t at_ns;     // the end of what is shown; 0: the newest there is
    bool paused;

    // How it is shown.
    int sort; // column; -1: the name; of events 0 time, 1 text; of findings 0 time, 1 member
    bool descending;
    size_t selected, scroll; // rows, over all tables
    char filter[TOP_TEXT_MAX];
    bool typing, help;
    size_t help_scroll;
};

void top_model_create(struct top_model *m);
void top_model_free(struct top_model *m);

// Shows another view from its start: tables without rows. `of`: the node, the GPU or rank ("gpu 0",
// "rank 3"), or the metric; else NULL. Views with a key of their own forget what was opened.
void top_model_show(struct top_model *m, enum top_kind kind, const char *of);
// Forgets all values and rows: the time has jumped.
void top_model_forget(struct top_model *m);

// The row of the key, made when it is new. NULL: no memory, or TOP_ROWS_MAX are reached.
struct top_row *top_table_row(struct top_table *t, struct str key, const char *name);
// Makes `bucket` the newest where it is newer.
void top_table_advance(struct top_table *t, int64_t bucket);
// The column of a metric in a table with own_columns, made when it is new. -1: no room.
int top_table_column(struct top_table *t, const char *metric, const char *unit, bool counter);
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

// Events or findings that pass the filter, sorted: indices. `out` has room for all of them.
size_t top_model_events(const struct top_model *m, size_t *out);
size_t top_model_findings(const struct top_model *m, size_t *out);
// The depth of each span, in the order that an answer has them.
void top_model_nest(struct top_model *m);
// Whether a member of the row is slow now.
bool top_model_marked(const struct top_model *m, const struct top_table *t,
                      const struct top_row *row);
// Whether the table is drawn.
bool top_table_visible(const struct top_table *t);

#endif
