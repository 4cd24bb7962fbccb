#include "cli/screen.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---------------------------------------------------------------- a terminal, as the oracle

enum { LOOK_MAX = 24 };

struct place {
    char glyph[SCREEN_GLYPH_MAX + 1];
    char look[LOOK_MAX];
    bool second; // the second half of a wide character
};

struct terminal {
    int columns, rows, row, column;
    char look[LOOK_MAX];
    struct place *places;
};

static struct place *place_at(struct terminal *t, int row, int column)
{
    assert_in_range(row, 0, t->rows - 1);
    assert_in_range(column, 0, t->columns - 1);
    return &t->places[row * t->columns + column];
}

static void erase(struct terminal *t)
{
    for (int i = 0; i < t->rows * t->columns; i++)
        t->places[i] = (struct place){.glyph = " ", .look = "0"};
}

static void terminal_open(struct terminal *t, int columns, int rows)
{
    *t = (struct terminal){.columns = columns, .rows = rows, .look = "0"};
    t->places = calloc((size_t)(columns * rows), sizeof *t->places);
    assert_non_null(t->places);
    // The first frame has to erase everything.
    for (int i = 0; i < columns * rows; i++)
        t->places[i] = (struct place){.glyph = "x", .look = "7"};
}

// Executes an escape sequence, ESC [ numbers letter: H, J and m. Returns the text after it.
static const char *obey(struct terminal *t, const char *s)
{
    char numbers[LOOK_MAX];
    size_t n = 0;
    assert_int_equal(s[0], '\033');
    assert_int_equal(s[1], '[');
    for (s += 2; (*s >= '0' && *s <= '9') || *s == ';'; s++) {
        assert_in_range(n, 0, sizeof numbers - 2);
        numbers[n++] = *s;
    }
    numbers[n] = 0;
    if (*s == 'H') {
        assert_int_equal(sscanf(numbers, "%d;%d", &t->row, &t->column), 2);
        t->row--;
        t->column--;
    } else if (*s == 'J') {
        assert_string_equal(numbers, "2");
        erase(t);
    } else {
        assert_int_equal(*s, 'm');
        strcpy(t->look, numbers);
    }
    return s + 1;
}

// Overwriting half of a wide character leaves a blank in the other half.
static void clear_half(struct terminal *t, int row, int column)
{
    struct place *p = place_at(t, row, column);
    if (p->second)
        strcpy(p[-1].glyph, " ");
    if (column + 1 < t->columns && p[1].second && !p->second) {
        p[1].second = false;
        strcpy(p[1].glyph, " ");
    }
}

static const char *print(struct terminal *t, const char *s)
{
    char glyph[SCREEN_GLYPH_MAX + 1] = "";
    size_t n = 1;
    while (((unsigned char)s[n] & 0xc0) == 0x80)
        n++;
    // the text has nothing that a terminal interprets
    assert_true((unsigned char)*s >= 0x20 && *s != 0x7f);
    memcpy(glyph, s, n);
    int width = screen_width(glyph);
    if (!width) {
        struct place *p = place_at(t, t->row, t->column - 1);
        p -= p->second;
        assert_in_range(strlen(p->glyph) + n, 1, SCREEN_GLYPH_MAX);
        strcat(p->glyph, glyph);
        return s + n;
    }
    for (int i = 0; i < width; i++)
        clear_half(t, t->row, t->column + i);
    for (int i = 0; i < width; i++) {
        struct place *p = place_at(t, t->row, t->column + i);
        strcpy(p->glyph, i ? "" : glyph);
        strcpy(p->look, t->look);
        p->second = i != 0;
    }
    t->column += width;
    return s + n;
}

static void take(struct terminal *t, const char *s)
{
    while (*s)
        s = *s == '\033' ? obey(t, s) : print(t, s);
}

// ---------------------------------------------------------------- random pictures

static const char *const words[] = {
    "plain",
    "größe",
    "日本語 node",
    "e\u0301a\u0308",
    "\033[2J\033[1;1Howned",
    "a\tb\nc",
    "\23331m",     // CSI as one byte
    "\302\23331m", // and as one character
    "▏▎▍█",
    "",
    "한국어한국어한국어",
    "\u202eright to left",
    "a very long word that does not fit into most of the fields that there are",
};
enum { WORDS = sizeof words / sizeof words[0] };

static int below(uint64_t *seed, int most)
{
    return (int)(test_random(seed) % (uint64_t)most);
}

static void draw_at_random(struct screen *s, uint64_t *seed)
{
    double values[40];
    int row = below(seed, s->rows + 2) - 1, column = below(seed, s->columns + 2) - 1;
    int width = below(seed, s->columns + 1);
    enum screen_style style = (enum screen_style)below(seed, STYLE_COUNT);
    const char *word = words[below(seed, WORDS)];
    switch (below(seed, 6)) {
    case 0:
        screen_clear(s);
        break;
    case 1:
        if (column >= 0)
            screen_bar(s, row, column, width, below(seed, 120) / 100.0 - 0.1, style);
        break;
    case 2:
        for (int i = 0; i < 40; i++)
            values[i] = below(seed, 5) ? (double)below(seed, 100) : (double)NAN;
        if (column >= 0)
            screen_spark(s, row, column, values, 40, 0, 99, style);
        break;
    case 3:
        if (column >= 0)
            screen_style(s, row, column, width, style);
        break;
    case 4:
        screen_right(s, row, column < 0 ? 0 : column, width, style, word);
        break;
    default:
        screen_text(s, row, column, width, style, word);
    }
}

