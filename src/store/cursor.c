// cursor.c - reads the points of one series in order of time from all blocks and tails.
//
// A series' points lie in pieces (pieces.c). Pieces overlap if points arrived late. The cursor cuts
// time into slices, which begin and end where a piece begins or ends. If a slice has one piece, the
// run is this piece, undecoded. If a slice has several pieces, the cursor decodes and merges them;
// at equal time stamps the newest piece wins.
//
//   pieces   ├────────────┤      ├───────────┤
//                   ├──────────────┤
//   slices   ├─────┼──────┼─────┼──┼────────┤
#include "store/cursor.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

enum {
    PREFETCH_FIRST_BYTES = 512,
    PREFETCH_BYTES_MAX = 4096,
    LINE_BYTES = 64,
    // number of pieces after the current one that are loaded, so that their bytes are prefetched in
    // time
    PIECES_AHEAD = 3,
    RETIRED_MAX = 24, // after so many finished pieces, the remaining ones are moved to the front
    IDLE_MAX = 4,     // idle cursors that a snapshot keeps for reuse
    IDLE_PIECES_MAX = 64, // longest piece list kept with an idle cursor
};

// ---- Opening ----

static void cursor_free(struct store_cursor *c)
{
    free(c->pieces.all);
    free(c->later.all);
    free(c);
}

void cursors_free(struct store_snapshot *s)
{
    while (s->idle) {
        struct store_cursor *c = s->idle;
        s->idle = c->next_idle;
        cursor_free(c);
    }
}

void store_cursor_close(struct store_cursor *c)
{
    if (!c)
        return;
    struct store_snapshot *s = c->s;
    pieces_drop(c);
    buffer_give(&s->buffers, c->t);
    buffer_give(&s->buffers, c->v);
    if (s->idle_count == IDLE_MAX || c->pieces.capacity > IDLE_PIECES_MAX ||
        c->later.capacity > IDLE_PIECES_MAX) {
        cursor_free(c);
        return;
    }
    c->next_idle = s->idle;
    s->idle = c;
    s->idle_count++;
}

struct store_cursor *cursor_open(struct store_snapshot *s, uint32_t series, int64_t from_ns,
                                 int64_t to_ns, unsigned depth)
{
    if (series >= s->series_count)
        return NULL;
    struct store_cursor *c = s->idle;
    if (c) {
        s->idle = c->next_idle;
        s->idle_count--;
    } else {
        c = calloc(1, sizeof *c);
        if (!c)
            return NULL;
    }
    *c = (struct store_cursor){
        .s = s,
        .series = series,
        .from_ns = from_ns,
        .to_ns = to_ns,
        .pieces = {c->pieces.all, .capacity = c->pieces.capacity},
        .later = {c->later.all, .capacity = c->later.capacity},
        .streams = true,
        .next_ns = from_ns,
        .done = from_ns > to_ns,
        .depth = depth,
        .whole = WHOLE_NONE,
    };
    if (!c->done && pieces_gather(c)) {
        store_cursor_close(c);
        return NULL;
    }
    return c;
}

struct store_cursor *store_cursor_open(struct store_snapshot *s, uint32_t series, int64_t from_ns,
                                       int64_t to_ns)
{
    return cursor_open(s, series, from_ns, to_ns, 0);
}

// ---- Merging ----

static bool make_room(struct store_cursor *c, size_t room)
{
    if (room <= buffer_words(c->t) && c->v)
        return true;
    struct buffers *buffers = &c->s->buffers;
    buffer_give(buffers, c->t);
    buffer_give(buffers, c->v);
    c->t = buffer_take(buffers, room);
    c->v = buffer_take(buffers, room);
    return c->t && c->v;
}

// Returns the index of the piece's first point, from `at` on, that is not before t_ns.
static size_t seek(const struct piece *p, int64_t t_ns)
{
    size_t i;
    // An empty column has no array.
    SEARCH_FIRST(i, p->column.count - p->at, p->column.t[p->at + i] >= t_ns);
    return p->at + i;
}

