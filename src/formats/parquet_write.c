// parquet_write.c - collects rows a page at a time, encodes and compresses each complete page, and
// appends it to the pages of its column until the group is complete.
#include "formats/parquet_write.h"

#include "base/array.h"
#include "formats/parquet_codes.h"
#include "formats/parquet_pack.h"
#include "formats/thrift.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <zstd.h>

enum { ZSTD_LEVEL = 1 };

struct statistics {
    bool any;
    int64_t least, most;       // of integer columns
    double low, high;          // of doubles, without NaN
    struct str first, last;    // of texts, in the order of bytes
    uint64_t nulls, values;    // `values` includes the nulls
    uint64_t bytes;            // of all pages with their headers, before compression
    uint64_t dictionary_bytes; // size of the dictionary's page in the file
};

struct column {
    // the current page
    int64_t *integers;
    double *values;
    struct parquet_run *runs; // runs of local numbers
    size_t run_count, run_capacity;
    struct parquet_run *levels; // 0: null, 1: a value
    size_t level_count, level_capacity;
    size_t filled; // number of integers or values, without nulls
    // the current group
    struct buf pages;
    struct statistics seen;
    uint32_t *local; // by word of the column: its local number in the group + 1; 0: none yet
    size_t local_capacity;
    uint32_t *words; // by local number: the word of the column
    size_t word_count, word_capacity;
};

struct parquet_writer {
    struct parquet_options options;
    const struct table_column *shapes;
    struct column *columns;
    size_t count;
    size_t page_rows, group_rows;
    uint64_t rows, groups, offset;
    struct buf raw, packed; // the current page, before and after compression
    struct buf footer;      // metadata of the complete groups
    struct thrift_writer groups_out;
    ZSTD_CCtx *zstd;
    int error;
};

static bool is_text(const struct table_column *c)
{
    return c->type == TABLE_TEXT;
}

static int fail(struct parquet_writer *w, int error)
{
    if (!w->error)
        w->error = error;
    return w->error;
}

static int write_bytes(struct parquet_writer *w, struct str bytes)
{
    if (w->error)
        return w->error;
    w->offset += bytes.size;
    return fail(w, w->options.write(w->options.user, bytes));
}

// ---------------------------------------------------------------- pages

// Compresses w->raw and appends a page header and the result to `out`. `data`: a data page of
// `values` rows; otherwise a dictionary page of `values` words.
static void put_page(struct parquet_writer *w, struct buf *out, bool data, size_t values,
                     enum parquet_encoding encoding, struct statistics *seen)
{
    size_t bound = ZSTD_compressBound(w->raw.size), before = out->size;
    w->packed.size = 0;
    if (w->raw.failed || !buf_reserve(&w->packed, bound)) {
        fail(w, -ENOMEM);
        return;
    }
    size_t size =
        ZSTD_compressCCtx(w->zstd, w->packed.data, bound, w->raw.data, w->raw.size, ZSTD_LEVEL);
    if (ZSTD_isError(size)) {
        fail(w, -ENOMEM); // the only possible cause, because the bound is reserved
        return;
    }
    struct thrift_writer t = thrift_to(out);
    thrift_i32(&t, PAGE_TYPE, data ? PARQUET_DATA_PAGE : PARQUET_DICTIONARY_PAGE);
    thrift_i32(&t, PAGE_BYTES, (int32_t)w->raw.size);
    thrift_i32(&t, PAGE_COMPRESSED, (int32_t)size);
    thrift_begin(&t, data ? PAGE_DATA : PAGE_DICTIONARY);
    thrift_i32(&t, DATA_VALUES, (int32_t)values);
    thrift_i32(&t, DATA_ENCODING, (int32_t)encoding);
    if (data) {
        thrift_i32(&t, DATA_LEVELS, PARQUET_RLE);
        thrift_i32(&t, DATA_REPETITIONS, PARQUET_RLE);
    }
    thrift_end(&t);
    thrift_end(&t);
    seen->bytes += out->size - before + w->raw.size;
    buf_add(out, w->packed.data, size);
    if (out->failed)
        fail(w, -ENOMEM);
}

static enum parquet_encoding encoding_of(enum table_type type)
{
    return type == TABLE_TEXT                       ? PARQUET_RLE_DICTIONARY
           : type == TABLE_TIME || type == TABLE_ID ? PARQUET_DELTA
                                                    : PARQUET_PLAIN;
}

