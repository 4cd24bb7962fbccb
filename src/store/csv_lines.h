// csv_lines.h - the lines and cells of a CSV (RFC 4180), plain or gzipped.
#ifndef SONDE_STORE_CSV_LINES_H
#define SONDE_STORE_CSV_LINES_H

#include "base/error.h"
#include "base/str.h"

#include <stdint.h>
#include <zlib.h>

struct csv_lines {
    gzFile file;
    struct str line;      // valid until the next line is read
    struct buf cell;      // the cell without its quotes
    uint64_t line_number; // number of `line`, from 1 on
    // Bytes of the file: from … to are behind `line`.
    char *text;
    size_t from, to, capacity;
};

// Opens a file. Returns 0, or a negative errno with a message in *e. Call csv_lines_close in any
// case.
int csv_lines_open(struct csv_lines *c, const char *path, struct error *e);
void csv_lines_close(struct csv_lines *c);

// Reads the next line, without its end, into c->line. A quoted cell may contain line ends. Returns
// 1, 0 at the end, or a negative errno; -E2BIG for a line of more than CSV_LINE_MAX bytes.
enum { CSV_LINE_MAX = 16 << 20 };
int csv_lines_next(struct csv_lines *c);
int text_lines_next(struct csv_lines *c); // for text without quoted cells

// Returns to the first line. Fails with a negative errno if the file is a pipe.
int csv_lines_rewind(struct csv_lines *c);

// Sets a message for the error that one of these functions has returned. Returns the error.
int csv_lines_failed(const struct csv_lines *c, int rc, struct error *e);

// Takes the next cell from *rest, which is at first the line; rest->data is NULL after the last
// cell. A quoted cell is valid until the next call, any other cell as long as the line.
struct str csv_lines_cell(struct csv_lines *c, struct str *rest);

#endif
