// top_model.h - the data that `sonde top` shows: tables of rows (nodes, GPUs, ranks, processes,
// metrics, series) with the last buckets of each column, events, findings, and the job's facts. It
// uses no terminal and no network: top_feed.h fills it, top_view.h draws it.
//
// Time is divided into buckets of bucket_ns, which begin at whole multiples of it. A table keeps
// the last TOP_BUCKETS buckets; the newest has the number `newest`. Bucket b of a cell is stored at
// [b % TOP_BUCKETS]. NaN means no value.
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
    TOP_ROWS_MAX = 10000,   // rows of a table; further rows are only counted
    TOP_METRICS_MAX = 1000, // metrics that users emit; further metrics are only counted
    TOP_EVENTS_MAX = 500,
    TOP_FINDINGS_MAX = 100, // maximum number in an answer of /sonde/v1/findings
    TOP_TEXT_MAX = 256,
    TOP_KEYS_MAX = 3,
    TOP_LINES_MAX = 1000, // lines of a screen, on which the mouse can select rows
};

enum top_kind {
    TOP_NODES,
    TOP_GPUS,
    TOP_PROCESSES,
    TOP_METRICS,
    TOP_EVENTS,
    TOP_RANKS,
    TOP_FINDINGS,
    TOP_VIEWS, // each view above has a key; the views below open from a row
    TOP_NODE = TOP_VIEWS,
    TOP_MEMBER, // a GPU or a rank
    TOP_SERIES,
    TOP_KIND_COUNT
};

// A column, and the query for its values.
struct top_column {
    const char *title;
    const char *metric;     // NULL: the metric of the row
    const char *aggregator; // aggregates the series of a row
    const char *function;   // combines a gauge's points in a bucket: "avg", "min", "max"
    bool counter;           // shown per second
    const char *unit;
    double factor; // multiplies values; 0: 1
};

struct top_row {
    const char *name; // shown, and used for sorting
    const char *metric, *unit;
    bool counter;
    double *values;                       // [column][TOP_BUCKETS]
    size_t series;                        // number of series in the row
    const char *key_values[TOP_KEYS_MAX]; // values of the table's keys; NULL: none
};

struct top_table {
    const char *title, *empty; // empty: the text for a table without rows
    const struct top_column *columns;
    size_t column_count;
    // tags that identify a row; none: a row for each query or series
    const char *keys[TOP_KEYS_MAX];
    bool all_tags;    // a row for each series
    bool rows_end;    // rows without any value are hidden
    bool by_metric;   // a row for each metric
    bool own_columns; // its columns are metrics that users emit (top_table_column)
    bool optional;    // not drawn if it has no rows
    struct top_column own[TOP_COLUMNS_MAX];
    int64_t bucket_ns, newest; // newest: INT64_MIN if empty
    struct top_row *rows;
    size_t count, capacity;
    uint64_t left_out;
    struct map by_key;
    struct arena arena; // memory for names, keys and values of rows
};

struct top_event {
    const char *text, *node, *tags;
    int64_t start_ns, end_ns; // end_ns 0: the span has not ended
    bool annotation;
    const char *process; // the rank, worker or pid from its tags; "": none
    int64_t id, parent;  // of a span; 0: no parent
    int depth;           // nesting depth of a span within its process
};

// A slow member from /sonde/v1/findings.
struct top_finding {
    const char *member;            // "rank 3 on n2"
    const char *what;              // the metric, or the span's name
    const char *host, *gpu, *rank; // tags of the member; "": none
    const char *against;           // "others" or "own best"
    bool span, now;                // now: slow or silent at the displayed time, not only before it
    bool silent;                   // it sends no values, although it should
    double factor;                 // infinite for a silent member
    int64_t since_ns, until_ns, rounds;
};

struct top_job {
    char id[TOP_TEXT_MAX], command[TOP_TEXT_MAX], missing[TOP_TEXT_MAX], trouble[TOP_TEXT_MAX];
    size_t nodes, missing_count;
    int restarts;         // number of restarts of the command
    int64_t recording_ns; // when the recording replaced the job as the source; 0: not replaced
    int level;
    bool live;  // a node is still being recorded
    bool ended; // exit_code is valid
    int exit_code;
    uint64_t points, dropped;
    int64_t start_ns, end_ns, first_ns, last_ns; // 0: unknown
};

