// columns.h - text in aligned columns.
//
// Cells are added row by row, in the order of the titles; columns_write puts them out with two
// blanks between, each column as wide as its widest cell. Cells are printable, whatever is put into
// them (base/printable.h). Columns that hold nothing but numbers stand to the right. The last one
// is not padded.
#ifndef SONDE_CLI_COLUMNS_H
#define SONDE_CLI_COLUMNS_H

#include "base/str.h"

enum {
    COLUMNS_MAX = 32,
    COLUMNS_COMMAND_MAX = 60, // bytes of a job's command in a table
};

struct columns {
    size_t count;    // of columns
    struct buf text; // all cells, one behind the other
    size_t *ends;    // where each ends in text
    size_t cells, capacity;
    bool failed;
};

void columns_titles(struct columns *c, const char *const *titles, size_t count);
void columns_text(struct columns *c, struct str text); // a cell
void columns_cell(struct columns *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
// A text of at most `most` bytes; of a longer one the beginning and "…".
void columns_cut_text(struct columns *c, struct str text, size_t most);
// sets out->failed when memory has run out before
void columns_write(const struct columns *c, struct buf *out);
// the same cells as RFC 4180 has them; likewise
void columns_csv(const struct columns *c, struct buf *out);
void columns_free(struct columns *c);

#endif
