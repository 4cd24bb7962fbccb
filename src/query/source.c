#include "query/source.h"
#include "base/array.h"

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

static int open_cursor(struct query_source *s, const struct query_part *part)
{
    close_cursor(s);
    s->open = part;
    s->cursor = store_cursor_open(part->store, part->series, s->from_ns, s->to_ns);
    return s->cursor ? query_tick(s->c, SERIES_WORK) : store_fault(s->c, -ENOMEM);
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
    int r = open_cursor(s, part);
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
        int r = open_cursor(s, part);
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

// ---- current and pending state ----

// Cuts the cached runs to the range, as the store would.
static int next_decoded(struct query_source *s)
{
    const struct decoded_entry *e = s->decoded;
    while (s->next_run < e->run_count) {
        s->run = e->runs[s->next_run++];
        s->run_t = e->t_ns + s->run_at;
        s->run_v = e->values + s->run_at;
        s->run_at += s->run.count;
        if (s->run.first_ns > s->to_ns)
            return 0;
        if (s->run.last_ns < s->from_ns)
            continue;
        if (s->run.first_ns >= s->from_ns && s->run.last_ns <= s->to_ns)
            return 1;
        size_t from = 0, to = s->run.count;
        while (s->run_t[from] < s->from_ns)
            from++;
        while (to > from && s->run_t[to - 1] > s->to_ns)
            to--;
        s->run_t += from;
        s->run_v += from;
        if (to == from)
            continue;
        s->run = (struct store_run){
            .count = to - from, .first_ns = s->run_t[0], .last_ns = s->run_t[to - from - 1]};
        return 1;
    }
    return 0;
}

static void keep_nothing(struct query_source *s)
{
    free(s->fresh.runs);
    free(s->fresh.t_ns);
    free(s->fresh.values);
    s->fresh = (struct decoded_entry){0};
    s->keeps = NULL;
}

static bool room_for_run(struct query_source *s, size_t points)
{
    struct decoded_entry *e = &s->fresh;
    if (e->count + points > DECODED_POINTS_MAX || e->run_count == DECODED_RUNS_MAX)
        return false;
    size_t capacity = s->points_capacity;
    if (!capacity && points < s->c->usual_points)
        points = s->c->usual_points;
    return array_room(&e->runs, &s->runs_capacity, (size_t)e->run_count + 1, sizeof *e->runs) &&
           array_room(&e->t_ns, &capacity, e->count + points, sizeof *e->t_ns) &&
           array_room(&e->values, &s->points_capacity, e->count + points, sizeof *e->values);
}

// Keeps the current run, which was decoded. A damaged run is not kept.
static void keep_run(struct query_source *s, const int64_t *t, const double *v, size_t n)
{
    struct decoded_entry *e = &s->fresh;
    if (n != s->run.count || !room_for_run(s, n)) {
        keep_nothing(s);
        return;
    }
    e->runs[e->run_count++] = s->run;
    memcpy(e->t_ns + e->count, t, n * sizeof *t);
    memcpy(e->values + e->count, v, n * sizeof *v);
    e->count += n;
    s->taken = true;
}

static void keep_all(struct query_source *s)
{
    s->c->usual_points = s->fresh.count;
    decoded_keep(s->c->cache, s->keeps->store_id, s->keeps->series, s->fresh);
    s->fresh = (struct decoded_entry){0};
    s->keeps = NULL;
}

// Keeps all points of the series in a sealed block of a live file, which have been decoded.
static void keep_block(struct query_source *s, uint64_t block, const int64_t *t, const double *v)
{
    struct decoded_entry e = {
        .from_ns = s->run.first_ns, .to_ns = s->run.last_ns, .run_count = 1, .count = s->run.count};
    e.runs = malloc(sizeof *e.runs);
    e.t_ns = malloc(e.count * sizeof *e.t_ns);
    e.values = malloc(e.count * sizeof *e.values);
    if (!e.runs || !e.t_ns || !e.values) {
        free(e.runs);
        free(e.t_ns);
        free(e.values);
        return;
    }
    e.runs[0] = s->run;
    memcpy(e.t_ns, t, e.count * sizeof *t);
    memcpy(e.values, v, e.count * sizeof *v);
    decoded_keep(s->c->cache, decoded_block(block), s->open->series, e);
}

// The points of the current run: from the cache if the cached entry covers all of the block,
// otherwise decoded.
static int cursor_points(struct query_source *s, const int64_t **t_ns, const double **values,
                         size_t *count)
{
    bool may = s->c->cache && !s->open->store_id && s->run.count >= DECODED_BLOCK_POINTS_MIN &&
               s->run.count <= DECODED_POINTS_MAX;
    uint64_t block = may ? store_cursor_block(s->cursor) : 0;
    let_block_go(s);
    if (block)
        s->block = decoded_find(s->c->cache, decoded_block(block), s->open->series, s->run.first_ns,
                                s->run.last_ns);
    if (s->block) {
        *t_ns = s->block->t_ns;
        *values = s->block->values;
        *count = s->block->count;
        return 0;
    }
    int r = store_cursor_points(s->cursor, t_ns, values, count);
    // If the block is gone or damaged, the points come from another block and are not kept.
    if (r == 0 && block && *count == s->run.count && store_cursor_block(s->cursor) == block)
        keep_block(s, block, *t_ns, *values);
    return r < 0 ? store_fault(s->c, r) : 0;
}

// Whether the series has no points after to_ns.
static bool ends_before(const struct query_part *part, int64_t to_ns)
{
    struct store_run run;
    struct store_cursor *cursor =
        to_ns == INT64_MAX ? NULL
                           : store_cursor_open(part->store, part->series, to_ns + 1, INT64_MAX);
    bool ends = cursor && store_cursor_next(cursor, &run) == 0;
    if (cursor)
        store_cursor_close(cursor);
    return ends;
}

static int open_one(struct query_source *s, const struct query_part *part)
{
    struct query_cache *cache = part->store_id ? s->c->cache : NULL;
    // A range may extend beyond the end of the series. Then the entry covers all later times,
    // because "until now" is the same range a moment later.
    int64_t to_ns = cache && ends_before(part, s->to_ns) ? INT64_MAX : s->to_ns;
    if (cache)
        s->decoded = decoded_find(cache, part->store_id, part->series, s->from_ns, to_ns);
    if (s->decoded)
        return query_tick(s->c, SERIES_WORK);
    if (cache) {
        s->keeps = part;
        s->taken = true;
        s->fresh.from_ns = s->from_ns;
        s->fresh.to_ns = to_ns;
    }
    return open_cursor(s, part);
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
    return series->part.next ? open_parts(s, series) : open_one(s, &series->part);
}

void query_source_close(struct query_source *s)
{
    close_cursor(s);
    if (s->decoded)
        decoded_release(s->c->cache, s->decoded);
    s->decoded = NULL;
    keep_nothing(s);
}

int query_source_next(struct query_source *s)
{
    if (s->merged_t) {
        bool first = s->merged;
        s->merged = false;
        return first;
    }
    int r = query_tick(s->c, RUN_WORK);
    if (s->decoded)
        return r ? r : next_decoded(s);
    if (s->keeps && !s->taken)
        keep_nothing(s); // the last run's summary was enough
    while (r == 0) {
        int more = s->cursor ? store_cursor_next(s->cursor, &s->run) : 0;
        s->taken = false;
        if (more > 0)
            return 1;
        if (more < 0)
            return store_fault(s->c, more);
        if (s->next_part == s->part_count) {
            if (s->keeps)
                keep_all(s);
            return 0;
        }
        r = open_cursor(s, &s->parts[s->next_part++]);
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
    if (r)
        return r;
    if (s->decoded) {
        *t_ns = s->run_t;
        *values = s->run_v;
        *count = s->run.count;
        return 0;
    }
    r = cursor_points(s, t_ns, values, count);
    if (r)
        return r;
    if (s->keeps)
        keep_run(s, *t_ns, *values, *count);
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
