#include "query/source.h"
#include "base/search.h"

#include <stdlib.h>

enum { RUN_WORK = 16, SERIES_WORK = 64 };

static int store_fault(struct query_context *c, int r)
{
    return error_set(c->e, r,
                     r == -ENOMEM ? "no memory for the query" : "the store cannot be read (%s)",
                     strerror(-r));
}

static void let_block_go(struct query_source *s)
{
    if (s->block)
        decoded_release(s->c->cache, s->block);
    s->block = NULL;
}

static void close_cursor(struct query_source *s)
{
    let_block_go(s);
    if (s->cursor)
        store_cursor_close(s->cursor);
    s->cursor = NULL;
}

typedef struct store_cursor *open_fn(struct store_snapshot *s, uint32_t series, int64_t from_ns,
                                     int64_t to_ns);

static int open_with(struct query_source *s, const struct query_part *part, open_fn *open)
{
    close_cursor(s);
    s->open = part;
    s->cursor = open(part->store, part->series, s->from_ns, s->to_ns);
    return s->cursor ? query_tick(s->c, SERIES_WORK) : store_fault(s->c, -ENOMEM);
}

// Opens a part whose runs only this cursor has at their times.
static int open_alone(struct query_source *s, const struct query_part *part)
{
    return open_with(s, part, s->c->cache ? store_cursor_open_blocks : store_cursor_open);
}

// First and last time stamp and the number of points of a part in the range, from the headers of
// its runs.
struct extent {
    const struct query_part *part;
    int64_t first_ns, last_ns;
    size_t points;
};

static int measure(struct query_source *s, const struct query_part *part, struct extent *x)
{
    *x = (struct extent){.part = part};
    int r = open_with(s, part, store_cursor_open);
    while (r == 0) {
        struct store_run run;
        int more = store_cursor_next(s->cursor, &run);
        if (more <= 0)
            return more == 0 ? 0 : store_fault(s->c, more);
        if (x->points == 0)
            x->first_ns = run.first_ns;
        x->last_ns = run.last_ns;
        x->points += run.count;
        r = query_tick(s->c, RUN_WORK);
    }
    return r;
}

// Merges points of one part into the `done` points in t and v: both ascend, so one pass from the
// end suffices. Returns the new number of points. At equal time stamps the part's point wins.
static size_t merge_behind(int64_t *t, double *v, size_t done, const int64_t *t2, const double *v2,
                           size_t n)
{
    size_t i = done, j = n, to = done + n;
    while (j > 0) {
        bool old = i > 0 && t[i - 1] > t2[j - 1];
        if (i > 0 && t[i - 1] == t2[j - 1])
            i--;
        --to;
        t[to] = old ? t[i - 1] : t2[j - 1];
        v[to] = old ? v[i - 1] : v2[j - 1];
        if (old)
            i--;
        else
            j--;
    }
    // Equal time stamps leave a gap between the untouched front [0, i) and the merged points from
    // `to` on.
    if (i < to) {
        memmove(t + i, t + to, (done + n - to) * sizeof *t);
        memmove(v + i, v + to, (done + n - to) * sizeof *v);
    }
    return i + (done + n - to);
}

static int merge_parts(struct query_source *s, const struct query_selected *series, size_t points)
{
    s->merged_t = query_alloc(s->c, &s->c->group, points, sizeof *s->merged_t);
    s->merged_v = query_alloc(s->c, &s->c->group, points, sizeof *s->merged_v);
    if (!s->merged_t || !s->merged_v)
        return query_alloc_failed(s->c);
    size_t done = 0;
    for (const struct query_part *part = &series->part; part; part = part->next) {
        int r = open_with(s, part, store_cursor_open);
        while (r == 0) {
            struct store_run run;
            int more = store_cursor_next(s->cursor, &run);
            if (more < 0)
                return store_fault(s->c, more);
            if (more == 0)
                break;
            r = query_count_points(s->c, run.count);
            if (r)
                break;
            const int64_t *t;
            const double *v;
            size_t n;
            r = store_cursor_points(s->cursor, &t, &v, &n);
            if (r)
                return store_fault(s->c, r);
            if (done + n > points)
                n = points - done;
            done = merge_behind(s->merged_t, s->merged_v, done, t, v, n);
        }
        if (r)
            return r;
    }
    s->merged = done > 0;
    s->part_count = s->next_part = 0;
    close_cursor(s);
    if (done)
        s->run = (struct store_run){
            .count = done, .first_ns = s->merged_t[0], .last_ns = s->merged_t[done - 1]};
    return 0;
}

