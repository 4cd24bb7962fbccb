// arrow_write.c - Arrow's messages, and as much of a flatbuffer writer as they need.
//
// A message:  u32 0xffffffff | u32 bytes of metadata, with zeros up to a multiple of 8 | metadata,
//             a flatbuffer | body
// A body:     the buffers of the columns, one after the other, each padded to a multiple of 8
//
// A flatbuffer is little-endian; an offset (→) counts from its own place:
//
//   u32 → root table
//   vtable: u16 its size, u16 the table's size, for each slot u16 its field's offset in the table
//           (0: absent)
//   table:  i32 distance from the vtable, which precedes it; fields; a text, vector or table is a
//           u32 → it
//   vector: u32 count, elements; a text is a vector of bytes, followed by a NUL
//
// Everything is written forwards: first a table with empty references, then their targets;
// flat_link fills in each reference. A table begins 4 bytes after a multiple of 8, and its largest
// fields come first, so that each field lies at a multiple of its own size.
#include "formats/arrow_write.h"

#include "base/array.h"
#include "base/bytes.h"

#include <stdlib.h>

enum { SLOTS_MAX = 8, BUFFERS_EACH = 3 };
#define ARROW_MAGIC "ARROW1"

// Constants of Arrow's format.
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
    size_t base; // index in `out` at which the flatbuffer begins
};

struct field {
    unsigned size;  // 1, 2, 4 or 8 bytes; 0: absent
    uint64_t value; // 0 for references, which are 4 bytes
    size_t at;      // set by flat_table: index of the field in `out`
};

// Pads with zeros until the size modulo `unit` is `rest`.
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

// Points the reference at `at` to index `to`.
static void flat_link(struct flat *f, size_t at, size_t to)
{
    patch(f->out, at, (uint32_t)(to - at));
}

// Writes a table; returns its index and sets fields[i].at.
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

// Writes the count of a vector and links it. The elements follow at a multiple of 8.
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
    size_t begin;
    size_t size_at;   // index of the metadata's size
    size_t body_at;   // index of the body's size, in the metadata
    size_t header_at; // index of the reference to the schema, the dictionary or the batch
};

static struct message message_begin(struct buf *out, uint8_t header)
{
    struct field fields[] = {{2, VERSION_V5, 0}, {1, header, 0}, {4, 0, 0}, {8, 0, 0}};
    struct message m = {.begin = out->size};
    buf_u32(out, 0xffffffff);
    m.size_at = out->size;
    buf_u32(out, 0);
    m.flat = (struct flat){out, out->size};
    buf_u32(out, 0);
    flat_child(&m.flat, m.flat.base, fields, 4);
    m.header_at = fields[2].at;
    m.body_at = fields[3].at;
    return m;
}

// Completes the metadata; `body_bytes` follow it.
static void message_end(struct message *m, size_t body_bytes)
{
    flat_align(&m->flat, 8, 0);
    patch(m->flat.out, m->size_at, (uint32_t)(m->flat.out->size - m->flat.base));
    patch(m->flat.out, m->body_at, (uint32_t)body_bytes);
    patch(m->flat.out, m->body_at + 4, (uint32_t)((uint64_t)body_bytes >> 32));
}

static void note_block(struct arrow_writer *w, const struct message *m, struct arrow_blocks *blocks,
                       size_t body_bytes)
{
    if (w->container != ARROW_FILE || w->out->failed)
        return;
    if (!array_room(&blocks->list, &blocks->capacity, blocks->count + 1, sizeof *blocks->list)) {
        w->out->failed = true;
        return;
    }
    blocks->list[blocks->count++] =
        (struct arrow_block){w->taken + m->begin, body_bytes, (uint32_t)(w->out->size - m->begin)};
}

// ---- schema

static void put_int_type(struct flat *f, size_t reference, uint32_t bits, bool is_signed)
{
    struct field type[] = {{4, bits, 0}, {1, is_signed, 0}};
    flat_child(f, reference, type, 2);
}

