#include "report/html_chart.h"

#include "base/printable.h"
#include "report/png.h"
#include "report/words.h"

#include <stdio.h>

enum {
    WIDTH = 640,
    HEIGHT = 160,
    LEFT = 116, // labels of values: "953.7 MiB/s" in the font of a small screen
    TOP = 10,
    BOTTOM = 26,    // labels of times
    ROWS_TALL = 24, // rows of a heat map up to which they are tall; with more rows, each is lower
};

void html_escape(struct buf *out, struct str text)
{
    struct buf safe = {0};
    printable_add(&safe, text);
    for (size_t i = 0; i < safe.size; i++) {
        char c = safe.data[i];
        if (c == '<')
            buf_add_str(out, STR("&lt;"));
        else if (c == '>')
            buf_add_str(out, STR("&gt;"));
        else if (c == '&')
            buf_add_str(out, STR("&amp;"));
        else if (c == '"')
            buf_add_str(out, STR("&quot;"));
        else
            buf_add_char(out, c);
    }
    out->failed |= safe.failed;
    buf_free(&safe);
}

static void line_name(const struct report *r, const struct report_line *l, struct buf *out)
{
    bool host = l->host.size && (r->node_count > 1 || !l->part.size);
    if (host)
        html_escape(out, l->host);
    if (host && l->part.size)
        buf_add_char(out, ' ');
    html_escape(out, l->part);
}

// ---------------------------------------------------------------- scales

struct scale {
    double least, greatest;
};

static void widen(struct scale *s, const double *values, size_t count)
{
    for (size_t i = 0; values && i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        s->least = isnan(s->least) ? values[i] : fmin(s->least, values[i]);
        s->greatest = isnan(s->greatest) ? values[i] : fmax(s->greatest, values[i]);
    }
}

// Computes the scale. It begins at 0 unless the values are far from 0.
static struct scale scale_of(const struct report *r, const struct report_measure *m)
{
    struct scale s = {(double)NAN, (double)NAN};
    widen(&s, m->least, r->bucket_count);
    widen(&s, m->greatest, r->bucket_count);
    for (size_t i = 0; i < m->count; i++)
        widen(&s, m->lines[i].buckets, r->bucket_count);
    if (isnan(s.least))
        return s;
    if (s.least > 0 && s.least < s.greatest / 2)
        s.least = 0;
    if (str_eq(m->unit, STR("percent")) && s.greatest <= 100 && s.least >= 0)
        s = (struct scale){0, 100};
    if (s.greatest <= s.least) {
        s.least = fmin(s.least, 0);
        s.greatest = s.greatest > s.least ? s.greatest : s.least + 1;
    }
    return s;
}

static double x_of(const struct report *r, size_t bucket)
{
    return LEFT + ((double)bucket + 0.5) / (double)r->bucket_count * (WIDTH - LEFT);
}

static double y_of(const struct scale *s, double value)
{
    return TOP + (1 - (value - s->least) / (s->greatest - s->least)) * (HEIGHT - TOP - BOTTOM);
}

// ---------------------------------------------------------------- shapes

// Returns the typical number of buckets between two values: nine of ten distances are at most this.
// Without it, a metric that is sampled less often than the buckets would seem to have gaps.
static size_t usual_step(const double *values, size_t count)
{
    size_t distances[REPORT_BUCKETS_MAX + 2] = {0}, all = 0, last = 0;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        if (any && i - last < sizeof distances / sizeof *distances) {
            distances[i - last]++;
            all++;
        }
        last = i;
        any = true;
    }
    size_t step = 1;
    for (size_t within = distances[1]; 10 * within < 9 * all; within += distances[step])
        step++;
    return step;
}

// Draws a path through the values, with gaps where they are missing. A value with gaps on both
// sides becomes a small circle.
static void draw_line(const struct report *r, const struct scale *s, const double *values,
                      const char *class, struct buf *out)
{
    size_t step = usual_step(values, r->bucket_count), last = 0;
    bool open = false, alone = false;
    buf_printf(out, "<path class=\"l %s\" d=\"", class);
    for (size_t i = 0; i <= r->bucket_count; i++) {
        bool there = i < r->bucket_count && isfinite(values[i]), ends = open && i - last > step;
        if (alone && (ends || i == r->bucket_count))
            buf_add_str(out, STR("m-1.5 0a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0"));
        open = open && !ends;
        alone = alone && open;
        if (!there)
            continue;
        alone = !open;
        buf_printf(out, "%c%.1f %.1f", open ? 'L' : 'M', x_of(r, i), y_of(s, values[i]));
        last = i;
        open = true;
    }
    buf_add_str(out, STR("\"/>"));
}

