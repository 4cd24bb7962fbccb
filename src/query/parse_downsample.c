// Parses "<interval>-<function>[-<fill>]": "1s-avg", "5m-p99-nan", "0all-sum", "1dc-max-zero".
#include "base/clock.h"
#include "query/aggregator_table.h"
#include "query/duration.h"

#include <errno.h>

enum { DOWNSAMPLE_TEXT_MAX = 64, CALENDAR_COUNT_MAX = 100000 };

static const struct {
    const char *name;
    enum query_fill fill;
} fills[] = {{"none", QUERY_FILL_NONE},
             {"nan", QUERY_FILL_NAN},
             {"null", QUERY_FILL_NULL},
             {"zero", QUERY_FILL_ZERO}};

static int parse_interval(struct str text, struct query_downsample *d, struct error *e)
{
    if (str_eq(text, STR("0all"))) {
        d->all = true;
        return 0;
    }
    d->calendar = str_ends(text, STR("c"));
    struct str duration = str_slice(text, 0, text.size - d->calendar);
    int64_t count;
    if (!query_duration_parse(duration, &count, &d->unit))
        return error_set(e, -EINVAL,
                         "Invalid downsampling interval: '%.*s' (want a number and ms, s, m, h, d, "
                         "w, n or y; or 0all)",
                         STR_ARG(text));
    if (d->calendar ? count > CALENDAR_COUNT_MAX : !query_duration_ns(count, d->unit, &d->interval))
        return error_set(e, -EINVAL, "Invalid downsampling interval: '%.*s' is too long",
                         STR_ARG(text));
    if (d->calendar)
        d->interval = count;
    return 0;
}

int query_parse_downsample(struct str text, struct query_downsample *out, struct error *e)
{
    *out = (struct query_downsample){.on = true};
    if (text.size > DOWNSAMPLE_TEXT_MAX)
        return error_set(e, -EINVAL, "Invalid downsampling: longer than %d bytes",
                         DOWNSAMPLE_TEXT_MAX);
    struct str rest = text, interval = str_cut(&rest, '-');
    if (!rest.data)
        return error_set(
            e, -EINVAL,
            "Invalid downsampling: '%.*s' (want interval-function[-fill], as in 1m-avg-nan)",
            STR_ARG(text));
    struct str function = str_cut(&rest, '-');
    int r = parse_interval(interval, out, e);
    if (r)
        return r;
    out->function = query_aggregator_of(function);
    if (out->function == QUERY_AGGREGATOR_COUNT)
        return error_set(e, -EINVAL, "No such downsampling function: '%.*s'", STR_ARG(function));
    if (out->function == QUERY_NONE)
        return error_set(e, -EINVAL,
                         "'none' is no downsampling function: leave the downsampling out");
    if (!rest.data)
        return 0;
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
        if (str_eq_nocase(rest, str_of(fills[i].name))) {
            out->fill = fills[i].fill;
            return 0;
        }
    return error_set(e, -EINVAL, "Unrecognized fill policy: %.*s", STR_ARG(rest));
}

void query_downsample_use_calendar(struct query_downsample *d)
{
    int64_t unit_ns;
    if (!d->on || d->all || d->calendar || !query_duration_ns(1, d->unit, &unit_ns))
        return;
    d->calendar = true;
    d->interval /= unit_ns;
    if (d->interval > CALENDAR_COUNT_MAX)
        d->interval = CALENDAR_COUNT_MAX;
}

void query_downsample_to_seconds(struct query_downsample *d)
{
    int64_t ns = d->interval;
    if (!d->on || d->all || (d->calendar && !query_duration_ns(d->interval, d->unit, &ns)) ||
        ns >= NS_PER_S)
        return;
    d->unit = 's';
    d->interval = d->calendar ? 1 : NS_PER_S;
}
