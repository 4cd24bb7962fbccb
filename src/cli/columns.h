// columns.h - text in aligned columns.
//
// Cells are added row by row, in the order of the titles. columns_write writes them, separated by
// two blanks, each column as wide as its widest cell. Cells are made printable (base/printable.h).
// Columns of numbers alone are right-aligned. The last column is not padded.
#ifndef SONDE_CLI_COLUMNS_H
#define SONDE_CLI_COLUMNS_H

#include "base/str.h"

enum {
    COLUMNS_MAX = 32,
    COLUMNS_COMMAND_MAX = 60, // bytes of a job's command in a table
};

struct columns {
    size_t count;    // number of columns
    struct buf text; // all cells, one after the other
    size_t *ends;    // end of each in `text`
    size_t cells, capacity;
    bool failed;
};

void columns_titles(struct columns *c, const char *const *titles, size_t count);
void columns_text(struct columns *c, struct str text); // adds a cell
void columns_cell(struct columns *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Adds a text of at most `most` bytes. Cuts a longer text, with "…" at its end.
void columns_cut_text(struct columns *c, struct str text, size_t most);
// sets out->failed if memory was exhausted earlier
void columns_write(const struct columns *c, struct buf *out);
// writes the same cells as CSV (RFC 4180); sets out->failed, too
void columns_csv(const struct columns *c, struct buf *out);
void columns_free(struct columns *c);

#endif
