#include "store/csv_lines.h"

#include <errno.h>

int csv_lines_open(struct csv_lines *c, const char *path, struct error *e)
{
    *c = (struct csv_lines){.line = {.limit = CSV_LINE_MAX}};
    errno = 0;
    c->file = gzopen(path, "rbe");
    if (!c->file)
        return error_set(e, errno ? -errno : -ENOMEM, "cannot open %s: %s", path,
                         strerror(errno ? errno : ENOMEM));
    gzbuffer(c->file, 256 << 10);
    return 0;
}

void csv_lines_close(struct csv_lines *c)
{
    if (c->file)
        gzclose(c->file);
    buf_free(&c->line);
    buf_free(&c->cell);
}

// `quotes`: a line end between quotes does not end the line.
static int next_line(struct csv_lines *c, bool quotes)
{
    c->line.size = 0;
    bool quoted = false;
    for (;;) {
        char piece[65536];
        if (!gzgets(c->file, piece, sizeof piece)) {
            int code;
            gzerror(c->file, &code);
            if (code != Z_OK && code != Z_STREAM_END)
                return -EBADMSG;
            return c->line.size ? 1 : 0;
        }
        size_t n = strlen(piece);
        for (size_t i = 0; quotes && i < n; i++)
            quoted ^= piece[i] == '"';
        buf_add(&c->line, piece, n);
        if (c->line.failed)
            return c->line.limit && c->line.size + n > c->line.limit ? -E2BIG : -ENOMEM;
        if (quoted || !n || piece[n - 1] != '\n')
            continue;
        c->line_number++;
        c->line.size -= c->line.size > 1 && c->line.data[c->line.size - 2] == '\r' ? 2 : 1;
        return 1;
    }
}

int csv_lines_next(struct csv_lines *c)
{
    return next_line(c, true);
}

int text_lines_next(struct csv_lines *c)
{
    return next_line(c, false);
}

int csv_lines_failed(const struct csv_lines *c, int rc, struct error *e)
{
    return error_set(e, rc, "line %llu: %s", (unsigned long long)c->line_number + 1,
                     rc == -EBADMSG ? "the file ends too early, or is damaged" : strerror(-rc));
}

struct str csv_lines_cell(struct csv_lines *c, struct str *rest)
{
    if (!rest->size || rest->data[0] != '"')
        return str_trim(str_cut(rest, ','));
    c->cell.size = 0;
    size_t i = 1;
    for (; i < rest->size; i++) {
        if (rest->data[i] == '"' && (i + 1 == rest->size || rest->data[++i] != '"'))
            break;
        buf_add_char(&c->cell, rest->data[i]);
    }
    *rest = str_slice(*rest, i, rest->size);
    str_cut(rest, ',');
    return buf_str(&c->cell);
}
