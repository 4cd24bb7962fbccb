// screen.h - a terminal's screen as an array of cells, and the escape sequences that update the
// terminal.
//
// A program draws each frame from scratch into a screen. screen_update writes only the cells that
// differ from the previous frame, so an unchanged screen costs no byte. Every terminal since the
// VT100 understands these escape sequences (CSI row;column H, CSI … m), so no terminal database is
// necessary.
//
//   cells[row * columns + column]    after a character of two columns, the next cell is empty
//
// All text is made printable (base/printable.h).
#ifndef SONDE_CLI_SCREEN_H
#define SONDE_CLI_SCREEN_H

#include "base/str.h"

enum { SCREEN_COLUMNS_MAX = 1000, SCREEN_ROWS_MAX = 500, SCREEN_GLYPH_MAX = 8 };

// The style of a cell. Without colour, styles still differ in their attributes (bold, reverse,
// dim).
enum screen_style {
    STYLE_PLAIN,
    STYLE_DIM,
    STYLE_BOLD,
    STYLE_TITLE,    // of a table
    STYLE_SELECTED, // the row under the cursor
    STYLE_BAR,
    STYLE_BAR_HIGH, // a share of 90 % or more
    STYLE_SPARK,
    STYLE_GOOD,
    STYLE_ALARM, // needs action
    STYLE_COUNT,
};

struct screen_cell {
    // size bytes of UTF-8; size 0: the second half of a wide character
    char glyph[SCREEN_GLYPH_MAX];
    uint8_t size, style;
};

struct screen {
    int columns, rows;
    bool utf8; // false: characters beyond ASCII are drawn as '?'
    struct screen_cell *cells;
};

// Makes a screen. Both dimensions are limited to 1 … MAX. All cells are blank. Returns 0 or
// -ENOMEM.
int screen_create(struct screen *s, int columns, int rows, bool utf8);
void screen_free(struct screen *s);
void screen_clear(struct screen *s);

// Writes text into one row, at most `width` columns of it, cut at the right border. Returns the
// number of used columns. Draws nothing outside of the screen.
int screen_text(struct screen *s, int row, int column, int width, enum screen_style style,
                const char *text);
int screen_printf(struct screen *s, int row, int column, int width, enum screen_style style,
                  const char *format, ...) __attribute__((format(printf, 6, 7)));
// Like screen_text, but the text ends at column + width.
void screen_right(struct screen *s, int row, int column, int width, enum screen_style style,
                  const char *text);
// Sets another style for cells of a row.
void screen_style(struct screen *s, int row, int column, int width, enum screen_style style);

// Returns the width of the text in columns, after escaping.
int screen_width(const char *text);

// Draws a bar of `share` (0 to 1) in `width` columns; nothing for NaN. On a UTF-8 screen it is
// drawn in eighths of a column, else in whole columns of '#'.
void screen_bar(struct screen *s, int row, int column, int width, double share,
                enum screen_style style);
// Draws one character for each value, scaled between least and most; a blank for NaN.
void screen_spark(struct screen *s, int row, int column, const double *values, int count,
                  double least, double most, enum screen_style style);
// Returns the character of a sparkline for one value.
const char *screen_level(double value, double least, double most, bool utf8);

// Appends the bytes that change a terminal from `before` to `now`. If `before` is NULL, or has
// another size, redraws everything.
void screen_update(struct buf *out, const struct screen *now, const struct screen *before,
                   bool colour);

// Writes the frame as lines of text without trailing blanks; with `colour`, also the escapes of
// styles.
void screen_plain(struct buf *out, const struct screen *s, bool colour);

#endif
