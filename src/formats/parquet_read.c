// parquet_read.c - each selected column has a cursor, which decodes a page at a time. A batch has
// as many rows as every cursor has decoded.
#include "formats/parquet_read.h"

#include "base/bytes.h"
#include "formats/parquet_codes.h"
#include "formats/parquet_footer.h"
#include "formats/parquet_pack.h"
#include "formats/snappy.h"
#include "formats/thrift.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

enum { HEADER_FIRST = 8 << 10, HEADER_MAX = 16 << 20, TAIL_BYTES = 8 };

struct page {
    int64_t type, bytes, packed_bytes, values, encoding;
    // pages of version 2: size of the levels, which precede the values and are never compressed
    int64_t level_bytes, repetition_bytes;
    bool is_packed;
};

struct cursor {
    uint64_t at, end; // the unread pages of the chunk
    uint64_t left;    // unread values of the chunk, including those of this page
    int32_t compression;
    size_t count, next; // values of this page; the next one
    char *packed, *raw, *words_raw;
    size_t packed_room, raw_room, words_room;
    struct str *words;
    size_t word_count, word_room;
    bool *there;
    int64_t *integers;
    double *values;
    struct str *texts;
    uint32_t *numbers; // levels, later indices into the dictionary
    size_t room;       // capacity of each of these arrays
};

struct parquet_reader {
    struct parquet_source source;
    struct parquet_footer footer;
    struct parquet_column *columns;
    struct cursor *cursors;
    bool *selected;
    char *footer_bytes;
    size_t group; // number of the next group
    uint64_t group_left;
    ZSTD_DCtx *zstd;
};

static int damaged(struct error *e, const struct parquet_reader *r, size_t column, const char *what)
{
    return error_set(e, -EBADMSG, "column %.*s: %s", STR_ARG(r->columns[column].name), what);
}

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "out of memory");
}

// Makes room for `size` bytes; discards the contents.
static bool room(char **buffer, size_t *capacity, size_t size)
{
    if (size <= *capacity && *buffer)
        return true;
    free(*buffer);
    *buffer = malloc(size + 1);
    *capacity = *buffer ? size : 0;
    return *buffer;
}

// ---------------------------------------------------------------- pages

static void read_data_header(struct bytes *b, struct page *p)
{
    struct thrift_field f = {0};
    while (thrift_next(b, &f)) {
        if (f.id == DATA_VALUES)
            p->values = thrift_read_int(b, &f);
        else if (f.id == DATA_ENCODING)
            p->encoding = thrift_read_int(b, &f);
        else
            thrift_skip(b, f.type);
    }
}

static void read_data_header_v2(struct bytes *b, struct page *p)
{
    struct thrift_field f = {0};
    p->is_packed = true;
    while (thrift_next(b, &f)) {
        if (f.id == DATA_V2_VALUES)
            p->values = thrift_read_int(b, &f);
        else if (f.id == DATA_V2_ENCODING)
            p->encoding = thrift_read_int(b, &f);
        else if (f.id == DATA_V2_LEVEL_BYTES)
            p->level_bytes = thrift_read_int(b, &f);
        else if (f.id == DATA_V2_REPETITION_BYTES)
            p->repetition_bytes = thrift_read_int(b, &f);
        else if (f.id == DATA_V2_IS_COMPRESSED)
            p->is_packed = f.type == THRIFT_TRUE;
        else
            thrift_skip(b, f.type);
    }
}

static void read_header(struct bytes *b, struct page *p)
{
    struct thrift_field f = {0};
    *p = (struct page){.type = -1, .is_packed = true};
    while (thrift_next(b, &f)) {
        bool is_struct = f.type == THRIFT_STRUCT;
        if (f.id == PAGE_TYPE)
            p->type = thrift_read_int(b, &f);
        else if (f.id == PAGE_BYTES)
            p->bytes = thrift_read_int(b, &f);
        else if (f.id == PAGE_COMPRESSED)
            p->packed_bytes = thrift_read_int(b, &f);
        else if ((f.id == PAGE_DATA || f.id == PAGE_DICTIONARY) && is_struct)
            // the header of a dictionary page begins with the same two fields
            read_data_header(b, p);
        else if (f.id == PAGE_DATA_V2 && is_struct)
            read_data_header_v2(b, p);
        else
            thrift_skip(b, f.type);
    }
}

