#include "cli/screen.h"

#include "base/printable.h"
#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// People with any colour blindness can distinguish blue, yellow and magenta; without colour, bold
// and reverse distinguish the styles.
static const struct {
    const char *colour, *plain;
} looks[STYLE_COUNT] = {
    [STYLE_PLAIN] = {"\033[0m", "\033[0m"},
    [STYLE_DIM] = {"\033[0;2m", "\033[0;2m"},
    [STYLE_BOLD] = {"\033[0;1m", "\033[0;1m"},
    [STYLE_TITLE] = {"\033[0;1;4m", "\033[0;1;4m"},
    [STYLE_SELECTED] = {"\033[0;7m", "\033[0;7m"},
    [STYLE_BAR] = {"\033[0;34m", "\033[0m"},
    [STYLE_BAR_HIGH] = {"\033[0;1;33m", "\033[0;1m"},
    [STYLE_SPARK] = {"\033[0;36m", "\033[0m"},
    [STYLE_GOOD] = {"\033[0;36m", "\033[0m"},
    [STYLE_ALARM] = {"\033[0;1;35m", "\033[0;1;7m"},
};

static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const ascii_levels[] = {"_", ".", "-", ":", "=", "+", "*", "#"};
enum { EIGHTHS = 8, LEVELS = 8 };

static int within(int value, int most)
{
    return value < 1 ? 1 : value > most ? most : value;
}

int screen_create(struct screen *s, int columns, int rows, bool utf8)
{
    *s = (struct screen){.columns = within(columns, SCREEN_COLUMNS_MAX),
                         .rows = within(rows, SCREEN_ROWS_MAX),
                         .utf8 = utf8};
    s->cells = calloc((size_t)s->columns * (size_t)s->rows, sizeof *s->cells);
    if (!s->cells)
        return -ENOMEM;
    screen_clear(s);
    return 0;
}

void screen_free(struct screen *s)
{
    free(s->cells);
    *s = (struct screen){0};
}

static const struct screen_cell blank = {.glyph = " ", .size = 1, .style = STYLE_PLAIN};

void screen_clear(struct screen *s)
{
    for (size_t i = 0; i < (size_t)s->columns * (size_t)s->rows; i++)
        s->cells[i] = blank;
}

// ---------------------------------------------------------------- text

static uint32_t code_point(const unsigned char *s, size_t n)
{
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = s[0] & first[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3f);
    return c;
}

