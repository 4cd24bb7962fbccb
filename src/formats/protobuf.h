// protobuf.h - protobuf's wire format: fields into a buffer, and fields of a message that may be
// hostile.
//
//   field:   varint (number << 3 | wire type), then the value
//   values:  0 varint | 1 eight bytes | 2 varint size, bytes (texts, messages, packed lists) |
//            5 four bytes
//
// A message is written in front of its size: protobuf_begin leaves one byte for the size, and
// protobuf_end moves messages of 128 bytes or more. So a message in memory is as large as in the
// file, and a caller bounds the memory by the size of its messages.
#ifndef SONDE_FORMATS_PROTOBUF_H
#define SONDE_FORMATS_PROTOBUF_H

#include "base/bytes.h"

void protobuf_u64(struct buf *out, uint32_t field, uint64_t value); // also enum, bool, int64
void protobuf_fixed64(struct buf *out, uint32_t field, uint64_t value);
void protobuf_double(struct buf *out, uint32_t field, double value);
void protobuf_float(struct buf *out, uint32_t field, float value);
void protobuf_text(struct buf *out, uint32_t field, struct str text); // also bytes

// Messages nest: the one that began last ends first. Pass what protobuf_begin returned.
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
    uint64_t bits;    // of a varint, of eight bytes, of four bytes
    struct str bytes; // of PROTOBUF_SIZED: a view into the message
};

// The next field of the message. False: at its end, and m->failed if the message is damaged.
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
