// screen.h - a terminal's screen as an array of cells, and the bytes that turn one into the next.
//
// A program draws each picture from scratch into a screen. screen_update writes only the cells that
// differ from the picture before, so an unchanged screen costs no byte. The escapes are those that
// every terminal since the VT100 obeys (CSI row;column H, CSI … m), so no terminal database is
// read.
//
//   cells[row * columns + column]    a character of two columns leaves the cell behind it empty
//
// Text is printable afterwards, whatever it holds (base/printable.h).
#ifndef SONDE_CLI_SCREEN_H
#define SONDE_CLI_SCREEN_H

#include "base/str.h"

enum { SCREEN_COLUMNS_MAX = 1000, SCREEN_ROWS_MAX = 500, SCREEN_GLYPH_MAX = 8 };

// How a cell looks. Without colour each style keeps its attributes (bold, reverse, dim).
enum screen_style {
    STYLE_PLAIN,
    STYLE_DIM,
    STYLE_BOLD,
    STYLE_TITLE,    // of a table
    STYLE_SELECTED, // the row under the cursor
    STYLE_BAR,
    STYLE_BAR_HIGH, // a share of 90 % and more
    STYLE_SPARK,
    STYLE_GOOD,
    STYLE_ALARM, // needs action
    STYLE_COUNT,
};

struct screen_cell {
    char glyph[SCREEN_GLYPH_MAX]; // UTF-8, size bytes; size 0: the second half of a wide character
    uint8_t size, style;
};

struct screen {
    int columns, rows;
    bool utf8; // false: characters beyond ASCII become '?'
    struct screen_cell *cells;
};

// Both dimensions are brought into 1 … MAX. All cells are blank. -ENOMEM.
int screen_create(struct screen *s, int columns, int rows, bool utf8);
void screen_free(struct screen *s);
void screen_clear(struct screen *s);

// Writes text into one row, at most `width` columns of it, cut at the right border; returns the
// columns that it took. Row and column outside of the screen draw nothing.
int screen_text(struct screen *s, int row, int column, int width, enum screen_style style,
                const char *text);
int screen_printf(struct screen *s, int row, int column, int width, enum screen_style style,
                  const char *format, ...) __attribute__((format(printf, 6, 7)));
// The same, but the text ends at column + width.
void screen_right(struct screen *s, int row, int column, int width, enum screen_style style,
                  const char *text);
// Gives cells of a row another style.
void screen_style(struct screen *s, int row, int column, int width, enum screen_style style);

// Columns that the text takes, after escapes.
int screen_width(const char *text);

// A bar of `share` (0 to 1) in `width` columns; NaN draws nothing. In eighths of a column where the
// screen is UTF-8, else in whole columns of '#'.
void screen_bar(struct screen *s, int row, int column, int width, double share,
                enum screen_style style);
// One character a value, between least and most; NaN is a blank.
void screen_spark(struct screen *s, int row, int column, const double *values, int count,
                  double least, double most, enum screen_style style);
// The character of a sparkline for one value.
const char *screen_level(double value, double least, double most, bool utf8);

// Appends what turns `before` into `now` on a terminal. `before` NULL, or of another size:
// everything.
void screen_update(struct buf *out, const struct screen *now, const struct screen *before,
                   bool colour);

// The picture as lines of text without trailing blanks; with colour, with escapes for styles only.
void screen_plain(struct buf *out, const struct screen *s, bool colour);

#endif
