#include "store/csv_lines.h"

#include <errno.h>
#include <stdlib.h>

enum { PIECE_BYTES = 256 << 10 }; // bytes of one read

int csv_lines_open(struct csv_lines *c, const char *path, struct error *e)
{
    *c = (struct csv_lines){0};
    errno = 0;
    c->file = gzopen(path, "rbe");
    if (!c->file)
        return error_set(e, errno ? -errno : -ENOMEM, "cannot open %s: %s", path,
                         strerror(errno ? errno : ENOMEM));
    gzbuffer(c->file, PIECE_BYTES);
    return 0;
}

void csv_lines_close(struct csv_lines *c)
{
    if (c->file)
        gzclose(c->file);
    free(c->text);
    buf_free(&c->cell);
}

int csv_lines_rewind(struct csv_lines *c)
{
    c->from = c->to = 0;
    c->line_number = 0;
    return gzrewind(c->file) ? -ESPIPE : 0;
}

// Reads more bytes. Returns 1, 0 at the end, or a negative errno.
static int fill(struct csv_lines *c)
{
    if (c->from)
        memmove(c->text, c->text + c->from, c->to - c->from);
    c->to -= c->from;
    c->from = 0;
    if (c->to > CSV_LINE_MAX)
        return -E2BIG;
    if (c->capacity - c->to < PIECE_BYTES) {
        size_t capacity = 2 * c->capacity + PIECE_BYTES;
        char *text = realloc(c->text, capacity);
        if (!text)
            return -ENOMEM;
        c->text = text;
        c->capacity = capacity;
    }
    int n = gzread(c->file, c->text + c->to, PIECE_BYTES), code = Z_OK;
    if (n <= 0)
        gzerror(c->file, &code);
    if (n < 0 || (code != Z_OK && code != Z_STREAM_END))
        return -EBADMSG;
    c->to += (size_t)n;
    return n > 0;
}

static bool is_odd(struct str text, char what)
{
    bool odd = false;
    const char *at;
    while (text.size && (at = memchr(text.data, what, text.size))) {
        odd = !odd;
        text = str_slice(text, (size_t)(at - text.data) + 1, text.size);
    }
    return odd;
}

static struct str unread(const struct csv_lines *c)
{
    return c->text ? (struct str){c->text + c->from, c->to - c->from} : (struct str){"", 0};
}

// With `quotes`, a line end between quotes does not end the line.
static int next_line(struct csv_lines *c, bool quotes)
{
    size_t looked_at = 0;
    bool quoted = false;
    for (;;) {
        struct str rest = unread(c);
        while (looked_at < rest.size) {
            const char *end = memchr(rest.data + looked_at, '\n', rest.size - looked_at);
            size_t stop = end ? (size_t)(end - rest.data) : rest.size;
            quoted ^= quotes && is_odd(str_slice(rest, looked_at, stop), '"');
            looked_at = stop + (end != NULL);
            if (!end || quoted)
                continue;
            c->from += looked_at;
            c->line_number++;
            c->line = str_slice(rest, 0, stop - (stop && rest.data[stop - 1] == '\r'));
            return c->line.size > CSV_LINE_MAX ? -E2BIG : 1;
        }
        int rc = fill(c);
        if (rc > 0)
            continue;
        c->line = unread(c);
        c->from = c->to;
        return rc ? rc : c->line.size > 0;
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
