#include "report/html_page.h"

#include "report/html_chart.h"
#include "report/png.h"

#include <string.h>

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
    ".c{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:0 24px}"
    "svg{width:100%;max-width:640px;height:auto;display:block}"
    "text{font:15px system-ui,sans-serif;fill:var(--dim)}"
    "@media(max-width:600px){body{padding:12px}text{font-size:18px}.o{display:none}}"
    ".r{text-anchor:end}.m{text-anchor:middle}.g{stroke:var(--line);stroke-width:1}"
    ".f{stroke:var(--mark);stroke-width:1.5;stroke-dasharray:3 3}.l{fill:none;stroke-width:1.6;"
    "stroke-linejoin:round}.b{fill:var(--c0);opacity:.15}.b2{fill:var(--c0);opacity:.3}"
    ".k{margin:2px 0;font-size:13px}.k span{margin-right:12px;display:inline-block}"
    "i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}"
    ".h{display:flex;gap:8px}.hl{display:flex;flex-direction:column;justify-content:space-between;"
    "font-size:12px;color:var(--dim);max-width:130px;overflow-wrap:anywhere}"
    ".h img{flex:1;width:100%;min-width:0;image-rendering:pixelated;border:1px solid var(--line)}"
    ".n{white-space:nowrap}.ht{display:flex;justify-content:space-between}.ramp{width:120px;-"
    "webkit-print-color-adjust:"
    "exact;"
    "print-color-adjust:exact}footer{margin-top:32px;color:var(--dim);font-size:13px}";

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

void html_begin(struct str title, const char *kind, struct buf *out)
{
    buf_add_str(out,
                STR("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "style-src 'unsafe-inline'; img-src data:\">"
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                    "<link rel=\"icon\" href=\"data:,\">"));
    buf_add_str(out, STR("<title>"));
    html_escape(out, title);
    buf_printf(out, " - sonde %s</title>", kind);
    write_style(out);
    buf_add_str(out, STR("</head><body><main>\n"));
}

void html_put(const char *tag, struct str text, struct buf *out)
{
    buf_printf(out, "<%s>", tag);
    html_escape(out, text);
    buf_printf(out, "</%.*s>", (int)strcspn(tag, " "), tag);
}

void html_end(struct buf *out)
{
    buf_add_str(out, STR("</body></html>\n"));
}
