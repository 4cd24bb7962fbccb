// tfrecord.h - TFRecord: records in a file, as TensorFlow and TensorBoard frame them.
//
//   u64 size | u32 checksum of the size | bytes | u32 checksum of the bytes
//
// A checksum is CRC-32C, masked: rotated by 15 bits, plus a constant.
#ifndef SONDE_FORMATS_TFRECORD_H
#define SONDE_FORMATS_TFRECORD_H

#include "base/bytes.h"

enum { TFRECORD_FRAME_BYTES = 16, TFRECORD_HEAD_BYTES = 12 };

// The record is what is written between the two calls. Pass what tfrecord_begin returned.
size_t tfrecord_begin(struct buf *out);
void tfrecord_end(struct buf *out, size_t begin);

// The size of the record whose first TFRECORD_HEAD_BYTES are at `head`. False: damaged.
bool tfrecord_size(const uint8_t head[TFRECORD_HEAD_BYTES], uint64_t *size);
// Whether the bytes have the checksum that stands behind them.
bool tfrecord_is_whole(struct str record, uint32_t checksum);

#endif