// ---- the current run ----

// The points of the cursor's run: from the cache if they are those of a sealed block that it has,
// otherwise decoded.
static int cursor_points(struct query_source *s, const int64_t **t_ns, const double **values,
                         size_t *count)
{
    uint64_t block = s->c->cache ? store_cursor_block(s->cursor) : 0;
    let_block_go(s);
    if (block)
        s->block = decoded_find(s->c->cache, block, s->open->series);
    if (s->block) {
        *t_ns = s->block->t_ns;
        *values = s->block->values;
        *count = s->block->count;
        return 0;
    }
    if (block && s->c->observer)
        s->c->observer->missed(s->c->observer->user, s->run.count);
    int r = store_cursor_points(s->cursor, t_ns, values, count);
    // If the block is gone or damaged, the points come from another block and are not kept.
    if (r == 0 && block && *count == s->run.count && store_cursor_block(s->cursor) == block)
        decoded_keep(s->c->cache, block, s->open->series, *t_ns, *values, *count);
    return r < 0 ? store_fault(s->c, r) : 0;
}

// Reduces a run that is a complete block to its points in the range. Returns 1, 0 if it has none,
// or a negative errno.
static int cut_run(struct query_source *s)
{
    const int64_t *t;
    const double *v;
    size_t n, from, to;
    int r = cursor_points(s, &t, &v, &n);
    if (r)
        return r;
    SEARCH_FIRST(from, n, t[from] >= s->from_ns);
    SEARCH_FIRST(to, n, t[to] > s->to_ns);
    if (from >= to)
        return 0;
    s->cut = true;
    s->cut_t = t + from;
    s->cut_v = v + from;
    s->run = (struct store_run){.count = to - from, .first_ns = t[from], .last_ns = t[to - 1]};
    return 1;
}

static int open_parts(struct query_source *s, const struct query_selected *series)
{
    size_t count = 0, used = 0, points = 0;
    for (const struct query_part *part = &series->part; part; part = part->next)
        count++;
    if (count > QUERY_PARTS_MAX)
        return error_set(s->c->e, -E2BIG, "One series lies in %zu stores; %d are the limit", count,
                         QUERY_PARTS_MAX);
    struct extent *x = query_alloc(s->c, &s->c->group, count, sizeof *x);
    s->parts = query_alloc(s->c, &s->c->group, count, sizeof *s->parts);
    if (!x || !s->parts)
        return query_alloc_failed(s->c);
    for (const struct query_part *part = &series->part; part; part = part->next) {
        int r = measure(s, part, &x[used]);
        if (r)
            return r;
        points += x[used].points;
        used += x[used].points > 0;
    }
    // Insertion sort, because stores are usually in order of time already.
    for (size_t i = 1; i < used; i++) {
        struct extent one = x[i];
        size_t j = i;
        for (; j > 0 && x[j - 1].first_ns > one.first_ns; j--)
            x[j] = x[j - 1];
        x[j] = one;
    }
    for (size_t i = 1; i < used; i++)
        if (x[i].first_ns <= x[i - 1].last_ns)
            return merge_parts(s, series, points);
    for (size_t i = 0; i < used; i++)
        s->parts[i] = *x[i].part;
    s->part_count = used;
    close_cursor(s);
    return 0;
}

