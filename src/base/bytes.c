#include "base/bytes.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files, rings and messages are little-endian as they stand");

static void read_fixed(struct bytes *b, void *out, size_t size)
{
    if (bytes_left(b) < size) {
        b->failed = true;
        b->at = b->end;
        memset(out, 0, size);
        return;
    }
    memcpy(out, b->at, size);
    b->at += size;
}

#define READ_FIXED(name, type)       \
    type name(struct bytes *b)       \
    {                                \
        type v;                      \
        read_fixed(b, &v, sizeof v); \
        return v;                    \
    }

READ_FIXED(bytes_u8, uint8_t)
READ_FIXED(bytes_u16, uint16_t)
READ_FIXED(bytes_u32, uint32_t)
READ_FIXED(bytes_u64, uint64_t)
READ_FIXED(bytes_f64, double)

uint64_t bytes_long_varint(struct bytes *b)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = bytes_u8(b);
        if (shift == 63 && byte > 1)
            break; // the number would exceed 64 bits
        v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return b->failed ? 0 : v;
    }
    b->failed = true;
    b->at = b->end;
    return 0;
}

struct str bytes_take(struct bytes *b, uint64_t size)
{
    if (bytes_left(b) < size) {
        b->failed = true;
        b->at = b->end;
        return (struct str){"", 0};
    }
    struct str s = {(const char *)b->at, (size_t)size};
    b->at += size;
    return s;
}

struct str bytes_short(struct bytes *b)
{
    return bytes_take(b, bytes_varint(b));
}

void buf_u8(struct buf *b, uint8_t v)
{
    buf_add(b, &v, sizeof v);
}

void buf_u16(struct buf *b, uint16_t v)
{
    buf_add(b, &v, sizeof v);
}

void buf_u32(struct buf *b, uint32_t v)
{
    buf_add(b, &v, sizeof v);
}

void buf_u64(struct buf *b, uint64_t v)
{
    buf_add(b, &v, sizeof v);
}

void buf_f64(struct buf *b, double v)
{
    buf_add(b, &v, sizeof v);
}

void buf_varint(struct buf *b, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; v >= 128; v >>= 7)
        bytes[n++] = (uint8_t)(v | 128);
    bytes[n++] = (uint8_t)v;
    buf_add(b, bytes, n);
}

void buf_short(struct buf *b, struct str s)
{
    buf_varint(b, s.size);
    buf_add_str(b, s);
}
