// read_table.c - prints the contents of a Parquet file: read_table FILE
//
// The output is little-endian; a text is a u32 size and bytes: u32 columns, each: u8 kind, text
// name; then batches: u32 rows, and for each column a u8 per row (1: it has a value), then an i64,
// f64 or text per row. 0xffffffff ends the batches. Errors go to standard error, with exit code 1.
#include "base/bytes.h"
#include "formats/parquet_read.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int fd;

static int read_file(void *user, uint64_t at, void *out, size_t size)
{
    (void)user;
    return pread(fd, out, size, (off_t)at) == (ssize_t)size ? 0 : -5;
}

static void put_text(struct buf *out, struct str s)
{
    buf_u32(out, (uint32_t)s.size);
    buf_add_str(out, s);
}

static void put_cells(struct buf *out, const struct parquet_cells *c, size_t rows)
{
    for (size_t i = 0; i < rows; i++)
        buf_u8(out, !c->there || c->there[i]);
    for (size_t i = 0; i < rows; i++) {
        bool there = !c->there || c->there[i];
        if (c->integers)
            buf_u64(out, there ? (uint64_t)c->integers[i] : 0);
        else if (c->values)
            buf_f64(out, there ? c->values[i] : 0);
        else
            put_text(out, there ? c->texts[i] : STR(""));
    }
}

static void flush(struct buf *out)
{
    fwrite(out->data, 1, out->size, stdout);
    out->size = 0;
}

int main(int argc, char **argv)
{
    struct stat st;
    struct parquet_reader *r;
    const struct parquet_column *columns;
    struct error e = {0};
    struct buf out = {0};
    if (argc != 2 || (fd = open(argv[1], O_RDONLY)) < 0 || fstat(fd, &st) < 0)
        return 2;
    struct parquet_source source = {.read = read_file, .size = (uint64_t)st.st_size};
    int rc = parquet_read_open(&source, &r, &e);
    size_t rows = 1, count = rc ? 0 : parquet_read_columns(r, &columns);
    struct parquet_cells *cells = calloc(count + 1, sizeof *cells);
    buf_u32(&out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        buf_u8(&out, (uint8_t)columns[i].kind);
        put_text(&out, columns[i].name);
    }
    while (!rc && rows) {
        flush(&out);
        rc = parquet_read_rows(r, cells, &rows, &e);
        if (rc || !rows)
            break;
        buf_u32(&out, (uint32_t)rows);
        for (size_t i = 0; i < count; i++)
            put_cells(&out, &cells[i], rows);
    }
    buf_u32(&out, UINT32_MAX);
    flush(&out);
    if (rc)
        fprintf(stderr, "%s\n", e.text);
    if (!rc || count)
        parquet_read_close(r);
    free(cells);
    buf_free(&out);
    close(fd);
    return rc != 0;
}
