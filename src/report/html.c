// html.c - a report as one HTML file (html_page.h).
#include "report/html_chart.h"
#include "report/html_page.h"
#include "report/programs.h"
#include "report/words.h"

#include <stdio.h>

static void fact(struct buf *out, const char *key, struct str value)
{
    if (!value.size)
        return;
    html_put("dt", str_of(key), out);
    html_put("dd", value, out);
}

static void write_run(const struct report *r, struct buf *out)
{
    char from[WORDS_MAX], length[WORDS_MAX], end[WORDS_MAX];
    struct buf b = {0};
    buf_add_str(out, STR("<dl>"));
    fact(out, "job", r->job);
    fact(out, "name", r->name);
    for (size_t i = 0; i < r->tag_count; i++)
        buf_printf(&b, "%s%.*s=%.*s", i ? " " : "", STR_ARG(r->tags[i].key),
                   STR_ARG(r->tags[i].value));
    fact(out, "tags", buf_str(&b));
    fact(out, "note", r->note);
    fact(out, "folder", r->directory);
    b.size = 0;
    if (r->commit.size)
        buf_printf(&b, "%.*s %.*s", STR_ARG(str_slice(r->commit, 0, 12)), STR_ARG(r->branch));
    fact(out, "git", buf_str(&b));
    b.size = 0;
    words_nodes(r, &b);
    fact(out, "where", buf_str(&b));
    words_time(r->start_ns, from);
    words_duration(r->end_ns - r->start_ns, length);
    words_end(r, end);
    b.size = 0;
    buf_printf(&b, "%s, for %s; %s", from, length, end);
    if (r->restarts)
        buf_printf(&b, "; %u restart%s", r->restarts, r->restarts == 1 ? "" : "s");
    fact(out, "when", buf_str(&b));
    fact(out, "missing", r->missing);
    fact(out, "unreadable", r->unreadable);
    buf_add_str(out, STR("</dl>\n"));
    buf_free(&b);
}

// Writes advice. Keeps options together, because a browser breaks lines after the hyphens of
// --exclude-file.
static void put_advice(struct str advice, struct buf *out)
{
    buf_add_str(out, STR("<p>"));
    while (advice.size) {
        ptrdiff_t at = str_find(advice, STR("--"));
        size_t from = at < 0 ? advice.size : (size_t)at, to = from;
        while (to < advice.size && advice.data[to] != ' ')
            to++;
        html_escape(out, str_slice(advice, 0, from));
        if (to > from)
            html_put("span class=\"n\"", str_slice(advice, from, to), out);
        advice = str_slice(advice, to, advice.size);
    }
    buf_add_str(out, STR("</p>"));
}

static void write_findings(const struct report *r, struct buf *out)
{
    buf_add_str(out, STR("<h2>Findings</h2>"));
    buf_add_str(out, r->finding_count ? STR("<ol>") : STR("<p>None.</p>"));
    for (size_t i = 0; i < r->finding_count; i++) {
        const struct report_finding *f = &r->findings[i];
        struct buf line = {0};
        buf_printf(out, "<li class=\"%s\">", words_sureness(f->sureness));
        html_put("b", f->title, out);
        buf_printf(out, " <small>%s</small>", words_sureness(f->sureness));
        html_put("p", f->evidence, out);
        put_advice(f->advice, out);
        report_query_line(r, f, &line);
        if (line.size)
            html_put("code", buf_str(&line), out);
        buf_free(&line);
        buf_add_str(out, STR("</li>"));
    }
    buf_add_str(out, r->finding_count ? STR("</ol>\n") : STR("\n"));
}

static void write_use_table(const struct report *r, struct buf *out)
{
    char text[WORDS_MAX];
    buf_add_str(out, STR("<div class=\"s\" tabindex=\"0\" role=\"group\" "
                         "aria-label=\"use of the nodes\"><table><tr><th>resource<th>mean"
                         "<th>peak<th>of<th>mean share<td></tr>"));
    for (size_t i = 0; i < r->use_count; i++) {
        const struct report_use *u = &r->uses[i];
        double share = u->total > 0 ? u->mean / u->total : (double)NAN;
        const double values[] = {u->mean, u->peak, u->total};
        buf_printf(out, "<tr><td>%s", u->name);
        for (size_t k = 0; k < 3; k++) {
            words_value(values[k], u->unit, text);
            buf_printf(out, "<td>%s%s%s", text, strchr(text, ' ') || isnan(values[k]) ? "" : " ",
                       strchr(text, ' ') || isnan(values[k]) ? "" : u->unit);
        }
        words_share(share, text);
        buf_printf(out, "<td>%s<td>", text);
        if (!isnan(share))
            buf_printf(out, "<meter value=\"%.4f\" aria-label=\"%s\"></meter>", fmin(share, 1),
                       u->name);
    }
    buf_add_str(out, STR("</table></div>"));
}

