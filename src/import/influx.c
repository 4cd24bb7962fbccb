// influx.c - files of InfluxDB's line protocol, read with the agent's parser.
#include "import/rows.h"

#include "ingest/lines_parse.h"
#include "store/csv_lines.h"

#include <errno.h>
#include <stdlib.h>

struct influx {
    struct csv_lines lines;
    struct line line;
    struct buf key;
};

static int take_line(struct influx *x, struct import_hosts *to, struct import_stats *stats,
                     struct error *e)
{
    struct str text = str_trim(x->lines.line);
    if (!text.size || text.data[0] == '#')
        return 0;
    line_reset(&x->line);
    if (text.size > LINE_SIZE_MAX || !line_parse_influx(&x->line, text) || !x->line.has_time)
        return -EINVAL;
    int rc = 0;
    for (size_t i = 0; i < x->line.item_count && !rc; i++) {
        struct import_row row = {.kind = IMPORT_GAUGE,
                                 .t_ns = x->line.t_ns,
                                 .name = x->line.items[i].name,
                                 .value = x->line.items[i].value,
                                 .labels = x->line.labels,
                                 .label_count = x->line.label_count};
        rc = import_row_take(to, &row, &x->key, stats, e);
    }
    return rc;
}

static int read_all(struct influx *x, struct import_hosts *to, struct import_stats *stats,
                    struct error *e)
{
    int rc;
    while ((rc = text_lines_next(&x->lines)) > 0) {
        rc = take_line(x, to, stats, e);
        if (rc == -EINVAL)
            stats->bad_rows++;
        else if (rc)
            return rc;
    }
    return rc ? csv_lines_failed(&x->lines, rc, e) : import_rows_check(stats, e);
}

int import_influx(const char *path, struct import_hosts *to, struct import_stats *stats,
                  struct error *e)
{
    *stats = (struct import_stats){0};
    struct influx *x = calloc(1, sizeof *x);
    if (!x)
        return error_set(e, -ENOMEM, "out of memory");
    line_init(&x->line);
    int rc = csv_lines_open(&x->lines, path, e);
    if (!rc) {
        rc = read_all(x, to, stats, e);
        if (rc)
            error_prefix(e, "cannot import %s", path);
    }
    csv_lines_close(&x->lines);
    line_free(&x->line);
    buf_free(&x->key);
    free(x);
    return rc;
}
