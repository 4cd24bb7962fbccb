// cursor.c - the points of one series in order of time, from whatever they lie in.
//
// A series' points lie in pieces: a column of a block, its cells in a tail. Pieces overlap where points came late. The cursor
// goes through time in slices that begin and end where pieces do: in a slice with one piece the run is that piece, undecoded; where
// several overlap they are decoded and merged, the newest of equal time stamps winning.
//
//   pieces   ├────────────┤      ├───────────┤
//                   ├──────────────┤
//   slices   ├─────┼──────┼─────┼──┼────────┤
#include "store/reader.h"
#include "store/sort.h"

#include <errno.h>
#include <stdlib.h>

enum {
    MOVES_MAX = 1000, // of a snapshot while one cursor gathers its pieces
    PREFETCH_BYTES_MAX = 4096,
    LINE_BYTES = 64,
    LOOKUPS_AHEAD = 6,
    MOVED_DEPTH_MAX = 8, // a piece that moved again while it was fetched from where it had moved to
};

#define TAIL_ORDER (UINT64_C(1) << 63) // newer than any block

struct piece {
    int64_t first_ns, last_ns;
    uint64_t order;          // of arrival
    struct block_ref *block; // NULL: of a tail, loaded from the start
    struct block_entry entry;
    bool loaded;
    const int64_t *t; // in own_t or pin
    double *v;
    size_t count, at; // points before `at` have been given
    int64_t *own_t;
    struct cache_item *pin;
};

struct store_cursor {
    struct store_snapshot *s;
    uint32_t series;
    int64_t from_ns, to_ns;
    struct piece *pieces; // by first_ns
    size_t piece_count, piece_capacity;
    size_t head;     // pieces before it have been given wholly
    int64_t next_ns; // everything before has been given
    bool done;
    unsigned depth;
    struct piece *whole; // the run given last, if it is a piece as it stands
    int64_t *t;          // else its points
    double *v;
    size_t count, capacity;
};

static void piece_free(struct piece *p)
{
    cache_unpin(p->pin);
    free(p->own_t);
    free(p->v);
}

static void drop_pieces(struct store_cursor *c)
{
    for (size_t i = 0; i < c->piece_count; i++)
        piece_free(&c->pieces[i]);
    c->piece_count = 0;
}

void store_cursor_close(struct store_cursor *c)
{
    if (!c)
        return;
    drop_pieces(c);
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

// Points in order of arrival into a piece: sorted, the last of equal stamps kept. Takes `points` (malloc'ed) over.
static int piece_of_points(struct timed *points, size_t n, bool sorted, struct piece *p)
{
    if (!sorted)
        qsort(points, n, sizeof *points, by_time);
    p->own_t = malloc((n + 1) * sizeof *p->own_t);
    p->v = malloc((n + 1) * sizeof *p->v);
    int rc = p->own_t && p->v ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++) {
        if (p->count && p->own_t[p->count - 1] == points[i].t_ns)
            p->count--;
        p->own_t[p->count] = points[i].t_ns;
        p->v[p->count++] = points[i].value;
    }
    free(points);
    p->t = p->own_t;
    p->loaded = true;
    return rc;
}

static int piece_of_rows(struct store_snapshot *s, size_t tail, uint32_t columns, uint32_t column, struct piece *p)
{
    const struct view_tail *t = &s->view->tails[tail];
    uint64_t rows = s->used[tail];
    struct timed *points = malloc((rows + 1) * sizeof *points);
    if (!points)
        return -ENOMEM;
    size_t n = 0;
    bool sorted = true;
    for (uint64_t r = 0; r < rows; r++) {
        const uint8_t *row = t->bytes + r * (columns + 1) * sizeof(double);
        struct timed one = {.place = r};
        copy_words(&one.t_ns, row, 8);
        copy_words(&one.value, row + 8 + column * sizeof(double), 8);
        if (store_is_missing(one.value))
            continue;
        sorted = sorted && (!n || points[n - 1].t_ns < one.t_ns);
        points[n++] = one;
    }
    if (!tail_current(t)) {
        free(points);
        return -ESTALE;
    }
    return piece_of_points(points, n, sorted, p);
}

