// native_binary.h - /sonde/v1/query?format=binary: columns as they lie in memory, for clients that use them where they are. Little-endian;
// every part begins at a multiple of 8 bytes from the start of the answer.
//
//   8 bytes    NATIVE_BINARY_MAGIC
//   a series:  u64 size of its description, not 0; the description; zeros up to a multiple of 8
//              u64 points; i64 times, ns since the epoch, ascending; f64 values, NaN where JSON has null
//   …
//   u64 0      no more series
//   u64 series, u64 points, u64 points read: an answer that lacks these was cut
//
// A description: varint query, short metric, u8 kind (0 not known, 1 gauge, 2 counter), short unit, varint tags, each: short key, short value; varint aggregate tags, each: short
// key; varint source series, u8 1 where quantiles are estimated. A varint is LEB128; a short is a varint size and so many bytes (base/bytes.h).
#ifndef SONDE_AGGREGATOR_NATIVE_BINARY_H
#define SONDE_AGGREGATOR_NATIVE_BINARY_H

#define NATIVE_BINARY_MAGIC "sonde c1"
#define NATIVE_BINARY_TYPE "application/vnd.sonde.columns"

enum native_binary_kind { NATIVE_BINARY_UNKNOWN, NATIVE_BINARY_GAUGE, NATIVE_BINARY_COUNTER };

#endif
