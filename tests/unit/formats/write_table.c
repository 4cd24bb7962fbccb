// write_table.c - writes the table on standard input: write_table FORMAT OUT PAGE_ROWS
//
// FORMAT is parquet, arrow-file or arrow-stream. Parquet's groups have up to three pages.
//
// test_tables.py makes the tables, and compares them with the results of Arrow's and DuckDB's
// readers. The input is little-endian; a text is a u32 size and bytes:
//
//   u32 columns, each: u8 type, u8 optional, text name; then batches:
//   u32 rows (0xffffffff: the end), and for each column u8 empty; if it is 0
//     TABLE_TEXT:             u32 new words, each a text; u8 constant; one i32, or one for each row
//     TABLE_INT:              i32
//     TABLE_DOUBLE:           f64 for each row
//     TABLE_TIME, TABLE_ID: i64 shift, i64 for each row
#include "base/array.h"
#include "base/bytes.h"
#include "formats/arrow_write.h"
#include "formats/parquet_write.h"

#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS_MAX = 64 };

static struct table_column columns[COLUMNS_MAX];
static struct str *words[COLUMNS_MAX];
static size_t word_capacity[COLUMNS_MAX];
static size_t count;
static FILE *file;

static struct str read_text(struct bytes *in)
{
    return bytes_take(in, bytes_u32(in));
}

static int write_file(void *user, struct str bytes)
{
    (void)user;
    return fwrite(bytes.data, 1, bytes.size, file) == bytes.size ? 0 : -1;
}

static void read_cells(struct bytes *in, size_t i, size_t rows, struct table_cells *cells)
{
    struct table_column *c = &columns[i];
    *cells = (struct table_cells){.empty = bytes_u8(in)};
    if (cells->empty)
        return;
    if (c->type == TABLE_TEXT) {
        for (uint32_t n = bytes_u32(in); n; n--) {
            if (!array_room(&words[i], &word_capacity[i], c->word_count + 1, sizeof **words))
                abort();
            words[i][c->word_count++] = read_text(in);
        }
        c->words = words[i];
        if (bytes_u8(in))
            cells->constant = (int32_t)bytes_u32(in);
        else
            cells->numbers = (const void *)bytes_take(in, rows * 4).data;
    } else if (c->type == TABLE_INT) {
        cells->constant = (int32_t)bytes_u32(in);
    } else if (c->type == TABLE_DOUBLE) {
        cells->values = (const void *)bytes_take(in, rows * 8).data;
    } else {
        cells->shift = (int64_t)bytes_u64(in);
        cells->integers = (const void *)bytes_take(in, rows * 8).data;
    }
}

// Sanitizers require numbers at multiples of their size, but the input's numbers lie anywhere.
static void align_cells(size_t rows, struct table_cells *cells, void **copies)
{
    const void *from = cells->values ? (const void *)cells->values : (const void *)cells->integers;
    size_t bytes = rows * 8;
    if (cells->numbers) {
        from = cells->numbers;
        bytes = rows * 4;
    }
    *copies = from ? malloc(bytes + 1) : NULL;
    if (!*copies)
        return;
    memcpy(*copies, from, bytes);
    if (cells->numbers)
        cells->numbers = *copies;
    else if (cells->values)
        cells->values = *copies;
    else
        cells->integers = *copies;
}

int main(int argc, char **argv)
{
    struct buf input = {0}, out = {0};
    struct table_pair pair = {STR("maker"), STR("test")};
    if (argc != 4 || !(file = fopen(argv[2], "wb")))
        return 2;
    bool parquet = strcmp(argv[1], "parquet") == 0;
    for (size_t n = 1; n;) {
        buf_reserve(&input, 1 << 20);
        n = fread(input.data + input.size, 1, 1 << 20, stdin);
        input.size += n;
    }
    struct bytes in = bytes_of(input.data, input.size);
    count = bytes_u32(&in);
    for (size_t i = 0; i < count && i < COLUMNS_MAX; i++) {
        columns[i].type = bytes_u8(&in);
        columns[i].optional = bytes_u8(&in);
        columns[i].name = read_text(&in);
    }
    struct parquet_options options = {.write = write_file, .pairs = &pair, .pair_count = 1};
    options.page_rows = strtoul(argv[3], NULL, 10);
    options.group_rows = 3 * options.page_rows;
    struct parquet_writer *p = parquet ? parquet_write_begin(&options, columns, count) : NULL;
    struct arrow_writer a = {
        .out = &out, .columns = columns, .count = count, .pairs = &pair, .pair_count = 1};
    a.container = strcmp(argv[1], "arrow-file") == 0 ? ARROW_FILE : ARROW_STREAM;
    if (!parquet)
        arrow_begin(&a);
    int rc = 0;
    for (uint32_t rows; (rows = bytes_u32(&in)) != UINT32_MAX && !in.failed && !rc;) {
        struct table_cells cells[COLUMNS_MAX];
        void *copies[COLUMNS_MAX];
        for (size_t i = 0; i < count; i++) {
            read_cells(&in, i, rows, &cells[i]);
            align_cells(rows, &cells[i], &copies[i]);
        }
        if (parquet)
            rc = parquet_write_rows(p, rows, cells);
        else
            arrow_batch(&a, rows, cells);
        for (size_t i = 0; i < count; i++)
            free(copies[i]);
        if (parquet)
            continue;
        write_file(NULL, buf_str(&out));
        arrow_taken(&a);
    }
    if (parquet && !rc)
        rc = parquet_write_end(p);
    else if (!parquet)
        arrow_end(&a);
    write_file(NULL, buf_str(&out));
    bool failed = rc || in.failed || out.failed || fclose(file);
    parquet_write_free(p);
    arrow_free(&a);
    for (size_t i = 0; i < count; i++)
        free(words[i]);
    buf_free(&input);
    buf_free(&out);
    return failed;
}
