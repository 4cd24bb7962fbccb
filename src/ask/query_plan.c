// query_plan.c - a plan as bytes.
//
//   short metric, u8 aggregator, u8 flags (PLAN_…)
//   with PLAN_DOWNSAMPLE:  varint zigzag interval, u8 unit, u8 function, u8 fill, short time zone
//   with PLAN_RATE:        f64 counter_max, f64 reset_value
//   varint filters, each:  u8 kind, u8 group_by, short key, short text
//   varint zigzag start_ns, varint zigzag end_ns
//   varint memory_bytes, varint series_max, varint points_max, varint exact_max  (0: the default)
#include "ask/query_wire.h"
#include "query/filter.h"

#include <errno.h>

enum {
    PLAN_DOWNSAMPLE = 1,
    PLAN_ALL = 2,
    PLAN_CALENDAR = 4,
    PLAN_RATE = 8,
    PLAN_COUNTER = 16,
    PLAN_DROP_RESETS = 32,
    PLAN_EXPLICIT_TAGS = 64,
    PLAN_FLAGS = 127,
    ZONE_MAX = 255, // maximum bytes of a time zone's name
};

void query_plan_write(const struct query *q, const struct query_limits *limits, struct buf *out)
{
    static const struct query_limits none;
    if (!limits)
        limits = &none;
    const struct query_downsample *d = &q->downsample;
    const struct query_rate *r = &q->rate;
    buf_short(out, q->metric);
    buf_u8(out, (uint8_t)q->aggregator);
    buf_u8(out,
           (uint8_t)((d->on ? PLAN_DOWNSAMPLE : 0) | (d->all ? PLAN_ALL : 0) |
                     (d->calendar ? PLAN_CALENDAR : 0) | (r->on ? PLAN_RATE : 0) |
                     (r->counter ? PLAN_COUNTER : 0) | (r->drop_resets ? PLAN_DROP_RESETS : 0) |
                     (q->explicit_tags ? PLAN_EXPLICIT_TAGS : 0)));
    if (d->on) {
        buf_varint(out, zigzag(d->interval));
        buf_u8(out, (uint8_t)d->unit);
        buf_u8(out, (uint8_t)d->function);
        buf_u8(out, (uint8_t)d->fill);
        buf_short(out, d->time_zone);
    }
    if (r->on) {
        buf_f64(out, r->counter_max);
        buf_f64(out, r->reset_value);
    }
    buf_varint(out, q->filter_count);
    for (size_t i = 0; i < q->filter_count; i++) {
        buf_u8(out, (uint8_t)q->filters[i].kind);
        buf_u8(out, q->filters[i].group_by);
        buf_short(out, q->filters[i].key);
        buf_short(out, q->filters[i].text);
    }
    buf_varint(out, zigzag(q->start_ns));
    buf_varint(out, zigzag(q->end_ns));
    buf_varint(out, limits->memory_bytes);
    buf_varint(out, limits->series_max);
    buf_varint(out, limits->points_max);
    buf_varint(out, limits->exact_max);
}

static int damaged(struct error *e)
{
    return error_set(e, -EBADMSG, "a damaged plan");
}

static int read_filters(struct bytes *b, struct arena *arena, struct query *q, struct error *e)
{
    uint64_t count = bytes_varint(b);
    if (b->failed || count > QUERY_FILTERS_MAX)
        return damaged(e);
    struct query_filter *filters = arena_array(arena, (size_t)count, sizeof *filters);
    if (!filters)
        return error_set(e, -ENOMEM, "no memory for a plan");
    for (size_t i = 0; i < count; i++) {
        unsigned kind = bytes_u8(b), group_by = bytes_u8(b);
        filters[i] =
            (struct query_filter){.kind = (enum query_filter_kind)kind, .group_by = group_by & 1};
        filters[i].key = bytes_short(b);
        filters[i].text = bytes_short(b);
        if (b->failed || kind >= QUERY_FILTER_COUNT || group_by > 1 ||
            filters[i].key.size > STORE_KEY_MAX)
            return damaged(e);
        int r = query_filter_check(&filters[i], e);
        if (r)
            return r;
    }
    q->filters = filters;
    q->filter_count = (size_t)count;
    return 0;
}

int query_plan_read(struct str request, struct arena *arena, struct query *q,
                    struct query_limits *limits, struct error *e)
{
    struct bytes b = bytes_of(request.data, request.size);
    *q = (struct query){.metric = bytes_short(&b)};
    unsigned aggregator = bytes_u8(&b), flags = bytes_u8(&b), function = QUERY_SUM, fill = 0;
    q->aggregator = (enum query_aggregator)aggregator;
    q->explicit_tags = flags & PLAN_EXPLICIT_TAGS;
    if (flags & PLAN_DOWNSAMPLE) {
        q->downsample = (struct query_downsample){.on = true,
                                                  .all = flags & PLAN_ALL,
                                                  .calendar = flags & PLAN_CALENDAR,
                                                  .interval = unzigzag(bytes_varint(&b)),
                                                  .unit = (char)bytes_u8(&b)};
        function = bytes_u8(&b);
        fill = bytes_u8(&b);
        q->downsample.function = (enum query_aggregator)function;
        q->downsample.fill = (enum query_fill)fill;
        q->downsample.time_zone = bytes_short(&b);
    }
    if (flags & PLAN_RATE) {
        q->rate = (struct query_rate){
            .on = true, .counter = flags & PLAN_COUNTER, .drop_resets = flags & PLAN_DROP_RESETS};
        q->rate.counter_max = bytes_f64(&b);
        q->rate.reset_value = bytes_f64(&b);
    }
    if (b.failed || q->metric.size == 0 || q->metric.size > STORE_NAME_MAX ||
        aggregator >= QUERY_AGGREGATOR_COUNT || flags > PLAN_FLAGS ||
        function >= QUERY_AGGREGATOR_COUNT || fill > QUERY_FILL_ZERO ||
        q->downsample.time_zone.size > ZONE_MAX ||
        (q->downsample.on && !q->downsample.all && q->downsample.interval <= 0))
        return damaged(e);
    int r = read_filters(&b, arena, q, e);
    if (r)
        return r;
    q->start_ns = unzigzag(bytes_varint(&b));
    q->end_ns = unzigzag(bytes_varint(&b));
    *limits = (struct query_limits){.memory_bytes = (size_t)bytes_varint(&b)};
    limits->series_max = bytes_varint(&b);
    limits->points_max = bytes_varint(&b);
    limits->exact_max = (size_t)bytes_varint(&b);
    if (b.failed || bytes_left(&b) || q->end_ns < q->start_ns)
        return damaged(e);
    return 0;
}
