// thrift.h - Thrift's compact protocol, the encoding of Parquet's headers and footer.
//
//   struct: fields in ascending order of their ids, then a byte 0
//   field:  byte (id - previous id) << 4 | type, or byte type and zigzag id; then the value
//   bool:   has no value, because there is a type for true and one for false
//   i32, i64: zigzag varint;   double: eight bytes;   binary: varint size, bytes
//   list:   byte count << 4 | type, or byte 0xf0 | type and varint count; the elements
#ifndef SONDE_FORMATS_THRIFT_H
#define SONDE_FORMATS_THRIFT_H

#include "base/bytes.h"

enum thrift_type {
    THRIFT_TRUE = 1,
    THRIFT_FALSE = 2,
    THRIFT_BYTE = 3,
    THRIFT_I16 = 4,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_DOUBLE = 7,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_SET = 10,
    THRIFT_MAP = 11,
    THRIFT_STRUCT = 12,
};

enum { THRIFT_DEPTH_MAX = 16 };

struct thrift_writer {
    struct buf *out;
    int16_t last[THRIFT_DEPTH_MAX]; // id of the previous field, by depth
    unsigned depth;
};

// Begins a message: the struct at the top.
static inline struct thrift_writer thrift_to(struct buf *out)
{
    return (struct thrift_writer){.out = out};
}

void thrift_byte(struct thrift_writer *w, int16_t id, uint8_t value);
void thrift_i32(struct thrift_writer *w, int16_t id, int32_t value);
void thrift_i64(struct thrift_writer *w, int16_t id, int64_t value);
void thrift_bool(struct thrift_writer *w, int16_t id, bool value);
void thrift_binary(struct thrift_writer *w, int16_t id, struct str value);
void thrift_begin(struct thrift_writer *w, int16_t id); // begins a field that is a struct
void thrift_end(struct thrift_writer *w); // ends the current struct, also the one at the top

// Begins a field that is a list. `count` elements follow: thrift_element_…, or thrift_element_begin
// and thrift_end for each.
void thrift_list(struct thrift_writer *w, int16_t id, enum thrift_type type, size_t count);
void thrift_element_i32(struct thrift_writer *w, int32_t value);
void thrift_element_binary(struct thrift_writer *w, struct str value);
void thrift_element_begin(struct thrift_writer *w);

// ---- reading

struct thrift_field {
    int16_t id;
    enum thrift_type type;
};

// Reads the head of the next field of a struct; `f` starts as {0}. Returns false at the end, or
// with b->failed if the bytes are damaged. The caller reads the value or skips it.
bool thrift_next(struct bytes *b, struct thrift_field *f);
void thrift_skip(struct bytes *b, enum thrift_type type);
// fails for fields of other types
int64_t thrift_read_int(struct bytes *b, const struct thrift_field *f);
struct str thrift_read_binary(struct bytes *b, const struct thrift_field *f);
// Returns the number of elements of a list of `type`. Returns 0 and sets b->failed for lists of
// another type, and for lists with more elements than there are bytes.
size_t thrift_read_list(struct bytes *b, const struct thrift_field *f, enum thrift_type type);

#endif
