// tail.c - reads one series' points in a tail, which has the last appended points in order of
// arrival.
//
// Rows lie one after another, so a column's values are far apart, and reading a hundred columns one
// by one would fetch every cache line of the tail a hundred times. So each snapshot transposes a
// tail once, in strips of columns, in order of time:
//
//   rows      t0 a0 b0 c0 …  t1 a1 b1 c1 …          times  t0 t1 t2 …
//                                             ──▶   strip  a0 a1 a2 …  b0 b1 b2 …  c0 c1 c2 …
//
// If a column has no gaps and all its time stamps differ, it is then read in place. A query of one
// metric needs no strip: the first column of a strip that a snapshot reads is read alone.
#include "store/reader.h"
#include "store/sort.h"

#include <errno.h>
#include <stdlib.h>

enum {
    STRIP_COLUMNS = 16,
    LINE_WORDS = 8,
};

// One word of a tail, read once.
static inline void copy_word(void *to, const uint8_t *from)
{
    uint64_t word = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_RELAXED);
    memcpy(to, &word, sizeof word);
}

// ---- Rows ----

struct tail_times {
    bool sorted, repeated;
    uint32_t *order; // order of the rows, if they are not sorted; stored after t
    bool *asked;     // of each strip: one of its columns was read; stored after order
    int64_t t[];     // ascending; equal times in order of arrival
};

struct tail_strip {
    size_t stride; // distance between columns, in values
    bool missing[STRIP_COLUMNS];
    double v[];
};

static int sort_times(struct tail_times *times, size_t rows)
{
    struct row_time *all = malloc((rows + 1) * sizeof *all);
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < rows; i++)
        all[i] = (struct row_time){times->t[i], (uint32_t)i};
    rows_sort(all, rows);
    for (size_t i = 0; i < rows; i++) {
        times->t[i] = all[i].t_ns;
        times->order[i] = all[i].row;
        times->repeated |= i && all[i - 1].t_ns == all[i].t_ns;
    }
    free(all);
    return 0;
}

int tail_times(struct store_snapshot *s, size_t tail, uint32_t columns, struct cache_item **pin)
{
    const struct view_tail *t = &s->view->tails[tail];
    *pin = cache_find(&s->cache, CACHE_TAIL_TIMES, t, 0);
    if (*pin)
        return 0;
    size_t rows = s->used[tail], strips = (columns + STRIP_COLUMNS - 1) / STRIP_COLUMNS,
           bytes = sizeof(struct tail_times) + rows * (sizeof(int64_t) + sizeof(uint32_t)) + strips;
    struct tail_times *times = malloc(bytes);
    if (!times)
        return -ENOMEM;
    *times = (struct tail_times){.sorted = true};
    times->order = (uint32_t *)(void *)(times->t + rows);
    times->asked = (bool *)(times->order + rows);
    memset(times->asked, false, strips);
    for (size_t r = 0; r < rows; r++) {
        copy_word(&times->t[r], t->bytes + r * (columns + 1) * sizeof(double));
        times->sorted &= !r || times->t[r - 1] < times->t[r];
    }
    int rc = tail_standing(t);
    if (!rc && !times->sorted)
        rc = sort_times(times, rows);
    if (rc) {
        free(times);
        return rc;
    }
    *pin = cache_add(
        &s->cache,
        (struct cache_item){
            .of = t, .kind = CACHE_TAIL_TIMES, .bytes = bytes, .count = rows, .data = times});
    return *pin ? 0 : -ENOMEM;
}

const int64_t *tail_times_of(const struct cache_item *pin, size_t *count)
{
    *count = pin->count;
    return ((const struct tail_times *)pin->data)->t;
}

static int strip_of(struct store_snapshot *s, size_t tail, uint32_t columns, uint32_t number,
                    const struct cache_item *times_pin, struct cache_item **pin)
{
    const struct view_tail *t = &s->view->tails[tail];
    *pin = cache_find(&s->cache, CACHE_TAIL_STRIP, t, number);
    if (*pin)
        return 0;
    const struct tail_times *times = times_pin->data;
    size_t rows = times_pin->count;
    uint32_t first = number * STRIP_COLUMNS,
             width = columns - first < STRIP_COLUMNS ? columns - first : STRIP_COLUMNS;
    // If the distance between columns were a power of two, they would compete for the same few
    // lines of the nearest cache.
    size_t stride = (rows + 2 * LINE_WORDS - 1) / LINE_WORDS * LINE_WORDS + LINE_WORDS;
    size_t bytes = sizeof(struct tail_strip) + width * stride * sizeof(double);
    struct tail_strip *strip = malloc(bytes);
    if (!strip)
        return -ENOMEM;
    *strip = (struct tail_strip){.stride = stride};
    size_t row_bytes = (columns + 1) * sizeof(double);
    for (size_t done = 0; done < rows; done += LINE_WORDS)
        for (uint32_t c = 0; c < width; c++) {
            bool missing = false;
            for (size_t r = done; r < done + LINE_WORDS && r < rows; r++) {
                size_t row = times->sorted ? r : times->order[r];
                double *v = &strip->v[c * stride + r];
                copy_word(v, t->bytes + row * row_bytes + (1 + first + c) * sizeof(double));
                missing |= store_is_missing(*v);
            }
            strip->missing[c] |= missing;
        }
    int rc = tail_standing(t);
    if (rc) {
        free(strip);
        return rc;
    }
    *pin = cache_add(&s->cache, (struct cache_item){.of = t,
                                                    .part = number,
                                                    .kind = CACHE_TAIL_STRIP,
                                                    .bytes = bytes,
                                                    .count = rows,
                                                    .data = strip});
    return *pin ? 0 : -ENOMEM;
}

