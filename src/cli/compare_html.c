// compare_html.c - a comparison as one HTML page: what has changed, a table, and charts.
//
// A chart has a line for each side: the mean of its runs. Spans are aligned by their number, so
// that the n-th steps of both sides are at the same place, however long the steps take. The points
// of a metric are aligned by the time since the first point of their run.
#include "cli/comparison.h"
#include "report/html_chart.h"
#include "report/html_page.h"
#include "report/words.h"

#include <math.h>
#include <stdio.h>

enum {
    CHARTS_MAX = 24,
    BUCKETS_MAX = REPORT_BUCKETS_MAX,
};

// ---------------------------------------------------------------- tables

static void add_fact(void *user, const char *key, const char *before, const char *after)
{
    struct buf *out = user;
    buf_add_str(out, STR("<tr>"));
    html_put("td", str_of(key), out);
    html_put("td class=\"t\"", before ? str_of(before) : STR("-"), out);
    html_put("td class=\"t\"", after ? str_of(after) : STR("-"), out);
}

static void begin_table(const char *name, const char *titles, struct buf *out)
{
    buf_printf(
        out, "<div class=\"s\" tabindex=\"0\" role=\"group\" aria-label=\"%s\"><table><tr>%s</tr>",
        name, titles);
}

static void write_facts(const struct comparison *c, struct buf *out)
{
    struct buf rows = {0};
    buf_add_str(out, STR("<h2>Changes of the runs</h2>"));
    if (comparison_facts(c, add_fact, &rows)) {
        begin_table("changes of the runs", "<th>changed<th class=\"t\">before<th class=\"t\">after",
                    out);
        buf_add_str(out, buf_str(&rows));
        buf_add_str(out, STR("</table></div>\n"));
    } else {
        buf_add_str(out, STR("<p>The descriptions of the runs are the same.</p>\n"));
    }
    out->failed |= rows.failed;
    buf_free(&rows);
}

static void write_row(const struct compared *x, enum difference_statistic which, struct buf *out)
{
    const struct difference_estimate *e = &x->difference.of[which];
    const char *unit = x->is_span ? " s" : "",
               *verdict = which == DIFFERENCE_MEAN ? comparison_verdict(x) : "";
    char change[COMPARISON_CHANGE_MAX];
    comparison_change(e, change);
    buf_add_str(out, STR("<tr>"));
    html_put("td", which == DIFFERENCE_MEAN ? str_of(x->name) : STR(""), out);
    buf_printf(out, "<td class=\"t\">%s<td>%s%s<td>%s%s<td>%s<td class=\"t\">%s%s%s",
               comparison_statistics[which], words_number(e->before).text, unit,
               words_number(e->after).text, unit, change, *verdict ? "<b>" : "", verdict,
               *verdict ? "</b>" : "");
}

static void write_differences(const struct comparison *c, struct buf *out)
{
    size_t rows = 0;
    buf_add_str(out, STR("<h2>Differences</h2>"));
    for (size_t i = 0; i < c->compared_count; i++)
        for (int which = 0; c->list[i]->on_both && which < DIFFERENCE_STATISTICS; which++) {
            if (!comparison_shows(c->list[i], (enum difference_statistic)which))
                continue;
            if (!rows++)
                begin_table("differences",
                            "<th>name<th class=\"t\">statistic<th>before<th>after<th>change (95 %)"
                            "<th class=\"t\">verdict",
                            out);
            write_row(c->list[i], (enum difference_statistic)which, out);
        }
    buf_add_str(out, rows ? STR("</table></div>\n") : STR("<p>None can be computed.</p>\n"));
    for (size_t i = 0; i < c->compared_count; i++)
        if (!c->list[i]->on_both) {
            struct buf line = {0};
            buf_printf(&line, "%s is on one side only.", c->list[i]->name);
            html_put("p", buf_str(&line), out);
            buf_free(&line);
        }
    if (c->count[0] == 1 && c->count[1] == 1)
        buf_add_str(out, STR("<p>One run a side: how much runs differ without a change is "
                             "unknown.</p>\n"));
}

// ---------------------------------------------------------------- charts

// Returns the place of a value on the axis, from 0.
static double place_of(const struct compared *x, const struct values *v, size_t i)
{
    return x->is_span ? (double)i : (double)(v->list[i].t_ns - v->list[0].t_ns);
}

