// runs_table.h - this user's running and recorded runs, as rows of a table. `sonde ls` prints the
// table; `sonde ls` and `sonde rm` select runs by its columns.
//
// A column is one of runs_columns, else the key of a tag of the run, else a parameter
// (launch/parameters.h; config.KEY is always a parameter), else a recorded environment variable,
// else METRIC.STATISTIC. Columns from run.json cost no further work. A statistic opens the
// recording, and is computed once for each row (runs_field.c).
#ifndef SONDE_CLI_RUNS_TABLE_H
#define SONDE_CLI_RUNS_TABLE_H

#include "base/arena.h"
#include "client/target.h"
#include "launch/job.h"
#include "launch/parameters.h"
#include "launch/runs.h"

#include <stdbool.h>
#include <stdint.h>

// The columns that every run has; ends with NULL. Tags cannot have these names.
extern const char *const runs_columns[];

enum runs_state { RUNS_RUNNING, RUNS_KILLED, RUNS_ENDED }; // killed: the launcher was killed

struct runs_row {
    struct job job;
    char path[FOLDER_PATH_MAX]; // path of the recording, or the run folder of a running job
    enum runs_state state;
    struct runs_size size;
    struct sonde_client *client;  // opened for statistics; NULL: not opened yet
    bool unreadable;              // the recording could not be opened
    struct parameters parameters; // of a run without those of run.json, once `parameters_requested`
    bool parameters_requested;
    struct field_known *known; // statistics that were computed, in the table's arena
    size_t known_count, known_capacity;
};

struct runs_table {
    struct runs_row *rows; // newest first
    size_t count;
    struct arena memory; // holds the fields
    // A line for each run.json, and for each recording of a computed statistic, that cannot be
    // read.
    struct buf left_out;
};

// Reads the runs in the folders that `o` names, except those that cannot be read (left_out).
int runs_table_read(const struct target_options *o, struct runs_table *out, struct error *e);
void runs_table_free(struct runs_table *t);
// Keeps the rows for which `keep` is true.
void runs_table_keep(struct runs_table *t, const bool *keep);

// The meaning of a number.
enum field_unit { FIELD_PLAIN, FIELD_SECONDS, FIELD_BYTES, FIELD_TIME };

struct field {
    bool known;
    bool is_number;
    enum field_unit unit;
    double number;   // FIELD_TIME: seconds since the epoch
    struct str text; // the text to show, in the table's arena
};

struct field runs_field(struct runs_table *t, struct runs_row *row, struct str column);

// Checks that all names in "-started,lr" or "+lr,loss.last" are columns: general columns,
// statistics of any metric, or tags and variables of at least one run. Returns -ENOENT with a
// message that suggests the nearest column.
int runs_check_columns(struct runs_table *t, const char *columns, struct error *e);
int runs_check_column(struct runs_table *t, struct str column, struct error *e);

// Keeps the rows that meet all conditions, as in "lr<0.01,exit=0,command~train". Returns 0, -ENOENT
// (no run has a column), or -EINVAL (an invalid condition, too many conditions, or a value that its
// column cannot have).
int runs_select(struct runs_table *t, const char *conditions, struct error *e);

// Keeps the rows whose id is one of the words. If a word is not an id, it selects the rows whose id
// or name equals it, or matches it as a pattern (* and ?). Without words, all rows are kept.
// Returns -ENOENT if a word selects no row.
int runs_pick(struct runs_table *t, char *const *words, size_t count, struct error *e);

// Sorts by columns, as in "-started,lr". Rows without a value come last. The sort is stable.
int runs_sort(struct runs_table *t, const char *columns, struct error *e);

#endif
