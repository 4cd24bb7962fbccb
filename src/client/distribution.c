#include "client/distribution.h"

#include "base/array.h"
#include "query/percentile.h"

#include <errno.h>
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

// Switches to an estimate: from now on, values are counted in buckets.
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

// Keeps the values for exact quantiles. `kept` of them are not NaN.
static int keep_values(struct distribution_room *room, struct distribution *d, const double *values,
                       size_t count, size_t kept, struct error *e)
{
    int rc = 0;
    if (!d->estimated && room->left < kept)
        rc = estimate(room, d, e);
    for (size_t i = 0; i < count && d->estimated && !rc; i++)
        rc = isnan(values[i]) ? 0 : count_in_sketch(room, d, values[i], e);
    if (rc || d->estimated)
        return rc;
    size_t n = (size_t)d->count;
    if (!array_room(&d->values, &d->capacity, n + kept, sizeof *d->values))
        return error_set(e, -ENOMEM, "no memory for values");
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            d->values[n++] = values[i];
    room->left -= kept;
    return 0;
}

// Computes the moments of these values and adds them to the distribution (Chan, Golub and LeVeque).
// So all values together need only one division.
int distribution_add(struct distribution_room *room, struct distribution *d, const double *values,
                     size_t count, bool keep, struct error *e)
{
    long double sum = 0, squares = 0;
    double smallest = INFINITY, largest = -INFINITY;
    size_t added = 0;
    for (size_t i = 0; i < count; i++) {
        if (isnan(values[i]))
            continue;
        added++;
        sum += values[i];
        smallest = values[i] < smallest ? values[i] : smallest;
        largest = values[i] > largest ? values[i] : largest;
    }
    int rc = added && keep ? keep_values(room, d, values, count, added, e) : 0;
    if (!added || rc)
        return rc;
    long double mean = sum / (long double)added, total = (long double)(d->count + added),
                apart = mean - d->mean;
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            squares += ((long double)values[i] - mean) * ((long double)values[i] - mean);
    d->smallest = !d->count || smallest < d->smallest ? smallest : d->smallest;
    d->largest = !d->count || largest > d->largest ? largest : d->largest;
    d->squares += squares + apart * apart * (long double)d->count * (long double)added / total;
    d->mean += apart * (long double)added / total;
    d->count += added;
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
