#include "store/sqlite_library.h"

#include "base/str.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPEN_READONLY = 1,
    OPEN_NOMUTEX = 0x8000,
    LIMIT_LENGTH = 0,
    ROW_BYTES_MAX = 1 << 20,
    BUSY_MS = 5000, // wait this long for a transaction of a program that still writes
    HEADER_BYTES = 16,
};

static const char file_magic[HEADER_BYTES] = "SQLite format 3";

const struct sqlite_library *sqlite_library_open(struct error *e)
{
    static struct sqlite_library q;
    static const struct {
        const char *name;
        void *to;
    } names[] = {{"sqlite3_open_v2", &q.open_v2},
                 {"sqlite3_close", &q.close},
                 {"sqlite3_limit", &q.limit},
                 {"sqlite3_busy_timeout", &q.busy_timeout},
                 {"sqlite3_exec", &q.exec},
                 {"sqlite3_errmsg", &q.errmsg},
                 {"sqlite3_prepare_v2", &q.prepare_v2},
                 {"sqlite3_bind_text", &q.bind_text},
                 {"sqlite3_step", &q.step},
                 {"sqlite3_finalize", &q.finalize},
                 {"sqlite3_column_type", &q.column_type},
                 {"sqlite3_bind_int64", &q.bind_int64},
                 {"sqlite3_reset", &q.reset},
                 {"sqlite3_column_int64", &q.column_int64},
                 {"sqlite3_column_double", &q.column_double},
                 {"sqlite3_column_text", &q.column_text},
                 {"sqlite3_column_bytes", &q.column_bytes}};
    const char *given = getenv("SONDE_SQLITE");
    void *library = dlopen(given ? given : "libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        error_set(e, -ENOENT,
                  "cannot open the library SQLite: %s; install it (Debian: libsqlite3-0)",
                  dlerror());
        return NULL;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *symbol = dlsym(library, names[i].name);
        if (!symbol) {
            error_set(e, -ENOENT, "the library SQLite has no function %s; install another version",
                      names[i].name);
            return NULL;
        }
        memcpy(names[i].to, &symbol, sizeof symbol);
    }
    return &q;
}

// Checks the file first, because SQLite treats an empty file as a new database, and waits for the
// writer of a pipe.
static int check_file(const char *path, struct error *e)
{
    char header[HEADER_BYTES];
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
    ssize_t n =
        fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? pread(fd, header, sizeof header, 0) : -1;
    close(fd);
    if (n < 0)
        return error_set(e, -EINVAL, "cannot read %s: not a regular file", path);
    if (n == 0)
        return error_set(e, -ENODATA, "cannot read %s: the file is empty", path);
    if (n != HEADER_BYTES || memcmp(header, file_magic, sizeof header) != 0)
        return error_set(e, -EINVAL, "cannot read %s: not an SQLite database", path);
    return 0;
}

struct sqlite3 *sqlite_open(const struct sqlite_library *q, const char *path, struct error *e)
{
    struct sqlite3 *db = NULL;
    // without "file:" at the beginning, which SQLite could read as a URI with options
    char plain[PATH_MAX];
    int n = snprintf(plain, sizeof plain, "%s%s", path[0] == '/' ? "" : "./", path);
    if (n < 0 || n >= (int)sizeof plain) {
        error_set(e, -ENAMETOOLONG, "cannot open %s: its name is too long", path);
        return NULL;
    }
    if (check_file(path, e))
        return NULL;
    int rc = q->open_v2(plain, &db, OPEN_READONLY | OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK) {
        q->limit(db, LIMIT_LENGTH, ROW_BYTES_MAX);
        q->busy_timeout(db, BUSY_MS);
        rc = q->exec(db, "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0",
                     NULL, NULL, NULL);
    }
    if (rc != SQLITE_OK) {
        error_set(e, -EBADMSG, "cannot read %s: %s", path, db ? q->errmsg(db) : "no memory");
        q->close(db);
        return NULL;
    }
    return db;
}

struct str sqlite_column_text(const struct sqlite_library *q, struct sqlite3_stmt *s, int column)
{
    const char *text = (const char *)q->column_text(s, column);
    return (struct str){text ? text : "", text ? (size_t)q->column_bytes(s, column) : 0};
}

int sqlite_has_table(const struct sqlite_library *q, struct sqlite3 *db, const char *name,
                     bool *has)
{
    struct sqlite3_stmt *s = NULL;
    int rc = q->prepare_v2(
        db, "SELECT 1 FROM sqlite_master WHERE type='table' AND name=? AND rootpage>0", -1, &s,
        NULL);
    if (rc == SQLITE_OK)
        rc = q->bind_text(s, 1, name, -1, NULL);
    if (rc == SQLITE_OK)
        rc = q->step(s);
    q->finalize(s);
    *has = rc == SQLITE_ROW;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}