static double length_of(const struct comparison *c, const struct compared *x)
{
    double length = 0;
    for (int side = 0; side < 2; side++)
        for (size_t run = 0; run < c->count[side]; run++) {
            const struct values *v = &x->of[side][run];
            if (v->count)
                length = fmax(length, place_of(x, v, v->count - 1) + 1);
        }
    return length;
}

// Computes the mean of a side's values in each bucket.
static void fill(const struct comparison *c, const struct compared *x, int side, double scale,
                 const struct report *frame, double *buckets, struct report_line *line)
{
    uint64_t counts[BUCKETS_MAX] = {0};
    double sum = 0, peak = (double)NAN, points = 0;
    for (size_t k = 0; k < frame->bucket_count; k++)
        buckets[k] = 0;
    for (size_t run = 0; run < c->count[side]; run++) {
        const struct values *v = &x->of[side][run];
        for (size_t i = 0; i < v->count; i++) {
            size_t k = (size_t)(place_of(x, v, i) / (double)frame->bucket_ns);
            double value = v->list[i].value * scale;
            k = k < frame->bucket_count ? k : frame->bucket_count - 1;
            buckets[k] += value;
            counts[k]++;
            sum += value;
            peak = fmax(peak, value);
            points++;
        }
    }
    for (size_t k = 0; k < frame->bucket_count; k++)
        buckets[k] = counts[k] ? buckets[k] / (double)counts[k] : (double)NAN;
    *line = (struct report_line){.host = side ? STR("after") : STR("before"),
                                 .points = points,
                                 .mean = sum / points,
                                 .peak = peak,
                                 .buckets = buckets};
}

static void write_chart(const struct comparison *c, const struct compared *x, struct buf *out)
{
    double before[BUCKETS_MAX], after[BUCKETS_MAX], length = length_of(c, x),
                                                    mean = x->difference.of[DIFFERENCE_MEAN].before;
    int64_t each = (int64_t)(length / BUCKETS_MAX) + 1;
    struct report frame = {.node_count = 2, // each line has the name of a side
                           .bucket_ns = each,
                           .bucket_count = (size_t)ceil(length / (double)each)};
    struct report_line lines[2];
    bool short_ones = x->is_span && mean < 1, shortest = x->is_span && mean < 1e-3;
    double scale = shortest ? 1e6 : short_ones ? 1e3 : 1;
    struct report_measure m = {.metric = str_of(x->name),
                               .unit = shortest     ? STR("microseconds")
                                       : short_ones ? STR("milliseconds")
                                       : x->is_span ? STR("seconds")
                                                    : STR(""),
                               .lines = lines,
                               .count = 2};
    fill(c, x, 0, scale, &frame, before, &lines[0]);
    fill(c, x, 1, scale, &frame, after, &lines[1]);
    chart_lines(&frame, &m, x->name, x->is_span ? CHART_NUMBERS : CHART_ELAPSED, out);
}

static void write_charts(const struct comparison *c, struct buf *out)
{
    size_t drawn = 0, all = 0;
    for (size_t i = 0; i < c->compared_count; i++) {
        if (!c->list[i]->on_both || ++all > CHARTS_MAX)
            continue;
        if (!drawn++)
            buf_add_str(out, STR("<h2>Side by side</h2><div class=\"c\">"));
        write_chart(c, c->list[i], out);
    }
    if (drawn)
        buf_add_str(out, STR("</div>\n"));
    if (all > drawn)
        buf_printf(out, "<p class=\"k\">%zu of %zu are drawn.</p>\n", drawn, all);
}

void comparison_html(const struct comparison *c, struct buf *out)
{
    struct buf title = {0};
    buf_printf(&title, "%s and %s", c->o->arguments[0], c->o->arguments[1]);
    html_begin(buf_str(&title), "compare", out);
    html_put("h1", buf_str(&title), out);
    write_facts(c, out);
    write_differences(c, out);
    write_charts(c, out);
    buf_add_str(out, STR("</main><footer>Made by sonde compare. Spans are drawn by their number "
                         "within a run, points by the time since the first one; a line is the "
                         "mean of the runs of its side.</footer>"));
    out->failed |= title.failed;
    buf_free(&title);
    html_end(out);
}
