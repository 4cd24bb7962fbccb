#include "client/distribution.h"

#include "base/array.h"
#include "query/percentile.h"

#include <math.h>
#include <stdlib.h>

void distribution_room_begin(struct distribution_room *room, size_t values)
{
    static const struct query_limits limits = {.memory_bytes = DISTRIBUTION_SKETCH_BYTES_MAX};
    *room = (struct distribution_room){.left = values};
    query_context_begin(&room->context, &room->query, &limits, &room->sketches, NULL);
}

void distribution_room_end(struct distribution_room *room)
{
    query_context_end(&room->context);
    arena_free(&room->sketches);
}

static int count_in_sketch(struct distribution_room *room, struct distribution *d, double value,
                           struct error *e)
{
    room->context.e = e;
    return query_sketch_add(&room->context, &room->sketches, &d->sketch, value);
}

// From now on, values are counted in buckets.
static int estimate(struct distribution_room *room, struct distribution *d, struct error *e)
{
    int rc = 0;
    d->sketch = (struct query_sketch){.smallest = NAN, .largest = NAN};
    for (size_t i = 0; i < d->count && !rc; i++)
        rc = count_in_sketch(room, d, d->values[i], e);
    room->left += (size_t)d->count;
    free(d->values);
    d->values = NULL;
    d->capacity = 0;
    d->estimated = true;
    return rc;
}

static int keep_value(struct distribution_room *room, struct distribution *d, double value,
                      struct error *e)
{
    int rc = 0;
    if (!d->estimated && !room->left)
        rc = estimate(room, d, e);
    if (rc)
        return rc;
    if (d->estimated)
        return count_in_sketch(room, d, value, e);
    if (!array_room(&d->values, &d->capacity, (size_t)d->count + 1, sizeof *d->values))
        return error_set(e, -ENOMEM, "no memory for values");
    d->values[d->count] = value;
    room->left--;
    return 0;
}

int distribution_add(struct distribution_room *room, struct distribution *d, double value,
                     bool keep, struct error *e)
{
    int rc = isnan(value) || !keep ? 0 : keep_value(room, d, value, e);
    if (isnan(value) || rc)
        return rc;
    if (!d->count || value < d->smallest)
        d->smallest = value;
    if (!d->count || value > d->largest)
        d->largest = value;
    long double difference = (long double)value - d->mean;
    d->count++;
    d->mean += difference / (long double)d->count;
    d->squares += difference * ((long double)value - d->mean);
    return 0;
}

double distribution_deviation(const struct distribution *d)
{
    return d->count ? (double)sqrtl(d->squares / (long double)d->count) : NAN;
}

double distribution_quantile(struct distribution *d, enum query_aggregator quantile)
{
    const struct query_aggregator_row *row = query_aggregator_row(quantile);
    if (d->estimated)
        return query_sketch_quantile(&d->sketch, row);
    return d->values ? query_quantile(d->values, (size_t)d->count, row, false) : NAN;
}

void distribution_free(struct distribution_room *room, struct distribution *d)
{
    if (d->values)
        room->left += (size_t)d->count;
    free(d->values);
    *d = (struct distribution){0};
}
