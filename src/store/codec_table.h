// codec_table.h - the cold form: encodes many columns as one sequence of bytes for a general
// compressor.
//
// The columns of one node contain much redundancy: Active is Active(anon) + Active(file), free
// pages are free memory over four, two counters change in the same rows. A table is encoded as a
// whole. So a column can be stored as its difference from earlier columns, and similar bytes lie
// together: all gaps between changes, then all changes, then the few long changes, then
// incompressible bytes. The bytes that codec_table_encode returns become small only with zstd
// (codec_table_compress).
//
// After one zstd pass, a reader can decode any single column without the others. Columns may differ
// in length and may hold time stamps. So one table can hold all series of a merged block, with
// their time stamps.
//
// docs/format-codecs.md describes the format. Like codec.h it is bit-exact and safe on hostile
// bytes.
#ifndef SONDE_STORE_CODEC_TABLE_H
#define SONDE_STORE_CODEC_TABLE_H

#include "store/codec.h"

enum { CODEC_TABLE_COLUMNS_MAX = 4096 };

struct codec_column {
    const void *data; // n doubles, or n int64_t if they are time stamps
    uint32_t n;       // 1..CODEC_VALUES_MAX
    bool times;
};

// Returns an upper bound for the size of these columns when they are encoded.
size_t codec_table_bound(const struct codec_column *columns, size_t n_columns);

// Encodes 1..CODEC_TABLE_COLUMNS_MAX columns; out has codec_table_bound bytes. Returns the number
// of written bytes, or 0 if memory for the scratch is exhausted (16 bytes a value). Keeps no state:
// any number of threads may encode at once.
size_t codec_table_encode(const struct codec_column *columns, size_t n_columns, uint8_t *out);

// Compresses a table into one zstd frame (read it with ZSTD_decompress). The frame is smaller than
// ZSTD_compress's, because its blocks end with the streams of the table. `level` is one of zstd's,
// or CODEC_TABLE_QUICK, which hardly looks for repeats: most tables have none, because encoding has
// removed them. out has codec_table_compress_bound(size) bytes. Returns 0 if memory is exhausted.
enum { CODEC_TABLE_QUICK = 0 };
size_t codec_table_compress_bound(size_t size);
size_t codec_table_compress(const uint8_t *table, size_t size, int level, uint8_t *out);

// A table opened for reading: a directory over `in`, which must outlive it. It does not change
// after opening, so any number of threads may decode from it.
struct codec_table;

// Returns 0, -EBADMSG if the bytes are not a table, or -ENOMEM. The directory takes some 100 bytes
// a column.
int codec_table_open(const uint8_t *in, size_t size, struct codec_table **out);
void codec_table_close(struct codec_table *table);         // NULL is allowed
size_t codec_table_bytes(const struct codec_table *table); // memory of the directory

size_t codec_table_columns(const struct codec_table *table);
size_t codec_table_rows(const struct codec_table *table, size_t column);
// Bytes of the column in the streams, before compression.
size_t codec_table_column_bytes(const struct codec_table *table, size_t column);
// CODEC_INTEGER for time stamps
enum codec_id codec_table_codec(const struct codec_table *table, size_t column);

// Decode one column into `out`, which has codec_table_rows places. Return 0 or -EBADMSG. It is also
// -EBADMSG to read values as time stamps, or time stamps as values. On failure the contents of
// `out` are undefined.
int codec_table_values(const struct codec_table *table, size_t column, double *out);
int codec_table_times(const struct codec_table *table, size_t column, int64_t *out);

#endif
