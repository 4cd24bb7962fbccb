#include "client/integral.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int class_of(int64_t distance_ns)
{
    uint64_t d = (uint64_t)distance_ns; // the caller has checked that it is above 0
    int power = 63 - __builtin_clzll(d);
    int next = (int)((power >= 3 ? d >> (power - 3) : d << (3 - power)) & 7);
    return power * INTEGRAL_CLASSES_PER_DOUBLING + next;
}

static struct integral_class *find_class(struct integral *i, int number)
{
    size_t at;
    if (i->latest < i->count && i->classes[i->latest].number == number)
        return &i->classes[i->latest];
    SEARCH_FIRST(at, i->count, i->classes[at].number >= number);
    i->latest = at;
    if (at < i->count && i->classes[at].number == number)
        return &i->classes[at];
    if (!array_room(&i->classes, &i->capacity, i->count + 1, sizeof *i->classes))
        return NULL;
    memmove(i->classes + at + 1, i->classes + at, (i->count - at) * sizeof *i->classes);
    i->count++;
    i->classes[at] = (struct integral_class){.number = number};
    return &i->classes[at];
}

bool integral_add(struct integral *i, int64_t t_ns, double value)
{
    if (isnan(value))
        return true;
    if (i->any && t_ns > i->last_ns) {
        int64_t distance_ns = t_ns - i->last_ns;
        struct integral_class *c = find_class(i, class_of(distance_ns));
        if (!c)
            return false;
        long double height =
            i->rate ? (long double)value : ((long double)i->last + (long double)value) / 2;
        c->count++;
        c->area += height * (long double)distance_ns;
        c->time_ns += distance_ns;
    }
    i->any = true;
    i->last_ns = t_ns;
    i->last = value;
    return true;
}

double integral_value(const struct integral *i, int64_t *covered_ns)
{
    uint64_t distances = 0, below = 0;
    size_t median = 0;
    long double area = 0;
    *covered_ns = 0;
    if (!i->count)
        return NAN;
    for (size_t k = 0; k < i->count; k++)
        distances += i->classes[k].count;
    while (below + i->classes[median].count < (distances + 1) / 2)
        below += i->classes[median++].count;
    int most = i->classes[median].number + INTEGRAL_CLASSES_PER_DOUBLING;
    for (size_t k = 0; k < i->count && i->classes[k].number <= most; k++) {
        area += i->classes[k].area;
        *covered_ns += i->classes[k].time_ns;
    }
    return (double)(area / NS_PER_S);
}

void integral_free(struct integral *i)
{
    free(i->classes);
    *i = (struct integral){0};
}
