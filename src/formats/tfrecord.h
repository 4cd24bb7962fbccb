// tfrecord.h - TFRecord, the framing of records in files of TensorFlow and TensorBoard.
//
//   u64 size | u32 checksum of the size | bytes | u32 checksum of the bytes
//
// A checksum is CRC-32C, masked: rotated by 15 bits, plus a constant.
#ifndef SONDE_FORMATS_TFRECORD_H
#define SONDE_FORMATS_TFRECORD_H

#include "base/bytes.h"

enum { TFRECORD_FRAME_BYTES = 16, TFRECORD_HEAD_BYTES = 12 };

// The bytes that the caller writes between the two calls are the record. `begin` is the result of
// tfrecord_begin.
size_t tfrecord_begin(struct buf *out);
void tfrecord_end(struct buf *out, size_t begin);

// Reads the size of the record whose first TFRECORD_HEAD_BYTES are at `head`. Returns false if they
// are damaged.
bool tfrecord_size(const uint8_t head[TFRECORD_HEAD_BYTES], uint64_t *size);
// Whether the bytes have the checksum that follows them in the file.
bool tfrecord_is_whole(struct str record, uint32_t checksum);

#endif