static int piece_of_tail_points(struct store_snapshot *s, size_t tail, uint32_t series, struct piece *p)
{
    struct cache_item *pin;
    int rc = tail_points(s, tail, &pin);
    if (rc)
        return rc;
    size_t n, from = points_find(pin->data, pin->count, series, &n);
    const struct point_record *points = (const struct point_record *)pin->data + from;
    p->own_t = malloc((n + 1) * sizeof *p->own_t);
    p->v = malloc((n + 1) * sizeof *p->v);
    rc = p->own_t && p->v ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++) {
        p->own_t[i] = points[i].t_ns;
        p->v[i] = points[i].value;
    }
    p->count = n;
    p->t = p->own_t;
    p->loaded = true;
    cache_unpin(pin);
    return rc;
}

// What calls of visit_pieces get: one piece at a time, to keep or to free. A negative errno ends it.
typedef int piece_fn(struct store_cursor *c, struct piece *p);
// Whether a block with these times is wanted at all.
typedef bool want_fn(const struct store_cursor *c, int64_t first_ns, int64_t last_ns);

static int visit_blocks(struct store_cursor *c, struct block_list list, uint32_t id, want_fn *want, piece_fn *each)
{
    // Newest first: it is what most questions are about.
    for (size_t i = list.count; i-- > 0;) {
        if (!want(c, list.ranges[i].first_ns, list.ranges[i].last_ns))
            continue;
        struct block_ref *b = list.blocks[i];
        if (i >= 2 * LOOKUPS_AHEAD) {
            const struct block_ref *ahead = list.blocks[i - LOOKUPS_AHEAD];
            __builtin_prefetch(list.blocks[i - 2 * LOOKUPS_AHEAD]);
            if (ahead->header.kind == BLOCK_SET && !(ahead->header.flags & BLOCK_COLD)) {
                const uint8_t *at = ahead->bytes + sizeof ahead->header + 8 + id * sizeof(struct column_entry);
                __builtin_prefetch(at);
                __builtin_prefetch(at + LINE_BYTES);
            }
        }
        struct piece p = {.block = b, .order = b->header.order};
        int rc = block_lookup(c->s, b, id, &p.entry);
        if (rc == -ENOENT || rc == -EBADMSG)
            continue;
        p.first_ns = p.entry.first_ns;
        p.last_ns = p.entry.last_ns;
        if (!rc && want(c, p.first_ns, p.last_ns))
            rc = each(c, &p);
        if (rc)
            return rc;
    }
    return 0;
}

static int visit_tail(struct store_cursor *c, size_t tail, uint32_t columns, uint32_t column, want_fn *want,
                      piece_fn *each)
{
    struct piece p = {.order = TAIL_ORDER + c->s->view->tails[tail].sequence};
    int rc = columns ? piece_of_rows(c->s, tail, columns, column, &p) : piece_of_tail_points(c->s, tail, c->series, &p);
    if (!rc && p.count) {
        p.first_ns = p.t[0];
        p.last_ns = p.t[p.count - 1];
        if (want(c, p.first_ns, p.last_ns))
            return each(c, &p);
    }
    piece_free(&p);
    return rc;
}

