// codec_table.h - many columns as one piece of bytes: the cold form, made for a general compressor.
//
// Columns of one node say the same thing many times: Active is Active(anon) + Active(file), free
// pages are free memory over four, two counters move in the same rows. A table is encoded as a
// whole, so that a column can be written as what it differs by from columns before it, and so that
// alike bytes lie together: all gaps between changes, then all changes, then the few long ones,
// then what no compressor can make smaller. The bytes that codec_table_encode returns are meant for
// zstd (codec_table_compress; level 19 where time allows, 3 gives a tenth more); they are not small
// before.
//
// After one zstd pass any single column is decoded without the others being written out. Columns
// may differ in length and may hold time stamps: one table can take all series and the stamps of a
// merged block.
//
// The format is drawn in docs/format-codecs.md. Same promises as codec.h: bit-exact, and safe on
// hostile bytes.
#ifndef SONDE_STORE_CODEC_TABLE_H
#define SONDE_STORE_CODEC_TABLE_H

#include "store/codec.h"

enum { CODEC_TABLE_COLUMNS_MAX = 4096 };

struct codec_column {
    const void *data; // n doubles, or n int64_t when they are time stamps
    uint32_t n;       // 1..CODEC_VALUES_MAX
    bool times;
};

// The most bytes that encoding these columns can take.
size_t codec_table_bound(const struct codec_column *columns, size_t n_columns);

// n_columns in 1..CODEC_TABLE_COLUMNS_MAX, out has codec_table_bound bytes. Returns the bytes
// written, 0 when there is no memory for the scratch (16 bytes a value). No state is kept: any
// number of threads may encode at once.
size_t codec_table_encode(const struct codec_column *columns, size_t n_columns, uint8_t *out);

// The bytes of a table as one zstd frame (read with ZSTD_decompress), better than ZSTD_compress
// makes it: its blocks end where the streams in the table end. out has
// codec_table_compress_bound(size) bytes. 0 when there is no memory.
size_t codec_table_compress_bound(size_t size);
size_t codec_table_compress(const uint8_t *table, size_t size, int level, uint8_t *out);

// A table opened for reading: a directory over `in`, which has to outlive it. Nothing in it changes
// after opening, so any number of threads may decode from it.
struct codec_table;

// 0, -EBADMSG for bytes that are no table, -ENOMEM. The directory takes some 100 bytes a column.
int codec_table_open(const uint8_t *in, size_t size, struct codec_table **out);
void codec_table_close(struct codec_table *table); // NULL is fine

size_t codec_table_columns(const struct codec_table *table);
size_t codec_table_rows(const struct codec_table *table, size_t column);
// CODEC_INTEGER for time stamps
enum codec_id codec_table_codec(const struct codec_table *table, size_t column);

// Decode one column into out, which has codec_table_rows places. 0 or -EBADMSG; also when a column
// of values is asked for as time stamps, or the other way round. On failure what `out` holds is
// undefined.
int codec_table_values(const struct codec_table *table, size_t column, double *out);
int codec_table_times(const struct codec_table *table, size_t column, int64_t *out);

#endif
