// long_table.h - the long form as a table: a row for each point, span and annotation. Parquet and
// Arrow files contain it.
//
//   time | kind | name | value | unit | a column for each tag
//   and with spans and annotations, before the tags: end | id | parent | node
//
// These are the columns of --format csv. `value` and `unit` are empty for spans and annotations;
// `end`, `id`, `parent` and `node` are empty for points (ids are then 0). A tag with the name of a
// column gets a prefix (keys.h).
#ifndef SONDE_EXPORT_LONG_TABLE_H
#define SONDE_EXPORT_LONG_TABLE_H

#include "base/arena.h"
#include "base/map.h"
#include "export/export.h"
#include "formats/table.h"

enum long_column {
    LONG_TIME,
    LONG_KIND,
    LONG_NAME,
    LONG_VALUE,
    LONG_UNIT,
    LONG_TAGS, // the first tag, if there are no events
    LONG_END = LONG_TAGS,
    LONG_ID,
    LONG_PARENT,
    LONG_NODE,
    LONG_EVENT_TAGS, // the first tag, if there are events
};

enum { LONG_EVENTS_MAX = 4096 }; // events of a batch

extern const struct str long_column_names[LONG_EVENT_TAGS];

// The dictionary of a text column.
struct long_words {
    struct map numbers;
    struct str *list;
    size_t count, capacity;
};

struct long_table {
    struct table_column *columns;
    size_t count, tags; // tags: index of the first tag's column
    struct table_cells *cells;
    struct long_words *words; // one for each column
    struct arena names, text; // text: holds the words

    // Events that are not in a batch yet: numbers[i][k] is the word of column i in row k.
    int64_t *starts, *ends;
    int64_t *ids, *parents;
    int32_t **numbers;
    size_t waiting;
};

// Returns 0 or -ENOMEM. Call long_table_free in any case.
int long_table_begin(struct long_table *t, const struct export_plan *plan);
void long_table_free(struct long_table *t);

// Sets the cells that are the same in all rows of the series.
int long_table_series(struct long_table *t, const struct export_plan *plan,
                      const struct export_series *series);
// Sets the cells of a batch of p->count points.
void long_table_points(struct long_table *t, const struct export_points *p);

// Keeps the event for the next batch. If it has tags without a column, notes that in the sink.
int long_table_event(struct long_table *t, struct export_sink *s, const struct export_event *event);
// Sets the cells of the waiting events, which form a batch. Returns the number of its rows.
size_t long_table_events(struct long_table *t);

// Empties the dictionaries, for formats that begin new ones. Call it only between two batches of
// events.
void long_table_forget_words(struct long_table *t);

#endif
