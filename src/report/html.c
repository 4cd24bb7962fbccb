// html.c - a report as one HTML file: no script, no reference to another file, light and dark,
// readable on paper.
#include "base/printable.h"
#include "report/html_chart.h"
#include "report/png.h"
#include "report/words.h"

#include <stdio.h>

static const char style[] =
    ":root{color-scheme:light "
    "dark;--bg:#fff;--fg:#1d2530;--dim:#5a6675;--line:#d8dee6;--card:#f6f8fa;"
    "--c0:#0072b2;--c1:#c75000;--c2:#00805c;--c3:#a83279;--c4:#7a6200;--c5:#2a7fa8;--c6:#5b4bb5;"
    "--c7:#666;--mark:#c62828}"
    "@media(prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e4e8ee;--dim:#9aa7b5;--line:#"
    "2e3742;"
    "--card:#1c2229;--c0:#56b4e9;--c1:#f2a65a;--c2:#4cc9a0;--c3:#e08bc0;--c4:#e0c84c;--c5:#8fd0f0;"
    "--c6:#a99bf0;--c7:#bbb;--mark:#ff8a80}}"
    "@media "
    "print{:root{--bg:#fff;--fg:#000;--dim:#444;--line:#bbb;--card:#fff;--c0:#0072b2;--c1:#c75000;"
    "--c2:#00805c;--c3:#a83279;--c4:#7a6200;--c5:#2a7fa8;--c6:#5b4bb5;--c7:#666;--mark:#c62828}"
    "figure,li,tr{break-inside:avoid}body{padding:0;max-width:none}}"
    "*{box-sizing:border-box}body{margin:0 auto;max-width:1100px;padding:24px;background:var(--bg);"
    "color:var(--fg);font:15px/1.5 "
    "system-ui,sans-serif}h1{font-size:22px;margin:0;overflow-wrap:anywhere}"
    "h2{font-size:17px;margin:32px 0 8px;border-bottom:1px solid var(--line)}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:12px "
    "0}dt{color:var(--dim)}"
    "dd{margin:0;overflow-wrap:anywhere}code{font:13px "
    "ui-monospace,monospace;overflow-wrap:anywhere}"
    "ol{padding:0;list-style:none;counter-reset:f}li{background:var(--card);border:1px solid "
    "var(--line);"
    "border-left:4px solid var(--c1);border-radius:6px;padding:10px 14px;margin:8px "
    "0;counter-increment:f}"
    "li.sure{border-left-color:var(--mark)}li.possible{border-left-color:var(--line)}"
    "li b::before{content:counter(f) \". \"}li p{margin:4px 0}li small,.k,figcaption "
    "code{color:var(--dim)}"
    "table{border-collapse:collapse;width:100%;font-size:14px}th{color:var(--dim);font-weight:500}"
    "td,th{text-align:right;padding:3px 8px;border-bottom:1px solid var(--line)}"
    "td,th{white-space:nowrap}td:first-child,th:first-child,.t{text-align:left;white-space:normal;"
    "overflow-wrap:break-word;min-width:7em;max-width:28em}.s{overflow-x:auto}"
    "@media print{.s{overflow:visible}table{font-size:12px}td,th{white-space:normal;padding:2px "
    "4px}"
    "td:first-child,th:first-child,.t{min-width:5em}}"
    "meter{width:110px}figure{margin:16px 0}figcaption{font-weight:600}"
    ".c{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:0 24px}"
    "svg{width:100%;height:auto;display:block}text{font:15px system-ui,sans-serif;fill:var(--dim)}"
    "@media(max-width:600px){body{padding:12px}text{font-size:18px}.o{display:none}}"
    ".r{text-anchor:end}.m{text-anchor:middle}.g{stroke:var(--line);stroke-width:1}"
    ".f{stroke:var(--mark);stroke-width:1.5;stroke-dasharray:3 3}.l{fill:none;stroke-width:1.6;"
    "stroke-linejoin:round}.b{fill:var(--c0);opacity:.15}.b2{fill:var(--c0);opacity:.3}"
    ".k{margin:2px 0;font-size:13px}.k span{margin-right:12px;display:inline-block}"
    "i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}"
    ".h{display:flex;gap:8px}.hl{display:flex;flex-direction:column;justify-content:space-between;"
    "font-size:12px;color:var(--dim);max-width:130px;overflow-wrap:anywhere}"
    ".h img{flex:1;width:100%;min-width:0;image-rendering:pixelated;border:1px solid var(--line)}"
    ".ht{display:flex;justify-content:space-between}.ramp{width:120px;-webkit-print-color-adjust:"
    "exact;"
    "print-color-adjust:exact}footer{margin-top:32px;color:var(--dim);font-size:13px}";

