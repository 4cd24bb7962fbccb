// Fixed intervals are whole multiples of their length since the epoch. Calendar intervals follow
// local time and are counted as in OpenTSDB. The base is the query's start, rounded down to a
// multiple of the fixed interval (a month has 30 days, a year 365) and then to the hour.
//
//   days, months, years   from January 1 of the base's year
//   weeks                 from the Sunday of the base's week: whole intervals after 1969-12-28
//   hours and shorter     anew from each local midnight if they divide a day
//                         (hour, minute, second); else from the base's month (day, hour, minute)
#include "query/grid.h"

#include "base/clock.h"
#include "query/civil.h"
#include "query/duration.h"

enum {
    SECONDS_PER_HOUR = 3600,
    HOURS_PER_DAY = 24,
    DAYS_PER_WEEK = 7,
    FIRST_SUNDAY = 3,
    MONTHS_PER_YEAR = 12
};

static int64_t saturating_ns(int64_t seconds)
{
    int64_t ns;
    if (!__builtin_mul_overflow(seconds, NS_PER_S, &ns))
        return ns;
    return seconds < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t saturating_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t local_day(const struct time_zone *zone, int64_t t)
{
    int64_t utc_s = floor_div(t, NS_PER_S);
    return floor_div(utc_s + time_zone_offset(zone, utc_s), SECONDS_PER_DAY);
}

static int64_t begin_of_day(const struct time_zone *zone, int64_t day)
{
    return saturating_ns(time_zone_to_utc(zone, day * SECONDS_PER_DAY));
}

static int64_t day_of_month(int64_t months_since_1970)
{
    int64_t year = floor_div(months_since_1970, MONTHS_PER_YEAR);
    return days_of_civil(1970 + year, (int)(months_since_1970 - year * MONTHS_PER_YEAR) + 1, 1);
}

// In seconds since 1970.
static int64_t base_of(const struct query_downsample *d, int64_t start)
{
    int64_t length, base_s = floor_div(start, NS_PER_S);
    if (query_duration_ns(d->interval, d->unit, &length) && length >= NS_PER_S) {
        length /= NS_PER_S;
        base_s = floor_div(base_s, length) * length;
    }
    return floor_div(base_s, SECONDS_PER_HOUR) * SECONDS_PER_HOUR;
}

// For intervals of hours and shorter: returns whether the interval divides the next longer unit. If
// it does not, buckets are counted from the beginning of the base's period; the return value is
// that period's length in seconds, or 0 for a month.
static int64_t round_length(const struct query_downsample *d, bool *divides)
{
    switch (d->unit) {
    case 'h':
        *divides = HOURS_PER_DAY % d->interval == 0;
        return 0;
    case 'm':
        *divides = 60 % d->interval == 0;
        return SECONDS_PER_DAY;
    case 's':
        *divides = 60 % d->interval == 0;
        return SECONDS_PER_HOUR;
    default:
        *divides = 1000 % d->interval == 0;
        return 60;
    }
}

static void set_origin(struct query_grid *g, int64_t start)
{
    const struct query_downsample *d = g->downsample;
    int64_t base_s = base_of(d, start), local_s = base_s + time_zone_offset(g->zone, base_s), year;
    int64_t day = floor_div(local_s, SECONDS_PER_DAY), length;
    int month, day_of_month;
    civil_of_days(day, &year, &month, &day_of_month);
    switch (d->unit) {
    case 'd':
        g->origin = days_of_civil(year, 1, 1);
        return;
    case 'w':
        g->origin = floor_div(day - FIRST_SUNDAY, DAYS_PER_WEEK) * DAYS_PER_WEEK + FIRST_SUNDAY;
        return;
    case 'n':
    case 'y':
        g->origin = (year - 1970) * MONTHS_PER_YEAR;
        return;
    default:
        length = round_length(d, &g->from_midnight);
        local_s = length ? floor_div(local_s, length) * length
                         : days_of_civil(year, month, 1) * SECONDS_PER_DAY;
        g->origin = saturating_ns(time_zone_to_utc(g->zone, local_s));
    }
}

// The calendar bucket around local day `day`, in local days.
static void bucket_of_days(const struct query_grid *g, int64_t day, int64_t *from, int64_t *to)
{
    char unit = g->downsample->unit;
    int64_t count = g->downsample->interval;
    if (unit == 'n' || unit == 'y') {
        int64_t months = unit == 'y' ? count * MONTHS_PER_YEAR : count, year;
        int month, d;
        civil_of_days(day, &year, &month, &d);
        int64_t k = floor_div((year - 1970) * MONTHS_PER_YEAR + month - 1 - g->origin, months);
        *from = day_of_month(g->origin + k * months);
        *to = day_of_month(g->origin + (k + 1) * months);
        return;
    }
    int64_t days = unit == 'w' ? count * DAYS_PER_WEEK : count;
    *from = floor_div(day - g->origin, days) * days + g->origin;
    *to = *from + days;
}

static void calendar_bucket(const struct query_grid *g, int64_t t, int64_t *from, int64_t *to)
{
    const struct query_downsample *d = g->downsample;
    int64_t day = local_day(g->zone, t), day_ns, length, from_day, to_day;
    if (strchr("dwny", d->unit)) {
        bucket_of_days(g, day, &from_day, &to_day);
        *from = begin_of_day(g->zone, from_day);
        *to = begin_of_day(g->zone, to_day);
        // If clocks are set back across midnight, a day's last hour repeats after the next day has
        // begun.
        while (*to <= t && *to < INT64_MAX) {
            bucket_of_days(g, to_day, &from_day, &to_day);
            *from = *to;
            *to = begin_of_day(g->zone, to_day);
        }
        return;
    }
    if (!g->from_midnight) {
        if (!query_duration_ns(d->interval, d->unit, &length))
            length = INT64_MAX;
        int64_t since, k = 0;
        if (!__builtin_sub_overflow(t, g->origin, &since))
            k = floor_div(since, length);
        *from = g->origin + k * length;
        *to = saturating_add(*from, length);
        return;
    }
    int64_t midnight = begin_of_day(g->zone, day), next = begin_of_day(g->zone, day + 1);
    if (next <= t) {
        midnight = next;
        next = begin_of_day(g->zone, day + 2);
    }
    day_ns = SECONDS_PER_DAY * (int64_t)NS_PER_S;
    if (!query_duration_ns(d->interval, d->unit, &length) || length > 2 * day_ns)
        length = 2 * day_ns; // the bucket ends at the next midnight anyway
    *from = midnight + floor_div(t - midnight, length) * length;
    *to = saturating_add(*from, length);
    if (*to > next)
        *to = next;
}

void query_grid_bucket(const struct query_grid *g, int64_t t, int64_t *from, int64_t *to)
{
    if (g->zone) {
        calendar_bucket(g, t, from, to);
        return;
    }
    int64_t interval = g->interval, rest = t % interval, aligned = t - rest; // rounded towards 0
    *from = rest < 0 ? saturating_add(aligned, -interval) : aligned;
    *to = rest < 0 ? aligned : saturating_add(aligned, interval);
}

int64_t query_grid_length(const struct query_grid *g)
{
    const struct query_downsample *d = g->downsample;
    int64_t length;
    return !d->calendar                                       ? g->interval
           : query_duration_ns(d->interval, d->unit, &length) ? length
                                                              : INT64_MAX;
}

static int too_many(struct query_context *c)
{
    return error_set(
        c->e, -E2BIG,
        "The query has more than %d calendar intervals (intervals limit): ask for longer ones",
        QUERY_GRID_CALENDAR_MAX);
}

// 0all: one bucket, stamped `start`, which excludes the point at `end`.
static int make_all(struct query_context *c, struct query_grid *g)
{
    int64_t *times = query_alloc(c, c->result, 2, sizeof *times);
    if (!times)
        return query_alloc_failed(c);
    times[0] = c->q->start_ns;
    times[1] = c->q->end_ns;
    g->times = times;
    g->count = times[0] < times[1];
    return 0;
}

static int make_calendar(struct query_context *c, struct query_grid *g)
{
    int64_t from, to, end = c->q->end_ns;
    int r = time_zone_load(g->downsample->time_zone, &c->plan, &g->zone, c->e);
    if (r)
        return r;
    set_origin(g, c->q->start_ns);
    query_grid_bucket(g, c->q->start_ns, &from, &to);
    if (from < c->q->start_ns) {
        from = to;
        query_grid_bucket(g, from, &(int64_t){0}, &to);
    }
    size_t count = 0, capacity = 0;
    int64_t *times = NULL;
    while (from <= end) {
        if (count == QUERY_GRID_CALENDAR_MAX)
            return too_many(c);
        size_t held = count ? count + 1 : 0; // one more for the end of the last bucket
        if (!query_room(c, c->result, &times, &capacity, held, count + 2, sizeof *times))
            return query_alloc_failed(c);
        times[count++] = from;
        times[count] = to;
        if (to == INT64_MAX)
            break;
        from = to;
        query_grid_bucket(g, from, &(int64_t){0}, &to);
        if ((r = query_tick(c, 1)))
            return r;
    }
    g->times = times;
    g->count = count;
    return 0;
}

static int make_fixed(struct query_context *c, struct query_grid *g)
{
    int64_t first, last, to, end = c->q->end_ns;
    g->interval = g->downsample->interval;
    if (g->interval <= 0)
        return error_set(c->e, -EINVAL,
                         "Invalid downsampling interval: it must be longer than nothing");
    query_grid_bucket(g, c->q->start_ns, &first, &to);
    if (first < c->q->start_ns ||
        first % g->interval) // the first bucket is cut off at the beginning of time
        first = to;
    query_grid_bucket(g, end, &last, &to);
    g->first = first;
    if (first > last || first < c->q->start_ns)
        return 0;
    g->count = ((uint64_t)last - (uint64_t)first) / (uint64_t)g->interval + 1;
    if (g->count > QUERY_GRID_LISTED_MAX)
        return 0;
    int64_t *times = query_alloc(c, c->result, g->count + 1, sizeof *times);
    if (!times)
        return query_alloc_failed(c);
    for (size_t i = 0; i < g->count; i++)
        times[i] = query_grid_place(g, i);
    times[g->count] = saturating_add(times[g->count - 1], g->interval);
    g->times = times;
    return 0;
}

int query_grid_make(struct query_context *c, struct query_grid *g)
{
    *g = (struct query_grid){.read_from = c->q->start_ns, .read_to = c->q->end_ns};
    const struct query_downsample *d = &c->q->downsample;
    if (!d->on)
        return 0;
    if (d->function == QUERY_NONE || (unsigned)d->function >= QUERY_AGGREGATOR_COUNT)
        return error_set(c->e, -EINVAL, "The downsampling has no function");
    if (d->calendar && (d->interval < 1 || !strchr("asmhdwny", d->unit) || !d->unit))
        return error_set(c->e, -EINVAL, "Invalid calendar interval");
    g->downsample = d;
    int r = d->all ? make_all(c, g) : d->calendar ? make_calendar(c, g) : make_fixed(c, g);
    if (r)
        return r;
    if (g->count == 0) {
        g->read_from = 1;
        g->read_to = 0;
        return 0;
    }
    if (g->times)
        g->first = g->times[0];
    int64_t end = g->times ? g->times[g->count]
                           : saturating_add(query_grid_place(g, g->count - 1), g->interval);
    g->read_from = g->first;
    g->read_to = end == INT64_MAX ? end : end - 1;
    return 0;
}