// Merges the points in [next_ns, end_ns] of the loaded pieces up to `touched` into c->t, c->v.
static int merge(struct store_cursor *c, size_t touched, int64_t end_ns)
{
    struct piece *pieces = c->pieces.all;
    c->count = 0;
    size_t room = 0, live = 0;
    struct piece *only = NULL;
    for (size_t i = c->pieces.at; i < touched; i++) {
        struct piece *p = &pieces[i];
        if (p->last_ns < c->next_ns)
            continue;
        int rc = piece_load(c, p);
        if (rc)
            return rc;
        p->at = seek(p, c->next_ns);
        room += p->column.count - p->at;
        live++;
        only = p;
    }
    if (!make_room(c, room))
        return -ENOMEM;
    if (live == 1) {
        size_t end = end_ns == INT64_MAX ? only->column.count : seek(only, end_ns + 1),
               n = end - only->at;
        if (n) {
            memcpy(c->t, only->column.t + only->at, n * sizeof *c->t);
            memcpy(c->v, only->column.v + only->at, n * sizeof *c->v);
        }
        c->count = n;
        only->at = end;
        return 0;
    }
    for (;;) {
        struct piece *best = NULL;
        int64_t best_ns = 0;
        for (size_t i = c->pieces.at; i < touched; i++) {
            struct piece *p = &pieces[i];
            if (p->last_ns < c->next_ns || p->at == p->column.count || p->column.t[p->at] > end_ns)
                continue;
            // At equal time stamps the oldest piece comes first, and newer pieces overwrite its
            // point.
            int64_t t = p->column.t[p->at];
            if (!best || t < best_ns || (t == best_ns && piece_newer(best, p))) {
                best = p;
                best_ns = t;
            }
        }
        if (!best)
            return 0;
        if (c->count && c->t[c->count - 1] == best_ns)
            c->count--;
        c->t[c->count] = best_ns;
        c->v[c->count++] = best->column.v[best->at++];
    }
}

// ---- Slices ----

// Releases finished pieces at once, because a wide query has many.
static void retire(struct store_cursor *c)
{
    struct piece_list *l = &c->pieces;
    while (l->at < l->count && l->all[l->at].last_ns < c->next_ns)
        piece_free(c, &l->all[l->at++]);
    size_t left = l->count - l->at;
    if (left && (l->at < left || l->at < RETIRED_MAX))
        return;
    if (left)
        memmove(l->all, l->all + l->at, left * sizeof *l->all);
    l->at = 0;
    l->count = left;
}

struct slice {
    // touched: number of pieces with points in the slice; last: index of the last of them
    size_t touched, last;
    size_t end; // index after the last piece that may have points in the slice
    int64_t start_ns, end_ns;
};

// Finds the next slice, and the pieces that may have points in it. The slice ends where one of
// these pieces ends or another piece begins.
static int find_slice(struct store_cursor *c, struct slice *out)
{
    struct piece_list *l = &c->pieces;
    *out = (struct slice){.end_ns = c->to_ns};
    size_t i = l->at;
    for (;; i++) {
        // Load all pieces that may begin before this one.
        while (c->pending &&
               (i + PIECES_AHEAD >= l->count || c->pending_ns <= l->all[i].first_ns)) {
            int rc = pieces_pull(c);
            if (rc)
                return rc;
        }
        if (i == l->count)
            break;
        const struct piece *p = &l->all[i];
        if (p->last_ns < c->next_ns)
            continue;
        int64_t first = p->first_ns > c->next_ns ? p->first_ns : c->next_ns;
        if (!out->touched)
            out->start_ns = first;
        if (first > out->start_ns) {
            if (p->first_ns - 1 < out->end_ns)
                out->end_ns = p->first_ns - 1;
            break;
        }
        out->touched++;
        out->last = i;
        if (p->last_ns < out->end_ns)
            out->end_ns = p->last_ns;
    }
    out->end = i;
    return 0;
}