static void put_levels(struct parquet_writer *w, const struct column *c)
{
    size_t at = w->raw.size;
    buf_u32(&w->raw, 0);
    parquet_put_runs(&w->raw, 1, c->levels, c->level_count);
    if (w->raw.failed)
        return;
    uint32_t bytes = (uint32_t)(w->raw.size - at - 4);
    memcpy(w->raw.data + at, &bytes, sizeof bytes);
}

// Appends the column's rows of this page to its pages.
static void end_page(struct parquet_writer *w, size_t index)
{
    struct column *c = &w->columns[index];
    const struct table_column *shape = &w->shapes[index];
    w->raw.size = 0;
    if (shape->optional)
        put_levels(w, c);
    if (is_text(shape)) {
        unsigned width = parquet_width(c->word_count ? (uint32_t)c->word_count - 1 : 0);
        buf_u8(&w->raw, (uint8_t)width);
        parquet_put_runs(&w->raw, width, c->runs, c->run_count);
    } else if (shape->type == TABLE_DOUBLE) {
        buf_add(&w->raw, c->values, c->filled * sizeof *c->values);
    } else if (shape->type == TABLE_INT) {
        for (size_t i = 0; i < c->filled; i++)
            buf_u32(&w->raw, (uint32_t)c->integers[i]);
    } else {
        parquet_put_deltas(&w->raw, c->integers, c->filled);
    }
    put_page(w, &c->pages, true, w->page_rows, encoding_of(shape->type), &c->seen);
    c->filled = c->run_count = c->level_count = 0;
}

static void put_dictionary(struct parquet_writer *w, size_t index, struct buf *out)
{
    struct column *c = &w->columns[index];
    struct statistics *seen = &c->seen;
    w->raw.size = 0;
    for (size_t i = 0; i < c->word_count; i++) {
        struct str word = w->shapes[index].words[c->words[i]];
        buf_u32(&w->raw, (uint32_t)word.size);
        buf_add_str(&w->raw, word);
        if (i == 0 || str_compare(word, seen->first) < 0)
            seen->first = word;
        if (i == 0 || str_compare(word, seen->last) > 0)
            seen->last = word;
        seen->any = true;
    }
    put_page(w, out, false, c->word_count, PARQUET_PLAIN, seen);
    seen->dictionary_bytes = out->size;
}

// ---------------------------------------------------------------- groups

static enum parquet_type physical_type(enum table_type type)
{
    static const enum parquet_type types[] = {[TABLE_TIME] = PARQUET_INT64,
                                              [TABLE_DOUBLE] = PARQUET_DOUBLE,
                                              [TABLE_INT] = PARQUET_INT32,
                                              [TABLE_ID] = PARQUET_INT64,
                                              [TABLE_TEXT] = PARQUET_BYTES};
    return types[type];
}

static void put_bounds(struct thrift_writer *t, const struct table_column *shape,
                       const struct statistics *s)
{
    int32_t least = (int32_t)s->least, most = (int32_t)s->most;
    // Zero has two signs, and a reader that compares bits must find both within the bounds.
    double low = s->low == 0 ? -0.0 : s->low, high = s->high == 0 ? 0.0 : s->high;
    struct str first = {(const char *)&s->least, 8}, last = {(const char *)&s->most, 8};
    if (shape->type == TABLE_DOUBLE) {
        first = (struct str){(const char *)&low, sizeof low};
        last = (struct str){(const char *)&high, sizeof high};
    } else if (shape->type == TABLE_INT) {
        first = (struct str){(const char *)&least, sizeof least};
        last = (struct str){(const char *)&most, sizeof most};
    } else if (is_text(shape)) {
        first = s->first;
        last = s->last;
    }
    thrift_begin(t, COLUMN_STATISTICS);
    thrift_i64(t, STATISTICS_NULLS, (int64_t)s->nulls);
    if (s->any) {
        thrift_binary(t, STATISTICS_MAX, last);
        thrift_binary(t, STATISTICS_MIN, first);
    }
    thrift_end(t);
}

