#include "formats/thrift.h"

#include <assert.h>

static void put_field(struct thrift_writer *w, int16_t id, enum thrift_type type)
{
    int16_t *last = &w->last[w->depth];
    int step = id - *last;
    if (step > 0 && step < 16) {
        buf_u8(w->out, (uint8_t)(step << 4 | (int)type));
    } else {
        buf_u8(w->out, (uint8_t)type);
        buf_varint(w->out, zigzag(id));
    }
    *last = id;
}

static void deeper(struct thrift_writer *w)
{
    assert(w->depth + 1 < THRIFT_DEPTH_MAX);
    w->last[++w->depth] = 0;
}

void thrift_byte(struct thrift_writer *w, int16_t id, uint8_t value)
{
    put_field(w, id, THRIFT_BYTE);
    buf_u8(w->out, value);
}

void thrift_i32(struct thrift_writer *w, int16_t id, int32_t value)
{
    put_field(w, id, THRIFT_I32);
    buf_varint(w->out, zigzag(value));
}

void thrift_i64(struct thrift_writer *w, int16_t id, int64_t value)
{
    put_field(w, id, THRIFT_I64);
    buf_varint(w->out, zigzag(value));
}

void thrift_bool(struct thrift_writer *w, int16_t id, bool value)
{
    put_field(w, id, value ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_binary(struct thrift_writer *w, int16_t id, struct str value)
{
    put_field(w, id, THRIFT_BINARY);
    buf_short(w->out, value);
}

void thrift_begin(struct thrift_writer *w, int16_t id)
{
    put_field(w, id, THRIFT_STRUCT);
    deeper(w);
}

void thrift_end(struct thrift_writer *w)
{
    buf_u8(w->out, 0);
    if (w->depth)
        w->depth--;
}

void thrift_list(struct thrift_writer *w, int16_t id, enum thrift_type type, size_t count)
{
    put_field(w, id, THRIFT_LIST);
    if (count < 15) {
        buf_u8(w->out, (uint8_t)(count << 4 | type));
    } else {
        buf_u8(w->out, (uint8_t)(0xf0 | type));
        buf_varint(w->out, count);
    }
}

void thrift_element_i32(struct thrift_writer *w, int32_t value)
{
    buf_varint(w->out, zigzag(value));
}

void thrift_element_binary(struct thrift_writer *w, struct str value)
{
    buf_short(w->out, value);
}

void thrift_element_begin(struct thrift_writer *w)
{
    deeper(w);
}

// ---------------------------------------------------------------- reading

static void damaged(struct bytes *b)
{
    b->failed = true;
    b->at = b->end;
}

bool thrift_next(struct bytes *b, struct thrift_field *f)
{
    uint8_t byte = bytes_u8(b);
    if (b->failed || byte == 0)
        return false;
    int64_t id = byte >> 4 ? f->id + (byte >> 4) : unzigzag(bytes_varint(b));
    if (id < INT16_MIN || id > INT16_MAX || b->failed) {
        damaged(b);
        return false;
    }
    f->id = (int16_t)id;
    f->type = byte & 15;
    return true;
}

static size_t list_head(struct bytes *b, enum thrift_type *type)
{
    uint8_t byte = bytes_u8(b);
    uint64_t count = byte >> 4;
    *type = byte & 15;
    if (count == 15)
        count = bytes_varint(b);
    if (count > bytes_left(b)) { // an element takes at least one byte
        damaged(b);
        return 0;
    }
    return (size_t)count;
}

static void skip(struct bytes *b, enum thrift_type type, bool element, unsigned depth)
{
    struct thrift_field f = {0};
    enum thrift_type inner, key;
    if (depth == THRIFT_DEPTH_MAX || b->failed) {
        damaged(b);
        return;
    }
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        if (element)
            bytes_u8(b);
        break;
    case THRIFT_BYTE:
        bytes_u8(b);
        break;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        bytes_varint(b);
        break;
    case THRIFT_DOUBLE:
        bytes_u64(b);
        break;
    case THRIFT_BINARY:
        bytes_short(b);
        break;
    case THRIFT_LIST:
    case THRIFT_SET:
        for (size_t n = list_head(b, &inner); n && !b->failed; n--)
            skip(b, inner, true, depth + 1);
        break;
    case THRIFT_MAP: {
        uint64_t n = bytes_varint(b);
        uint8_t types = n ? bytes_u8(b) : 0;
        key = types >> 4;
        inner = types & 15;
        for (; n && !b->failed; n--) {
            skip(b, key, true, depth + 1);
            skip(b, inner, true, depth + 1);
        }
        break;
    }
    case THRIFT_STRUCT:
        while (thrift_next(b, &f))
            skip(b, f.type, false, depth + 1);
        break;
    default:
        damaged(b);
    }
}

void thrift_skip(struct bytes *b, enum thrift_type type)
{
    skip(b, type, false, 0);
}

int64_t thrift_read_int(struct bytes *b, const struct thrift_field *f)
{
    if (f->type < THRIFT_I16 || f->type > THRIFT_I64) {
        damaged(b);
        return 0;
    }
    return unzigzag(bytes_varint(b));
}

struct str thrift_read_binary(struct bytes *b, const struct thrift_field *f)
{
    if (f->type != THRIFT_BINARY) {
        damaged(b);
        return (struct str){"", 0};
    }
    return bytes_short(b);
}

size_t thrift_read_list(struct bytes *b, const struct thrift_field *f, enum thrift_type type)
{
    enum thrift_type found;
    size_t count = f->type == THRIFT_LIST ? list_head(b, &found) : 0;
    if (f->type != THRIFT_LIST || (count && found != type)) {
        damaged(b);
        return 0;
    }
    return count;
}
