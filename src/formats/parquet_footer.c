#include "formats/parquet_footer.h"

#include "formats/parquet_codes.h"
#include "formats/thrift.h"

#include <errno.h>

// One element of the schema, which is a tree in preorder.
struct element {
    struct parquet_leaf leaf;
    int64_t children, repetition;
    int64_t converted;
};

enum { CONVERTED_TIMESTAMP_MILLIS = 9, CONVERTED_TIMESTAMP_MICROS = 10 };

static void read_unit(struct bytes *b, int64_t *unit_ns)
{
    struct thrift_field f = {0};
    while (thrift_next(b, &f)) {
        if (f.id >= UNIT_MILLIS && f.id <= UNIT_NANOS)
            *unit_ns = f.id == UNIT_MILLIS ? 1000000 : f.id == UNIT_MICROS ? 1000 : 1;
        thrift_skip(b, f.type);
    }
}

static void read_timestamp(struct bytes *b, int64_t *unit_ns)
{
    struct thrift_field f = {0};
    while (thrift_next(b, &f)) {
        if (f.id == TIMESTAMP_UNIT && f.type == THRIFT_STRUCT)
            read_unit(b, unit_ns);
        else
            thrift_skip(b, f.type);
    }
}

static void read_logical(struct bytes *b, int64_t *unit_ns)
{
    struct thrift_field f = {0};
    while (thrift_next(b, &f)) {
        if (f.id == LOGICAL_TIMESTAMP && f.type == THRIFT_STRUCT)
            read_timestamp(b, unit_ns);
        else
            thrift_skip(b, f.type);
    }
}

static struct element read_element(struct bytes *b)
{
    struct element out = {.converted = -1};
    struct thrift_field f = {0};
    while (thrift_next(b, &f)) {
        if (f.id == ELEMENT_TYPE)
            out.leaf.type = (int32_t)thrift_read_int(b, &f);
        else if (f.id == ELEMENT_REPETITION)
            out.repetition = thrift_read_int(b, &f);
        else if (f.id == ELEMENT_NAME)
            out.leaf.column.name = thrift_read_binary(b, &f);
        else if (f.id == ELEMENT_CHILDREN)
            out.children = thrift_read_int(b, &f);
        else if (f.id == ELEMENT_CONVERTED)
            out.converted = thrift_read_int(b, &f);
        else if (f.id == ELEMENT_LOGICAL && f.type == THRIFT_STRUCT)
            read_logical(b, &out.leaf.unit_ns);
        else
            thrift_skip(b, f.type);
    }
    if (!out.leaf.unit_ns && out.converted == CONVERTED_TIMESTAMP_MILLIS)
        out.leaf.unit_ns = 1000000;
    if (!out.leaf.unit_ns && out.converted == CONVERTED_TIMESTAMP_MICROS)
        out.leaf.unit_ns = 1000;
    return out;
}

static enum parquet_kind kind_of(const struct element *e, bool nested)
{
    if (nested || e->repetition == PARQUET_REPEATED)
        return PARQUET_KIND_OTHER;
    switch (e->leaf.type) {
    case PARQUET_INT64:
        return e->leaf.unit_ns ? PARQUET_KIND_TIME : PARQUET_KIND_LONG;
    case PARQUET_INT32:
        return PARQUET_KIND_LONG;
    case PARQUET_FLOAT:
    case PARQUET_DOUBLE:
        return PARQUET_KIND_DOUBLE;
    case PARQUET_BYTES:
        return PARQUET_KIND_TEXT;
    default:
        return PARQUET_KIND_OTHER;
    }
}

static int read_schema(struct parquet_footer *p, struct bytes *b, const struct thrift_field *f)
{
    size_t count = thrift_read_list(b, f, THRIFT_STRUCT);
    if (p->leaves || count < 1 || count > PARQUET_COLUMNS_MAX)
        return -EBADMSG;
    p->leaves = arena_array(&p->arena, count, sizeof *p->leaves);
    if (!p->leaves)
        return -ENOMEM;
    struct element root = read_element(b);
    if (root.children < 0)
        return -EBADMSG;
    // Elements of a nested column that are still to come.
    uint64_t inside = 0;
    for (size_t i = 1; i < count && !b->failed; i++) {
        struct element e = read_element(b);
        bool nested = inside > 0 || e.children > 0;
        if (e.children < 0 || e.children > PARQUET_COLUMNS_MAX)
            return -EBADMSG;
        inside = inside ? inside - 1 + (uint64_t)e.children : (uint64_t)e.children;
        if (e.children)
            continue;
        e.leaf.column.kind = kind_of(&e, nested);
        e.leaf.optional = e.repetition == PARQUET_OPTIONAL;
        p->leaves[p->leaf_count++] = e.leaf;
    }
    return b->failed || inside ? -EBADMSG : 0;
}

