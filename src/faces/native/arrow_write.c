// arrow_write.c - Arrow's messages, and as much of a flatbuffer writer as they need.
//
// A message:  u32 0xffffffff | u32 bytes of metadata, with zeros up to a multiple of 8 | metadata, a flatbuffer | body
// A body:     the buffers of the columns one behind the other, each filled up to a multiple of 8
//
// A flatbuffer, little-endian, offsets counted from where they stand:
//
//   u32 → root table
//   vtable: u16 its bytes, u16 the table's bytes, u16 for each slot where in the table its field is (0: absent)
//   table:  i32 how far the vtable is in front of it, fields; a text, a vector or a table is a u32 → it
//   vector: u32 count, elements; a text is a vector of bytes with a NUL behind it
//
// Everything is written forwards: first a table with empty references, then what they refer to,
// which `link` puts in. A table begins 4 bytes behind a multiple of 8 and its fields come by size,
// largest first: so each lies at a multiple of its own size.
#include "faces/native/arrow_write.h"

#include "base/bytes.h"

enum { SLOTS_MAX = 8, BUFFERS_EACH = 3 };

// Numbers of Arrow's format.
enum { VERSION_V5 = 4, HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };
enum {
    TYPE_INT = 2,
    TYPE_FLOAT = 3,
    TYPE_UTF8 = 5,
    TYPE_TIMESTAMP = 10,
    PRECISION_DOUBLE = 2,
    UNIT_NANOSECOND = 3
};

struct flat {
    struct buf *out;
    size_t base; // where the flatbuffer begins
};

struct field {
    unsigned size;  // 1, 2, 4 or 8 bytes; 0: absent
    uint64_t value; // 0 in references, which are 4 bytes
    size_t at;      // set by flat_table: where the field is
};

// Zeros until the place is `rest` behind a multiple of `unit`.
static void flat_align(struct flat *f, size_t unit, size_t rest)
{
    while (!f->out->failed && (f->out->size - f->base) % unit != rest)
        buf_u8(f->out, 0);
}

static void put(struct buf *out, unsigned size, uint64_t value)
{
    if (size == 1)
        buf_u8(out, (uint8_t)value);
    else if (size == 2)
        buf_u16(out, (uint16_t)value);
    else if (size == 4)
        buf_u32(out, (uint32_t)value);
    else
        buf_u64(out, value);
}

static void patch(struct buf *out, size_t at, uint32_t value)
{
    if (out->failed)
        return;
    for (int i = 0; i < 4; i++)
        out->data[at + (size_t)i] = (char)(value >> 8 * i);
}

// The reference at `at` is to what is written next, which begins at `to`.
static void flat_link(struct flat *f, size_t at, size_t to)
{
    patch(f->out, at, (uint32_t)(to - at));
}

// Where the table begins; fields[i].at is where its field is.
static size_t flat_table(struct flat *f, struct field *fields, size_t slots)
{
    size_t offsets[SLOTS_MAX] = {0}, size = 4, vtable_bytes = 4 + 2 * slots;
    for (unsigned unit = 8; unit; unit /= 2) {
        for (size_t i = 0; i < slots; i++) {
            if (fields[i].size != unit)
                continue;
            offsets[i] = size;
            size += unit;
        }
    }
    flat_align(f, 2, 0);
    while (!f->out->failed && (f->out->size - f->base + vtable_bytes) % 8 != 4)
        buf_u8(f->out, 0);
    buf_u16(f->out, (uint16_t)vtable_bytes);
    buf_u16(f->out, (uint16_t)size);
    for (size_t i = 0; i < slots; i++)
        buf_u16(f->out, (uint16_t)offsets[i]);
    size_t table = f->out->size;
    buf_u32(f->out, (uint32_t)vtable_bytes);
    for (unsigned unit = 8; unit; unit /= 2) {
        for (size_t i = 0; i < slots; i++) {
            if (fields[i].size != unit)
                continue;
            fields[i].at = f->out->size;
            put(f->out, unit, fields[i].value);
        }
    }
    return table;
}

static void flat_text(struct flat *f, size_t reference, struct str text)
{
    flat_align(f, 4, 0);
    flat_link(f, reference, f->out->size);
    buf_u32(f->out, (uint32_t)text.size);
    buf_add_str(f->out, text);
    buf_u8(f->out, 0);
}

// The count of a vector whose elements follow, at a multiple of 8.
static void flat_vector(struct flat *f, size_t reference, size_t count)
{
    flat_align(f, 8, 4);
    flat_link(f, reference, f->out->size);
    buf_u32(f->out, (uint32_t)count);
}