static void put_type(struct flat *f, size_t reference, enum table_type type)
{
    struct field time[] = {{2, UNIT_NANOSECOND, 0}, {4, 0, 0}}, real[] = {{2, PRECISION_DOUBLE, 0}};
    if (type == TABLE_TIME) {
        flat_child(f, reference, time, 2);
        flat_text(f, time[1].at, STR("UTC"));
    } else if (type == TABLE_DOUBLE) {
        flat_child(f, reference, real, 1);
    } else if (type == TABLE_INT || type == TABLE_ID) {
        put_int_type(f, reference, type == TABLE_INT ? 32 : 64, type == TABLE_INT);
    } else {
        flat_child(f, reference, NULL, 0); // Utf8 has no fields
    }
}

static void put_field(struct flat *f, size_t reference, const struct table_column *column,
                      size_t index)
{
    static const uint8_t types[] = {[TABLE_TIME] = TYPE_TIMESTAMP,
                                    [TABLE_DOUBLE] = TYPE_FLOAT,
                                    [TABLE_INT] = TYPE_INT,
                                    [TABLE_ID] = TYPE_INT,
                                    [TABLE_TEXT] = TYPE_UTF8};
    bool text = column->type == TABLE_TEXT;
    // name, nullable, kind of type, type, dictionary, children
    struct field fields[] = {{4, 0, 0}, {1, column->optional, 0}, {1, types[column->type], 0},
                             {4, 0, 0}, {text ? 4u : 0u, 0, 0},   {4, 0, 0}};
    struct field dictionary[] = {{8, index, 0}, {4, 0, 0}}; // id, type of the indices
    flat_child(f, reference, fields, 6);
    flat_text(f, fields[0].at, column->name);
    put_type(f, fields[3].at, column->type);
    if (text) {
        flat_child(f, fields[4].at, dictionary, 2);
        put_int_type(f, dictionary[1].at, 32, true);
    }
    flat_vector(f, fields[5].at, 0);
}

// Writes empty references, which the caller links later.
static size_t put_references(struct flat *f, size_t reference, size_t count)
{
    flat_vector(f, reference, count);
    size_t at = f->out->size;
    for (size_t i = 0; i < count; i++)
        buf_u32(f->out, 0);
    return at;
}

static void put_schema(struct flat *f, size_t reference, const struct table_column *columns,
                       size_t count, const struct table_pair *pairs, size_t pair_count)
{
    // byte order (little-endian), fields, pairs
    struct field schema[] = {{0, 0, 0}, {4, 0, 0}, {pair_count ? 4 : 0, 0, 0}};
    flat_child(f, reference, schema, 3);
    size_t references = put_references(f, schema[1].at, count);
    for (size_t i = 0; i < count; i++)
        put_field(f, references + 4 * i, &columns[i], i);
    if (!pair_count)
        return;
    references = put_references(f, schema[2].at, pair_count);
    for (size_t i = 0; i < pair_count; i++) {
        struct field pair[] = {{4, 0, 0}, {4, 0, 0}};
        flat_child(f, references + 4 * i, pair, 2);
        flat_text(f, pair[0].at, pairs[i].key);
        flat_text(f, pair[1].at, pairs[i].value);
    }
}

static void put_schema_message(struct buf *out, const struct table_column *columns, size_t count,
                               const struct table_pair *pairs, size_t pair_count)
{
    struct message m = message_begin(out, HEADER_SCHEMA);
    put_schema(&m.flat, m.header_at, columns, count, pairs, pair_count);
    message_end(&m, 0);
}

void arrow_schema(struct buf *out, const struct table_column *columns, size_t count)
{
    put_schema_message(out, columns, count, NULL, 0);
}

// ---- batches

static size_t padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

static void put_zeros(struct buf *out, size_t bytes)
{
    if (!buf_reserve(out, bytes))
        return;
    memset(out->data + out->size, 0, bytes);
    out->size += bytes;
}

static bool is_null(const struct table_column *column, const struct table_cells *cells, size_t row)
{
    if (cells->empty)
        return true;
    if (column->type == TABLE_TEXT)
        return (cells->numbers ? cells->numbers[row] : cells->constant) < 0;
    return column->type == TABLE_TIME && cells->integers[row] == table_no_time;
}