static void put_chunk(struct parquet_writer *w, size_t index, uint64_t at, uint64_t compressed)
{
    struct thrift_writer *t = &w->groups_out;
    const struct table_column *shape = &w->shapes[index];
    const struct statistics *s = &w->columns[index].seen;
    bool text = is_text(shape);
    thrift_element_begin(t);
    thrift_i64(t, CHUNK_OFFSET, 0); // no copy of the next struct exists elsewhere
    thrift_begin(t, CHUNK_COLUMN);
    thrift_i32(t, COLUMN_TYPE, (int32_t)physical_type(shape->type));
    thrift_list(t, COLUMN_ENCODINGS, THRIFT_I32, text ? 3 : 2);
    if (text)
        thrift_element_i32(t, PARQUET_PLAIN);
    thrift_element_i32(t, PARQUET_RLE);
    thrift_element_i32(t, (int32_t)encoding_of(shape->type));
    thrift_list(t, COLUMN_PATH, THRIFT_BINARY, 1);
    thrift_element_binary(t, shape->name);
    thrift_i32(t, COLUMN_COMPRESSION, PARQUET_ZSTD);
    thrift_i64(t, COLUMN_VALUES, (int64_t)s->values);
    thrift_i64(t, COLUMN_BYTES, (int64_t)s->bytes);
    thrift_i64(t, COLUMN_COMPRESSED, (int64_t)compressed);
    thrift_i64(t, COLUMN_DATA_AT, (int64_t)(at + s->dictionary_bytes));
    if (text)
        thrift_i64(t, COLUMN_DICTIONARY_AT, (int64_t)at);
    put_bounds(t, shape, s);
    thrift_end(t);
    thrift_end(t);
}

static void clear_group(struct column *c)
{
    c->pages.size = 0;
    for (size_t i = 0; i < c->word_count; i++)
        c->local[c->words[i]] = 0;
    c->word_count = 0;
    c->seen = (struct statistics){.low = INFINITY, .high = -INFINITY};
}

static void end_pages(struct parquet_writer *w)
{
    for (size_t i = 0; i < w->count && w->page_rows && !w->error; i++)
        end_page(w, i);
    w->page_rows = 0;
}

int parquet_write_group(struct parquet_writer *w)
{
    struct thrift_writer *t = &w->groups_out;
    struct buf dictionary = {0};
    uint64_t begin = w->offset, bytes = 0;
    end_pages(w);
    if (w->error || !w->group_rows)
        return w->error;
    thrift_element_begin(t);
    thrift_list(t, GROUP_COLUMNS, THRIFT_STRUCT, w->count);
    for (size_t i = 0; i < w->count && !w->error; i++) {
        struct column *c = &w->columns[i];
        uint64_t at = w->offset;
        dictionary.size = 0;
        if (is_text(&w->shapes[i]))
            put_dictionary(w, i, &dictionary);
        write_bytes(w, buf_str(&dictionary));
        write_bytes(w, buf_str(&c->pages));
        put_chunk(w, i, at, w->offset - at);
        bytes += c->seen.bytes;
        clear_group(c);
    }
    thrift_i64(t, GROUP_BYTES, (int64_t)bytes);
    thrift_i64(t, GROUP_ROWS, (int64_t)w->group_rows);
    thrift_i64(t, GROUP_OFFSET, (int64_t)begin);
    thrift_i64(t, GROUP_COMPRESSED, (int64_t)(w->offset - begin));
    thrift_end(t);
    w->groups++;
    w->group_rows = 0;
    buf_free(&dictionary);
    return w->footer.failed ? fail(w, -ENOMEM) : w->error;
}

// ---------------------------------------------------------------- rows

static bool add_run(struct parquet_run **runs, size_t *count, size_t *capacity, uint32_t number,
                    size_t rows)
{
    if (*count && (*runs)[*count - 1].number == number) {
        (*runs)[*count - 1].count += (uint32_t)rows;
        return true;
    }
    if (!array_room(runs, capacity, *count + 1, sizeof **runs))
        return false;
    (*runs)[(*count)++] = (struct parquet_run){number, (uint32_t)rows};
    return true;
}

static bool add_level(struct column *c, bool there, size_t rows)
{
    c->seen.nulls += there ? 0 : rows;
    return add_run(&c->levels, &c->level_count, &c->level_capacity, there, rows);
}

static bool add_word(const struct table_column *shape, struct column *c, int32_t word, size_t rows)
{
    if (shape->optional && !add_level(c, word >= 0, rows))
        return false;
    if (word < 0)
        return true;
    if (!array_room_zeroed(&c->local, &c->local_capacity, shape->word_count, sizeof *c->local))
        return false;
    if (!c->local[word]) {
        if (!array_room(&c->words, &c->word_capacity, c->word_count + 1, sizeof *c->words))
            return false;
        c->words[c->word_count++] = (uint32_t)word;
        c->local[word] = (uint32_t)c->word_count;
    }
    return add_run(&c->runs, &c->run_count, &c->run_capacity, c->local[word] - 1, rows);
}

static bool add_words(const struct table_column *shape, struct column *c, size_t rows,
                      const struct table_cells *cells, size_t from)
{
    if (!cells->numbers)
        return add_word(shape, c, cells->constant, rows);
    for (size_t i = 0, end; i < rows; i = end) {
        int32_t word = cells->numbers[from + i];
        for (end = i + 1; end < rows && cells->numbers[from + end] == word;)
            end++;
        if (!add_word(shape, c, word, end - i))
            return false;
    }
    return true;
}