static bool is_sound(const struct page *p, const struct cursor *c)
{
    return p->bytes >= 0 && p->bytes <= PARQUET_PAGE_MAX && p->packed_bytes >= 0 &&
           p->packed_bytes <= PARQUET_PAGE_MAX && (uint64_t)p->packed_bytes <= c->end - c->at &&
           p->values >= 0 && p->values <= PARQUET_VALUES_MAX && p->repetition_bytes == 0 &&
           p->level_bytes >= 0 && p->level_bytes <= p->bytes && p->level_bytes <= p->packed_bytes;
}

// Reads the page header at the cursor, and moves the cursor behind it.
static int next_header(struct parquet_reader *r, size_t column, struct page *p, struct error *e)
{
    struct cursor *c = &r->cursors[column];
    for (size_t size = HEADER_FIRST;; size *= 8) {
        size_t n = c->end - c->at < size ? (size_t)(c->end - c->at) : size;
        if (!room(&c->packed, &c->packed_room, n))
            return no_memory(e);
        int rc = r->source.read(r->source.user, c->at, c->packed, n);
        if (rc)
            return error_set(e, rc, "cannot read: %s", strerror(-rc));
        struct bytes b = bytes_of(c->packed, n);
        read_header(&b, p);
        if (b.failed && n == size && size < HEADER_MAX)
            continue; // the header may be longer than the bytes read so far
        if (b.failed)
            return damaged(e, r, column, "damaged header of a page");
        c->at += n - bytes_left(&b);
        return is_sound(p, c) ? 0 : damaged(e, r, column, "invalid header of a page");
    }
}

// Decompresses the page into *out.
static int unpack_page(struct parquet_reader *r, size_t column, const struct page *p, char **out,
                       size_t *out_room, struct error *e)
{
    struct cursor *c = &r->cursors[column];
    size_t front = (size_t)p->level_bytes, packed = (size_t)p->packed_bytes - front;
    size_t bytes = (size_t)p->bytes - front;
    if (!room(&c->packed, &c->packed_room, (size_t)p->packed_bytes) ||
        !room(out, out_room, (size_t)p->bytes))
        return no_memory(e);
    int rc = r->source.read(r->source.user, c->at, c->packed, (size_t)p->packed_bytes);
    if (rc)
        return error_set(e, rc, "cannot read: %s", strerror(-rc));
    c->at += (uint64_t)p->packed_bytes;
    memcpy(*out, c->packed, front);
    struct str text = {c->packed + front, packed};
    bool whole = false;
    if (c->compression == PARQUET_UNCOMPRESSED || !p->is_packed) {
        whole = packed == bytes;
        if (whole)
            memcpy(*out + front, text.data, bytes);
    } else if (c->compression == PARQUET_ZSTD) {
        whole = ZSTD_decompressDCtx(r->zstd, *out + front, bytes, text.data, packed) == bytes;
    } else if (c->compression == PARQUET_SNAPPY) {
        whole = snappy_read(text, *out + front, bytes);
    } else {
        return error_set(e, -ENOTSUP,
                         "column %.*s: compression %d; sonde reads zstd, Snappy and uncompressed "
                         "files",
                         STR_ARG(r->columns[column].name), c->compression);
    }
    return whole ? 0 : damaged(e, r, column, "damaged compressed data");
}

static int read_dictionary(struct parquet_reader *r, size_t column, const struct page *p,
                           struct error *e)
{
    struct cursor *c = &r->cursors[column];
    size_t bytes = (size_t)p->bytes, count = (size_t)p->values;
    int rc = unpack_page(r, column, p, &c->words_raw, &c->words_room, e);
    if (rc)
        return rc;
    struct bytes b = bytes_of(c->words_raw, bytes);
    int32_t type = r->footer.leaves[column].type;
    size_t each = type == PARQUET_INT32 || type == PARQUET_FLOAT ? 4 : 8;
    c->word_count = 0;
    if (count > c->word_room) {
        free(c->words);
        c->words = malloc(count * sizeof *c->words);
        c->word_room = c->words ? count : 0;
        if (!c->words)
            return no_memory(e);
    }
    for (; c->word_count < count && !b.failed; c->word_count++)
        c->words[c->word_count] = bytes_take(&b, type == PARQUET_BYTES ? bytes_u32(&b) : each);
    return b.failed ? damaged(e, r, column, "damaged dictionary") : 0;
}

// ---------------------------------------------------------------- values

