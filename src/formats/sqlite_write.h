// sqlite_write.h - SQLite databases, written page by page in one pass.
//
// Rows come in the order of their keys, so every B-tree grows at its right end: a page is written
// when it is full, and only the last page of each level stays in memory. SQLite itself would read,
// lock and journal the pages, and every program that links this code would need its library.
//
//   page 1       header (100 bytes), sqlite_master: written last
//   page 2 …     leaf pages, and above them interior pages, in the order in which they fill up
//
//   table          leaf: varint payload size, varint rowid, payload; interior: u32 page, rowid
//   WITHOUT ROWID  leaf: varint payload size, payload; interior: u32 page, varint size, payload
//   payload        varint header size, varint type of each column; the values
//
// A payload that does not fit a page continues in a chain of pages. The format is documented at
// sqlite.org/fileformat.html. Numbers are big-endian.
#ifndef SONDE_FORMATS_SQLITE_WRITE_H
#define SONDE_FORMATS_SQLITE_WRITE_H

#include "base/str.h"

#include <stdint.h>

enum {
    SQLITE_PAGE_BYTES = 16384,
    SQLITE_TABLES_MAX = 16,
    SQLITE_COLUMNS_MAX = 64,
};

struct sqlite_output {
    // Writes whole pages at this offset of the file. Returns 0, or a negative errno, which ends the
    // writing.
    int (*write)(void *user, uint64_t offset, struct str bytes);
    void *user;
    // Number of the page whose bytes SQLite locks and which never holds data. 0: SQLite's own, just
    // after the first GiB; tests move it, as SQLite's own tests do (SQLITE_TESTCTRL_PENDING_BYTE).
    uint32_t lock_page;
};

enum sqlite_value_kind {
    SQLITE_VALUE_NULL,
    SQLITE_VALUE_INTEGER,
    SQLITE_VALUE_REAL,
    SQLITE_VALUE_TEXT
};

struct sqlite_value {
    enum sqlite_value_kind kind;
    int64_t integer;
    double real; // SQLite has no NaN: it becomes NULL
    struct str text;
};

static inline struct sqlite_value sqlite_integer(int64_t v)
{
    return (struct sqlite_value){.kind = SQLITE_VALUE_INTEGER, .integer = v};
}

static inline struct sqlite_value sqlite_real(double v)
{
    return (struct sqlite_value){.kind = v == v ? SQLITE_VALUE_REAL : SQLITE_VALUE_NULL, .real = v};
}

static inline struct sqlite_value sqlite_text(struct str v)
{
    return (struct sqlite_value){.kind = SQLITE_VALUE_TEXT, .text = v};
}

struct sqlite_writer;

// Returns NULL without memory.
struct sqlite_writer *sqlite_write_begin(const struct sqlite_output *o);
void sqlite_write_free(struct sqlite_writer *w); // NULL is allowed

// `sql` creates the table. `ordered`: it is WITHOUT ROWID, and the columns of its primary key come
// first; rows ascend by them, and no row is larger than a quarter of a page. Returns the table's
// number, or -ENOMEM. The texts must outlive the writer.
int sqlite_write_table(struct sqlite_writer *w, const char *name, const char *sql, bool ordered);
// Adds a view, which has no rows.
int sqlite_write_view(struct sqlite_writer *w, const char *name, const char *sql);

// Appends a row. Rowids count from 1. The value of an INTEGER PRIMARY KEY column in the row is
// NULL.
int sqlite_write_row(struct sqlite_writer *w, int table, const struct sqlite_value *values,
                     size_t count);

// Writes the last page of each table, and the first page. Returns -E2BIG if the tables'
// descriptions do not fit on it.
int sqlite_write_end(struct sqlite_writer *w);

#endif
