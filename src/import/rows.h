// rows.h - the rows of a table in long form (export/long_table.h), whatever the file's format: a
// row for each point, span and annotation.
#ifndef SONDE_IMPORT_ROWS_H
#define SONDE_IMPORT_ROWS_H

#include "import/hosts.h"
#include "import/import.h"

enum import_role {
    IMPORT_TIME,
    IMPORT_KIND,
    IMPORT_NAME,
    IMPORT_VALUE,
    IMPORT_UNIT,
    IMPORT_END,
    IMPORT_ID,
    IMPORT_PARENT,
    IMPORT_NODE,
    IMPORT_ROLES,
    IMPORT_TAG = IMPORT_ROLES,
};

enum import_kind { IMPORT_GAUGE, IMPORT_COUNTER, IMPORT_SPAN, IMPORT_ANNOTATION, IMPORT_KINDS };

enum { IMPORT_COLUMNS_OF_ROWS_MAX = 4096 };

// The columns of a table.
struct import_columns {
    enum import_role roles[IMPORT_COLUMNS_OF_ROWS_MAX];
    struct str keys[IMPORT_COLUMNS_OF_ROWS_MAX]; // of the tags
    size_t count;
    bool there[IMPORT_ROLES];
};

// Adds the next column. role_names has the names of the format; `name` must outlive *c. Returns
// -E2BIG, or -EINVAL for a second column with the same role; the message is in *e.
int import_columns_add(struct import_columns *c, const char *const role_names[IMPORT_ROLES],
                       struct str name, struct error *e);
// Call it after the last column. Returns -EINVAL if there is no time or no name.
int import_columns_check(const struct import_columns *c, const char *const role_names[IMPORT_ROLES],
                         struct error *e);

struct import_row {
    enum import_kind kind;
    int64_t t_ns, end_ns; // end_ns: of a span; INT64_MAX: it has no end
    struct str name, unit, help, node;
    double value;
    uint64_t id, parent;
    const struct store_label *labels;
    size_t label_count;
};

bool import_kind_of(struct str text, enum import_kind *out); // empty text: a gauge

// Takes a row; `key` is a scratch buffer. Returns 0; -EINVAL for an invalid row; or another errno
// with a message in *e.
int import_row_take(struct import_hosts *to, const struct import_row *row, struct buf *key,
                    struct import_stats *stats, struct error *e);

// Takes more points of a known series: `series` is import_hosts_last after its first point.
int import_rows_again(struct import_hosts *to, size_t series, const int64_t *t_ns,
                      const double *values, size_t count, struct import_stats *stats,
                      struct error *e);
static inline int import_row_again(struct import_hosts *to, size_t series, int64_t t_ns,
                                   double value, struct import_stats *stats, struct error *e)
{
    return import_rows_again(to, series, &t_ns, &value, 1, stats, e);
}

// Call it after the last row. Returns -EINVAL if most rows were invalid.
int import_rows_check(const struct import_stats *stats, struct error *e);

#endif