// The tails of one kind and owner: view->tails is sorted by them.
static size_t first_tail(const struct view *v, enum segment_kind kind, uint32_t owner)
{
    size_t low = 0, high = v->tail_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct view_tail *t = &v->tails[middle];
        if (t->kind < kind || (t->kind == kind && t->owner < owner))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int visit_owner(struct store_cursor *c, enum segment_kind kind, uint32_t owner, uint32_t columns, uint32_t id,
                       want_fn *want, piece_fn *each)
{
    const struct view *v = c->s->view;
    int rc = 0;
    for (size_t i = first_tail(v, kind, owner);
         !rc && i < v->tail_count && v->tails[i].kind == kind && v->tails[i].owner == owner; i++)
        rc = c->s->used[i] ? visit_tail(c, i, columns, id, want, each) : 0;
    if (rc)
        return rc;
    if (kind == SEGMENT_POINT_TAIL)
        return visit_blocks(c, v->points, id, want, each);
    return owner < v->set_count ? visit_blocks(c, v->sets[owner], id, want, each) : 0;
}

static int visit_pieces(struct store_cursor *c, want_fn *want, piece_fn *each)
{
    struct store_reader *r = c->s->reader;
    pthread_mutex_lock(&r->mutex);
    const struct membership *m = r->index.memberships[c->series];
    pthread_mutex_unlock(&r->mutex);
    int rc = visit_owner(c, SEGMENT_POINT_TAIL, 0, 0, c->series, want, each);
    for (; m && !rc; m = m->next) {
        if (m->set >= c->s->view->set_count)
            continue;
        pthread_mutex_lock(&r->mutex);
        uint32_t columns = r->index.sets[m->set].count;
        pthread_mutex_unlock(&r->mutex);
        rc = visit_owner(c, SEGMENT_SET_TAIL, m->set, columns, m->column, want, each);
    }
    return rc;
}

static int keep(struct store_cursor *c, struct piece *p)
{
    return add_piece(c, *p) ? 0 : -ENOMEM;
}

static int by_first(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void sort_pieces(struct store_cursor *c)
{
    struct piece *p = c->pieces;
    size_t n = c->piece_count;
    bool rising = true, falling = true; // the newest come first, so that is how they stand, mostly
    for (size_t i = 1; i < n; i++) {
        rising = rising && by_first(&p[i - 1], &p[i]) <= 0;
        falling = falling && by_first(&p[i - 1], &p[i]) >= 0;
    }
    if (rising)
        return;
    if (!falling) {
        qsort(p, n, sizeof *p, by_first);
        return;
    }
    for (size_t i = 0, k = n - 1; i < k; i++, k--) {
        struct piece other = p[i];
        p[i] = p[k];
        p[k] = other;
    }
}

static int gather(struct store_cursor *c)
{
    int rc = -ESTALE;
    for (int i = 0; i < MOVES_MAX && rc == -ESTALE; i++) {
        drop_pieces(c);
        if (c->s->moves && c->to_ns > c->s->newest_ns)
            c->to_ns = c->s->newest_ns;
        rc = visit_pieces(c, in_range, keep);
        if (rc == -ESTALE) {
            int moved = snapshot_move(c->s);
            rc = moved ? moved : -ESTALE;
        }
    }
    sort_pieces(c);
    return rc;
}

static struct store_cursor *cursor_open(struct store_snapshot *s, uint32_t series, int64_t from_ns, int64_t to_ns,
                                        unsigned depth)
{
    if (series >= s->series_count)
        return NULL;
    struct store_cursor *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct store_cursor){
        .s = s, .series = series, .from_ns = from_ns, .to_ns = to_ns, .next_ns = from_ns, .depth = depth};
    c->done = from_ns > to_ns;
    if (!c->done && gather(c)) {
        store_cursor_close(c);
        return NULL;
    }
    return c;
}

struct store_cursor *store_cursor_open(struct store_snapshot *s, uint32_t series, int64_t from_ns, int64_t to_ns)
{
    return cursor_open(s, series, from_ns, to_ns, 0);
}

// ── Loading ──────────────────────────────────────────────────────────────────────────────────────────────────────

// The piece is not where it was. What the file holds now of its time has its points, if they are there at all.
static int load_moved(struct store_cursor *c, struct piece *p)
{
    if (c->depth == MOVED_DEPTH_MAX)
        return 0;
    int rc = snapshot_move(c->s);
    struct store_cursor *other = rc ? NULL : cursor_open(c->s, c->series, p->first_ns, p->last_ns, c->depth + 1);
    if (!other)
        return rc ? rc : -ENOMEM;
    size_t capacity = 0;
    struct store_run run;
    free(p->v);
    p->v = NULL;
    while ((rc = store_cursor_next(other, &run)) > 0) {
        const int64_t *t;
        const double *v;
        size_t n;
        rc = store_cursor_points(other, &t, &v, &n);
        if (rc)
            break;
        if (p->count + n > capacity) {
            capacity = (p->count + n) * 2;
            int64_t *more_t = realloc(p->own_t, capacity * sizeof *more_t);
            p->own_t = more_t ? more_t : p->own_t;
            double *more_v = realloc(p->v, capacity * sizeof *more_v);
            p->v = more_v ? more_v : p->v;
            if (!more_t || !more_v) {
                rc = -ENOMEM;
                break;
            }
        }
        memcpy(p->own_t + p->count, t, n * sizeof *t);
        memcpy(p->v + p->count, v, n * sizeof *v);
        p->count += n;
    }
    p->t = p->own_t;
    store_cursor_close(other);
    return rc;
}

// What is wanted next lies far from what was last, so the processor does not fetch it by itself. Pieces of a cursor are read in
// turn: while one is decoded the next one's bytes can be on their way.
static void prefetch(const struct store_cursor *c, const struct piece *p)
{
    const struct block_ref *b = p < c->pieces + c->piece_count ? p->block : NULL;
    if (!b || p->loaded || b->header.flags & BLOCK_COLD)
        return;
    size_t size = p->entry.size < PREFETCH_BYTES_MAX ? p->entry.size : PREFETCH_BYTES_MAX;
    const uint8_t *at = b->bytes + sizeof b->header + b->header.directory_bytes + p->entry.offset;
    for (size_t i = 0; i < size + LINE_BYTES; i += LINE_BYTES)
        __builtin_prefetch(at + i);
}

static int load(struct store_cursor *c, struct piece *p)
{
    if (p->loaded)
        return 0;
    p->loaded = true;
    p->v = malloc(p->entry.count * sizeof *p->v);
    if (!p->v)
        return -ENOMEM;
    int rc = block_load(c->s, p->block, &p->entry, p->v, &p->t, &p->pin, &p->own_t);
    if (!rc)
        p->count = p->entry.count;
    if (rc == -ESTALE)
        rc = load_moved(c, p);
    return rc == -EBADMSG ? 0 : rc; // counted; the rest goes on
}

// ── Slices ───────────────────────────────────────────────────────────────────────────────────────────────────────

static bool make_room(struct store_cursor *c, size_t room)
{
    if (room <= c->capacity)
        return true;
    free(c->t);
    free(c->v);
    c->t = malloc(room * sizeof *c->t);
    c->v = malloc(room * sizeof *c->v);
    c->capacity = c->t && c->v ? room : 0;
    return c->capacity;
}

// The first of the piece's points from `at` on that is not before t_ns.
static size_t seek(const struct piece *p, int64_t t_ns)
{
    size_t low = p->at, high = p->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->t[middle] < t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Merges what the pieces head..touched hold of [next_ns, end_ns] into c->t, c->v.
static int merge(struct store_cursor *c, size_t touched, int64_t end_ns)
{
    c->count = 0;
    size_t room = 0, live = 0;
    struct piece *only = NULL;
    for (size_t i = c->head; i < touched; i++) {
        struct piece *p = &c->pieces[i];
        if (p->last_ns < c->next_ns)
            continue;
        int rc = load(c, p);
        if (rc)
            return rc;
        p->at = seek(p, c->next_ns);
        room += p->count - p->at;
        live++;
        only = p;
    }
    if (!make_room(c, room))
        return -ENOMEM;
    if (live == 1) {
        size_t end = end_ns == INT64_MAX ? only->count : seek(only, end_ns + 1), n = end - only->at;
        if (n) {
            memcpy(c->t, only->t + only->at, n * sizeof *c->t);
            memcpy(c->v, only->v + only->at, n * sizeof *c->v);
        }
        c->count = n;
        only->at = end;
        return 0;
    }
    for (;;) {
        struct piece *best = NULL;
        for (size_t i = c->head; i < touched; i++) {
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

// Done with: what it holds is given back at once, a wide query has many.
static void retire(struct piece *p)
{
    piece_free(p);
    p->pin = NULL;
    p->own_t = NULL;
    p->v = NULL;
    p->t = NULL;
    p->count = p->at = 0;
    p->loaded = true;
}

int store_cursor_next(struct store_cursor *c, struct store_run *run)
{
    c->whole = NULL;
    c->count = 0;
    while (!c->done) {
        while (c->head < c->piece_count && c->pieces[c->head].last_ns < c->next_ns)
            retire(&c->pieces[c->head++]);
        // The pieces that the next slice can touch, and where it ends: where one of them ends or another begins.
        struct piece *only = NULL;
        size_t touched = 0, i = c->head;
        int64_t start = 0, end = c->to_ns;
        for (; i < c->piece_count; i++) {
            struct piece *p = &c->pieces[i];
            if (p->last_ns < c->next_ns)
                continue;
            int64_t first = p->first_ns > c->next_ns ? p->first_ns : c->next_ns;
            if (!touched)
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
        int rc = whole ? 0 : merge(c, i, end);
        if (rc)
            return rc;
        c->done = end == INT64_MAX;
        c->next_ns = end == INT64_MAX ? end : end + 1;
        if (whole) {
            const struct block_entry *e = &only->entry;
            c->whole = only;
            *run = (struct store_run){e->count, e->first_ns, e->last_ns,     e->has_summary, e->nans, e->min,
                                      e->max,   e->sum,      e->sum_squares, e->first,       e->last};
            return 1;
        }
        if (c->count) {
            *run = (struct store_run){.count = c->count, .first_ns = c->t[0], .last_ns = c->t[c->count - 1]};
            return 1;
        }
    }
    return 0;
}

int store_cursor_points(struct store_cursor *c, const int64_t **t_ns, const double **values, size_t *count)
{
    if (c->whole) {
        prefetch(c, c->whole + 1);
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

// ── The point before ─────────────────────────────────────────────────────────────────────────────────────────────
//
// A cursor that keeps no pieces: from_ns is the best time so far.

static int better(struct store_cursor *c, struct piece *p)
{
    int64_t t = p->last_ns;
    double v = p->entry.last;
    int rc = 0;
    if (p->loaded || !p->entry.has_summary || t > c->to_ns) {
        rc = load(c, p);
        size_t n = p->count;
        while (n && p->t[n - 1] > c->to_ns)
            n--;
        if (rc || !n) {
            piece_free(p);
            return rc;
        }
        t = p->t[n - 1];
        v = p->v[n - 1];
    }
    if (!c->count || t > c->from_ns || (t == c->from_ns && p->order > c->pieces[0].order)) {
        c->from_ns = t;
        c->v[0] = v;
        c->count = 1;
        c->pieces[0].order = p->order;
    }
    piece_free(p);
    return 0;
}

bool store_point_before(struct store_snapshot *s, uint32_t series, int64_t at_ns, int64_t *t_ns, double *value)
{
    if (series >= s->series_count)
        return false;
    struct piece best = {0};
    double v = 0;
    struct store_cursor c = {.s = s, .series = series, .pieces = &best, .v = &v};
    int rc = -ESTALE;
    for (int i = 0; i < MOVES_MAX && rc == -ESTALE; i++) {
        c.count = 0;
        c.from_ns = INT64_MIN;
        c.to_ns = s->moves && at_ns > s->newest_ns ? s->newest_ns : at_ns;
        rc = visit_pieces(&c, in_range, better);
        if (rc == -ESTALE && snapshot_move(s))
            rc = -ENOMEM;
    }
    if (!c.count)
        return false;
    *t_ns = c.from_ns;
    *value = v;
    return true;
}
