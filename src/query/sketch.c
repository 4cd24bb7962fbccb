#include "query/sketch.h"
#include "base/search.h"

#include "query/columns.h"
#include "query/percentile.h"

#include <math.h>

enum {
    KEY_ZERO = 0,
    // so that every finite value above 0 has a key above 0: ln(2^1074) / ln(gamma) is 74,443
    KEY_OF_ONE = 80000,
    KEY_INFINITY = QUERY_SKETCH_KEY_MAX,
    BUCKETS_MIN = 16,
};

// gamma = (1 + error) / (1 - error): then the middle of a bucket differs from both ends by that
// relative error.
static double log_gamma(void)
{
    static const double error = QUERY_SKETCH_ERROR;
    return log1p(error) - log1p(-error);
}

static int32_t key_of(double value)
{
    if (value == 0)
        return KEY_ZERO;
    int32_t key =
        isinf(value) ? KEY_INFINITY : KEY_OF_ONE + (int32_t)ceil(log(fabs(value)) / log_gamma());
    return value < 0 ? -key : key;
}

static double middle_of(int32_t key)
{
    if (key == KEY_ZERO)
        return 0;
    int32_t magnitude = key < 0 ? -key : key;
    // 2 gamma^k / (gamma + 1), which is gamma^k × (1 - error). Computed as exp of a sum, because
    // gamma^k alone may overflow.
    double middle = magnitude == KEY_INFINITY
                        ? INFINITY
                        : exp((magnitude - KEY_OF_ONE) * log_gamma() + log1p(-QUERY_SKETCH_ERROR));
    return key < 0 ? -middle : middle;
}

// The bucket's place, or the place to insert it.
static uint32_t place_of(const struct query_sketch *s, int32_t key)
{
    size_t i;
    SEARCH_FIRST(i, s->used, s->keys[i] >= key);
    return (uint32_t)i;
}

static int reserve(struct query_context *c, struct arena *arena, struct query_sketch *s,
                   uint32_t buckets)
{
    if (buckets <= s->capacity)
        return 0;
    size_t needed = buckets < BUCKETS_MIN ? BUCKETS_MIN : buckets, room = s->capacity, both = room;
    if (!query_room(c, arena, &s->keys, &room, s->used, needed, sizeof *s->keys) ||
        !query_room(c, arena, &s->counts, &both, s->used, needed, sizeof *s->counts))
        return query_alloc_failed(c);
    s->capacity = (uint32_t)both;
    return 0;
}

static int count_in(struct query_context *c, struct arena *arena, struct query_sketch *s,
                    int32_t key, uint64_t count)
{
    uint32_t at = place_of(s, key);
    if (at == s->used || s->keys[at] != key) {
        int r = reserve(c, arena, s, s->used + 1);
        if (r)
            return r;
        memmove(s->keys + at + 1, s->keys + at, (s->used - at) * sizeof *s->keys);
        memmove(s->counts + at + 1, s->counts + at, (s->used - at) * sizeof *s->counts);
        s->keys[at] = key;
        s->counts[at] = 0;
        s->used++;
    }
    s->counts[at] += count;
    return 0;
}

// Also correct for an empty sketch, whose bounds are NaN.
static void widen(struct query_sketch *s, double smallest, double largest)
{
    s->smallest = s->total == 0 || smallest < s->smallest ? smallest : s->smallest;
    s->largest = s->total == 0 || largest > s->largest ? largest : s->largest;
}

int query_sketch_add(struct query_context *c, struct arena *arena, struct query_sketch *s,
                     double value)
{
    if (isnan(value))
        return 0;
    int r = count_in(c, arena, s, key_of(value), 1);
    if (r)
        return r;
    widen(s, value, value);
    s->total++;
    return 0;
}

int query_sketch_merge(struct query_context *c, struct arena *arena, struct query_sketch *into,
                       const struct query_sketch *from)
{
    int r = 0;
    for (uint32_t i = 0; i < from->used && r == 0; i++)
        r = count_in(c, arena, into, from->keys[i], from->counts[i]);
    if (r || from->total == 0)
        return r;
    widen(into, from->smallest, from->largest);
    into->total += from->total;
    return 0;
}

// The value with that rank, counted from 1.
static double value_at(const struct query_sketch *s, uint64_t rank)
{
    if (rank <= 1)
        return s->smallest;
    if (rank >= s->total)
        return s->largest;
    uint64_t below = 0;
    uint32_t i = 0;
    while (i + 1 < s->used && below + s->counts[i] < rank)
        below += s->counts[i++];
    double value = middle_of(s->keys[i]);
    return value < s->smallest ? s->smallest : value > s->largest ? s->largest : value;
}

double query_sketch_quantile(const struct query_sketch *s, const struct query_aggregator_row *row)
{
    if (s->total == 0)
        return NAN;
    double h = query_quantile_rank(s->total, row);
    h = h > 1 ? h : 1;
    h = h < (double)s->total ? h : (double)s->total;
    uint64_t below = (uint64_t)h;
    double part = h - (double)below, low = value_at(s, below);
    return part == 0 ? low : low + part * (value_at(s, below + 1) - low);
}

int query_sketches_init(struct query_context *c, struct arena *arena, size_t count,
                        struct query_sketches *out)
{
    *out = (struct query_sketches){.count = count};
    out->all = query_alloc(c, arena, count, sizeof *out->all);
    out->real = query_alloc(c, arena, count, sizeof *out->real);
    if (!out->all || !out->real)
        return query_alloc_failed(c);
    for (size_t i = 0; i < count; i++)
        out->all[i] = (struct query_sketch){.smallest = NAN, .largest = NAN};
    memset(out->real, 0, count);
    return 0;
}

int query_sketches_add(struct query_context *c, struct arena *arena,
                       struct query_sketches *sketches, enum query_between between,
                       const int64_t *times, const struct query_points *series,
                       struct query_points *line)
{
    size_t from, places = query_points_span(series, sketches->count, &from), next = 0;
    if (places == 0)
        return 0;
    line->count = 0;
    int r = query_points_reserve(c, line, places);
    if (r)
        return r;
    query_line(series, times, between, from, from + places, &next, line->values);
    for (size_t i = 0; i < places && r == 0; i++)
        r = query_sketch_add(c, arena, &sketches->all[from + i], line->values[i]);
    for (size_t i = 0; i < series->count; i++)
        sketches->real[series->at[i]] = 1;
    return r ? r : query_tick(c, places);
}

int query_sketches_merge(struct query_context *c, struct arena *arena, struct query_sketches *into,
                         const struct query_sketches *from)
{
    int r = 0;
    for (size_t i = 0; i < into->count && r == 0; i++) {
        r = query_sketch_merge(c, arena, &into->all[i], &from->all[i]);
        into->real[i] |= from->real[i];
    }
    return r ? r : query_tick(c, into->count);
}