// Sets value i from its plain encoding.
static void set_value(const struct parquet_leaf *leaf, struct cursor *c, size_t i, struct str plain)
{
    int32_t i32;
    float f32;
    if (leaf->type == PARQUET_BYTES) {
        c->texts[i] = plain;
    } else if (leaf->type == PARQUET_INT32) {
        memcpy(&i32, plain.data, sizeof i32);
        c->integers[i] = i32;
    } else if (leaf->type == PARQUET_INT64) {
        memcpy(&c->integers[i], plain.data, 8);
    } else if (leaf->type == PARQUET_FLOAT) {
        memcpy(&f32, plain.data, sizeof f32);
        c->values[i] = (double)f32;
    } else {
        memcpy(&c->values[i], plain.data, 8);
    }
}

static bool read_plain(const struct parquet_leaf *leaf, struct cursor *c, struct bytes *b)
{
    size_t each = leaf->type == PARQUET_INT32 || leaf->type == PARQUET_FLOAT ? 4 : 8;
    for (size_t i = 0; i < c->count; i++) {
        if (!c->there[i])
            continue;
        struct str plain = bytes_take(b, leaf->type == PARQUET_BYTES ? bytes_u32(b) : each);
        if (b->failed)
            return false;
        set_value(leaf, c, i, plain);
    }
    return true;
}

static bool read_words(const struct parquet_leaf *leaf, struct cursor *c, struct bytes *b,
                       size_t there)
{
    uint8_t width = there || bytes_left(b) ? bytes_u8(b) : 0;
    if (!parquet_read_runs(b, width, c->numbers, there))
        return false;
    uint32_t most = 0;
    for (size_t i = 0; i < there; i++)
        most = c->numbers[i] > most ? c->numbers[i] : most;
    if (there && most >= c->word_count)
        return false;
    if (c->texts && there == c->count) {
        for (size_t i = 0; i < there; i++)
            c->texts[i] = c->words[c->numbers[i]];
        return true;
    }
    for (size_t i = 0, n = 0; n < there; i++)
        if (c->there[i])
            set_value(leaf, c, i, c->words[c->numbers[n++]]);
    return true;
}

static bool read_deltas(const struct parquet_leaf *leaf, struct cursor *c, struct bytes *b,
                        size_t there)
{
    if (!parquet_read_deltas(b, c->integers, there))
        return false;
    for (size_t i = 0; i < there && leaf->type == PARQUET_INT32; i++)
        // deltas of 32-bit columns wrap at 32 bits
        c->integers[i] = (int32_t)(uint32_t)c->integers[i];
    // moves the values to their rows, the last one first
    for (size_t i = c->count; i-- && there < i + 1;)
        if (c->there[i])
            c->integers[i] = c->integers[--there];
    return true;
}

static bool scale_times(struct cursor *c, int64_t unit_ns)
{
    bool fits = true;
    for (size_t i = 0; i < c->count && unit_ns != 1; i++)
        if (c->there[i])
            fits = !__builtin_mul_overflow(c->integers[i], unit_ns, &c->integers[i]) && fits;
    return fits;
}

// Sets c->there for each row of the page; *there is the number of values.
static bool read_levels(const struct parquet_leaf *leaf, struct cursor *c, const struct page *p,
                        struct bytes *b, size_t *there)
{
    for (size_t i = 0; i < c->count; i++)
        c->there[i] = true;
    *there = c->count;
    if (!leaf->optional)
        return bytes_take(b, (uint64_t)p->level_bytes).size == (uint64_t)p->level_bytes;
    struct str text =
        bytes_take(b, p->type == PARQUET_DATA_PAGE ? bytes_u32(b) : (uint64_t)p->level_bytes);
    struct bytes levels = bytes_of(text.data, text.size);
    if (b->failed || !parquet_read_runs(&levels, 1, c->numbers, c->count))
        return false;
    *there = 0;
    for (size_t i = 0; i < c->count; i++) {
        c->there[i] = c->numbers[i] == 1;
        *there += c->numbers[i] == 1 ? 1 : 0;
    }
    return true;
}

static bool value_room(const struct parquet_leaf *leaf, struct cursor *c, size_t count)
{
    if (count > c->room || !c->there) {
        free(c->there);
        free(c->numbers);
        free(c->integers);
        free(c->values);
        free(c->texts);
        c->integers = NULL;
        c->values = NULL;
        c->texts = NULL;
        c->room = 0;
        c->there = malloc(count + 1);
        c->numbers = malloc((count + 1) * sizeof *c->numbers);
        enum parquet_kind kind = leaf->column.kind;
        if (kind == PARQUET_KIND_TEXT)
            c->texts = malloc((count + 1) * sizeof *c->texts);
        else if (kind == PARQUET_KIND_DOUBLE)
            c->values = malloc((count + 1) * sizeof *c->values);
        else
            c->integers = malloc((count + 1) * sizeof *c->integers);
        if (!c->there || !c->numbers || (!c->texts && !c->values && !c->integers))
            return false;
        c->room = count;
    }
    return true;
}