static void write_uses(const struct report *r, struct buf *out)
{
    char text[WORDS_MAX];
    const struct report_energy *e = &r->energy;
    if (!r->use_count && isnan(e->total_joules))
        return;
    buf_add_str(out, STR("<h2>Use of the nodes</h2>"));
    if (r->use_count)
        write_use_table(r, out);
    if (!isnan(e->total_joules)) {
        words_energy(e->total_joules, text);
        buf_printf(out, "<p>Energy: %s (%.*s)", text, STR_ARG(e->covers));
        if (!isnan(e->grams_co2))
            buf_printf(out, ", %.3g kg CO<sub>2</sub> at %g g/kWh", e->grams_co2 / 1000,
                       r->grams_per_kwh);
        buf_add_str(out, STR("</p>"));
    }
    buf_add_char(out, '\n');
}

static void write_charts(const struct report *r, struct buf *out)
{
    static const struct {
        enum report_measure_id id;
        const char *title;
        bool heat;
    } charts[] = {{REPORT_CPU, "Processors", true},
                  {REPORT_JOB_MEMORY, "Memory of the job's processes", false},
                  {REPORT_MEMORY, "Memory of the nodes", true},
                  {REPORT_GPU, "GPUs", true},
                  {REPORT_GPU_MEMORY, "GPU memory", false},
                  {REPORT_GPU_POWER, "GPU power", false},
                  {REPORT_ENERGY, "Power of the nodes", false},
                  {REPORT_NETWORK_IN, "Network in", false},
                  {REPORT_NETWORK_OUT, "Network out", false},
                  {REPORT_DISK_READ, "Disks, read", false},
                  {REPORT_DISK_WRITTEN, "Disks, written", false}};
    struct buf heat = {0};
    buf_add_str(out, STR("<h2>Over time</h2><div class=\"c\">"));
    for (size_t i = 0; i < r->own_count; i++) {
        char title[64];
        snprintf(title, sizeof title, "%.*s", STR_ARG(r->own[i].metric));
        chart_lines(r, &r->own[i], title, CHART_ELAPSED, out);
    }
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++) {
        const struct report_measure *m = &r->measures[charts[i].id];
        chart_lines(r, m, charts[i].title, CHART_ELAPSED, out);
        if (charts[i].heat)
            chart_heat(r, m, charts[i].title, str_eq(m->unit, STR("percent")) ? 100 : (double)NAN,
                       &heat);
    }
    buf_add_str(out, STR("</div>\n"));
    if (heat.size) {
        buf_add_str(out, STR("<h2>Each of them over time</h2>"));
        buf_add_str(out, buf_str(&heat));
        buf_add_char(out, '\n');
    }
    out->failed |= heat.failed;
    buf_free(&heat);
    if (r->own_total > r->own_count)
        buf_printf(out, "<p class=\"k\">%zu of %zu metrics of the programs are drawn.</p>\n",
                   r->own_count, r->own_total);
}

static void write_metrics(const struct report *r, struct buf *out)
{
    struct report_agreement agreements[AGREEMENTS_MAX];
    size_t count = program_agreements(r, agreements);
    if (!r->own_count)
        return;
    buf_add_str(out,
                STR("<h2>Metrics of the programs</h2><div class=\"s\" tabindex=\"0\" "
                    "role=\"group\" aria-label=\"metrics\"><table><tr><th>metric"
                    "<th>points<th>mean<th>least<th>greatest<th>first<th>last<th>reached</tr>"));
    for (size_t i = 0; i < r->own_count; i++) {
        const struct report_measure *m = &r->own[i];
        struct program_metric all = program_metric_of(r, m);
        const double values[] = {all.mean,  all.least, all.greatest,
                                 all.first, all.last,  all.reached};
        buf_add_str(out, STR("<tr><td>"));
        html_escape(out, m->metric);
        buf_printf(out, "<td>%.0f", all.points);
        for (size_t k = 0; k < sizeof values / sizeof *values; k++)
            buf_printf(out, "<td>%s", words_number(values[k]).text);
    }
    buf_add_str(out, STR("</table></div>\n"));
    for (size_t i = 0; i < count; i++) {
        buf_add_str(out, STR("<p>"));
        html_escape(out, agreements[i].a->metric);
        buf_add_str(out, STR(" follows "));
        html_escape(out, agreements[i].b->metric);
        buf_printf(out, ": correlation %.3f, differences of %.3g (root mean square).</p>\n",
                   agreements[i].correlation, agreements[i].difference);
    }
}

