// write_sqlite.c - writes a database: write_sqlite OUT LOCK_PAGE ROWS
//
//   points(series, time_ns, value)  ROWS rows, ordered; row i is (i / 1000, i, i / 4)
//   notes(id, text)                 a row for each 100 of them, whose text takes several pages
#include "formats/sqlite_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT_BYTES = 3 * SQLITE_PAGE_BYTES };

static int write_pages(void *user, uint64_t offset, struct str bytes)
{
    const int *fd = user;
    return pwrite(*fd, bytes.data, bytes.size, (off_t)offset) == (ssize_t)bytes.size ? 0 : -EIO;
}

static int write_rows(struct sqlite_writer *w, int64_t rows)
{
    static char text[TEXT_BYTES];
    memset(text, 'x', sizeof text);
    int points = sqlite_write_table(
            w, "points",
            "CREATE TABLE points (series INTEGER NOT NULL, time_ns INTEGER NOT NULL, value REAL, "
            "PRIMARY KEY (series, time_ns)) WITHOUT ROWID",
            true),
        notes = sqlite_write_table(w, "notes",
                                   "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)", false);
    int rc = 0;
    for (int64_t i = 0; i < rows && !rc; i++) {
        const struct sqlite_value point[] = {sqlite_integer(i / 1000), sqlite_integer(i),
                                             sqlite_real((double)i / 4)},
                                  note[] = {{0}, sqlite_text((struct str){text, TEXT_BYTES})};
        rc = sqlite_write_row(w, points, point, 3);
        if (!rc && i % 100 == 0)
            rc = sqlite_write_row(w, notes, note, 2);
    }
    return rc ? rc : sqlite_write_end(w);
}

int main(int argc, char **argv)
{
    int fd = argc == 4 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return 2;
    struct sqlite_output out = {write_pages, &fd, (uint32_t)strtoul(argv[2], NULL, 10)};
    struct sqlite_writer *w = sqlite_write_begin(&out);
    int rc = w ? write_rows(w, strtoll(argv[3], NULL, 10)) : -ENOMEM;
    sqlite_write_free(w);
    return rc ? 1 : close(fd) < 0;
}