static void read_column(struct bytes *b, struct parquet_chunk *out)
{
    struct thrift_field f = {0};
    int64_t data = 0, dictionary = 0;
    while (thrift_next(b, &f)) {
        if (f.id == COLUMN_COMPRESSION)
            out->compression = (int32_t)thrift_read_int(b, &f);
        else if (f.id == COLUMN_VALUES)
            out->values = (uint64_t)thrift_read_int(b, &f);
        else if (f.id == COLUMN_COMPRESSED)
            out->size = (uint64_t)thrift_read_int(b, &f);
        else if (f.id == COLUMN_DATA_AT)
            data = thrift_read_int(b, &f);
        else if (f.id == COLUMN_DICTIONARY_AT)
            dictionary = thrift_read_int(b, &f);
        else
            thrift_skip(b, f.type);
    }
    out->at = (uint64_t)(dictionary > 0 && dictionary < data ? dictionary : data);
}

static void read_chunk(struct bytes *b, struct parquet_chunk *out)
{
    struct thrift_field f = {0};
    while (thrift_next(b, &f)) {
        if (f.id == CHUNK_COLUMN && f.type == THRIFT_STRUCT)
            read_column(b, out);
        else
            thrift_skip(b, f.type);
    }
}

static int read_group(struct parquet_footer *p, struct bytes *b, uint64_t file_size)
{
    struct thrift_field f = {0};
    struct parquet_chunk *chunks = p->chunks + p->group_count * p->leaf_count;
    size_t count = 0;
    int64_t rows = -1;
    while (thrift_next(b, &f)) {
        if (f.id == GROUP_ROWS) {
            rows = thrift_read_int(b, &f);
        } else if (f.id == GROUP_COLUMNS && !count) {
            count = thrift_read_list(b, &f, THRIFT_STRUCT);
            if (count != p->leaf_count)
                return -EBADMSG;
            for (size_t i = 0; i < count; i++)
                read_chunk(b, &chunks[i]);
        } else {
            thrift_skip(b, f.type);
        }
    }
    if (b->failed || rows < 0 || count != p->leaf_count ||
        (uint64_t)rows > (uint64_t)INT64_MAX - p->rows)
        return -EBADMSG;
    for (size_t i = 0; i < count; i++)
        if (chunks[i].at > file_size || chunks[i].size > file_size - chunks[i].at)
            return -EBADMSG;
    p->rows += (uint64_t)rows;
    p->group_rows[p->group_count++] = (uint64_t)rows;
    return 0;
}

static int read_groups(struct parquet_footer *p, struct bytes *b, const struct thrift_field *f,
                       uint64_t file_size)
{
    size_t count = thrift_read_list(b, f, THRIFT_STRUCT);
    if (!p->leaves || p->group_rows)
        return -EBADMSG;
    // A chunk takes at least one byte of the footer.
    if (p->leaf_count && count > bytes_left(b) / p->leaf_count)
        return -EBADMSG;
    p->chunks = arena_zalloc(&p->arena, (count * p->leaf_count + 1) * sizeof *p->chunks);
    p->group_rows = arena_zalloc(&p->arena, (count + 1) * sizeof *p->group_rows);
    if (!p->chunks || !p->group_rows)
        return -ENOMEM;
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i++)
        rc = read_group(p, b, file_size);
    return rc;
}

static int read_pairs(struct parquet_footer *p, struct bytes *b, const struct thrift_field *f)
{
    size_t count = thrift_read_list(b, f, THRIFT_STRUCT);
    if (p->pairs)
        return -EBADMSG;
    p->pairs = arena_zalloc(&p->arena, (count + 1) * sizeof *p->pairs);
    if (!p->pairs)
        return -ENOMEM;
    for (; p->pair_count < count && !b->failed; p->pair_count++) {
        struct table_pair *pair = &p->pairs[p->pair_count];
        struct thrift_field inner = {0};
        while (thrift_next(b, &inner)) {
            if (inner.id == PAIR_KEY)
                pair->key = thrift_read_binary(b, &inner);
            else if (inner.id == PAIR_VALUE)
                pair->value = thrift_read_binary(b, &inner);
            else
                thrift_skip(b, inner.type);
        }
    }
    return 0;
}

int parquet_footer_read(struct parquet_footer *p, struct bytes b, uint64_t file_size)
{
    struct thrift_field f = {0};
    int rc = 0;
    while (!rc && thrift_next(&b, &f)) {
        if (f.id == FILE_SCHEMA)
            rc = read_schema(p, &b, &f);
        else if (f.id == FILE_GROUPS)
            rc = read_groups(p, &b, &f, file_size);
        else if (f.id == FILE_PAIRS)
            rc = read_pairs(p, &b, &f);
        else
            thrift_skip(&b, f.type);
    }
    return rc ? rc : b.failed || !p->leaves || !p->group_rows ? -EBADMSG : 0;
}
