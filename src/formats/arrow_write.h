// arrow_write.h - a table as an Arrow IPC stream or file: columns as they lie in memory.
//
//   stream: schema | a dictionary for each text column | record batch, record batch, … | end
//   file:   "ARROW1" | a stream | footer: the schema, where dictionaries and batches are | "ARROW1"
//
// Words that are added to a dictionary after the first batch go out as a delta in front of the next
// batch.
#ifndef SONDE_FORMATS_ARROW_WRITE_H
#define SONDE_FORMATS_ARROW_WRITE_H

#include "formats/table.h"

enum arrow_container { ARROW_STREAM, ARROW_FILE };

// Where a message is in the file.
struct arrow_block {
    uint64_t offset, body_bytes;
    uint32_t metadata_bytes;
};

struct arrow_blocks {
    struct arrow_block *list;
    size_t count, capacity;
};

// Everything goes behind what is in `out`. After each call the caller may take the bytes out of
// `out` and call arrow_taken. No memory: out->failed.
struct arrow_writer {
    struct buf *out;
    enum arrow_container container;
    const struct table_column *columns; // they live as long as the writer
    size_t count;
    const struct table_pair *pairs;
    size_t pair_count;

    uint64_t taken; // bytes that are no longer in `out`
    size_t *sent;   // words of each column's dictionary that have gone out
    bool begun;     // the dictionaries have gone out
    struct arrow_blocks dictionaries, batches; // of a file
};

// Set the members up to pair_count, the others to 0.
void arrow_begin(struct arrow_writer *w);
void arrow_batch(struct arrow_writer *w, size_t rows, const struct table_cells *cells);
void arrow_end(struct arrow_writer *w);
void arrow_free(struct arrow_writer *w); // memory only; after arrow_begin, whatever has failed

static inline void arrow_taken(struct arrow_writer *w)
{
    w->taken += w->out->size;
    w->out->size = 0;
}

// The schema alone, as a message: Parquet's files keep it so that readers of Arrow find the
// dictionaries again.
void arrow_schema(struct buf *out, const struct table_column *columns, size_t count);

#endif
