#include "cli/columns.h"

#include "base/array.h"
#include "base/printable.h"

#include <stdlib.h>

static void end_cell(struct columns *c)
{
    if (!array_room(&c->ends, &c->capacity, c->cells + 1, sizeof *c->ends)) {
        c->failed = true;
        return;
    }
    c->ends[c->cells++] = c->text.size;
}

void columns_titles(struct columns *c, const char *const *titles, size_t count)
{
    c->count = count < COLUMNS_MAX ? count : COLUMNS_MAX;
    for (size_t i = 0; i < c->count; i++)
        columns_text(c, str_of(titles[i]));
}

void columns_text(struct columns *c, struct str text)
{
    size_t from = c->text.size;
    buf_add_str(&c->text, text);
    printable_since(&c->text, from);
    end_cell(c);
}

void columns_cell(struct columns *c, const char *format, ...)
{
    size_t from = c->text.size;
    va_list args;
    va_start(args, format);
    buf_vprintf(&c->text, format, args);
    va_end(args);
    printable_since(&c->text, from);
    end_cell(c);
}

void columns_cut_text(struct columns *c, struct str text, size_t most)
{
    if (text.size <= most) {
        columns_text(c, text);
        return;
    }
    while (most > 0 && ((unsigned char)text.data[most] & 0xc0) == 0x80)
        most--; // do not cut a character in two
    columns_cell(c, "%.*s…", (int)most, text.data);
}

void columns_free(struct columns *c)
{
    buf_free(&c->text);
    free(c->ends);
    *c = (struct columns){0};
}

static struct str cell(const struct columns *c, size_t i)
{
    size_t from = i ? c->ends[i - 1] : 0;
    return (struct str){c->text.data + from, c->ends[i] - from};
}

static size_t width(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.size; i++)
        n += ((unsigned char)s.data[i] & 0xc0) != 0x80;
    return n;
}

static void add_blanks(struct buf *out, size_t count)
{
    for (; count > 0; count--)
        buf_add_char(out, ' ');
}

void columns_write(const struct columns *c, struct buf *out)
{
    size_t widest[COLUMNS_MAX] = {0};
    bool numbers[COLUMNS_MAX];
    memset(numbers, true, sizeof numbers);
    if (c->failed || c->text.failed) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < c->cells; i++) {
        struct str s = cell(c, i);
        double ignored;
        size_t column = i % c->count, wide = width(s);
        if (wide > widest[column])
            widest[column] = wide;
        if (numbers[column] && i >= c->count && s.size > 0 && !str_to_double(s, &ignored))
            numbers[column] = false;
    }
    for (size_t i = 0; i < c->cells; i++) {
        struct str s = cell(c, i);
        size_t column = i % c->count;
        bool last = column + 1 == c->count;
        size_t blanks = widest[column] - width(s);
        if (numbers[column])
            add_blanks(out, blanks);
        buf_add_str(out, s);
        if (!numbers[column] && !last)
            add_blanks(out, blanks);
        buf_add_str(out, last ? STR("\n") : STR("  "));
    }
}

static void quote(struct buf *out, struct str s)
{
    buf_add_char(out, '"');
    for (size_t i = 0; i < s.size; i++) {
        if (s.data[i] == '"')
            buf_add_char(out, '"');
        buf_add_char(out, s.data[i]);
    }
    buf_add_char(out, '"');
}

void columns_csv(const struct columns *c, struct buf *out)
{
    out->failed |= c->failed || c->text.failed;
    for (size_t i = 0; i < c->cells && !out->failed; i++) {
        struct str s = cell(c, i);
        if (str_find_char(s, ',') >= 0 || str_find_char(s, '"') >= 0) // cells contain no line ends
            quote(out, s);
        else
            buf_add_str(out, s);
        buf_add_str(out, (i + 1) % c->count ? STR(",") : STR("\r\n"));
    }
}
