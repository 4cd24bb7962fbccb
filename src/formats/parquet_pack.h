// parquet_pack.h - Parquet's two encodings of integers: runs and deltas.
//
// Runs (RLE / bit-packing hybrid) of numbers of at most 32 bits:
//
//   a run:   varint count << 1, the number in as few bytes as `width` bits need
//   a group: varint groups << 1 | 1, groups × 8 numbers of `width` bits each
//
// Deltas (DELTA_BINARY_PACKED) of 64-bit numbers:
//
//   varint 128 | varint 4 | varint count | zigzag first number, then for each block of 128 deltas:
//   zigzag least delta | 4 bytes: widths | 4 × 32 (delta - least delta), of that width each
#ifndef SONDE_FORMATS_PARQUET_PACK_H
#define SONDE_FORMATS_PARQUET_PACK_H

#include "base/bytes.h"

struct parquet_run {
    uint32_t number, count;
};

// Returns the number of bits that numbers up to `most` need.
unsigned parquet_width(uint32_t most);

void parquet_put_runs(struct buf *out, unsigned width, const struct parquet_run *runs,
                      size_t count);
void parquet_put_deltas(struct buf *out, const int64_t *numbers, size_t count);

// Reads `count` numbers. Returns false if the bytes are damaged or numbers are missing.
bool parquet_read_runs(struct bytes *b, unsigned width, uint32_t *numbers, size_t count);
bool parquet_read_deltas(struct bytes *b, int64_t *numbers, size_t count);

#endif