static void assert_same(struct terminal *t, const struct screen *s, const struct terminal *whole)
{
    for (int i = 0; i < s->rows * s->columns; i++) {
        const struct screen_cell *c = &s->cells[i];
        char glyph[SCREEN_GLYPH_MAX + 1] = "";
        memcpy(glyph, c->glyph, c->size);
        assert_string_equal(t->places[i].glyph, glyph);
        assert_string_equal(t->places[i].glyph, whole->places[i].glyph);
        assert_string_equal(t->places[i].look, whole->places[i].look);
    }
}

// The differences, applied to a terminal with the previous frame, give the same result as the whole
// frame on an empty one.
static void differences_redraw_the_screen(void **state)
{
    (void)state;
    uint64_t seed = test_seed(20261123);
    for (unsigned round = 0; round < 40 * test_rounds(); round++) {
        int columns = 1 + below(&seed, 90), rows = 1 + below(&seed, 20);
        bool utf8 = below(&seed, 4), colour = below(&seed, 2);
        struct screen now, before;
        struct terminal t;
        assert_int_equal(screen_create(&now, columns, rows, utf8), 0);
        assert_int_equal(screen_create(&before, columns, rows, utf8), 0);
        terminal_open(&t, columns, rows);
        for (int picture = 0; picture < 12; picture++) {
            struct buf out = {0}, all = {0};
            struct terminal whole;
            for (int i = below(&seed, 12); i; i--)
                draw_at_random(&now, &seed);
            screen_update(&out, &now, picture ? &before : NULL, colour);
            take(&t, buf_cstr(&out));
            terminal_open(&whole, columns, rows);
            screen_update(&all, &now, NULL, colour);
            take(&whole, buf_cstr(&all));
            assert_same(&t, &now, &whole);
            out.size = 0;
            screen_update(&out, &now, &now, colour);
            assert_int_equal(out.size, 0); // nothing has changed
            memcpy(before.cells, now.cells, (size_t)(columns * rows) * sizeof *now.cells);
            buf_free(&out);
            buf_free(&all);
            free(whole.places);
        }
        free(t.places);
        screen_free(&now);
        screen_free(&before);
    }
}

static void a_terminal_without_colour_gets_none(void **state)
{
    (void)state;
    struct screen s;
    assert_int_equal(screen_create(&s, 20, STYLE_COUNT, true), 0);
    for (int i = 0; i < STYLE_COUNT; i++)
        screen_text(&s, i, 0, 20, (enum screen_style)i, "text");
    struct buf out = {0};
    screen_update(&out, &s, NULL, false);
    for (const char *m = buf_cstr(&out); (m = strchr(m, '\033')); m++) // SGR 30 to 37 are colours
        assert_true(m[1] != '[' || !strchr(m, 'm') ||
                    !strstr((char[]){m[2], m[3], m[4], m[5], 0}, ";3"));
    assert_null(strstr(buf_cstr(&out), ";3"));
    out.size = 0;
    screen_update(&out, &s, NULL, true);
    assert_non_null(strstr(buf_cstr(&out), ";3"));
    buf_free(&out);
    screen_free(&s);
}

static const char *plain(struct screen *s, struct buf *out)
{
    out->size = 0;
    screen_plain(out, s, false);
    return buf_cstr(out);
}

static void bars_and_sparklines(void **state)
{
    (void)state;
    static const double values[] = {0, 1, 2, 3, 4, 5, 6, 7, NAN, 7};
    struct buf out = {0};
    for (int utf8 = 0; utf8 < 2; utf8++) {
        struct screen s;
        assert_int_equal(screen_create(&s, 24, 1, utf8), 0);
        screen_bar(&s, 0, 0, 10, 0.5, STYLE_BAR);
        assert_string_equal(plain(&s, &out), utf8 ? "█████\n" : "#####\n");
        screen_clear(&s);
        screen_bar(&s, 0, 0, 10, 0.3125, STYLE_BAR); // 25 eighths
        assert_string_equal(plain(&s, &out), utf8 ? "███▏\n" : "###\n");
        screen_clear(&s);
        screen_bar(&s, 0, 0, 10, NAN, STYLE_BAR);
        assert_string_equal(plain(&s, &out), "\n");
        screen_bar(&s, 0, 0, 4, 7, STYLE_BAR); // above 100 %
        assert_string_equal(plain(&s, &out), utf8 ? "████\n" : "####\n");
        screen_clear(&s);
        screen_spark(&s, 0, 0, values, 10, 0, 7, STYLE_SPARK);
        assert_string_equal(plain(&s, &out), utf8 ? "▁▂▃▄▅▆▇█ █\n" : "_.-:=+*# #\n");
        screen_free(&s);
    }
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(differences_redraw_the_screen),
                                       cmocka_unit_test(a_terminal_without_colour_gets_none),
                                       cmocka_unit_test(bars_and_sparklines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
