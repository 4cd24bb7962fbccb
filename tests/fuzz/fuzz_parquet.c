// Reads a malicious Parquet file: it is refused with a reason, or gives readable rows.
#include "base/bytes.h"
#include "formats/parquet_read.h"
#include "formats/snappy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS_MAX = 1 << 20 };

static double sum;
static struct str file;

static int read_memory(void *user, uint64_t at, void *out, size_t size)
{
    (void)user;
    if (at > file.size || size > file.size - at)
        abort(); // the reader must not read beyond the end of the file
    memcpy(out, file.data + at, size);
    return 0;
}

static void look_at(const struct parquet_cells *c, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        if (c->there && !c->there[i])
            continue;
        if (c->integers)
            sum += (double)c->integers[i];
        else if (c->values)
            sum += c->values[i];
        for (size_t k = 0; c->texts && k < c->texts[i].size; k++)
            sum += c->texts[i].data[k];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct parquet_source source = {.read = read_memory, .size = size};
    struct parquet_reader *r;
    const struct parquet_column *columns;
    struct error e = {0};
    file = (struct str){(const char *)data, size};
    char unpacked[4096];
    snappy_read(file, unpacked, size % sizeof unpacked);
    if (parquet_read_open(&source, &r, &e) != 0) {
        if (!e.text[0])
            abort();
        return 0;
    }
    size_t count = parquet_read_columns(r, &columns), rows = 0, all = 0;
    struct parquet_cells *cells = calloc(count, sizeof *cells);
    bool *wanted = calloc(count, sizeof *wanted);
    for (size_t i = 0; i < count; i++)
        wanted[i] = columns[i].kind != PARQUET_KIND_OTHER;
    int rc = parquet_read_select(r, wanted, &e);
    while (!rc && !(rc = parquet_read_rows(r, cells, &rows, &e)) && rows && all < ROWS_MAX) {
        for (size_t i = 0; i < count; i++)
            look_at(&cells[i], rows);
        all += rows;
    }
    if (rc && !e.text[0])
        abort();
    if (!rc && !rows && all != parquet_read_row_count(r))
        abort();
    free(cells);
    free(wanted);
    parquet_read_close(r);
    return 0;
}
