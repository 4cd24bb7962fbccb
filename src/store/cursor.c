// cursor.c - the points of one series in order of time, from whatever they lie in.
//
// A series' points lie in pieces: a column of a block, its cells in a tail. Pieces overlap where points came late. The cursor
// goes through time in slices that begin and end where pieces do: in a slice with one piece the run is that piece, undecoded; where
// several overlap they are decoded and merged, the newest of equal time stamps winning.
#include "store/reader.h"

#include <errno.h>
#include <stdlib.h>

struct piece {
    int64_t first_ns, last_ns;
    uint64_t order;                // of arrival
    const struct block_ref *block; // NULL: of a tail, decoded from the start
    struct block_column column;
    bool loaded;
    int64_t *t;
    double *v;
    size_t count, at; // points before `at` have been given
};

struct store_cursor {
    struct store_snapshot *s;
    int64_t from_ns, to_ns;
    struct piece *pieces; // by first_ns
    size_t piece_count, piece_capacity;
    int64_t next_ns; // everything before has been given
    bool done;
    // The run given last: a whole piece, not decoded yet…
    struct piece *whole;
    struct store_run run;
    // …or points.
    int64_t *t;
    double *v;
    size_t count, capacity;
};

static void piece_free(struct piece *p)
{
    free(p->t);
    free(p->v);
}

void store_cursor_close(struct store_cursor *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->piece_count; i++)
        piece_free(&c->pieces[i]);
    free(c->pieces);
    free(c->t);
    free(c->v);
    free(c);
}

// ── Pieces ───────────────────────────────────────────────────────────────────────────────────────────────────────

static bool add_piece(struct store_cursor *c, struct piece p)
{
    if (c->piece_count == c->piece_capacity) {
        void *grown = array_grow(c->pieces, &c->piece_capacity, sizeof *c->pieces);
        if (!grown) {
            piece_free(&p);
            return false;
        }
        c->pieces = grown;
    }
    c->pieces[c->piece_count++] = p;
    return true;
}

static bool in_range(const struct store_cursor *c, int64_t first_ns, int64_t last_ns)
{
    return first_ns <= c->to_ns && last_ns >= c->from_ns;
}

static int add_block(struct store_cursor *c, const struct block_ref *b, uint32_t column)
{
    if (!in_range(c, b->header.first_ns, b->header.last_ns))
        return 0;
    uint8_t *bytes = block_fetch(c->s, b);
    if (!bytes)
        return 0;
    struct piece p = {.block = b, .order = b->header.order};
    int rc = block_find_column(&b->header, bytes, column, &p.column);
    free(bytes);
    if (rc)
        return 0;
    p.first_ns = p.column.run.first_ns;
    p.last_ns = p.column.run.last_ns;
    if (!in_range(c, p.first_ns, p.last_ns))
        return 0;
    return add_piece(c, p) ? 0 : -ENOMEM;
}

struct timed {
    int64_t t_ns;
    double value;
    uint64_t place;
};