// Returns the width of a character in columns: 0 (it combines with the previous one), 1 or 2. The
// ranges are those of East Asian width W and F, and of combining marks, as blocks.
static int columns_of(uint32_t c)
{
    static const struct {
        uint32_t from, to;
    } none[] = {{0x300, 0x36f},    {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},
                {0x64b, 0x65f},    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
                {0x20d0, 0x20ff},  {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff},
                {0xe0100, 0xe01ef}},
      two[] = {{0x1100, 0x115f},   {0x231a, 0x231b},  {0x2e80, 0x303e},   {0x3041, 0xa4cf},
               {0xa960, 0xa97f},   {0xac00, 0xd7a3},  {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
               {0xff00, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
               {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        if (c >= none[i].from && c <= none[i].to)
            return 0;
    for (size_t i = 0; i < sizeof two / sizeof two[0]; i++)
        if (c >= two[i].from && c <= two[i].to)
            return 2;
    return 1;
}

int screen_width(const char *text)
{
    struct buf safe = {0};
    int width = 0;
    printable_add(&safe, str_of(text));
    for (size_t i = 0; i < safe.size;) {
        const unsigned char *at = (const unsigned char *)safe.data + i;
        size_t n = utf8_sequence(at, safe.size - i);
        n = n ? n : 1;
        width += columns_of(code_point(at, n));
        i += n;
    }
    buf_free(&safe);
    return width;
}

static struct screen_cell *cell(struct screen *s, int row, int column)
{
    return &s->cells[(size_t)row * (size_t)s->columns + (size_t)column];
}

// Called before a cell is overwritten. If it is one half of a wide character, the other half
// becomes a blank.
static void split(struct screen *s, int row, int column)
{
    struct screen_cell *c = cell(s, row, column);
    if (!c->size && column > 0) {
        c[-1].glyph[0] = ' ';
        c[-1].size = 1;
    }
    if (c->size && column + 1 < s->columns && !c[1].size) {
        c[1].glyph[0] = ' ';
        c[1].size = 1;
    }
}

// Stores a character. `width` is 1 or 2, and both cells must be on the screen.
static void put(struct screen *s, int row, int column, int width, const char *glyph, size_t size,
                enum screen_style style)
{
    struct screen_cell *c = cell(s, row, column);
    for (int i = 0; i < width; i++)
        split(s, row, column + i);
    *c = (struct screen_cell){.size = (uint8_t)size, .style = (uint8_t)style};
    memcpy(c->glyph, glyph, size);
    if (width == 2)
        c[1] = (struct screen_cell){.style = (uint8_t)style};
}

// Appends a combining mark to the cell if it has room.
static void join(struct screen *s, int row, int column, const char *glyph, size_t size)
{
    struct screen_cell *c = cell(s, row, column);
    if (!c->size && column > 0)
        c--;
    if (c->size && c->size + size <= SCREEN_GLYPH_MAX) {
        memcpy(c->glyph + c->size, glyph, size);
        c->size = (uint8_t)(c->size + size);
    }
}

static int put_safe(struct screen *s, int row, int column, int width, enum screen_style style,
                    struct str text)
{
    int taken = 0;
    if (row < 0 || row >= s->rows || column < 0)
        return 0;
    for (size_t i = 0; i < text.size;) {
        const char *at = text.data + i;
        size_t n = utf8_sequence((const unsigned char *)at, text.size - i);
        n = n ? n : 1;
        i += n;
        int own = columns_of(code_point((const unsigned char *)at, n));
        if (n > 1 && !s->utf8) {
            at = "?";
            n = 1;
            own = own ? 1 : 0;
        }
        if (!own) {
            if (taken && s->utf8)
                join(s, row, column + taken - 1, at, n);
            continue;
        }
        if (taken + own > width || column + taken + own > s->columns)
            break;
        put(s, row, column + taken, own, at, n, style);
        taken += own;
    }
    return taken;
}

int screen_text(struct screen *s, int row, int column, int width, enum screen_style style,
                const char *text)
{
    struct buf safe = {0};
    printable_add(&safe, str_of(text));
    int taken = put_safe(s, row, column, width, style, buf_str(&safe));
    buf_free(&safe);
    return taken;
}

int screen_printf(struct screen *s, int row, int column, int width, enum screen_style style,
                  const char *format, ...)
{
    struct buf text = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    int taken = screen_text(s, row, column, width, style, buf_cstr(&text));
    buf_free(&text);
    return taken;
}

void screen_right(struct screen *s, int row, int column, int width, enum screen_style style,
                  const char *text)
{
    int own = screen_width(text);
    int left = own < width ? width - own : 0;
    screen_text(s, row, column + left, width - left, style, text);
}

void screen_style(struct screen *s, int row, int column, int width, enum screen_style style)
{
    for (int i = column; row >= 0 && row < s->rows && i < column + width && i < s->columns; i++)
        cell(s, row, i)->style = (uint8_t)style;
}

// ---------------------------------------------------------------- bars and sparklines

void screen_bar(struct screen *s, int row, int column, int width, double share,
                enum screen_style style)
{
    if (isnan(share) || width <= 0 || row < 0 || row >= s->rows)
        return;
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    int parts = (int)lround(share * width * EIGHTHS);
    if (!s->utf8)
        parts = (int)lround(share * width) * EIGHTHS;
    for (int i = 0; i < width && column + i < s->columns; i++, parts -= EIGHTHS) {
        int part = parts < 0 ? 0 : parts > EIGHTHS ? EIGHTHS : parts;
        const char *glyph = s->utf8 ? eighths[part] : part ? "#" : "";
        if (!*glyph)
            break;
        put(s, row, column + i, 1, glyph, strlen(glyph), style);
    }
}

const char *screen_level(double value, double least, double most, bool utf8)
{
    if (!isfinite(value))
        return " ";
    double share = most > least ? (value - least) / (most - least) : 0;
    int level = (int)(share * LEVELS);
    level = level < 0 ? 0 : level >= LEVELS ? LEVELS - 1 : level;
    return utf8 ? levels[level] : ascii_levels[level];
}

void screen_spark(struct screen *s, int row, int column, const double *values, int count,
                  double least, double most, enum screen_style style)
{
    for (int i = 0; i < count && column + i < s->columns && row >= 0 && row < s->rows; i++) {
        const char *glyph = screen_level(values[i], least, most, s->utf8);
        put(s, row, column + i, 1, glyph, strlen(glyph), style);
    }
}

// ---- output ----

static bool same(const struct screen_cell *a, const struct screen_cell *b)
{
    return a->size == b->size && a->style == b->style && memcmp(a->glyph, b->glyph, a->size) == 0;
}

static bool is_blank(const struct screen_cell *c)
{
    return c->size == 1 && c->glyph[0] == ' ';
}

static void style_out(struct buf *out, int style, bool colour)
{
    const char *text = colour ? looks[style].colour : looks[style].plain;
    buf_add(out, text, strlen(text));
}

// True if the cell, or the other half of its character, must be redrawn.
static bool changed(const struct screen_cell *now, const struct screen_cell *before, int column,
                    int columns)
{
    if (!same(&now[column], &before[column]))
        return true;
    if (column + 1 < columns && !now[column + 1].size)
        return !same(&now[column + 1], &before[column + 1]);
    return false;
}

void screen_update(struct buf *out, const struct screen *now, const struct screen *before,
                   bool colour)
{
    int style = -1;
    bool all = !before || before->columns != now->columns || before->rows != now->rows;
    if (all)
        buf_add_str(out, STR("\033[0m\033[2J"));
    for (int row = 0; row < now->rows; row++) {
        const struct screen_cell *cells = &now->cells[(size_t)row * (size_t)now->columns];
        const struct screen_cell *old =
            all ? NULL : &before->cells[(size_t)row * (size_t)now->columns];
        int at = -1; // column of the terminal's cursor; -1: the cursor is in another row
        for (int i = 0; i < now->columns; i++) {
            if (!cells[i].size ||
                (old ? !changed(cells, old, i, now->columns) : same(&cells[i], &blank)))
                continue;
            if (at != i)
                buf_printf(out, "\033[%d;%dH", row + 1, i + 1);
            if (style != cells[i].style)
                style_out(out, style = cells[i].style, colour);
            buf_add(out, cells[i].glyph, cells[i].size);
            at = i + (i + 1 < now->columns && !cells[i + 1].size ? 2 : 1);
        }
    }
    if (style > 0)
        style_out(out, STYLE_PLAIN, colour);
}

void screen_plain(struct buf *out, const struct screen *s, bool colour)
{
    for (int row = 0; row < s->rows; row++) {
        const struct screen_cell *cells = &s->cells[(size_t)row * (size_t)s->columns];
        int last = s->columns, style = STYLE_PLAIN;
        while (last > 0 && (colour ? same(&cells[last - 1], &blank) : is_blank(&cells[last - 1])))
            last--;
        for (int i = 0; i < last; i++) {
            if (colour && cells[i].size && cells[i].style != style)
                style_out(out, style = cells[i].style, true);
            buf_add(out, cells[i].glyph, cells[i].size);
        }
        if (style != STYLE_PLAIN)
            style_out(out, STYLE_PLAIN, true);
        buf_add_char(out, '\n');
    }
}