static int next_run(struct store_cursor *c, struct store_run *run)
{
    while (!c->done) {
        retire(c);
        struct slice x;
        int rc = find_slice(c, &x);
        if (rc)
            return rc;
        if (!x.touched || x.start_ns > c->to_ns) {
            c->done = true;
            break;
        }
        const struct piece *only = &c->pieces.all[x.last];
        bool whole = x.touched == 1 && only->block && !only->loaded &&
                     only->first_ns >= c->next_ns && only->last_ns <= x.end_ns;
        rc = whole ? 0 : merge(c, x.end, x.end_ns);
        if (rc)
            return rc;
        c->done = x.end_ns == INT64_MAX;
        c->next_ns = c->done ? x.end_ns : x.end_ns + 1;
        if (whole) {
            const struct block_entry *e = &only->entry;
            c->whole = x.last;
            *run = (struct store_run){e->count,       e->first_ns, e->last_ns,
                                      e->has_summary, e->nans,     e->summary};
            return 1;
        }
        if (c->count) {
            *run = (struct store_run){
                .count = c->count, .first_ns = c->t[0], .last_ns = c->t[c->count - 1]};
            return 1;
        }
    }
    return 0;
}

int store_cursor_next(struct store_cursor *c, struct store_run *run)
{
    c->whole = WHOLE_NONE;
    c->count = 0;
    int rc = -ESTALE;
    for (int i = 0; i < MOVES_MAX && (rc = next_run(c, run)) == -ESTALE; i++) {
        // A later block has moved, so find the remaining points again.
        rc = snapshot_move(c->s);
        c->from_ns = c->next_ns;
        if (!rc)
            rc = pieces_gather(c);
        if (rc)
            return rc;
        rc = -EAGAIN;
    }
    return rc;
}

uint64_t store_cursor_block(const struct store_cursor *c)
{
    const struct block_ref *b = c->whole == WHOLE_NONE ? NULL : c->pieces.all[c->whole].block;
    return b ? b->number : 0;
}

// Prefetches a piece. The next piece lies far from the last one, so the processor does not prefetch
// it by itself. A cursor reads its pieces in turn, so the bytes of the next piece can be fetched
// while one is decoded. (Inline, because compilers consider a function that only prefetches to have
// no effect, and remove its calls.)
static inline __attribute__((always_inline)) void prefetch(const struct store_cursor *c,
                                                           size_t piece, size_t from, size_t to)
{
    if (piece >= c->pieces.count)
        return;
    const struct piece *p = &c->pieces.all[piece];
    const struct block_ref *b = p->block;
    if (!b || p->loaded || b->header.flags & BLOCK_COLD)
        return;
    const uint8_t *at = b->bytes + sizeof b->header + b->header.directory_bytes + p->entry.offset;
    size_t end = p->entry.size + LINE_BYTES < to ? p->entry.size + LINE_BYTES : to;
    for (size_t i = from; i < end; i += LINE_BYTES)
        __builtin_prefetch(at + i);
}

int store_cursor_points(struct store_cursor *c, const int64_t **t_ns, const double **values,
                        size_t *count)
{
    if (c->whole != WHOLE_NONE) {
        struct piece *p = &c->pieces.all[c->whole];
        // Prefetch in two parts, because a processor fetches only a limited number of cache lines
        // at a time.
        prefetch(c, c->whole + 2, 0, PREFETCH_FIRST_BYTES);
        int rc = piece_load(c, p);
        prefetch(c, c->whole + 2, PREFETCH_FIRST_BYTES, PREFETCH_BYTES_MAX);
        *t_ns = p->column.t;
        *values = p->column.v;
        *count = rc ? 0 : p->column.count;
        return rc;
    }
    *t_ns = c->t;
    *values = c->v;
    *count = c->count;
    return 0;
}