static int read_data(struct parquet_reader *r, size_t column, const struct page *p, struct error *e)
{
    const struct parquet_leaf *leaf = &r->footer.leaves[column];
    struct cursor *c = &r->cursors[column];
    size_t there = 0;
    if ((uint64_t)p->values > c->left)
        return damaged(e, r, column, "more values than the footer says");
    if (!value_room(leaf, c, (size_t)p->values))
        return no_memory(e);
    int rc = unpack_page(r, column, p, &c->raw, &c->raw_room, e);
    if (rc)
        return rc;
    struct bytes b = bytes_of(c->raw, (size_t)p->bytes);
    c->count = (size_t)p->values;
    c->next = 0;
    bool good = read_levels(leaf, c, p, &b, &there);
    if (good && p->encoding == PARQUET_PLAIN)
        good = read_plain(leaf, c, &b);
    else if (good &&
             (p->encoding == PARQUET_RLE_DICTIONARY || p->encoding == PARQUET_PLAIN_DICTIONARY))
        good = read_words(leaf, c, &b, there);
    else if (good && p->encoding == PARQUET_DELTA && c->integers)
        good = read_deltas(leaf, c, &b, there);
    else if (good)
        return error_set(e, -ENOTSUP,
                         "column %.*s: encoding %lld; sonde reads plain, dictionary and delta "
                         "pages",
                         STR_ARG(leaf->column.name), (long long)p->encoding);
    if (!good)
        return damaged(e, r, column, "damaged page");
    if (leaf->column.kind == PARQUET_KIND_TIME && !scale_times(c, leaf->unit_ns))
        return damaged(e, r, column, "times do not fit 64-bit nanoseconds");
    return 0;
}

// Moves to the next page with values.
static int next_page(struct parquet_reader *r, size_t column, struct error *e)
{
    struct cursor *c = &r->cursors[column];
    struct page p;
    c->left -= c->count;
    c->count = c->next = 0;
    while (!c->count) {
        if (!c->left || c->at >= c->end)
            return damaged(e, r, column, "fewer values than rows");
        int rc = next_header(r, column, &p, e);
        if (!rc && p.type == PARQUET_DICTIONARY_PAGE)
            rc = read_dictionary(r, column, &p, e);
        else if (!rc && (p.type == PARQUET_DATA_PAGE || p.type == PARQUET_DATA_PAGE_V2))
            rc = read_data(r, column, &p, e);
        else if (!rc)
            c->at += (uint64_t)p.packed_bytes; // skips pages of other kinds
        if (rc)
            return rc;
    }
    return 0;
}

// ---------------------------------------------------------------- the file

static int read_footer(struct parquet_reader *r, struct error *e)
{
    char tail[TAIL_BYTES];
    uint32_t size;
    uint64_t file = r->source.size;
    if (file < TAIL_BYTES + 4)
        return error_set(e, -EBADMSG, "not a Parquet file");
    int rc = r->source.read(r->source.user, file - TAIL_BYTES, tail, TAIL_BYTES);
    if (rc)
        return error_set(e, rc, "cannot read: %s", strerror(-rc));
    memcpy(&size, tail, sizeof size);
    if (memcmp(tail + 4, PARQUET_MAGIC, 4) != 0)
        return error_set(e, -EBADMSG, "not a Parquet file, or cut short");
    if (size > file - TAIL_BYTES || size > PARQUET_FOOTER_MAX)
        return error_set(e, -EBADMSG, "a footer of %u bytes: the file is damaged", size);
    r->footer_bytes = malloc(size + 1);
    if (!r->footer_bytes)
        return no_memory(e);
    rc = r->source.read(r->source.user, file - TAIL_BYTES - size, r->footer_bytes, size);
    if (rc)
        return error_set(e, rc, "cannot read: %s", strerror(-rc));
    rc = parquet_footer_read(&r->footer, bytes_of(r->footer_bytes, size), file - TAIL_BYTES);
    if (rc)
        return error_set(e, rc, rc == -ENOMEM ? "out of memory" : "damaged footer");
    return r->footer.leaf_count ? 0 : error_set(e, -EBADMSG, "a table without columns");
}