struct top_model {
    struct top_job job;
    enum top_kind kind;
    // The opened rows; empty: none. For TOP_MEMBER, member_key is "gpu" or "rank".
    char node[TOP_TEXT_MAX], member_key[TOP_TEXT_MAX], member[TOP_TEXT_MAX], metric[TOP_TEXT_MAX];
    struct top_table tables[TOP_TABLES_MAX];
    size_t table_count;
    struct top_event events[TOP_EVENTS_MAX];
    size_t event_count;
    struct arena events_arena;
    struct top_finding findings[TOP_FINDINGS_MAX];
    // slow_count, silent_count: at the displayed time
    size_t finding_count, slow_count, silent_count;
    struct arena findings_arena;
    char findings_trouble[TOP_TEXT_MAX]; // why findings are missing; "": none are missing

    int64_t bucket_ns; // minimum bucket of a table
    int64_t at_ns;     // end of the displayed range; 0: the newest data
    bool paused;

    // The display settings.
    // column, or -1 for the name; for events 0 time, 1 text; for findings 0 time, 1 member
    int sort;
    bool descending;
    size_t selected, scroll; // rows, over all tables
    char filter[TOP_TEXT_MAX];
    bool typing, help, mouse;
    size_t row_of[TOP_LINES_MAX]; // 1 + the row that a line of the screen shows; 0: none
    size_t help_scroll;
};

void top_model_create(struct top_model *m);
void top_model_free(struct top_model *m);

// Opens another view: resets its tables to have no rows. `of` is the node, the GPU or rank ("gpu
// 0", "rank 3"), or the metric; else NULL. Views with a key of their own reset the opened rows.
void top_model_show(struct top_model *m, enum top_kind kind, const char *of);
// Removes all values and rows, because the time has jumped.
void top_model_forget(struct top_model *m);

// Returns the row with this key, and makes it if it is new. NULL: out of memory, or the table has
// TOP_ROWS_MAX rows.
struct top_row *top_table_row(struct top_table *t, struct str key, const char *name);
// Makes `bucket` the newest one, if it is newer.
void top_table_advance(struct top_table *t, int64_t bucket);
// Returns the column of a metric in a table with own_columns, and makes it if it is new. -1: the
// table is full.
int top_table_column(struct top_table *t, const char *metric, const char *unit, bool counter);
void top_table_put(struct top_table *t, struct top_row *row, size_t column, int64_t bucket,
                   double value);

// Returns the newest value if it is recent enough: at most 15 s old, or at most 3 buckets if these
// are longer. Otherwise returns NaN.
double top_table_last(const struct top_table *t, const struct top_row *row, size_t column);
// Stores the values of the last `count` buckets, oldest first.
void top_table_history(const struct top_table *t, const struct top_row *row, size_t column,
                       int count, double *out);
bool top_table_has(const struct top_table *t, size_t column); // true if any row has a value

// Lists the rows that pass the filter, sorted, as indices into t->rows. `out` has room for
// t->count.
size_t top_table_order(const struct top_model *m, const struct top_table *t, size_t *out);
// the number of these rows
size_t top_table_shown(const struct top_model *m, const struct top_table *t);
// Returns the row under the cursor, or NULL.
const struct top_row *top_model_selected(const struct top_model *m, const struct top_table **table);
// the number of displayed rows in all tables; for TOP_EVENTS, of events
size_t top_model_rows(const struct top_model *m);

// Lists the events or findings that pass the filter, sorted, as indices. `out` has room for all.
size_t top_model_events(const struct top_model *m, size_t *out);
size_t top_model_findings(const struct top_model *m, size_t *out);
// Computes the nesting depth of each span. The events have the order of an answer.
void top_model_nest(struct top_model *m);
// True if a member of the row is slow now.
bool top_model_marked(const struct top_model *m, const struct top_table *t,
                      const struct top_row *row);
// True if the table is drawn.
bool top_table_visible(const struct top_table *t);

#endif
