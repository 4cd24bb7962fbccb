// snappy.h - reads Snappy's block format, the default in Parquet files of pandas and DuckDB.
//
//   varint size, then elements:  byte (size - 1) << 2 | 0, bytes (sizes from 61 on follow the byte)
//                                byte offset >> 8 << 5 | (size - 4) << 2 | 1, byte offset
//                                byte (size - 1) << 2 | 2, u16 offset;  … | 3, u32 offset
#ifndef SONDE_FORMATS_SNAPPY_H
#define SONDE_FORMATS_SNAPPY_H

#include "base/str.h"

// Whether the bytes are intact and decompress to exactly `size` bytes.
bool snappy_read(struct str packed, char *out, size_t size);

#endif
