// runs_table.h - this user's runs, those that run and those recorded, as rows of a table: what
// `sonde ls` shows, and by what it and `sonde rm` select.
//
// A column is one of runs_columns, else the key of a tag of the run, else a parameter
// (launch/parameters.h; config.KEY is always one), else a kept variable of its environment, else
// METRIC.STATISTIC. The columns of run.json cost nothing more; a statistic opens
// the recording, and is computed once a row (runs_field.c).
#ifndef SONDE_CLI_RUNS_TABLE_H
#define SONDE_CLI_RUNS_TABLE_H

#include "base/arena.h"
#include "client/target.h"
#include "launch/job.h"
#include "launch/parameters.h"

#include <stdbool.h>
#include <stdint.h>

// The columns that every run has; ends with NULL. No tag may be called so.
extern const char *const runs_columns[];

enum runs_state { RUNS_RUNNING, RUNS_KILLED, RUNS_ENDED }; // killed: the launcher was

struct runs_row {
    struct job job;
    char path[FOLDER_PATH_MAX]; // of the recording; of a running job its run folder
    enum runs_state state;
    uint64_t bytes;
    size_t files;                 // recordings in it
    struct sonde_client *client;  // opened for statistics; NULL: not yet
    bool unreadable;              // it could not be opened
    struct parameters parameters; // of a run without those of run.json, once `asked`
    bool asked;
    struct field_known *known; // statistics that were computed, in the table's arena
    size_t known_count, known_capacity;
};

struct runs_table {
    struct runs_row *rows; // newest first
    size_t count;
    struct arena memory; // of fields
};

// The runs in the folders that `o` names. Whatever cannot be read is left out.
int runs_table_read(const struct target_options *o, struct runs_table *out, struct error *e);
void runs_table_free(struct runs_table *t);
// Keeps the rows whose place is true in `wanted`.
void runs_table_keep(struct runs_table *t, const bool *wanted);

// How a number is meant.
enum field_unit { FIELD_PLAIN, FIELD_SECONDS, FIELD_BYTES, FIELD_TIME };

struct field {
    bool known;
    bool is_number;
    enum field_unit unit;
    double number;   // FIELD_TIME: seconds since the epoch
    struct str text; // of the table's arena; what is shown
};

struct field runs_field(struct runs_table *t, struct runs_row *row, struct str column);

// "-started,lr" or "+lr,loss.last": whether they are columns: such as every run has, statistics of
// any metric, tags and variables of one run at least. -ENOENT with the nearest one in words.
int runs_check_columns(struct runs_table *t, const char *columns, struct error *e);
int runs_check_column(struct runs_table *t, struct str column, struct error *e);

// "lr<0.01,exit=0,command~train": keeps the rows for which all of it holds. -ENOENT: a column that
// no run has; -EINVAL: no condition, too many, or a value that its column cannot have.
int runs_select(struct runs_table *t, const char *conditions, struct error *e);

// Keeps the rows whose id is one of the words; for a word that is no id, the rows whose id or name
// it is, or matches as a pattern (* and ?). No words: all rows. -ENOENT: a word is nobody's.
int runs_pick(struct runs_table *t, char *const *words, size_t count, struct error *e);

// "-started,lr": sorts; rows without a value last. Stable.
int runs_sort(struct runs_table *t, const char *columns, struct error *e);

#endif
