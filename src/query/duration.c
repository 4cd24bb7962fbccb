#include "query/duration.h"

#include "base/clock.h"

static const struct {
    char unit;
    const char *written;
    int64_t ns;
} units[] = {
    {'a', "ms", NS_PER_MS},
    {'s', "s", NS_PER_S},
    {'m', "m", 60 * (int64_t)NS_PER_S},
    {'h', "h", 3600 * (int64_t)NS_PER_S},
    {'d', "d", 86400 * (int64_t)NS_PER_S},
    {'w', "w", 7 * 86400 * (int64_t)NS_PER_S},
    {'n', "n", 30 * 86400 * (int64_t)NS_PER_S},
    {'y', "y", 365 * 86400 * (int64_t)NS_PER_S},
};

bool query_duration_parse(struct str text, int64_t *count, char *unit)
{
    size_t digits = 0;
    while (digits < text.size && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    int64_t n;
    if (!str_to_i64(str_slice(text, 0, digits), &n) || n < 1)
        return false;
    struct str written = str_slice(text, digits, text.size);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (str_eq_nocase(written, str_of(units[i].written))) {
            *count = n;
            *unit = units[i].unit;
            return true;
        }
    return false;
}

bool query_duration_ns(int64_t count, char unit, int64_t *ns)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (unit == units[i].unit)
            return !__builtin_mul_overflow(count, units[i].ns, ns);
    return false;
}