int query_source_open(struct query_source *s, struct query_context *c,
                      const struct query_selected *series, int64_t from_ns, int64_t to_ns)
{
    *s = (struct query_source){.c = c, .from_ns = from_ns, .to_ns = to_ns};
    if (from_ns > to_ns)
        return 0;
    return series->part.next ? open_parts(s, series) : open_alone(s, &series->part);
}

void query_source_close(struct query_source *s)
{
    close_cursor(s);
}

int query_source_next(struct query_source *s)
{
    if (s->merged_t) {
        bool first = s->merged;
        s->merged = false;
        return first;
    }
    int r = query_tick(s->c, RUN_WORK);
    s->cut = false;
    while (r == 0) {
        int more = s->cursor ? store_cursor_next(s->cursor, &s->run) : 0;
        if (more < 0)
            return store_fault(s->c, more);
        if (more > 0) {
            if (s->run.first_ns >= s->from_ns && s->run.last_ns <= s->to_ns)
                return 1;
            r = cut_run(s);
            if (r)
                return r;
            continue;
        }
        if (s->next_part == s->part_count)
            return 0;
        r = open_alone(s, &s->parts[s->next_part++]);
    }
    return r;
}

int query_source_points(struct query_source *s, const int64_t **t_ns, const double **values,
                        size_t *count)
{
    if (s->merged_t) {
        *t_ns = s->merged_t;
        *values = s->merged_v;
        *count = s->run.count;
        return 0; // counted when they were merged
    }
    int r = query_count_points(s->c, s->run.count);
    if (r || !s->cut)
        return r ? r : cursor_points(s, t_ns, values, count);
    *t_ns = s->cut_t;
    *values = s->cut_v;
    *count = s->run.count;
    return 0;
}

bool query_point_before(const struct query_selected *series, int64_t at_ns, int64_t *t_ns,
                        double *value)
{
    bool found = false;
    for (const struct query_part *part = &series->part; part; part = part->next) {
        int64_t t;
        double v;
        if (store_point_before(part->store, part->series, at_ns, &t, &v) &&
            (!found || t >= *t_ns)) {
            *t_ns = t;
            *value = v;
            found = true;
        }
    }
    return found;
}

// The first point of the cursor.
static int first_point(struct query_context *c, struct store_cursor *cursor, int64_t *t_ns,
                       double *value)
{
    struct store_run run;
    int r;
    while ((r = store_cursor_next(cursor, &run)) > 0) {
        const int64_t *t = &run.first_ns;
        const double *v = &run.summary.first;
        size_t n = 1;
        int failed = run.has_summary ? 0 : store_cursor_points(cursor, &t, &v, &n);
        if (failed)
            return store_fault(c, failed);
        if (n == 0)
            continue; // damaged
        *t_ns = *t;
        *value = *v;
        return 1;
    }
    return r < 0 ? store_fault(c, r) : 0;
}

int query_point_after(struct query_context *c, const struct query_selected *series, int64_t from_ns,
                      int64_t to_ns, int64_t *t_ns, double *value)
{
    int found = 0;
    for (const struct query_part *part = &series->part; part; part = part->next) {
        // Most queries cover the last minutes until now and need no lookup here.
        if (from_ns >= store_newest_ns(part->store) || from_ns >= to_ns)
            continue;
        int64_t t = 0;
        double v = 0;
        struct store_cursor *cursor =
            store_cursor_open(part->store, part->series, from_ns + 1, to_ns);
        int r = cursor ? first_point(c, cursor, &t, &v) : store_fault(c, -ENOMEM);
        if (cursor)
            store_cursor_close(cursor);
        if (r == 0)
            r = query_tick(c, SERIES_WORK);
        if (r < 0)
            return r;
        if (r > 0) {
            *t_ns = to_ns = t; // at the same time stamp, the later store's point wins
            *value = v;
            found = 1;
        }
    }
    return found;
}
