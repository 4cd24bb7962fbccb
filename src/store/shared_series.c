// shared_series.c - handles series that are appended in more than one way: in several sets, or in a
// set and singly.
//
// At equal time stamps the point that was appended last must win. But a set's rows and the single
// points lie in separate tails and blocks, and the file does not record their order. So a rule
// decides without the order: a single point wins over the cells of sets. If another set may hold a
// value for a cell at the same time, the cell is also appended as a single point. Among single
// points the last one wins anyway.
//
//   row of set 1 {t=5, a=1}
//   row of set 2 {t=5, a=2}  and, as set 1 may hold a at 5, point {a, t=5, 2}
//
// "May hold": for each such series, the store knows the newest time stamp of each of its owners. If
// a cell is newer than the time stamps of all other owners, as with appends in order of time, it
// costs one comparison. A late cell costs 24 bytes. Of data from before the file was opened, only
// the newest times are known.
//
// One case remains: retention deletes the oldest extents first, and may delete the single point a
// little before the row that it overrides.
#include "base/array.h"
#include "store/writer.h"

#include <stdlib.h>

enum { SHARED_NOBODY = UINT32_MAX - 1, SHARED_SINGLY = UINT32_MAX };

struct shared_series {
    int64_t newest_ns; // newest time of an owner: a set or SHARED_SINGLY
    int64_t others_ns; // newest time of all other owners
    uint32_t owner;
};

static int share(struct store *s, uint32_t series)
{
    if (s->catalog.series_use[series] & SERIES_SHARED)
        return 0;
    if (!array_room(&s->shared.index, &s->shared.index_capacity, (size_t)series + 1,
                    sizeof *s->shared.index) ||
        !array_room(&s->shared.series, &s->shared.capacity, (size_t)s->shared.count + 1,
                    sizeof *s->shared.series))
        return -ENOMEM;
    s->shared.index[series] = s->shared.count;
    s->shared.series[s->shared.count++] = (struct shared_series){
        .newest_ns = s->newest_ns, .others_ns = s->newest_ns, .owner = SHARED_NOBODY};
    s->catalog.series_use[series] |= SERIES_SHARED;
    return 0;
}

// Returns an upper bound for the time stamps of all owners except `owner`.
static int64_t others_of(const struct shared_series *x, uint32_t owner)
{
    return x->owner == owner ? x->others_ns : x->newest_ns;
}

static void note(struct shared_series *x, uint32_t owner, int64_t t_ns)
{
    if (x->owner != owner && t_ns <= x->newest_ns) {
        x->others_ns = t_ns > x->others_ns ? t_ns : x->others_ns;
        return;
    }
    if (x->owner != owner) {
        x->others_ns = x->newest_ns;
        x->owner = owner;
        x->newest_ns = t_ns;
    }
    x->newest_ns = t_ns > x->newest_ns ? t_ns : x->newest_ns;
}

int shared_set(struct store *s, struct set *set)
{
    for (uint32_t c = 0; c < set->count; c++) {
        uint8_t *use = &s->catalog.series_use[set->series[c]];
        int rc = *use & (SERIES_IN_SET | SERIES_SINGLE) ? share(s, set->series[c]) : 0;
        if (rc)
            return rc;
        *use |= SERIES_IN_SET;
    }
    return 0;
}

int shared_single(struct store *s, uint32_t series, int64_t t_ns)
{
    uint8_t *use = &s->catalog.series_use[series];
    int rc = *use & SERIES_IN_SET ? share(s, series) : 0;
    if (rc)
        return rc;
    *use |= SERIES_SINGLE;
    if (*use & SERIES_SHARED)
        note(&s->shared.series[s->shared.index[series]], SHARED_SINGLY, t_ns);
    return 0;
}

void shared_opened(struct store *s)
{
    for (uint32_t i = 0; i < s->shared.count; i++)
        s->shared.series[i] = (struct shared_series){
            .newest_ns = s->newest_ns, .others_ns = s->newest_ns, .owner = SHARED_NOBODY};
}

// Called if a series has become shared since the last row. Checks whether this set has it.
static void look_again(const struct store *s, struct set *set)
{
    set->shared = false;
    for (uint32_t c = 0; c < set->count && !set->shared; c++)
        set->shared = s->catalog.series_use[set->series[c]] & SERIES_SHARED;
    set->shared_seen = s->shared.count;
}

int shared_row(struct store *s, uint32_t id, int64_t t_ns, const double *values)
{
    struct set *set = &s->catalog.sets[id];
    if (set->shared_seen != s->shared.count)
        look_again(s, set);
    bool before = t_ns <= s->shared.singles_before_ns;
    for (uint32_t c = 0; (set->shared || before) && c < set->count; c++) {
        uint32_t series = set->series[c];
        bool shared = s->catalog.series_use[series] & SERIES_SHARED;
        if (store_is_missing(values[c]) || !(shared || before))
            continue;
        if (before || t_ns <= others_of(&s->shared.series[s->shared.index[series]], id)) {
            int rc = append_point(s, series, t_ns, values[c]);
            if (rc)
                return rc;
        }
        if (s->catalog.series_use[series] & SERIES_SHARED)
            note(&s->shared.series[s->shared.index[series]], id, t_ns);
    }
    return 0;
}

void shared_free(struct store *s)
{
    free(s->catalog.series_use);
    free(s->shared.index);
    free(s->shared.series);
}

size_t shared_memory(const struct store *s)
{
    return s->catalog.series_capacity * sizeof *s->catalog.series_use +
           s->shared.index_capacity * sizeof *s->shared.index +
           s->shared.capacity * sizeof *s->shared.series;
}