// Picks the cells with a value; of equal time stamps the last one. `v` may be out->own_v.
static int pick(struct store_snapshot *s, const int64_t *t, const double *v, size_t rows,
                struct column *out)
{
    out->own_t = buffer_take(&s->buffers, rows);
    if (!out->own_v)
        out->own_v = buffer_take(&s->buffers, rows);
    if (!out->own_t || !out->own_v)
        return -ENOMEM;
    size_t n = 0;
    for (size_t r = 0; r < rows; r++) {
        if (store_is_missing(v[r]))
            continue;
        n -= n && out->own_t[n - 1] == t[r];
        out->own_t[n] = t[r];
        out->own_v[n++] = v[r];
    }
    out->t = out->own_t;
    out->v = out->own_v;
    out->count = n;
    return 0;
}

// Returns all cells of a column, at *v, and whether any of them has no value.
static int read_alone(struct store_snapshot *s, size_t tail, uint32_t columns, uint32_t column,
                      struct column *out, const double **v, bool *missing)
{
    const struct view_tail *t = &s->view->tails[tail];
    const struct tail_times *times = out->pins[0]->data;
    size_t rows = out->pins[0]->count, row_bytes = (columns + 1) * sizeof(double);
    double *cells = out->own_v = buffer_take(&s->buffers, rows);
    if (!cells)
        return -ENOMEM;
    const uint8_t *first = t->bytes + (1 + column) * sizeof(double);
    *missing = false;
    for (size_t r = 0; r < rows; r++) {
        copy_word(&cells[r], first + (times->sorted ? r : times->order[r]) * row_bytes);
        *missing |= store_is_missing(cells[r]);
    }
    *v = cells;
    return tail_standing(t);
}

static int read_in_strip(struct store_snapshot *s, size_t tail, uint32_t columns, uint32_t column,
                         struct column *out, const double **v, bool *missing)
{
    int rc = strip_of(s, tail, columns, column / STRIP_COLUMNS, out->pins[0], &out->pins[1]);
    if (rc)
        return rc;
    const struct tail_strip *strip = out->pins[1]->data;
    *v = strip->v + column % STRIP_COLUMNS * strip->stride;
    *missing = strip->missing[column % STRIP_COLUMNS];
    return 0;
}

int tail_column(struct store_snapshot *s, size_t tail, uint32_t columns, uint32_t column,
                struct column *out)
{
    *out = (struct column){0};
    int rc = tail_times(s, tail, columns, &out->pins[0]);
    if (rc)
        return rc;
    const struct tail_times *times = out->pins[0]->data;
    bool *asked = &times->asked[column / STRIP_COLUMNS], missing;
    const double *v;
    rc = *asked ? read_in_strip(s, tail, columns, column, out, &v, &missing)
                : read_alone(s, tail, columns, column, out, &v, &missing);
    *asked = true;
    if (!rc && (missing || times->repeated)) {
        rc = pick(s, times->t, v, out->pins[0]->count, out);
    } else if (!rc) {
        out->t = times->t;
        out->v = v;
        out->count = out->pins[0]->count;
    }
    if (rc)
        column_free(s, out);
    return rc;
}

// ---- Single points ----

// Returns the tail's points, sorted and pinned.
static int points_of(struct store_snapshot *s, size_t tail, struct cache_item **pin)
{
    const struct view_tail *t = &s->view->tails[tail];
    *pin = cache_find(&s->cache, CACHE_POINT_TAIL, t, 0);
    if (*pin)
        return 0;
    size_t count = s->used[tail];
    struct point_record *points = malloc((count + 1) * sizeof *points),
                        *scratch = malloc((count + 1) * sizeof *points);
    uint64_t *keys = malloc((2 * count + 1) * sizeof *keys);
    int rc = points && scratch && keys ? 0 : -ENOMEM;
    if (!rc) {
        reader_copy_words(scratch, t->bytes, count * sizeof *points);
        rc = tail_standing(t);
    }
    if (!rc)
        count = points_sort(scratch, count, points, keys);
    free(scratch);
    free(keys);
    if (rc) {
        free(points);
        return rc;
    }
    *pin = cache_add(&s->cache, (struct cache_item){.of = t,
                                                    .kind = CACHE_POINT_TAIL,
                                                    .bytes = count * sizeof *points,
                                                    .count = count,
                                                    .data = points});
    return *pin ? 0 : -ENOMEM;
}

int tail_series(struct store_snapshot *s, size_t tail, uint32_t series, struct column *out)
{
    *out = (struct column){0};
    struct cache_item *pin;
    int rc = points_of(s, tail, &pin);
    if (rc)
        return rc;
    size_t n, from = points_find(pin->data, pin->count, series, &n);
    const struct point_record *points = (const struct point_record *)pin->data + from;
    if (n) {
        out->own_t = buffer_take(&s->buffers, n);
        out->own_v = buffer_take(&s->buffers, n);
        rc = out->own_t && out->own_v ? 0 : -ENOMEM;
    }
    for (size_t i = 0; !rc && i < n; i++) {
        out->own_t[i] = points[i].t_ns;
        out->own_v[i] = points[i].value;
    }
    out->count = n;
    out->t = out->own_t;
    out->v = out->own_v;
    cache_unpin(pin);
    if (rc)
        column_free(s, out);
    return rc;
}
