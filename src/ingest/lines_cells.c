// lines_cells.c - the table of cells, and the samples of it.
//
// All cells are in one array; a map finds the cell of a series' number. A set keeps only the hashes
// of its members: one collision in 4 billion pairs is good enough for a count.
#include "ingest/lines_cells.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct members {
    uint64_t *hashes; // open addressing; 0 = free
    size_t count, capacity;
};

struct cell {
    uint32_t series;
    enum line_kind kind; // LINE_COUNT, LINE_GAUGE or LINE_MEMBER
    double value;
    struct members *members;
    bool quiet; // a set that was empty at the last sample, too
};

struct line_cells {
    struct cell *cells;
    size_t count, capacity;
    struct map by_series; // the key is the number of the series
    struct arena keys;
    bool (*recorded)(void *user, uint32_t series, double *value);
    void *recorded_user;
};

struct line_cells *line_cells_create(bool (*recorded)(void *user, uint32_t series, double *value),
                                     void *user)
{
    struct line_cells *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->recorded = recorded;
    c->recorded_user = user;
    return c;
}

void line_cells_destroy(struct line_cells *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++)
        if (c->cells[i].members) {
            free(c->cells[i].members->hashes);
            free(c->cells[i].members);
        }
    free(c->cells);
    map_free(&c->by_series);
    arena_free(&c->keys);
    free(c);
}

static int find_cell(struct line_cells *c, uint32_t series, enum line_kind kind, struct cell **out)
{
    struct str key = {(const char *)&series, sizeof series};
    uint64_t *place = map_get(&c->by_series, key);
    if (place) {
        *out = &c->cells[*place];
        return (*out)->kind == kind ? 0 : -EEXIST;
    }
    if (c->count == LINE_CELLS_MAX)
        return -ENOSPC;
    if (!array_room(&c->cells, &c->capacity, c->count + 1, sizeof *c->cells))
        return -ENOMEM;
    key = arena_str(&c->keys, key);
    place = key.data ? map_add(&c->by_series, key, NULL) : NULL;
    if (!place)
        return -ENOMEM;
    *place = c->count;
    *out = &c->cells[c->count++];
    **out = (struct cell){.series = series, .kind = kind};
    double value;
    if (kind != LINE_MEMBER && c->recorded && c->recorded(c->recorded_user, series, &value) &&
        isfinite(value))
        (*out)->value = value; // continues from the previous agent's value
    return 0;
}

static uint64_t *member_place(const struct members *m, uint64_t hash)
{
    size_t at = hash & (m->capacity - 1);
    while (m->hashes[at] && m->hashes[at] != hash)
        at = (at + 1) & (m->capacity - 1);
    return &m->hashes[at];
}

static int add_member(struct cell *cell, struct str member)
{
    if (!cell->members && !(cell->members = calloc(1, sizeof *cell->members)))
        return -ENOMEM;
    struct members *m = cell->members;
    if ((m->count + 1) * 2 > m->capacity) {
        struct members larger = {.count = m->count, .capacity = m->capacity ? m->capacity * 2 : 16};
        larger.hashes = calloc(larger.capacity, sizeof *larger.hashes);
        if (!larger.hashes)
            return -ENOMEM;
        for (size_t i = 0; i < m->capacity; i++)
            if (m->hashes[i])
                *member_place(&larger, m->hashes[i]) = m->hashes[i];
        free(m->hashes);
        *m = larger;
    }
    uint64_t hash = hash_bytes(member.data, member.size, 0);
    hash += hash == 0;
    uint64_t *place = member_place(m, hash);
    if (*place)
        return 0;
    if (m->count == LINE_MEMBERS_MAX)
        return -EOVERFLOW;
    *place = hash;
    m->count++;
    return 0;
}

int line_cells_apply(struct line_cells *c, uint32_t series, const struct line_item *item)
{
    struct cell *cell;
    int failed =
        find_cell(c, series, item->kind == LINE_GAUGE_ADD ? LINE_GAUGE : item->kind, &cell);
    if (failed)
        return failed;
    if (item->kind == LINE_MEMBER)
        return add_member(cell, item->member);
    double value = item->kind == LINE_GAUGE ? item->value : cell->value + item->value;
    if (!isfinite(value))
        return -EDOM;
    cell->value = value;
    return 0;
}

// Stores the current value of a cell. Returns false if it has none. Empties a set.
static bool take_value(struct cell *cell, double *out)
{
    *out = cell->value;
    if (cell->kind != LINE_MEMBER)
        return true;
    struct members *m = cell->members;
    size_t count = m ? m->count : 0;
    bool quiet = cell->quiet && count == 0;
    *out = (double)count;
    cell->quiet = count == 0;
    if (count) {
        free(m->hashes);
        *m = (struct members){0};
    }
    return !quiet;
}

size_t line_cells_sample(struct line_cells *c, struct store *store, int64_t t_ns)
{
    enum { BATCH = 256 };
    struct store_point batch[BATCH];
    size_t filled = 0, refused_all = 0;
    for (size_t i = 0; i < c->count; i++) {
        double value;
        if (take_value(&c->cells[i], &value))
            batch[filled++] = (struct store_point){t_ns, value, c->cells[i].series};
        if (filled == BATCH || (i + 1 == c->count && filled)) {
            size_t refused = 0;
            store_append_points(store, batch, filled, &refused);
            refused_all += refused;
            filled = 0;
        }
    }
    return refused_all;
}
