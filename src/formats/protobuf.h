// protobuf.h - protobuf's wire format: writes fields into a buffer, and reads the fields of a
// message that may be hostile.
//
//   field:   varint (number << 3 | wire type), then the value
//   values:  0 varint | 1 eight bytes | 2 varint size, bytes (texts, messages, packed lists) |
//            5 four bytes
//
// A message is written before its size is known: protobuf_begin leaves one byte for the size, and
// protobuf_end moves messages of 128 bytes or more to make room. So a message needs as much memory
// as it has bytes in the file, and the caller bounds it by the size of the messages.
#ifndef SONDE_FORMATS_PROTOBUF_H
#define SONDE_FORMATS_PROTOBUF_H

#include "base/bytes.h"

void protobuf_u64(struct buf *out, uint32_t field, uint64_t value); // also enum, bool, int64
void protobuf_fixed64(struct buf *out, uint32_t field, uint64_t value);
void protobuf_double(struct buf *out, uint32_t field, double value);
void protobuf_float(struct buf *out, uint32_t field, float value);
void protobuf_text(struct buf *out, uint32_t field, struct str text); // also bytes

// Messages nest: the last one that began ends first. `begin` is the result of protobuf_begin.
size_t protobuf_begin(struct buf *out, uint32_t field);
void protobuf_end(struct buf *out, size_t begin);

enum protobuf_wire {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_SIZED = 2,
    PROTOBUF_FIXED32 = 5,
};

struct protobuf_field {
    uint32_t number;
    enum protobuf_wire wire;
    uint64_t bits;    // value of a varint, or of eight or four bytes
    struct str bytes; // of PROTOBUF_SIZED: a view into the message
};

// Reads the next field of the message. Returns false at the end, or with m->failed if the message
// is damaged.
bool protobuf_next(struct bytes *m, struct protobuf_field *out);

static inline double protobuf_as_double(const struct protobuf_field *f)
{
    double v;
    memcpy(&v, &f->bits, sizeof v);
    return v;
}

static inline float protobuf_as_float(const struct protobuf_field *f)
{
    uint32_t bits = (uint32_t)f->bits;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

#endif
