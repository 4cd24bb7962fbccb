// arrow_write.h - a table as an Arrow IPC stream or file: columns as they lie in memory.
//
//   stream: schema | a dictionary for each text column | record batch, record batch, … | end
//   file:   "ARROW1" | a stream | footer: schema, places of dictionaries and batches | "ARROW1"
//
// Words that are added to a dictionary after the first batch precede the next batch as a delta.
#ifndef SONDE_FORMATS_ARROW_WRITE_H
#define SONDE_FORMATS_ARROW_WRITE_H

#include "formats/table.h"

enum arrow_container { ARROW_STREAM, ARROW_FILE };

// The place of a message in the file.
struct arrow_block {
    uint64_t offset, body_bytes;
    uint32_t metadata_bytes;
};

struct arrow_blocks {
    struct arrow_block *list;
    size_t count, capacity;
};

// Appends everything to `out`. After each call the caller may take the bytes out of `out` and call
// arrow_taken. Without memory, out->failed is set.
struct arrow_writer {
    struct buf *out;
    enum arrow_container container;
    const struct table_column *columns; // outlive the writer
    size_t count;
    const struct table_pair *pairs;
    size_t pair_count;

    uint64_t taken; // bytes that the caller has taken out of `out`
    size_t *sent;   // number of written words of each column's dictionary
    bool begun;     // the first dictionaries are written
    struct arrow_blocks dictionaries, batches; // of a file
};

// The caller sets the members up to pair_count, and the others to 0.
void arrow_begin(struct arrow_writer *w);
void arrow_batch(struct arrow_writer *w, size_t rows, const struct table_cells *cells);
void arrow_end(struct arrow_writer *w);
void arrow_free(struct arrow_writer *w); // frees memory only; allowed after any failure

static inline void arrow_taken(struct arrow_writer *w)
{
    w->taken += w->out->size;
    w->out->size = 0;
}

// Writes the schema alone, as a message. Parquet files contain it, so that readers of Arrow restore
// the dictionaries.
void arrow_schema(struct buf *out, const struct table_column *columns, size_t count);

#endif