static size_t count_nulls(const struct table_column *column, const struct table_cells *cells,
                          size_t rows)
{
    size_t nulls = 0;
    if (!column->optional)
        return 0;
    if (cells->empty)
        return rows;
    if (column->type == TABLE_TEXT && !cells->numbers)
        return cells->constant < 0 ? rows : 0;
    for (size_t i = 0; i < rows; i++)
        nulls += is_null(column, cells, i);
    return nulls;
}

static size_t value_bytes(const struct table_column *column, size_t rows)
{
    return rows * (column->type == TABLE_TEXT || column->type == TABLE_INT ? 4 : 8);
}

static size_t bitmap_bytes(size_t nulls, size_t rows)
{
    return nulls ? (rows + 7) / 8 : 0;
}

static void put_bitmap(struct buf *out, const struct table_column *column,
                       const struct table_cells *cells, size_t nulls, size_t rows)
{
    size_t at = out->size;
    put_zeros(out, padded(bitmap_bytes(nulls, rows)));
    for (size_t i = 0; nulls && nulls < rows && i < rows && !out->failed; i++)
        if (!is_null(column, cells, i))
            out->data[at + i / 8] |= (char)(1 << i % 8);
}

static void put_values(struct buf *out, const struct table_column *column,
                       const struct table_cells *cells, size_t rows)
{
    size_t bytes = value_bytes(column, rows);
    if (cells->empty) {
        put_zeros(out, bytes);
        return;
    }
    if (!buf_reserve(out, bytes))
        return;
    char *at = out->data + out->size;
    out->size += bytes;
    if (column->type == TABLE_DOUBLE) {
        if (rows)
            memcpy(at, cells->values, bytes);
        return;
    }
    for (size_t i = 0; i < rows; i++) {
        if (bytes == rows * 8) {
            uint64_t v = (uint64_t)cells->integers[i] + (uint64_t)cells->shift;
            memcpy(at + 8 * i, &v, 8);
        } else {
            int32_t v = column->type == TABLE_TEXT && is_null(column, cells, i) ? 0
                        : cells->numbers                                        ? cells->numbers[i]
                                                                                : cells->constant;
            memcpy(at + 4 * i, &v, 4);
        }
    }
}

static void put_batch(struct arrow_writer *w, size_t rows, const struct table_cells *cells)
{
    struct message m = message_begin(w->out, HEADER_BATCH);
    struct field batch[] = {{8, rows, 0}, {4, 0, 0}, {4, 0, 0}}; // length, nodes, buffers
    size_t offset = 0;
    flat_child(&m.flat, m.header_at, batch, 3);
    flat_vector(&m.flat, batch[1].at, w->count);
    for (size_t i = 0; i < w->count; i++) {
        buf_u64(w->out, rows);
        buf_u64(w->out, count_nulls(&w->columns[i], &cells[i], rows));
    }
    flat_vector(&m.flat, batch[2].at, 2 * w->count);
    for (size_t i = 0; i < w->count; i++) {
        size_t nulls = count_nulls(&w->columns[i], &cells[i], rows);
        size_t bitmap = bitmap_bytes(nulls, rows), values = value_bytes(&w->columns[i], rows);
        buf_u64(w->out, offset);
        buf_u64(w->out, bitmap);
        offset += padded(bitmap);
        buf_u64(w->out, offset);
        buf_u64(w->out, values);
        offset += padded(values);
    }
    message_end(&m, offset);
    note_block(w, &m, &w->batches, offset);
    for (size_t i = 0; i < w->count; i++) {
        size_t values = value_bytes(&w->columns[i], rows);
        put_bitmap(w->out, &w->columns[i], &cells[i], count_nulls(&w->columns[i], &cells[i], rows),
                   rows);
        put_values(w->out, &w->columns[i], &cells[i], rows);
        put_zeros(w->out, padded(values) - values);
    }
}

