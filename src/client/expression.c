#include "client/expression.h"

#include "base/clock.h"
#include "query/filter.h"

#include <errno.h>

static const char *text_of(struct arena *arena, struct str s)
{
    return s.size ? arena_strdup(arena, s) : "";
}

static const char *downsample_of(const struct query_downsample *d, struct arena *arena)
{
    static const char *const fills[] = {[QUERY_FILL_NONE] = "none",
                                        [QUERY_FILL_NAN] = "nan",
                                        [QUERY_FILL_NULL] = "null",
                                        [QUERY_FILL_ZERO] = "zero"};
    struct str function = query_aggregator_name(d->function);
    if (d->all)
        return arena_printf(arena, "0all-%.*s-%s", STR_ARG(function), fills[d->fill]);
    if (d->calendar)
        return arena_printf(arena, "%lld%.*sc-%.*s-%s", (long long)d->interval,
                            d->unit == 'a' ? 2 : 1, d->unit == 'a' ? "ms" : &d->unit,
                            STR_ARG(function), fills[d->fill]);
    return arena_printf(arena, "%lldms-%.*s-%s", (long long)(d->interval / NS_PER_MS),
                        STR_ARG(function), fills[d->fill]);
}

static bool fill_in(const struct query *q, struct arena *arena, struct sonde_query *out)
{
    struct sonde_filter *filters = arena_array(arena, q->filter_count, sizeof *filters);
    *out = (struct sonde_query){.metric = text_of(arena, q->metric),
                                .aggregator = text_of(arena, query_aggregator_name(q->aggregator)),
                                .downsample =
                                    q->downsample.on ? downsample_of(&q->downsample, arena) : NULL,
                                .rate = q->rate.on,
                                .counter = q->rate.counter,
                                .drop_resets = q->rate.drop_resets,
                                .filters = filters,
                                .filter_count = q->filter_count,
                                .explicit_tags = q->explicit_tags};
    bool good = filters && out->metric && out->aggregator && (out->downsample || !q->downsample.on);
    for (size_t i = 0; good && i < q->filter_count; i++) {
        const struct query_filter *f = &q->filters[i];
        filters[i] = (struct sonde_filter){text_of(arena, f->key),
                                           text_of(arena, query_filter_name(f->kind)),
                                           text_of(arena, f->text), f->group_by};
        good = filters[i].key && filters[i].type && filters[i].value;
    }
    return good;
}

int expression_read(const char *text, struct arena *arena, struct expression *out, struct error *e)
{
    struct str rest = str_of(text), name = str_cut(&rest, '{');
    const char *m = arena_printf(arena, "%s%s", str_find_char(name, ':') < 0 ? "none:" : "", text);
    *out = (struct expression){0};
    int rc = m ? query_parse_m(str_of(m), arena, &out->parsed, e)
               : error_set(e, -ENOMEM, "out of memory");
    if (rc)
        return rc;
    const struct query_rate *rate = &out->parsed.rate;
    out->as_text = rate->on && (rate->counter_max != 0 || rate->reset_value != 0);
    if (out->as_text)
        out->query = (struct sonde_query){.m = m};
    else if (!fill_in(&out->parsed, arena, &out->query))
        return error_set(e, -ENOMEM, "out of memory");
    return 0;
}