static int by_time(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static int add_tail(struct store_cursor *c, const struct tail_copy *tail, uint32_t series, uint32_t columns,
                    uint32_t column)
{
    struct timed *points = malloc((tail->used + 1) * sizeof *points);
    if (!points)
        return -ENOMEM;
    size_t n = 0;
    bool sorted = true;
    for (uint64_t i = 0; i < tail->used; i++) {
        struct timed p = {.place = i};
        if (tail->kind == SEGMENT_POINT_TAIL) {
            struct point_record r;
            memcpy(&r, tail->bytes + i * sizeof r, sizeof r);
            if (r.series != series)
                continue;
            p.t_ns = r.t_ns;
            p.value = r.value;
        } else {
            const uint8_t *row = tail->bytes + i * (columns + 1) * sizeof(double);
            memcpy(&p.t_ns, row, 8);
            memcpy(&p.value, row + 8 + column * sizeof(double), 8);
            if (store_is_missing(p.value))
                continue;
        }
        sorted = sorted && (!n || points[n - 1].t_ns < p.t_ns);
        points[n++] = p;
    }
    if (!sorted)
        qsort(points, n, sizeof *points, by_time);
    struct piece p = {.order = UINT64_MAX, .loaded = true};
    p.t = malloc((n + 1) * sizeof *p.t);
    p.v = malloc((n + 1) * sizeof *p.v);
    for (size_t i = 0; p.t && p.v && i < n; i++) {
        if (p.count && p.t[p.count - 1] == points[i].t_ns)
            p.count--;
        p.t[p.count] = points[i].t_ns;
        p.v[p.count++] = points[i].value;
    }
    free(points);
    if (!p.t || !p.v || !p.count) {
        int rc = p.t && p.v ? 0 : -ENOMEM;
        piece_free(&p);
        return rc;
    }
    p.first_ns = p.t[0];
    p.last_ns = p.t[p.count - 1];
    if (!in_range(c, p.first_ns, p.last_ns)) {
        piece_free(&p);
        return 0;
    }
    return add_piece(c, p) ? 0 : -ENOMEM;
}

static int load(struct store_cursor *c, struct piece *p)
{
    if (p->loaded)
        return 0;
    p->loaded = true;
    p->t = malloc(p->block->header.rows * sizeof *p->t);
    p->v = malloc(p->block->header.rows * sizeof *p->v);
    if (!p->t || !p->v)
        return -ENOMEM;
    uint8_t *bytes = block_fetch(c->s, p->block);
    if (!bytes)
        return 0;
    if (block_decode_column(&p->block->header, bytes, &p->column, NULL, p->t, p->v, &p->count)) {
        pthread_mutex_lock(&c->s->reader->mutex);
        reader_damaged(c->s->reader, p->block->offset, p->block->header.size, "a column");
        pthread_mutex_unlock(&c->s->reader->mutex);
    }
    free(bytes);
    return 0;
}

static int by_first(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int gather(struct store_cursor *c, uint32_t series)
{
    struct store_snapshot *s = c->s;
    pthread_mutex_lock(&s->reader->mutex);
    const struct membership *first = s->reader->index.memberships[series];
    pthread_mutex_unlock(&s->reader->mutex);
    for (size_t i = 0; i < s->block_count; i++) {
        const struct block_ref *b = &s->blocks[i];
        int rc = b->header.kind == BLOCK_POINTS ? add_block(c, b, series) : 0;
        for (const struct membership *m = first; m && !rc && b->header.kind == BLOCK_SET; m = m->next)
            if (m->set == b->header.owner)
                rc = add_block(c, b, m->column);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < s->tail_count; i++) {
        const struct tail_copy *t = &s->tails[i];
        int rc = t->kind == SEGMENT_POINT_TAIL ? add_tail(c, t, series, 0, 0) : 0;
        for (const struct membership *m = first; m && !rc && t->kind == SEGMENT_SET_TAIL; m = m->next)
            if (m->set == t->owner) {
                pthread_mutex_lock(&s->reader->mutex);
                uint32_t columns = s->reader->index.sets[m->set].count;
                pthread_mutex_unlock(&s->reader->mutex);
                rc = add_tail(c, t, series, columns, m->column);
            }
        if (rc)
            return rc;
    }
    qsort(c->pieces, c->piece_count, sizeof *c->pieces, by_first);
    return 0;
}

struct store_cursor *store_cursor_open(struct store_snapshot *s, uint32_t series, int64_t from_ns, int64_t to_ns)
{
    if (series >= s->series_count)
        return NULL;
    struct store_cursor *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct store_cursor){.s = s, .from_ns = from_ns, .to_ns = to_ns, .next_ns = from_ns};
    c->done = from_ns > to_ns;
    if (!c->done && gather(c, series)) {
        store_cursor_close(c);
        return NULL;
    }
    return c;
}

// ── Slices ───────────────────────────────────────────────────────────────────────────────────────────────────────

// Merges what the pieces hold of [next_ns, end_ns] into c->t, c->v.
static int merge(struct store_cursor *c, int64_t end_ns)
{
    c->count = 0;
    size_t room = 0;
    for (size_t i = 0; i < c->piece_count && c->pieces[i].first_ns <= end_ns; i++) {
        struct piece *p = &c->pieces[i];
        if (p->last_ns < c->next_ns)
            continue;
        int rc = load(c, p);
        if (rc)
            return rc;
        while (p->at < p->count && p->t[p->at] < c->next_ns)
            p->at++;
        room += p->count - p->at;
    }
    if (room > c->capacity) {
        free(c->t);
        free(c->v);
        c->t = malloc(room * sizeof *c->t);
        c->v = malloc(room * sizeof *c->v);
        c->capacity = c->t && c->v ? room : 0;
        if (!c->capacity)
            return -ENOMEM;
    }
    for (;;) {
        struct piece *best = NULL;
        for (size_t i = 0; i < c->piece_count && c->pieces[i].first_ns <= end_ns; i++) {
            struct piece *p = &c->pieces[i];
            if (p->last_ns < c->next_ns || p->at == p->count || p->t[p->at] > end_ns)
                continue;
            // Of equal time stamps the oldest comes first and is then overwritten.
            if (!best || p->t[p->at] < best->t[best->at] ||
                (p->t[p->at] == best->t[best->at] && p->order < best->order))
                best = p;
        }
        if (!best)
            return 0;
        if (c->count && c->t[c->count - 1] == best->t[best->at])
            c->count--;
        c->t[c->count] = best->t[best->at];
        c->v[c->count++] = best->v[best->at++];
    }
}

int store_cursor_next(struct store_cursor *c, struct store_run *run)
{
    c->whole = NULL;
    c->count = 0;
    while (!c->done) {
        // The pieces that the next slice can touch, and where it ends: where one of them ends or another begins.
        struct piece *only = NULL;
        size_t touched = 0;
        int64_t start = INT64_MAX, end = c->to_ns;
        for (size_t i = 0; i < c->piece_count; i++) {
            struct piece *p = &c->pieces[i];
            if (p->last_ns < c->next_ns)
                continue;
            int64_t first = p->first_ns > c->next_ns ? p->first_ns : c->next_ns;
            if (start == INT64_MAX && !touched)
                start = first;
            if (first > start) {
                if (p->first_ns - 1 < end)
                    end = p->first_ns - 1;
                break;
            }
            touched++;
            only = p;
            if (p->last_ns < end)
                end = p->last_ns;
        }
        if (!touched || start > c->to_ns) {
            c->done = true;
            break;
        }
        bool whole = touched == 1 && !only->loaded && only->first_ns >= c->next_ns && only->last_ns <= end;
        int rc = whole ? 0 : merge(c, end);
        if (rc)
            return rc;
        c->done = end == INT64_MAX;
        c->next_ns = end == INT64_MAX ? end : end + 1;
        if (whole) {
            c->whole = only;
            c->run = only->column.run;
        } else if (c->count) {
            c->run = (struct store_run){.count = c->count, .first_ns = c->t[0], .last_ns = c->t[c->count - 1]};
        } else {
            continue;
        }
        *run = c->run;
        return 1;
    }
    return 0;
}

int store_cursor_points(struct store_cursor *c, const int64_t **t_ns, const double **values, size_t *count)
{
    if (c->whole) {
        int rc = load(c, c->whole);
        *t_ns = c->whole->t;
        *values = c->whole->v;
        *count = rc ? 0 : c->whole->count;
        return rc;
    }
    *t_ns = c->t;
    *values = c->v;
    *count = c->count;
    return 0;
}

bool store_point_before(struct store_snapshot *s, uint32_t series, int64_t at_ns, int64_t *t_ns, double *value)
{
    struct store_cursor *c = store_cursor_open(s, series, INT64_MIN, at_ns);
    if (!c)
        return false;
    // The newest piece first; one that ends before what was found cannot better it.
    bool found = false;
    uint64_t order = 0;
    for (size_t i = c->piece_count; i-- > 0;) {
        struct piece *p = &c->pieces[i];
        if ((found && p->last_ns < *t_ns) || load(c, p))
            continue;
        size_t n = p->count;
        while (n && p->t[n - 1] > at_ns)
            n--;
        if (!n || (found && (p->t[n - 1] < *t_ns || (p->t[n - 1] == *t_ns && p->order < order))))
            continue;
        *t_ns = p->t[n - 1];
        *value = p->v[n - 1];
        order = p->order;
        found = true;
    }
    store_cursor_close(c);
    return found;
}
