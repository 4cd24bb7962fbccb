// binary.h - /sonde/v1/query?format=binary: columns in their memory layout, for clients that use
// them without a copy. Little-endian; every part begins at a multiple of 8 bytes from the start of
// the answer.
//
//   8 bytes    NATIVE_BINARY_MAGIC
//   a series:  u64 size of its description, not 0; the description; zeros up to a multiple of 8
//              u64 points; i64 times, ns since the epoch, ascending; f64 values, NaN where JSON has
//              null. With NATIVE_BINARY_SHARED in `points` the times are left out: they equal those
//              of the previous series, which has as many points
//   …
//   u64 0      no more series
//   u64 series, u64 points, u64 points read: an answer without these is truncated
//
// A description: varint query, short metric, u8 kind (0 unknown, 1 gauge, 2 counter), short unit,
// varint tags, each: short key, short value; varint aggregate tags, each: short key; varint source
// series, u8 1 where quantiles are estimated. A varint is LEB128; a short is a varint size and that
// many bytes (base/bytes.h).
#ifndef SONDE_FACES_NATIVE_BINARY_H
#define SONDE_FACES_NATIVE_BINARY_H

#include "query/query.h"

#include <stdint.h>

#define NATIVE_BINARY_MAGIC "sonde c2"
// Halves the size of series that are sampled together (the metrics of a source, a metric on all
// nodes).
#define NATIVE_BINARY_SHARED (UINT64_C(1) << 63)
#define NATIVE_BINARY_TYPE "application/vnd.sonde.columns"

enum native_binary_kind { NATIVE_BINARY_UNKNOWN, NATIVE_BINARY_GAUGE, NATIVE_BINARY_COUNTER };

// Writes an answer, series by series. `metric` NULL: unknown; `shared`: the times are those of the
// previous series; `shift_ns` is added to all times.
void native_binary_begin(struct buf *out);
void native_binary_series(struct buf *out, size_t query, const struct query_series *s,
                          const struct store_metric *metric, bool shared, int64_t shift_ns);
void native_binary_end(struct buf *out, uint64_t series, uint64_t points, uint64_t points_read);

#endif