static void flat_child(struct flat *f, size_t reference, struct field *fields, size_t slots)
{
    size_t table = flat_table(f, fields, slots);
    flat_link(f, reference, table);
}

// ---- messages

struct message {
    struct flat flat;
    size_t size_at;   // of the metadata's size
    size_t body_at;   // of the body's, in the metadata
    size_t header_at; // of the reference to what is told
};

static struct message message_begin(struct buf *out, uint8_t header)
{
    struct field fields[] = {{2, VERSION_V5, 0}, {1, header, 0}, {4, 0, 0}, {8, 0, 0}};
    buf_u32(out, 0xffffffff);
    struct message m = {.size_at = out->size};
    buf_u32(out, 0);
    m.flat = (struct flat){out, out->size};
    buf_u32(out, 0);
    flat_child(&m.flat, m.flat.base, fields, 4);
    m.header_at = fields[2].at;
    m.body_at = fields[3].at;
    return m;
}

// The metadata is complete; `body_bytes` follow.
static void message_end(struct message *m, size_t body_bytes)
{
    flat_align(&m->flat, 8, 0);
    patch(m->flat.out, m->size_at, (uint32_t)(m->flat.out->size - m->flat.base));
    patch(m->flat.out, m->body_at, (uint32_t)body_bytes);
    patch(m->flat.out, m->body_at + 4, (uint32_t)((uint64_t)body_bytes >> 32));
}

// ---- schema

static void put_int_type(struct flat *f, size_t reference)
{
    struct field type[] = {{4, 32, 0}, {1, 1, 0}}; // bits, signed
    flat_child(f, reference, type, 2);
}

static void put_type(struct flat *f, size_t reference, enum arrow_type type)
{
    struct field time[] = {{2, UNIT_NANOSECOND, 0}, {4, 0, 0}}, real[] = {{2, PRECISION_DOUBLE, 0}};
    if (type == ARROW_TIME) {
        flat_child(f, reference, time, 2);
        flat_text(f, time[1].at, STR("UTC"));
    } else if (type == ARROW_DOUBLE) {
        flat_child(f, reference, real, 1);
    } else if (type == ARROW_INT) {
        put_int_type(f, reference);
    } else {
        flat_child(f, reference, NULL, 0); // Utf8 has no fields
    }
}

static void put_field(struct flat *f, size_t reference, const struct arrow_column *column,
                      size_t index)
{
    static const uint8_t types[] = {[ARROW_TIME] = TYPE_TIMESTAMP,
                                    [ARROW_DOUBLE] = TYPE_FLOAT,
                                    [ARROW_INT] = TYPE_INT,
                                    [ARROW_TEXT] = TYPE_UTF8};
    bool text = column->type == ARROW_TEXT;
    // name, nullable, kind of type, type, dictionary, children
    struct field fields[] = {{4, 0, 0}, {1, text, 0},           {1, types[column->type], 0},
                             {4, 0, 0}, {text ? 4u : 0u, 0, 0}, {4, 0, 0}};
    struct field dictionary[] = {{8, index, 0}, {4, 0, 0}}; // id, type of the numbers
    flat_child(f, reference, fields, 6);
    flat_text(f, fields[0].at, column->name);
    put_type(f, fields[3].at, column->type);
    if (text) {
        flat_child(f, fields[4].at, dictionary, 2);
        put_int_type(f, dictionary[1].at);
    }
    flat_vector(f, fields[5].at, 0);
}

static void put_schema(struct buf *out, const struct arrow_column *columns, size_t count)
{
    struct message m = message_begin(out, HEADER_SCHEMA);
    struct field schema[] = {{0, 0, 0}, {4, 0, 0}}; // little-endian, fields
    flat_child(&m.flat, m.header_at, schema, 2);
    flat_vector(&m.flat, schema[1].at, count);
    size_t references = out->size;
    for (size_t i = 0; i < count; i++)
        buf_u32(out, 0);
    for (size_t i = 0; i < count; i++)
        put_field(&m.flat, references + 4 * i, &columns[i], i);
    message_end(&m, 0);
}

// ---- batches

static size_t padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

static void put_padding(struct buf *out, size_t bytes)
{
    for (size_t i = bytes; i < padded(bytes); i++)
        buf_u8(out, 0);
}

