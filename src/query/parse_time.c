// Parses points in time as people and dashboards write them:
//
//   now                          1h-ago 30m-ago …
//   2012/12/20                   2012/12/20-12:42         2012/12/20 12:42:42
//   1356007362 (s, ≤ 10 digits)  1356007362000 (ms)       1356007362000ms  1356007362.5 (s)
#include "query/query.h"

#include "base/clock.h"
#include "query/civil.h"
#include "query/duration.h"
#include "query/time_zone.h"

#include <errno.h>

enum { SECONDS_DIGITS_MAX = 10, TIME_TEXT_MAX = 64, YEAR_MIN = 1970, YEAR_MAX = 2261 };

static int bad(struct str text, struct error *e)
{
    return error_set(e, -EINVAL,
                     "Invalid time: '%.*s' (want now, 1h-ago, 2012/12/20-12:42:42, seconds or "
                     "milliseconds since the epoch)",
                     STR_ARG(text));
}

static size_t count_digits(struct str s)
{
    size_t n = 0;
    while (n < s.size && s.data[n] >= '0' && s.data[n] <= '9')
        n++;
    return n;
}

// Takes `width` digits off the front; returns -1 if there are fewer digits.
static int take_digits(struct str *rest, size_t width)
{
    if (rest->size < width || count_digits(str_slice(*rest, 0, width)) != width)
        return -1;
    int n = 0;
    for (size_t i = 0; i < width; i++)
        n = n * 10 + (rest->data[i] - '0');
    *rest = str_slice(*rest, width, rest->size);
    return n;
}

static bool take_char(struct str *rest, char a, char b)
{
    if (rest->size == 0 || (rest->data[0] != a && rest->data[0] != b))
        return false;
    *rest = str_slice(*rest, 1, rest->size);
    return true;
}

static int parse_date(struct str text, struct str zone_name, int64_t *out_ns, struct error *e)
{
    struct str rest = text;
    int year = take_digits(&rest, 4), month = -1, day = -1, hour = 0, minute = 0, second = 0;
    if (take_char(&rest, '/', '/'))
        month = take_digits(&rest, 2);
    if (take_char(&rest, '/', '/'))
        day = take_digits(&rest, 2);
    if (rest.size) {
        hour = take_char(&rest, '-', ' ') ? take_digits(&rest, 2) : -1;
        minute = take_char(&rest, ':', ':') ? take_digits(&rest, 2) : -1;
        if (rest.size)
            second = take_char(&rest, ':', ':') ? take_digits(&rest, 2) : -1;
    }
    if (rest.size || year < YEAR_MIN || year > YEAR_MAX || month < 1 || month > 12 || day < 1 ||
        hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
        return bad(text, e);
    int64_t first = days_of_civil(year, month, 1);
    int64_t next = month == 12 ? days_of_civil(year + 1, 1, 1) : days_of_civil(year, month + 1, 1);
    if (day > next - first)
        return bad(text, e);
    int64_t local_s = (first + day - 1) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
    struct arena arena = {0};
    const struct time_zone *zone;
    int r = time_zone_load(zone_name, &arena, &zone, e);
    if (r == 0)
        *out_ns = time_zone_to_utc(zone, local_s) * NS_PER_S;
    arena_free(&arena);
    return r;
}

static int parse_number(struct str text, int64_t *out_ns, struct error *e)
{
    size_t whole = count_digits(text);
    struct str rest = str_slice(text, whole, text.size);
    int64_t n, fraction_ns = 0, unit_ns = whole <= SECONDS_DIGITS_MAX ? NS_PER_S : NS_PER_MS;
    if (!str_to_i64(str_slice(text, 0, whole), &n))
        return bad(text, e);
    if (str_eq(rest, STR("ms"))) {
        unit_ns = NS_PER_MS;
    } else if (rest.size && take_char(&rest, '.', '.')) {
        size_t digits = count_digits(rest);
        if (digits == 0 || digits != rest.size)
            return bad(text, e);
        int64_t scale = unit_ns;
        for (size_t i = 0; i < digits && scale > 1; i++) {
            scale /= 10;
            fraction_ns += (rest.data[i] - '0') * scale;
        }
    } else if (rest.size) {
        return bad(text, e);
    }
    int64_t ns;
    if (__builtin_mul_overflow(n, unit_ns, &ns) || __builtin_add_overflow(ns, fraction_ns, &ns))
        return error_set(e, -EINVAL, "Invalid time: '%.*s' lies beyond the year 2262",
                         STR_ARG(text));
    *out_ns = ns;
    return 0;
}

int query_parse_time(struct str text, int64_t now_ns, struct str time_zone, int64_t *out_ns,
                     struct error *e)
{
    text = str_trim(text);
    if (text.size == 0 || text.size > TIME_TEXT_MAX)
        return bad(str_slice(text, 0, TIME_TEXT_MAX), e);
    if (str_eq_nocase(text, STR("now"))) {
        *out_ns = now_ns;
        return 0;
    }
    if (str_eq_nocase(str_slice(text, text.size < 4 ? 0 : text.size - 4, text.size), STR("-ago"))) {
        int64_t count, ns;
        char unit;
        if (!query_duration_parse(str_slice(text, 0, text.size - 4), &count, &unit))
            return bad(text, e);
        if (!query_duration_ns(count, unit, &ns) || ns > now_ns)
            return error_set(e, -EINVAL, "Invalid time: '%.*s' lies before 1970", STR_ARG(text));
        *out_ns = now_ns - ns;
        return 0;
    }
    if (str_find_char(text, '/') >= 0)
        return parse_date(text, time_zone, out_ns, e);
    return parse_number(text, out_ns, e);
}
