// bytes.h - reading and writing little-endian binary data that may be damaged or hostile.
//
// A reader never reads outside [at, end). The first read that does not fit sets `failed`; from then
// on every read returns 0 or an empty string. So a parser reads all expected fields and checks
// `failed` once, before it uses any of them. The functions for writing append to a struct buf.
#ifndef SONDE_BASE_BYTES_H
#define SONDE_BASE_BYTES_H

#include "base/str.h"

struct bytes {
    const uint8_t *at, *end;
    bool failed;
};

static inline struct bytes bytes_of(const void *data, size_t size)
{
    const uint8_t *begin = data; // NULL if there are none
    return (struct bytes){begin, size ? begin + size : begin, false};
}

static inline size_t bytes_left(const struct bytes *b)
{
    return (size_t)(b->end - b->at);
}

uint8_t bytes_u8(struct bytes *b);
uint16_t bytes_u16(struct bytes *b);
uint32_t bytes_u32(struct bytes *b);
uint64_t bytes_u64(struct bytes *b);
double bytes_f64(struct bytes *b);
// A number in LEB128, at most 10 bytes. Most have one.
uint64_t bytes_long_varint(struct bytes *b);
static inline uint64_t bytes_varint(struct bytes *b)
{
    return b->at < b->end && *b->at < 128 && !b->failed ? *b->at++ : bytes_long_varint(b);
}
struct str bytes_take(struct bytes *b, uint64_t size); // the next `size` bytes, as a view
struct str bytes_short(struct bytes *b);               // a varint size, then that many bytes

void buf_u8(struct buf *b, uint8_t v);
void buf_u16(struct buf *b, uint16_t v);
void buf_u32(struct buf *b, uint32_t v);
void buf_u64(struct buf *b, uint64_t v);
void buf_f64(struct buf *b, double v);
void buf_varint(struct buf *b, uint64_t v);
void buf_short(struct buf *b, struct str s);

// Maps signed numbers to small unsigned ones: 0, -1, 1, -2 … become 0, 1, 2, 3 …
static inline uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static inline int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

#endif