// How many bytes a column's bitmap of what is there, and its values, take.
static void column_bytes(const struct arrow_column *column, const struct arrow_cells *cells,
                         size_t rows, size_t *bitmap, size_t *values)
{
    *bitmap = column->type == ARROW_TEXT && cells->constant < 0 ? (rows + 7) / 8 : 0;
    *values = rows * (column->type == ARROW_TIME || column->type == ARROW_DOUBLE ? 8 : 4);
}

static void put_values(struct buf *out, const struct arrow_column *column,
                       const struct arrow_cells *cells, size_t rows)
{
    if (column->type == ARROW_DOUBLE) {
        buf_add(out, cells->values, rows * sizeof *cells->values);
        return;
    }
    for (size_t i = 0; i < rows; i++) {
        if (column->type == ARROW_TIME)
            buf_u64(out, (uint64_t)(cells->t_ns[i] + cells->shift_ns));
        else
            buf_u32(out, cells->constant < 0 && column->type == ARROW_TEXT
                             ? 0
                             : (uint32_t)cells->constant);
    }
}

void arrow_batch(struct buf *out, const struct arrow_column *columns, size_t count, size_t rows,
                 const struct arrow_cells *cells)
{
    struct message m = message_begin(out, HEADER_BATCH);
    struct field batch[] = {{8, rows, 0}, {4, 0, 0}, {4, 0, 0}}; // length, nodes, buffers
    size_t bitmap, values, offset = 0;
    flat_child(&m.flat, m.header_at, batch, 3);
    flat_vector(&m.flat, batch[1].at, count);
    for (size_t i = 0; i < count; i++) {
        column_bytes(&columns[i], &cells[i], rows, &bitmap, &values);
        buf_u64(out, rows);
        buf_u64(out, bitmap ? rows : 0); // nulls
    }
    flat_vector(&m.flat, batch[2].at, 2 * count);
    for (size_t i = 0; i < count; i++) {
        column_bytes(&columns[i], &cells[i], rows, &bitmap, &values);
        buf_u64(out, offset);
        buf_u64(out, bitmap);
        offset += padded(bitmap);
        buf_u64(out, offset);
        buf_u64(out, values);
        offset += padded(values);
    }
    message_end(&m, offset);
    for (size_t i = 0; i < count; i++) {
        column_bytes(&columns[i], &cells[i], rows, &bitmap, &values);
        for (size_t b = 0; b < padded(bitmap); b++)
            buf_u8(out, 0);
        put_values(out, &columns[i], &cells[i], rows);
        put_padding(out, values);
    }
}

// A column of texts: where each begins and ends, then their bytes.
static void put_dictionary(struct buf *out, const struct arrow_column *column, size_t id)
{
    struct message m = message_begin(out, HEADER_DICTIONARY);
    struct field dictionary[] = {{8, id, 0}, {4, 0, 0}},
                 batch[] = {{8, column->word_count, 0}, {4, 0, 0}, {4, 0, 0}};
    size_t offsets = (column->word_count + 1) * 4, bytes = 0;
    for (size_t i = 0; i < column->word_count; i++)
        bytes += column->words[i].size;
    flat_child(&m.flat, m.header_at, dictionary, 2);
    flat_child(&m.flat, dictionary[1].at, batch, 3);
    flat_vector(&m.flat, batch[1].at, 1);
    buf_u64(out, column->word_count);
    buf_u64(out, 0); // nulls
    flat_vector(&m.flat, batch[2].at, BUFFERS_EACH);
    const size_t buffers[BUFFERS_EACH][2] = {{0, 0}, {0, offsets}, {padded(offsets), bytes}};
    for (size_t i = 0; i < BUFFERS_EACH; i++) {
        buf_u64(out, buffers[i][0]);
        buf_u64(out, buffers[i][1]);
    }
    message_end(&m, padded(offsets) + padded(bytes));
    size_t end = 0;
    buf_u32(out, 0);
    for (size_t i = 0; i < column->word_count; i++) {
        end += column->words[i].size;
        buf_u32(out, (uint32_t)end);
    }
    put_padding(out, offsets);
    for (size_t i = 0; i < column->word_count; i++)
        buf_add_str(out, column->words[i]);
    put_padding(out, bytes);
}

void arrow_begin(struct buf *out, const struct arrow_column *columns, size_t count)
{
    put_schema(out, columns, count);
    for (size_t i = 0; i < count; i++)
        if (columns[i].type == ARROW_TEXT)
            put_dictionary(out, &columns[i], i);
}

void arrow_end(struct buf *out)
{
    buf_u32(out, 0xffffffff);
    buf_u32(out, 0);
}
