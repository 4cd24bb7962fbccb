#include "report/words.h"

#include "launch/summary.h"

#include <stdio.h>
#include <time.h>

struct words_number words_number(double value)
{
    enum { DIGITS = 4 };
    const double whole_below = 1e15, rounds_to_whole = 9999.5;
    struct words_number number;
    double size = fabs(value);
    if (isnan(value))
        snprintf(number.text, WORDS_MAX, "-");
    else if (size >= rounds_to_whole && size < whole_below)
        snprintf(number.text, WORDS_MAX, "%.0f", value);
    else
        snprintf(number.text, WORDS_MAX, "%.*g", DIGITS, value);
    return number;
}

void words_value(double value, const char *unit, char out[WORDS_MAX])
{
    char number[32];
    bool bytes = strncmp(unit, "bytes", 5) == 0;
    if (isnan(value)) {
        snprintf(out, WORDS_MAX, "-");
        return;
    }
    if (bytes)
        summary_bytes_text(value, number, sizeof number);
    else
        snprintf(number, sizeof number, "%.*f",
                 fabs(value) >= 99.95   ? 0
                 : fabs(value) >= 9.995 ? 1
                                        : 2,
                 value);
    const char *shown = bytes                               ? unit + 5 // "/s"
                        : strcmp(unit, "seconds") == 0      ? " s"
                        : strcmp(unit, "milliseconds") == 0 ? " ms"
                        : strcmp(unit, "microseconds") == 0 ? " µs"
                        : strcmp(unit, "watts") == 0        ? " W"
                        : strcmp(unit, "percent") == 0      ? " %"
                        : strcmp(unit, "celsius") == 0      ? " °C"
                        : strcmp(unit, "hertz") == 0        ? " Hz"
                        : strcmp(unit, "joules") == 0       ? " J"
                                                            : "";
    snprintf(out, WORDS_MAX, "%s%s", number, shown);
}

void words_share(double share, char out[WORDS_MAX])
{
    if (isnan(share) || isinf(share))
        snprintf(out, WORDS_MAX, "-");
    else
        snprintf(out, WORDS_MAX, "%.*f %%", fabs(share) < 0.0995 ? 1 : 0, share * 100);
}

void words_time(int64_t t_ns, char out[WORDS_MAX])
{
    time_t t = (time_t)(t_ns / 1000000000);
    struct tm local;
    if (!localtime_r(&t, &local) || !strftime(out, WORDS_MAX, "%Y-%m-%d %H:%M:%S", &local))
        snprintf(out, WORDS_MAX, "-");
}

void words_duration(int64_t ns, char out[WORDS_MAX])
{
    summary_duration_text(ns, out, WORDS_MAX);
}

void words_energy(double joules, char out[WORDS_MAX])
{
    double wh = joules / 3600;
    if (isnan(joules))
        snprintf(out, WORDS_MAX, "-");
    else if (wh >= 1000)
        snprintf(out, WORDS_MAX, "%.2f kWh", wh / 1000);
    else if (wh >= 1)
        snprintf(out, WORDS_MAX, "%.1f Wh", wh);
    else
        snprintf(out, WORDS_MAX, "%.0f J", joules);
}

const char *words_sureness(enum report_sureness s)
{
    static const char *const words[] = {
        [REPORT_POSSIBLE] = "possible", [REPORT_LIKELY] = "likely", [REPORT_SURE] = "sure"};
    return words[s];
}

void words_end(const struct report *r, char out[WORDS_MAX])
{
    if (r->ended && r->exit_code > 128)
        snprintf(out, WORDS_MAX, "exit code %d (signal %d)", r->exit_code, r->exit_code - 128);
    else if (r->ended)
        snprintf(out, WORDS_MAX, "exit code %d", r->exit_code);
    else
        snprintf(out, WORDS_MAX, r->running ? "it runs" : "its end is not known");
}

void words_nodes(const struct report *r, struct buf *out)
{
    enum { SHOWN = 8 };
    const struct report_node *n = r->nodes;
    buf_printf(out, "%zu node%s", r->node_count, r->node_count == 1 ? "" : "s");
    for (size_t i = 0; i < r->node_count && i < SHOWN; i++)
        buf_printf(out, "%s%.*s", i ? ", " : ": ", STR_ARG(n[i].host));
    if (r->node_count > SHOWN)
        buf_printf(out, " … %.*s", STR_ARG(n[r->node_count - 1].host));
}