// Writes a column of texts, from word `first` on: the offsets of all texts, then their bytes.
static void put_dictionary(struct arrow_writer *w, size_t id, size_t first)
{
    const struct table_column *column = &w->columns[id];
    struct buf *out = w->out;
    struct message m = message_begin(out, HEADER_DICTIONARY);
    size_t words = column->word_count - first, offsets = (words + 1) * 4, bytes = 0;
    // id, batch, delta; length, nodes, buffers
    struct field dictionary[] = {{8, id, 0}, {4, 0, 0}, {1, w->begun, 0}},
                 batch[] = {{8, words, 0}, {4, 0, 0}, {4, 0, 0}};
    for (size_t i = first; i < column->word_count; i++)
        bytes += column->words[i].size;
    flat_child(&m.flat, m.header_at, dictionary, 3);
    flat_child(&m.flat, dictionary[1].at, batch, 3);
    flat_vector(&m.flat, batch[1].at, 1);
    buf_u64(out, words);
    buf_u64(out, 0); // number of nulls
    flat_vector(&m.flat, batch[2].at, BUFFERS_EACH);
    const size_t buffers[BUFFERS_EACH][2] = {{0, 0}, {0, offsets}, {padded(offsets), bytes}};
    for (size_t i = 0; i < BUFFERS_EACH; i++) {
        buf_u64(out, buffers[i][0]);
        buf_u64(out, buffers[i][1]);
    }
    message_end(&m, padded(offsets) + padded(bytes));
    note_block(w, &m, &w->dictionaries, padded(offsets) + padded(bytes));
    size_t end = 0;
    buf_u32(out, 0);
    for (size_t i = first; i < column->word_count; i++) {
        end += column->words[i].size;
        buf_u32(out, (uint32_t)end);
    }
    put_zeros(out, padded(offsets) - offsets);
    for (size_t i = first; i < column->word_count; i++)
        buf_add_str(out, column->words[i]);
    put_zeros(out, padded(bytes) - bytes);
}

// Writes the words that no dictionary message has carried yet.
static void put_words(struct arrow_writer *w)
{
    for (size_t i = 0; i < w->count && !w->out->failed; i++) {
        const struct table_column *c = &w->columns[i];
        if (c->type != TABLE_TEXT || (w->begun && c->word_count == w->sent[i]))
            continue;
        put_dictionary(w, i, w->sent[i]);
        w->sent[i] = c->word_count;
    }
    w->begun = true;
}

// ---- the whole

void arrow_begin(struct arrow_writer *w)
{
    w->sent = calloc(w->count + 1, sizeof *w->sent);
    if (!w->sent)
        w->out->failed = true;
    if (w->container == ARROW_FILE)
        buf_add(w->out, ARROW_MAGIC "\0", sizeof ARROW_MAGIC + 1);
    put_schema_message(w->out, w->columns, w->count, w->pairs, w->pair_count);
}

void arrow_batch(struct arrow_writer *w, size_t rows, const struct table_cells *cells)
{
    if (w->out->failed)
        return;
    put_words(w);
    put_batch(w, rows, cells);
}

static void put_blocks(struct flat *f, size_t reference, const struct arrow_blocks *blocks)
{
    flat_vector(f, reference, blocks->count);
    for (size_t i = 0; i < blocks->count; i++) {
        buf_u64(f->out, blocks->list[i].offset);
        buf_u64(f->out, blocks->list[i].metadata_bytes); // with 4 bytes of padding
        buf_u64(f->out, blocks->list[i].body_bytes);
    }
}

static void put_footer(struct arrow_writer *w)
{
    struct flat f = {w->out, w->out->size};
    // version, schema, dictionaries, batches
    struct field footer[] = {{2, VERSION_V5, 0}, {4, 0, 0}, {4, 0, 0}, {4, 0, 0}};
    buf_u32(w->out, 0);
    flat_child(&f, f.base, footer, 4);
    put_schema(&f, footer[1].at, w->columns, w->count, w->pairs, w->pair_count);
    put_blocks(&f, footer[2].at, &w->dictionaries);
    put_blocks(&f, footer[3].at, &w->batches);
    buf_u32(w->out, (uint32_t)(w->out->size - f.base));
    buf_add_str(w->out, STR(ARROW_MAGIC));
}

void arrow_end(struct arrow_writer *w)
{
    if (w->out->failed)
        return;
    put_words(w);
    buf_u32(w->out, 0xffffffff);
    buf_u32(w->out, 0);
    if (w->container == ARROW_FILE)
        put_footer(w);
}

void arrow_free(struct arrow_writer *w)
{
    free(w->sent);
    free(w->dictionaries.list);
    free(w->batches.list);
}