int parquet_read_open(const struct parquet_source *source, struct parquet_reader **out,
                      struct error *e)
{
    struct parquet_reader *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return no_memory(e);
    r->source = *source;
    int rc = read_footer(r, e);
    size_t count = r->footer.leaf_count;
    if (!rc) {
        r->columns = calloc(count, sizeof *r->columns);
        r->cursors = calloc(count, sizeof *r->cursors);
        r->selected = calloc(count, sizeof *r->selected);
        r->zstd = ZSTD_createDCtx();
        if (!r->columns || !r->cursors || !r->selected || !r->zstd)
            rc = no_memory(e);
    }
    if (rc) {
        parquet_read_close(r);
        return rc;
    }
    for (size_t i = 0; i < count; i++) {
        r->columns[i] = r->footer.leaves[i].column;
        r->selected[i] = true;
    }
    *out = r;
    return 0;
}

size_t parquet_read_columns(const struct parquet_reader *r, const struct parquet_column **out)
{
    *out = r->columns;
    return r->footer.leaf_count;
}

uint64_t parquet_read_row_count(const struct parquet_reader *r)
{
    return r->footer.rows;
}

struct str parquet_read_pair(const struct parquet_reader *r, struct str key)
{
    for (size_t i = 0; i < r->footer.pair_count; i++)
        if (str_eq(r->footer.pairs[i].key, key))
            return r->footer.pairs[i].value;
    return (struct str){0};
}

int parquet_read_select(struct parquet_reader *r, const bool *selected, struct error *e)
{
    bool any = false;
    for (size_t i = 0; i < r->footer.leaf_count; i++) {
        if (selected[i] && r->columns[i].kind == PARQUET_KIND_OTHER)
            return error_set(e, -ENOTSUP, "column %.*s has a type that sonde does not read",
                             STR_ARG(r->columns[i].name));
        r->selected[i] = selected[i];
        any |= selected[i];
    }
    return any ? 0 : error_set(e, -EINVAL, "no column is selected");
}

// Moves the cursors to the next group with rows. Returns false if there is none.
static bool next_group(struct parquet_reader *r)
{
    size_t count = r->footer.leaf_count;
    while (!r->group_left && r->group < r->footer.group_count) {
        const struct parquet_chunk *chunks = r->footer.chunks + r->group * count;
        for (size_t i = 0; i < count; i++) {
            struct cursor *c = &r->cursors[i];
            c->at = chunks[i].at;
            c->end = chunks[i].at + chunks[i].size;
            c->left = chunks[i].values;
            c->compression = chunks[i].compression;
            c->count = c->next = c->word_count = 0;
        }
        r->group_left = r->footer.group_rows[r->group++];
    }
    return r->group_left > 0;
}

int parquet_read_rows(struct parquet_reader *r, struct parquet_cells *cells, size_t *rows,
                      struct error *e)
{
    *rows = 0;
    if (!next_group(r))
        return 0;
    size_t n = SIZE_MAX;
    n = r->group_left < n ? (size_t)r->group_left : n;
    for (size_t i = 0; i < r->footer.leaf_count; i++) {
        struct cursor *c = &r->cursors[i];
        if (!r->selected[i])
            continue;
        if (r->columns[i].kind == PARQUET_KIND_OTHER)
            return damaged(e, r, i, "a type that sonde does not read");
        int rc = c->next == c->count ? next_page(r, i, e) : 0;
        if (rc)
            return rc;
        n = c->count - c->next < n ? c->count - c->next : n;
    }
    for (size_t i = 0; i < r->footer.leaf_count; i++) {
        struct cursor *c = &r->cursors[i];
        cells[i] = (struct parquet_cells){0};
        if (!r->selected[i])
            continue;
        cells[i].there = r->footer.leaves[i].optional ? c->there + c->next : NULL;
        cells[i].integers = c->integers ? c->integers + c->next : NULL;
        cells[i].values = c->values ? c->values + c->next : NULL;
        cells[i].texts = c->texts ? c->texts + c->next : NULL;
        c->next += n;
    }
    r->group_left -= n;
    *rows = n;
    return 0;
}

void parquet_read_close(struct parquet_reader *r)
{
    if (!r)
        return;
    for (size_t i = 0; r->cursors && i < r->footer.leaf_count; i++) {
        struct cursor *c = &r->cursors[i];
        free(c->packed);
        free(c->raw);
        free(c->words_raw);
        free(c->words);
        free(c->there);
        free(c->integers);
        free(c->values);
        free(c->texts);
        free(c->numbers);
    }
    free(r->cursors);
    free(r->columns);
    free(r->selected);
    free(r->footer_bytes);
    arena_free(&r->footer.arena);
    ZSTD_freeDCtx(r->zstd);
    free(r);
}
