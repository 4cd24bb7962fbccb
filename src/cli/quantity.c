#include "cli/quantity.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

static void digits(double value, const char *prefix, char out[QUANTITY_MAX])
{
    double size = fabs(value);
    snprintf(out, QUANTITY_MAX, "%.*f%s", size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2, value, prefix);
}

static void scaled(double value, double step, const char *const *prefixes, size_t count,
                   char out[QUANTITY_MAX])
{
    size_t i = 0;
    // 999.6 would be rounded to 1000, so use the next prefix.
    while (fabs(value) >= step * 0.9995 && i + 1 < count) {
        value /= step;
        i++;
    }
    if (i == 0 && value == floor(value))
        snprintf(out, QUANTITY_MAX, "%.0f", value);
    else
        digits(value, prefixes[i], out);
}

void quantity_text(double value, const char *unit, char out[QUANTITY_MAX])
{
    static const char *const binary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    static const char *const decimal[] = {"", "k", "M", "G", "T", "P", "E"};
    double size = fabs(value);
    if (isnan(value))
        snprintf(out, QUANTITY_MAX, "-");
    else if (isinf(value))
        snprintf(out, QUANTITY_MAX, "%s", value > 0 ? "inf" : "-inf");
    else if (unit && strcmp(unit, "percent") == 0)
        snprintf(out, QUANTITY_MAX, "%.*f", size >= 99.95 ? 0 : 1, value);
    else if (size >= 1e18 || (size > 0 && size < 0.001))
        snprintf(out, QUANTITY_MAX, "%.0e", value);
    else if (unit && strcmp(unit, "bytes") == 0)
        scaled(value, 1024, binary, sizeof binary / sizeof binary[0], out);
    else if (size < 0.0995)
        snprintf(out, QUANTITY_MAX, size == 0 ? "%.0f" : "%.4f", value);
    else
        scaled(value, 1000, decimal, sizeof decimal / sizeof decimal[0], out);
}

void quantity_duration(int64_t ns, char out[QUANTITY_MAX])
{
    double s = (double)ns / 1e9;
    int whole = s < INT32_MAX - 1 ? (int)(s + 0.5) : INT32_MAX; // 68 years
    if (s < 1)
        snprintf(out, QUANTITY_MAX, "%.0fms", s * 1000);
    else if (s < 59.95)
        snprintf(out, QUANTITY_MAX, "%.1fs", s);
    else if (whole < 3600)
        snprintf(out, QUANTITY_MAX, "%dm%02ds", whole / 60, whole % 60);
    else if (whole < 86400)
        snprintf(out, QUANTITY_MAX, "%dh%02dm", whole / 3600, whole % 3600 / 60);
    else
        snprintf(out, QUANTITY_MAX, "%dd%dh", whole / 86400, whole % 86400 / 3600);
}

void quantity_time(int64_t t_ns, char out[QUANTITY_TIME_MAX])
{
    time_t t = (time_t)(t_ns / NS_PER_S);
    struct tm local;
    localtime_r(&t, &local);
    strftime(out, QUANTITY_TIME_MAX, "%Y-%m-%d %H:%M:%S", &local);
}

const char *quantity_unit(const char *unit, int rate)
{
    static const struct {
        const char *name, *gauge, *rate;
    } rows[] = {{"bytes", "B", "B/s"},   {"percent", "%", "%/s"}, {"seconds", "s", "s/s"},
                {"watts", "W", "W/s"},   {"joules", "J", "W"},    {"celsius", "C", "C/s"},
                {"hertz", "Hz", "Hz/s"}, {"", "", "/s"}};
    for (size_t i = 0; unit && i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(unit, rows[i].name) == 0)
            return rate ? rows[i].rate : rows[i].gauge;
    return rate ? "/s" : "";
}

bool quantity_parse_bytes(struct str s, double *out)
{
    static const char units[] = "kmgt";
    // "512M", "512MB" and "512MiB" mean the same.
    if (s.size > 2 && str_eq_nocase(str_slice(s, s.size - 2, s.size), STR("ib")))
        s.size -= 2;
    else if (s.size > 1 && (s.data[s.size - 1] | 32) == 'b')
        s.size -= 1;
    double factor = 1;
    const char *unit = s.size > 0 ? strchr(units, s.data[s.size - 1] | 32) : NULL;
    if (unit && *unit) {
        s.size -= 1;
        factor = ldexp(1, 10 * (int)(unit - units + 1));
    }
    double number;
    if (!str_to_double(s, &number))
        return false;
    *out = floor(number * factor);
    return true;
}

// Parses "90", "90s", "1.5m", "2h", "1d".
bool quantity_parse_seconds(struct str s, double *out)
{
    static const struct {
        char unit;
        double seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    double factor = 1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (s.size > 1 && s.data[s.size - 1] == units[i].unit) {
            factor = units[i].seconds;
            s.size--;
            break;
        }
    double number;
    if (!str_to_double(s, &number))
        return false;
    *out = number * factor;
    return true;
}