static void draw_band(const struct report *r, const struct scale *s, const double *least,
                      const double *greatest, const char *class, struct buf *out)
{
    if (!least || !greatest)
        return;
    size_t step = usual_step(least, r->bucket_count);
    buf_printf(out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0; i < r->bucket_count; i++) {
        if (!isfinite(least[i]) || !isfinite(greatest[i]))
            continue;
        size_t last = i;
        for (size_t k = i; k < r->bucket_count && k - last <= step; k++) {
            if (!isfinite(least[k]) || !isfinite(greatest[k]))
                continue;
            buf_printf(out, "%c%.1f %.1f", k == i ? 'M' : 'L', x_of(r, k), y_of(s, greatest[k]));
            last = k;
        }
        for (size_t k = last + 1; k > i; k--)
            if (isfinite(least[k - 1]) && isfinite(greatest[k - 1]))
                buf_printf(out, "L%.1f %.1f", x_of(r, k - 1), y_of(s, least[k - 1]));
        buf_add_char(out, 'Z');
        i = last;
    }
    buf_add_str(out, STR("\"/>"));
}

static void label_at(const struct report *r, enum chart_axis axis, double share,
                     char out[WORDS_MAX])
{
    if (axis == CHART_NUMBERS) {
        double last = (double)r->bucket_count * (double)r->bucket_ns;
        snprintf(out, WORDS_MAX, "%.0f", fmax(share * last, 1));
        return;
    }
    double s = (double)(r->first_ns - r->start_ns) / 1e9 +
               share * (double)r->bucket_count * (double)r->bucket_ns / 1e9;
    long whole = s > 0 ? (long)s : 0;
    snprintf(out, WORDS_MAX, "%02ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
}

static void draw_axes(const struct report *r, const struct scale *s, const char *unit,
                      enum chart_axis axis, struct buf *out)
{
    char text[WORDS_MAX];
    for (int i = 0; i <= 2; i++) {
        double value = s->least + (s->greatest - s->least) * i / 2, y = y_of(s, value);
        words_value(value, unit, text);
        buf_printf(
            out,
            "<path class=\"g\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" class=\"r\">%s</text>",
            LEFT, y, WIDTH, LEFT - 6, y + 4, text);
    }
    for (int i = 0; i <= 4; i++) {
        label_at(r, axis, i / 4.0, text);
        buf_printf(out, "<text x=\"%.1f\" y=\"%d\" class=\"%s\">%s</text>",
                   LEFT + (WIDTH - LEFT) * i / 4.0, HEIGHT - 4,
                   i == 0   ? ""
                   : i == 4 ? "r"
                   : i == 2 ? "m"
                            : "m o", // not on a small screen
                   text);
    }
}

// Marks the beginnings of findings that do not cover the whole run.
static void draw_marks(const struct report *r, struct buf *out)
{
    double length = (double)r->bucket_count * (double)r->bucket_ns;
    for (size_t i = 0; i < r->finding_count; i++) {
        double at = (double)(r->findings[i].start_ns - r->first_ns) / length;
        if (r->findings[i].start_ns > r->from_ns && at < 1)
            buf_printf(out, "<path class=\"f\" d=\"M%.1f %dV%d\"><title>finding %zu</title></path>",
                       LEFT + at * (WIDTH - LEFT), TOP, HEIGHT - BOTTOM, i + 1);
    }
}

static void begin_figure(const char *title, struct str metric, struct buf *out)
{
    buf_add_str(out, STR("<figure><figcaption>"));
    html_escape(out, str_of(title));
    if (!str_eq(metric, str_of(title))) {
        buf_add_str(out, STR(" <code>"));
        html_escape(out, metric);
        buf_add_str(out, STR("</code>"));
    }
    buf_add_str(out, STR("</figcaption>"));
}

// For each bucket, the range and mean of the lines' means.
struct summary_lines {
    double least[REPORT_BUCKETS_MAX + 2], greatest[REPORT_BUCKETS_MAX + 2],
        mean[REPORT_BUCKETS_MAX + 2];
};

static void summarise(const struct report *r, const struct report_measure *m,
                      struct summary_lines *out)
{
    for (size_t i = 0; i < r->bucket_count; i++) {
        struct scale s = {(double)NAN, (double)NAN};
        double sum = 0;
        size_t count = 0;
        for (size_t k = 0; k < m->count; k++) {
            double value = m->lines[k].buckets[i];
            widen(&s, &value, 1);
            sum += isfinite(value) ? value : 0;
            count += isfinite(value) ? 1 : 0;
        }
        out->least[i] = s.least;
        out->greatest[i] = s.greatest;
        out->mean[i] = count ? sum / (double)count : (double)NAN;
    }
}

static void write_legend(const struct report *r, const struct report_measure *m, const char *unit,
                         struct buf *out)
{
    char mean[WORDS_MAX], peak[WORDS_MAX];
    buf_add_str(out, STR("<p class=\"k\">"));
    if (m->count > CHART_LINES_MAX)
        buf_printf(out, "%zu series: the range of their means, and the mean of all", m->count);
    for (size_t i = 0; i < m->count && m->count <= CHART_LINES_MAX; i++) {
        words_value(m->lines[i].mean, unit, mean);
        words_value(m->lines[i].peak, unit, peak);
        buf_printf(out, "<span><i class=\"c%zu\"></i>", i);
        line_name(r, &m->lines[i], out);
        buf_printf(out, " mean %s, peak %s</span> ", mean, peak);
    }
    buf_add_str(out, STR("</p>"));
}

void chart_lines(const struct report *r, const struct report_measure *m, const char *title,
                 enum chart_axis axis, struct buf *out)
{
    struct scale s = scale_of(r, m);
    char unit[WORDS_MAX], class[24];
    if (isnan(s.least) || r->bucket_count > REPORT_BUCKETS_MAX + 2)
        return;
    // the rate of an energy counter is power
    bool watts = m->counter && str_eq(m->unit, STR("joules"));
    snprintf(unit, sizeof unit, "%.*s%s", watts ? 5 : (int)m->unit.size,
             watts ? "watts" : m->unit.data, m->counter && !watts ? "/s" : "");
    begin_figure(title, m->metric, out);
    buf_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    html_escape(out, str_of(title));
    buf_printf(out, " %s\">", axis == CHART_ELAPSED ? "over time" : "by number");
    draw_axes(r, &s, unit, axis, out);
    draw_band(r, &s, m->least, m->greatest, "b", out);
    if (m->count <= CHART_LINES_MAX) {
        for (size_t i = 0; i < m->count; i++) {
            snprintf(class, sizeof class, "c%zu", i);
            draw_line(r, &s, m->lines[i].buckets, class, out);
        }
    } else {
        struct summary_lines lines;
        summarise(r, m, &lines);
        draw_band(r, &s, lines.least, lines.greatest, "b2", out);
        draw_line(r, &s, lines.mean, "c0", out);
    }
    draw_marks(r, out);
    buf_add_str(out, STR("</svg>"));
    write_legend(r, m, unit, out);
    buf_add_str(out, STR("</figure>"));
}

// ---------------------------------------------------------------- heat maps

void chart_heat(const struct report *r, const struct report_measure *m, const char *title,
                double most, struct buf *out)
{
    struct scale s = scale_of(r, m);
    size_t columns = r->bucket_count, cells = columns * m->count;
    char unit[WORDS_MAX], least[WORDS_MAX], greatest[WORDS_MAX], first[WORDS_MAX], last[WORDS_MAX];
    if (m->count < 2 || isnan(s.least))
        return;
    uint8_t *pixels = arena_alloc(r->arena, cells);
    double top = isnan(most) ? s.greatest : most;
    for (size_t i = 0; pixels && i < m->count; i++)
        for (size_t k = 0; k < columns; k++)
            pixels[i * columns + k] =
                png_colour((m->lines[i].buckets[k] - s.least) / (top - s.least));
    if (!pixels)
        return;
    snprintf(unit, sizeof unit, "%.*s%s", STR_ARG(m->unit), m->counter ? "/s" : "");
    words_value(s.least, unit, least);
    words_value(top, unit, greatest);
    label_at(r, CHART_ELAPSED, 0, first);
    label_at(r, CHART_ELAPSED, 1, last);
    begin_figure(title, m->metric, out);
    size_t height = m->count <= ROWS_TALL ? m->count * 12 : m->count < 600 ? m->count : 600;
    height = height < 12 * ROWS_TALL && m->count > ROWS_TALL ? 12 * ROWS_TALL : height;
    buf_add_str(out, STR("<div class=\"h\"><div class=\"hl\"><span>"));
    line_name(r, &m->lines[0], out);
    buf_add_str(out, STR("</span><span>"));
    line_name(r, &m->lines[m->count - 1], out);
    buf_printf(out, "</span></div><img style=\"height:%zupx\" alt=\"", height);
    html_escape(out, str_of(title));
    buf_printf(out, ": %zu rows over time\" src=\"data:image/png;base64,", m->count);
    png_write_base64(pixels, columns, m->count, out);
    buf_printf(out,
               "\"></div><p class=\"k ht\"><span>%s</span><span>%s <i class=\"ramp\"></i> "
               "%s</span><span>%s</span></p></figure>",
               first, least, greatest, last);
}
