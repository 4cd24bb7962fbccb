#include "cli/plot.h"

#include "cli/answers.h"
#include "cli/quantity.h"
#include "cli/screen.h"
#include "cli/terminal.h"

#include "base/printable.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_MOST = 32, VALUE = QUANTITY_WIDTH + 1, LINE_LEAST = 10, TIME_TEXT_MAX = 48 };

// Writes the tags in which the series differ; for a single series, its metric.
static void name_of(const struct query_series *s, struct buf *out)
{
    for (size_t i = 0; i < s->tag_count; i++)
        buf_printf(out, "%s%.*s=%.*s", i ? " " : "", STR_ARG(s->tags[i].key),
                   STR_ARG(s->tags[i].value));
    if (!s->tag_count)
        buf_add_str(out, s->metric);
}

static void extent(const struct query_series *s, double *least, double *most, double *last)
{
    *least = INFINITY;
    *most = -INFINITY;
    *last = NAN;
    for (size_t i = 0; i < s->count; i++) {
        double v = s->values[i];
        if (!isfinite(v))
            continue;
        *least = v < *least ? v : *least;
        *most = v > *most ? v : *most;
        *last = v;
    }
}

// Computes the mean of the points in each of `width` equal parts of the range; NaN for parts
// without points.
static void means(const struct query_series *s, int64_t first_ns, int64_t last_ns, int width,
                  double *out, int *counts)
{
    double each = (double)(last_ns - first_ns) / width;
    for (int i = 0; i < width; i++) {
        out[i] = 0;
        counts[i] = 0;
    }
    for (size_t i = 0; i < s->count; i++) {
        int at = each > 0 ? (int)((double)(s->t_ns[i] - first_ns) / each) : width - 1;
        at = at < width ? at : width - 1;
        if (!isfinite(s->values[i]))
            continue;
        out[at] += s->values[i];
        counts[at]++;
    }
    for (int i = 0; i < width; i++)
        out[i] = counts[i] ? out[i] / counts[i] : NAN;
}

static void add_padded(struct buf *out, const char *text, int width, bool right)
{
    int own = screen_width(text);
    for (int i = own; right && i < width; i++)
        buf_add_char(out, ' ');
    printable_add(out, str_of(text));
    for (int i = own; !right && i < width; i++)
        buf_add_char(out, ' ');
}

static void add_value(struct buf *out, double value, struct str unit)
{
    char text[QUANTITY_MAX], name[32];
    snprintf(name, sizeof name, "%.*s", STR_ARG(unit));
    quantity_text(isfinite(value) ? value : NAN, name, text);
    add_padded(out, text, VALUE, true);
}

static void add_times(struct buf *out, int64_t first_ns, int64_t last_ns, int left, int width,
                      const struct query_result *result)
{
    char first[TIME_TEXT_MAX], last[TIME_TEXT_MAX];
    answers_local_time(first_ns, answers_digits(result), first, sizeof first);
    answers_local_time(last_ns, answers_digits(result), last, sizeof last);
    int between = width - (int)strlen(first) - (int)strlen(last);
    buf_printf(out, "%*s%s%*s%s\n", left, "", first, between > 2 ? between : 2, "", last);
}

void plot_series(struct buf *out, const struct query_result *result, struct str unit)
{
    struct buf name = {0};
    int columns, rows, names = 4;
    bool utf8 = terminal_is_utf8();
    int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
    terminal_size(&columns, &rows);
    for (size_t i = 0; i < result->count; i++) {
        const struct query_series *s = &result->series[i];
        name.size = 0;
        name_of(s, &name);
        int own = screen_width(buf_cstr(&name));
        names = own > names ? own : names;
        if (s->count && s->t_ns[0] < first_ns)
            first_ns = s->t_ns[0];
        if (s->count && s->t_ns[s->count - 1] > last_ns)
            last_ns = s->t_ns[s->count - 1];
    }
    int most = columns / 3 < NAME_MOST ? columns / 3 : NAME_MOST;
    names = names > most ? most : names;
    int width = columns - names - 3 * VALUE - 2;
    width = width < LINE_LEAST ? LINE_LEAST : width;
    double *values = calloc((size_t)width, sizeof *values);
    int *counts = calloc((size_t)width, sizeof *counts);
    struct screen line = {0};
    if (!values || !counts || screen_create(&line, names, 1, utf8) < 0)
        out->failed = true;
    if (!out->failed && first_ns <= last_ns) {
        buf_printf(out, "%-*s %*s %*s%*s%*s\n", names, "", width, "", VALUE, "least", VALUE, "most",
                   VALUE, "last");
        for (size_t i = 0; i < result->count; i++) {
            const struct query_series *s = &result->series[i];
            double least, low, high, greatest, last;
            name.size = 0;
            name_of(s, &name);
            screen_clear(&line);
            int own = screen_text(&line, 0, 0, names, STYLE_PLAIN, buf_cstr(&name));
            screen_plain(out, &line, false);
            if (out->size)
                out->size--; // removes the end of the line
            buf_printf(out, "%*s", names - own + 1, "");
            means(s, first_ns, last_ns, width, values, counts);
            extent(s, &least, &greatest, &last);
            low = INFINITY;
            high = -INFINITY;
            for (int k = 0; k < width; k++)
                if (isfinite(values[k])) {
                    low = values[k] < low ? values[k] : low;
                    high = values[k] > high ? values[k] : high;
                }
            for (int k = 0; k < width; k++) {
                const char *glyph = screen_level(values[k], low, high, utf8);
                buf_add(out, glyph, strlen(glyph));
            }
            buf_add_char(out, ' ');
            add_value(out, least, unit);
            add_value(out, greatest, unit);
            add_value(out, last, unit);
            buf_add_char(out, '\n');
        }
        add_times(out, first_ns, last_ns, names + 1, width, result);
    }
    screen_free(&line);
    buf_free(&name);
    free(values);
    free(counts);
}
