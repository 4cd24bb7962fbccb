// v'(t) = (v(t) - v(before)) / seconds between them.
//
// A counter that falls has wrapped at its maximum, or was reset. With dropResets the point only
// seeds the next rate. Otherwise the difference is taken across the maximum, and a rate above
// resetValue counts as a reset and becomes 0. NaN (a filled gap) stays NaN, and the next rate spans
// the gap.
#include "query/series.h"

#include "base/clock.h"

static double max_of(const struct query_rate *rate)
{
    return rate->counter_max > 0 ? rate->counter_max : (double)INT64_MAX;
}

void query_rate_run(const struct query_rate *rate, const struct query_grid *g,
                    const struct query_seed *seed, struct query_points *p)
{
    bool seeded = seed && seed->value == seed->value;
    int64_t before_t = seeded ? seed->t_ns : 0;
    double before = seeded ? seed->value : 0;
    size_t n = 0;
    for (size_t i = 0; i < p->count; i++) {
        int64_t at = p->at[i], t = query_place_time(g, at);
        double v = p->values[i];
        if (v != v) {
            p->at[n] = at;
            p->values[n++] = v;
            continue;
        }
        double change = v - before, seconds = (double)((uint64_t)t - (uint64_t)before_t) / NS_PER_S;
        bool fell = rate->counter && change < 0;
        bool emit = seeded && !(fell && rate->drop_resets);
        if (fell)
            change = max_of(rate) - before + v;
        seeded = true;
        before_t = t;
        before = v;
        if (!emit)
            continue;
        double per_second = change / seconds;
        if (fell && rate->reset_value > 0 && per_second > rate->reset_value)
            per_second = 0;
        p->at[n] = at;
        p->values[n++] = per_second;
    }
    p->count = n;
}