// `flip` inverts the sign bit of unsigned numbers, so that they compare correctly.
static void add_integer(struct column *c, int64_t v, int64_t flip)
{
    c->seen.least = (v ^ flip) < (c->seen.least ^ flip) || !c->seen.any ? v : c->seen.least;
    c->seen.most = (v ^ flip) > (c->seen.most ^ flip) || !c->seen.any ? v : c->seen.most;
    c->seen.any = true;
    c->integers[c->filled++] = v;
}

static bool add_integers(const struct table_column *shape, struct column *c, size_t rows,
                         const struct table_cells *cells, size_t from)
{
    int64_t flip = shape->type == TABLE_ID ? INT64_MIN : 0;
    for (size_t i = 0; i < rows; i++) {
        int64_t v = shape->type == TABLE_INT ? cells->constant : cells->integers[from + i];
        bool there = !shape->optional || shape->type != TABLE_TIME || v != table_no_time;
        if (shape->optional && !add_level(c, there, 1))
            return false;
        if (there)
            add_integer(c, (int64_t)((uint64_t)v + (uint64_t)cells->shift), flip);
    }
    return true;
}

static void add_doubles(struct column *c, size_t rows, const double *values)
{
    struct statistics *s = &c->seen;
    memcpy(c->values + c->filled, values, rows * sizeof *values);
    c->filled += rows;
    for (size_t i = 0; i < rows; i++) { // comparisons with NaN are false
        s->low = values[i] < s->low ? values[i] : s->low;
        s->high = values[i] > s->high ? values[i] : s->high;
    }
    s->any = s->low <= s->high;
}

static bool add_cells(const struct table_column *shape, struct column *c, size_t rows,
                      const struct table_cells *cells, size_t from)
{
    c->seen.values += rows;
    if (cells->empty)
        return add_level(c, false, rows);
    if (is_text(shape))
        return add_words(shape, c, rows, cells, from);
    if (shape->type == TABLE_DOUBLE) {
        add_doubles(c, rows, cells->values + from);
        return !shape->optional || add_level(c, true, rows);
    }
    return add_integers(shape, c, rows, cells, from);
}

static size_t group_bytes(const struct parquet_writer *w)
{
    size_t bytes = 0;
    for (size_t i = 0; i < w->count; i++)
        bytes += w->columns[i].pages.size;
    return bytes;
}

int parquet_write_rows(struct parquet_writer *w, size_t rows, const struct table_cells *cells)
{
    for (size_t from = 0; from < rows && !w->error;) {
        size_t room = w->options.page_rows - w->page_rows, n = rows - from;
        n = n < room ? n : room;
        for (size_t i = 0; i < w->count; i++)
            if (!add_cells(&w->shapes[i], &w->columns[i], n, &cells[i], from))
                return fail(w, -ENOMEM);
        from += n;
        w->rows += n;
        w->page_rows += n;
        w->group_rows += n;
        if (w->page_rows < w->options.page_rows)
            continue;
        end_pages(w);
        if (w->group_rows >= w->options.group_rows || group_bytes(w) >= PARQUET_GROUP_BYTES)
            parquet_write_group(w);
    }
    return w->error;
}

// ---------------------------------------------------------------- beginning and end

struct parquet_writer *parquet_write_begin(const struct parquet_options *o,
                                           const struct table_column *columns, size_t count)
{
    struct parquet_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    *w = (struct parquet_writer){.options = *o, .shapes = columns, .count = count};
    w->options.page_rows = o->page_rows ? o->page_rows : PARQUET_PAGE_ROWS;
    w->options.group_rows = o->group_rows ? o->group_rows : PARQUET_GROUP_ROWS;
    w->groups_out = thrift_to(&w->footer);
    w->columns = calloc(count, sizeof *w->columns);
    w->zstd = ZSTD_createCCtx();
    bool made = w->columns && w->zstd;
    for (size_t i = 0; i < count && made; i++) {
        struct column *c = &w->columns[i];
        clear_group(c);
        if (columns[i].type == TABLE_DOUBLE)
            c->values = malloc(w->options.page_rows * sizeof *c->values);
        else if (!is_text(&columns[i]))
            c->integers = malloc(w->options.page_rows * sizeof *c->integers);
        made = c->values || c->integers || is_text(&columns[i]);
    }
    if (!made) {
        parquet_write_free(w);
        return NULL;
    }
    write_bytes(w, STR(PARQUET_MAGIC));
    return w;
}