static void put(struct buf *out, const char *tag, struct str text)
{
    buf_printf(out, "<%s>", tag);
    html_escape(out, text);
    buf_printf(out, "</%.*s>", (int)strcspn(tag, " "), tag);
}

static void fact(struct buf *out, const char *key, struct str value)
{
    if (!value.size)
        return;
    put(out, "dt", str_of(key));
    put(out, "dd", value);
}

static void write_style(struct buf *out)
{
    buf_add_str(out, STR("<style>"));
    buf_add_str(out, str_of(style));
    for (int i = 0; i < CHART_LINES_MAX; i++)
        buf_printf(out, ".c%d{stroke:var(--c%d)}i.c%d{background:var(--c%d)}", i, i, i, i);
    buf_add_str(out, STR(".ramp{background:linear-gradient(90deg"));
    for (uint8_t i = 0; i <= 4; i++)
        buf_printf(out, ",#%06x", (unsigned)png_rgb((uint8_t)(i * (PNG_COLOURS - 1) / 4)));
    buf_add_str(out, STR(")}</style>"));
}

static void write_head(const struct report *r, struct buf *out)
{
    struct str title = r->name.size ? r->name : r->job;
    buf_add_str(out,
                STR("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "style-src 'unsafe-inline'; img-src data:\">"
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                    "<link rel=\"icon\" href=\"data:,\">"));
    buf_add_str(out, STR("<title>"));
    html_escape(out, title);
    buf_add_str(out, STR(" - sonde report</title>"));
    write_style(out);
    buf_add_str(out, STR("</head><body><main>\n"));
    put(out, "h1", r->command.size ? r->command : title);
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

static void write_findings(const struct report *r, struct buf *out)
{
    buf_add_str(out, STR("<h2>Findings</h2>"));
    buf_add_str(out, r->finding_count ? STR("<ol>") : STR("<p>None.</p>"));
    for (size_t i = 0; i < r->finding_count; i++) {
        const struct report_finding *f = &r->findings[i];
        struct buf line = {0};
        buf_printf(out, "<li class=\"%s\">", words_sureness(f->sureness));
        put(out, "b", f->title);
        buf_printf(out, " <small>%s</small>", words_sureness(f->sureness));
        put(out, "p", f->evidence);
        put(out, "p", f->advice);
        report_query_line(r, f, &line);
        if (line.size)
            put(out, "code", buf_str(&line));
        buf_free(&line);
        buf_add_str(out, STR("</li>"));
    }
    buf_add_str(out, r->finding_count ? STR("</ol>\n") : STR("\n"));
}

static void write_uses(const struct report *r, struct buf *out)
{
    char text[WORDS_MAX];
    if (!r->use_count)
        return;
    buf_add_str(out, STR("<h2>Use of the nodes</h2><div class=\"s\" tabindex=\"0\" role=\"group\" "
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
    const struct report_energy *e = &r->energy;
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
        chart_lines(r, &r->own[i], title, out);
    }
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++) {
        const struct report_measure *m = &r->measures[charts[i].id];
        chart_lines(r, m, charts[i].title, out);
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

static void write_spans(const struct report *r, struct buf *out)
{
    if (!r->span_count)
        return;
    buf_add_str(out, STR("<h2>Spans</h2><div class=\"s\" tabindex=\"0\" role=\"group\" "
                         "aria-label=\"spans\"><table><tr><th>name<th>count<th>mean s"
                         "<th>p50 s<th>p95 s<th>max s<th>share<th>members<th>slowest / mean"
                         "<th class=\"t\">slowest<th>GPUs idle</tr>"));
    for (size_t i = 0; i < r->span_count; i++) {
        const struct report_span *s = &r->spans[i];
        char share[WORDS_MAX], idle[WORDS_MAX], ratio[WORDS_MAX] = "-";
        words_share(s->share, share);
        words_share(s->gpu_idle, idle);
        if (!isnan(s->imbalance))
            snprintf(ratio, sizeof ratio, "%.2f", s->imbalance);
        buf_add_str(out, STR("<tr><td>"));
        html_escape(out, s->name);
        buf_printf(out,
                   "<td>%llu<td>%.4g<td>%.4g<td>%.4g<td>%.4g<td>%s<td>%zu<td>%s<td class=\"t\">",
                   (unsigned long long)s->count, s->mean_s, s->p50_s, s->p95_s, s->max_s, share,
                   s->members, ratio);
        if (s->members > 1)
            html_escape(out, s->slowest);
        buf_printf(out, "<td>%s", idle);
    }
    buf_add_str(out, STR("</table></div>\n"));
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
    write_head(r, out);
    write_run(r, out);
    if (r->bucket_count) {
        write_findings(r, out);
        write_uses(r, out);
        write_charts(r, out);
        write_spans(r, out);
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
    buf_add_str(out, STR("</footer></body></html>\n"));
}
