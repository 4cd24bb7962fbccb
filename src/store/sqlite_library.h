// sqlite_library.h - SQLite, opened with dlopen. Only the import of databases uses it.
//
// Only `sonde import` reads SQLite databases, so no program is linked with SQLite. The names and
// numbers below belong to SQLite's stable interface. They have not changed since SQLite 3.5 of
// 2007.
#ifndef SONDE_STORE_SQLITE_LIBRARY_H
#define SONDE_STORE_SQLITE_LIBRARY_H

#include "base/error.h"

#include "base/str.h"

#include <stdint.h>

enum { SQLITE_OK = 0, SQLITE_ROW = 100, SQLITE_DONE = 101 };
enum sqlite_type {
    SQLITE_INTEGER = 1,
    SQLITE_FLOAT = 2,
    SQLITE_TEXT = 3,
    SQLITE_BLOB = 4,
    SQLITE_NULL = 5
};

struct sqlite3;
struct sqlite3_stmt;

struct sqlite_library {
    int (*open_v2)(const char *path, struct sqlite3 **db, int flags, const char *vfs);
    int (*close)(struct sqlite3 *db);
    int (*limit)(struct sqlite3 *db, int id, int value);
    int (*busy_timeout)(struct sqlite3 *db, int ms);
    int (*exec)(struct sqlite3 *db, const char *sql, void *callback, void *user, char **text);
    const char *(*errmsg)(struct sqlite3 *db);
    int (*prepare_v2)(struct sqlite3 *db, const char *sql, int size, struct sqlite3_stmt **s,
                      const char **rest);
    int (*bind_text)(struct sqlite3_stmt *s, int index, const char *text, int size,
                     void (*release)(void *));
    int (*step)(struct sqlite3_stmt *s);
    int (*finalize)(struct sqlite3_stmt *s);
    int (*column_type)(struct sqlite3_stmt *s, int column);
    int (*bind_int64)(struct sqlite3_stmt *s, int index, int64_t value);
    int (*reset)(struct sqlite3_stmt *s);
    int64_t (*column_int64)(struct sqlite3_stmt *s, int column);
    double (*column_double)(struct sqlite3_stmt *s, int column);
    const unsigned char *(*column_text)(struct sqlite3_stmt *s, int column);
    int (*column_bytes)(struct sqlite3_stmt *s, int column);
};

// Returns NULL if it cannot be opened.
const struct sqlite_library *sqlite_library_open(struct error *e);

// Opens a database for reading only. The file may come from another user. So its schema is not
// trusted, and rows of more than 1 MiB are refused. Returns NULL on failure.
struct sqlite3 *sqlite_open(const struct sqlite_library *q, const char *path, struct error *e);

// Returns a text, valid until the next step.
struct str sqlite_column_text(const struct sqlite_library *q, struct sqlite3_stmt *s, int column);

// *has: the database has a table of this name. A view or a virtual table does not count.
int sqlite_has_table(const struct sqlite_library *q, struct sqlite3 *db, const char *name,
                     bool *has);

#endif