static void put_logical_type(struct thrift_writer *t, enum table_type type)
{
    if (type == TABLE_TEXT)
        thrift_i32(t, ELEMENT_CONVERTED, PARQUET_CONVERTED_UTF8);
    if (type == TABLE_ID)
        thrift_i32(t, ELEMENT_CONVERTED, PARQUET_CONVERTED_UINT64);
    if (type != TABLE_TEXT && type != TABLE_TIME && type != TABLE_ID)
        return;
    thrift_begin(t, ELEMENT_LOGICAL);
    thrift_begin(t, type == TABLE_TEXT   ? LOGICAL_STRING
                    : type == TABLE_TIME ? LOGICAL_TIMESTAMP
                                         : LOGICAL_INTEGER);
    if (type == TABLE_TIME) {
        thrift_bool(t, TIMESTAMP_IS_UTC, true);
        thrift_begin(t, TIMESTAMP_UNIT);
        thrift_begin(t, UNIT_NANOS);
        thrift_end(t);
        thrift_end(t);
    } else if (type == TABLE_ID) {
        thrift_byte(t, INTEGER_BITS, 64);
        thrift_bool(t, INTEGER_IS_SIGNED, false);
    }
    thrift_end(t);
    thrift_end(t);
}

static void put_schema(struct parquet_writer *w, struct thrift_writer *t)
{
    thrift_list(t, FILE_SCHEMA, THRIFT_STRUCT, w->count + 1);
    thrift_element_begin(t);
    thrift_binary(t, ELEMENT_NAME, STR("schema"));
    thrift_i32(t, ELEMENT_CHILDREN, (int32_t)w->count);
    thrift_end(t);
    for (size_t i = 0; i < w->count; i++) {
        const struct table_column *c = &w->shapes[i];
        thrift_element_begin(t);
        thrift_i32(t, ELEMENT_TYPE, (int32_t)physical_type(c->type));
        thrift_i32(t, ELEMENT_REPETITION, c->optional ? PARQUET_OPTIONAL : PARQUET_REQUIRED);
        thrift_binary(t, ELEMENT_NAME, c->name);
        put_logical_type(t, c->type);
        thrift_end(t);
    }
}

static void put_footer(struct parquet_writer *w, struct buf *out)
{
    struct thrift_writer t = thrift_to(out);
    thrift_i32(&t, FILE_VERSION, 2);
    put_schema(w, &t);
    thrift_i64(&t, FILE_ROWS, (int64_t)w->rows);
    thrift_list(&t, FILE_GROUPS, THRIFT_STRUCT, w->groups);
    buf_add_str(out, buf_str(&w->footer));
    thrift_list(&t, FILE_PAIRS, THRIFT_STRUCT, w->options.pair_count);
    for (size_t i = 0; i < w->options.pair_count; i++) {
        thrift_element_begin(&t);
        thrift_binary(&t, PAIR_KEY, w->options.pairs[i].key);
        thrift_binary(&t, PAIR_VALUE, w->options.pairs[i].value);
        thrift_end(&t);
    }
    thrift_binary(&t, FILE_MAKER, STR("sonde version " SONDE_VERSION));
    thrift_list(&t, FILE_ORDERS, THRIFT_STRUCT, w->count); // how bounds compare
    for (size_t i = 0; i < w->count; i++) {
        thrift_element_begin(&t);
        thrift_begin(&t, ORDER_OF_TYPE);
        thrift_end(&t);
        thrift_end(&t);
    }
    thrift_end(&t);
    buf_u32(out, (uint32_t)out->size);
    buf_add_str(out, STR(PARQUET_MAGIC));
}

int parquet_write_end(struct parquet_writer *w)
{
    struct buf footer = {0};
    parquet_write_group(w);
    put_footer(w, &footer);
    if (footer.failed)
        fail(w, -ENOMEM);
    write_bytes(w, buf_str(&footer));
    buf_free(&footer);
    return w->error;
}

void parquet_write_free(struct parquet_writer *w)
{
    if (!w)
        return;
    for (size_t i = 0; w->columns && i < w->count; i++) {
        struct column *c = &w->columns[i];
        free(c->integers);
        free(c->values);
        free(c->runs);
        free(c->levels);
        free(c->local);
        free(c->words);
        buf_free(&c->pages);
    }
    free(w->columns);
    ZSTD_freeCCtx(w->zstd);
    buf_free(&w->raw);
    buf_free(&w->packed);
    buf_free(&w->footer);
    free(w);
}