static void write_spans(const struct report *r, struct buf *out)
{
    if (!r->span_count)
        return;
    buf_add_str(out, STR("<h2>Spans</h2><div class=\"s\" tabindex=\"0\" role=\"group\" "
                         "aria-label=\"spans\"><table><tr><th>name<th>count<th>mean s"
                         "<th>p50 s<th>p95 s<th>max s<th>share<th>members<th>slowest / mean"
                         "<th class=\"t\">slowest<th>GPUs idle<th>CPU<th>CPU outside</tr>"));
    for (size_t i = 0; i < r->span_count; i++) {
        const struct report_span *s = &r->spans[i];
        char share[WORDS_MAX], idle[WORDS_MAX], within[WORDS_MAX], outside[WORDS_MAX],
            ratio[WORDS_MAX] = "-";
        words_share(s->share, share);
        words_share(s->gpu_idle, idle);
        words_share(s->cpu_within / 100, within);
        words_share(s->cpu_outside / 100, outside);
        if (!isnan(s->imbalance))
            snprintf(ratio, sizeof ratio, "%.2f", s->imbalance);
        buf_add_str(out, STR("<tr><td>"));
        html_escape(out, s->name);
        buf_printf(out, "<td>%llu", (unsigned long long)s->count);
        if (s->recorded)
            buf_printf(out, " (quantiles: the first %llu)", (unsigned long long)s->recorded);
        buf_printf(out, "<td>%s<td>%s<td>%s<td>%s<td>%s<td>%zu<td>%s<td class=\"t\">",
                   words_number(s->mean_s).text, words_number(s->p50_s).text,
                   words_number(s->p95_s).text, words_number(s->max_s).text, share, s->members,
                   ratio);
        if (s->members > 1)
            html_escape(out, s->slowest);
        buf_printf(out, "<td>%s<td>%s<td>%s", idle, within, outside);
    }
    buf_add_str(out, STR("</table></div>\n"));
}

static void write_kernels(const struct report *r, struct buf *out)
{
    if (!r->kernel_count)
        return;
    double all_s = report_kernel_seconds(r);
    buf_add_str(out, STR("<h2>GPU kernels</h2><div class=\"s\" tabindex=\"0\" role=\"group\" "
                         "aria-label=\"GPU kernels\"><table><tr><th>name<th>count<th>mean s"
                         "<th>total s<th>share of all</tr>"));
    for (size_t i = 0; i < r->kernel_count && i < REPORT_KERNELS_SHOWN; i++) {
        const struct report_kernel *k = &r->kernels[i];
        char share[WORDS_MAX];
        words_share(k->seconds / all_s, share);
        buf_add_str(out, STR("<tr><td>"));
        html_escape(out, k->name);
        buf_printf(out, "<td>%.0f<td>%s<td>%s<td>%s", k->count,
                   words_number(k->seconds / k->count).text, words_number(k->seconds).text, share);
    }
    buf_add_str(out, STR("</table></div>\n"));
    if (r->kernel_count > REPORT_KERNELS_SHOWN)
        buf_printf(out, "<p class=\"k\">%d of %zu names of kernels.</p>\n", REPORT_KERNELS_SHOWN,
                   r->kernel_count);
}

static void write_stragglers(const struct report *r, struct buf *out)
{
    enum { SHOWN = 50 };
    char since[WORDS_MAX];
    if (!r->straggler_count)
        return;
    buf_add_str(out,
                STR("<h2>Slower than the others</h2><div class=\"s\" tabindex=\"0\" role=\"group\" "
                    "aria-label=\"slower than the others\"><table><tr><th>member"
                    "<th class=\"t\">measure<th>factor<th class=\"t\">against<th>rounds"
                    "<th>since</tr>"));
    for (size_t i = 0; i < r->straggler_count && i < SHOWN; i++) {
        const struct report_straggler *s = &r->stragglers[i];
        words_time(s->since_ns, since);
        buf_add_str(out, STR("<tr><td>"));
        html_escape(out, s->member);
        buf_add_str(out, STR("<td class=\"t\">"));
        html_escape(out, s->what);
        buf_printf(out, "<td>%.2f<td class=\"t\">%.*s<td>%llu<td>%s", s->factor,
                   STR_ARG(s->against), (unsigned long long)s->rounds, since);
    }
    buf_add_str(out, STR("</table></div>\n"));
}

void report_html(const struct report *r, struct buf *out)
{
    struct str title = r->name.size    ? r->name
                       : r->job.size   ? r->job
                       : r->where.size ? r->where
                                       : STR("recording");
    html_begin(title, "report", out);
    html_put("h1", r->command.size ? r->command : title, out);
    write_run(r, out);
    if (r->bucket_count) {
        write_findings(r, out);
        write_uses(r, out);
        write_charts(r, out);
        write_metrics(r, out);
        write_spans(r, out);
        write_kernels(r, out);
        write_stragglers(r, out);
    } else {
        buf_add_str(out, STR("<p>The recording has no points.</p>\n"));
    }
    buf_add_str(out, STR("</main><footer>Made by sonde "));
    html_escape(out, r->version);
    buf_add_str(out, STR(". Times in charts count from the start of the command."));
    if (r->bucket_ns)
        buf_printf(
            out,
            " A point of a line is the mean of %lld s; the pale shade is the range of its points.",
            (long long)(r->bucket_ns / 1000000000));
    buf_add_str(out, STR("</footer>"));
    html_end(out);
}
