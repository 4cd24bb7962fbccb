#include "formats/protobuf.h"

enum { FIELD_MAX = (1 << 29) - 1 };

static void put_key(struct buf *out, uint32_t field, enum protobuf_wire wire)
{
    buf_varint(out, (uint64_t)field << 3 | wire);
}

void protobuf_u64(struct buf *out, uint32_t field, uint64_t value)
{
    put_key(out, field, PROTOBUF_VARINT);
    buf_varint(out, value);
}

void protobuf_fixed64(struct buf *out, uint32_t field, uint64_t value)
{
    put_key(out, field, PROTOBUF_FIXED64);
    buf_u64(out, value);
}

void protobuf_double(struct buf *out, uint32_t field, double value)
{
    put_key(out, field, PROTOBUF_FIXED64);
    buf_f64(out, value);
}

void protobuf_float(struct buf *out, uint32_t field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(out, field, PROTOBUF_FIXED32);
    buf_u32(out, bits);
}

void protobuf_text(struct buf *out, uint32_t field, struct str text)
{
    put_key(out, field, PROTOBUF_SIZED);
    buf_short(out, text);
}

size_t protobuf_begin(struct buf *out, uint32_t field)
{
    put_key(out, field, PROTOBUF_SIZED);
    buf_u8(out, 0);
    return out->size;
}

void protobuf_end(struct buf *out, size_t begin)
{
    if (out->failed)
        return;
    uint64_t size = out->size - begin;
    size_t more = 0;
    for (uint64_t rest = size >> 7; rest; rest >>= 7)
        more++;
    if (more && !buf_reserve(out, more))
        return;
    memmove(out->data + begin + more, out->data + begin, size);
    out->size = begin - 1;
    buf_varint(out, size);
    out->size += size;
}

bool protobuf_next(struct bytes *m, struct protobuf_field *out)
{
    if (m->failed || bytes_left(m) == 0)
        return false;
    uint64_t key = bytes_varint(m), number = key >> 3;
    *out = (struct protobuf_field){.number = (uint32_t)number, .wire = key & 7};
    switch (out->wire) {
    case PROTOBUF_VARINT:
        out->bits = bytes_varint(m);
        break;
    case PROTOBUF_FIXED64:
        out->bits = bytes_u64(m);
        break;
    case PROTOBUF_FIXED32:
        out->bits = bytes_u32(m);
        break;
    case PROTOBUF_SIZED:
        out->bytes = bytes_short(m);
        break;
    default: // groups, deprecated for more than a decade
        m->failed = true;
    }
    if (number == 0 || number > FIELD_MAX)
        m->failed = true;
    return !m->failed;
}
