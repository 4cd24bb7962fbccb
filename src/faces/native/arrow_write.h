// arrow_write.h - a table as an Arrow IPC stream: columns as they lie in memory, for pyarrow,
// pandas, polars, R, DuckDB…
//
//   schema | a dictionary for each text column | record batch, record batch, … | end
//
// Texts that are the same all along a batch, as tags are, cost four bytes a row: the number of the
// text in its column's dictionary.
#ifndef SONDE_FACES_NATIVE_ARROW_WRITE_H
#define SONDE_FACES_NATIVE_ARROW_WRITE_H

#include "base/str.h"

enum arrow_type {
    ARROW_TIME,   // timestamp[ns, UTC]
    ARROW_DOUBLE, // float64
    ARROW_INT,    // int32
    ARROW_TEXT,   // dictionary<int32, utf8>, may be null
};

struct arrow_column {
    struct str name;
    enum arrow_type type;
    const struct str *words; // of ARROW_TEXT: the dictionary, at most INT32_MAX words
    size_t word_count;
};

// A batch's part of a column.
struct arrow_cells {
    const int64_t *t_ns; // of ARROW_TIME; `shift_ns` is added to each
    int64_t shift_ns;
    const double *values; // of ARROW_DOUBLE
    int32_t constant;     // in all rows: of ARROW_INT the number, of ARROW_TEXT the word, -1 = null
};

void arrow_begin(struct buf *out, const struct arrow_column *columns, size_t count);
void arrow_batch(struct buf *out, const struct arrow_column *columns, size_t count, size_t rows,
                 const struct arrow_cells *cells);
void arrow_end(struct buf *out);

#endif
