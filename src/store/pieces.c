// pieces.c - finds the points of one series: columns of blocks, cells of tails.
//
// Most blocks of an owner follow each other in time. The cursor looks up a few of them at a time
// when it reaches them (the stream). So a long series takes no memory, and the entry of a block is
// used while it is still in the cache. The cursor looks up tails and overlapping blocks at once,
// and keeps them in a sorted list until it reaches their time (`later`).
#include "store/cursor.h"

#include "base/array.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

enum {
    LINE_BYTES = 64,
    LOOKUPS_AHEAD = 6,
    STREAM_BATCH = 8,
    STREAM_AHEAD = 16,
    PREFETCH_BYTES = 512, // of the values of a column; the processor prefetches the rest itself
    // limit of repetitions if a piece moves again while the cursor fetches it from its new place
    MOVED_DEPTH_MAX = 8,
};

#define TAIL_ORDER (UINT64_C(1) << 63) // newer than any block

void piece_free(struct store_cursor *c, struct piece *p)
{
    bool cut = p->first_ns < c->from_ns || p->last_ns > c->to_ns;
    if (cut && p->block && p->column.count)
        column_keep_cut(c->s, p->block, c->series, &p->column);
    else
        column_free(c->s, &p->column);
}

static void list_drop(struct store_cursor *c, struct piece_list *l)
{
    for (size_t i = l->at; i < l->count; i++)
        piece_free(c, &l->all[i]);
    l->count = l->at = 0;
}

void pieces_drop(struct store_cursor *c)
{
    list_drop(c, &c->pieces);
    list_drop(c, &c->later);
    c->stream = (struct stream){0};
}

// Returns the place after the last piece; the caller fills and counts it. NULL: memory is
// exhausted.
static struct piece *list_room(struct piece_list *l)
{
    bool room = array_room(&l->all, &l->capacity, l->count + 1, sizeof *l->all);
    return room ? &l->all[l->count] : NULL;
}

static bool in_range(const struct store_cursor *c, int64_t first_ns, int64_t last_ns)
{
    return first_ns <= c->to_ns && last_ns >= c->from_ns;
}

// ---- Visiting ----

size_t block_list_from(const struct block_list *l, int64_t from_ns)
{
    size_t i;
    SEARCH_FIRST(i, l->count, l->ranges[i].last_ns >= from_ns);
    return i;
}

// Returns the index after the last ordered block with data at or before to_ns.
static size_t stream_end(const struct block_list *l, int64_t to_ns)
{
    size_t i;
    SEARCH_FIRST(i, l->count, l->ranges[i].first_ns > to_ns);
    return i;
}

// Prefetches the entry of a column in the next block, because the entries in the directories of two
// blocks lie far apart. (Inline, because compilers consider a function that only prefetches to have
// no effect, and remove its calls.)
static inline __attribute__((always_inline)) void prefetch_entry(const struct block_ref *b,
                                                                 uint32_t id)
{
    const uint8_t *at;
    if (b->header.flags & BLOCK_COLD) {
        // Acquire: the thread that stored the pointer had filled the directory.
        const struct cold_directory *d = __atomic_load_n(&b->directory, __ATOMIC_ACQUIRE);
        if (!d || id >= d->entry_count)
            return;
        at = (const uint8_t *)&d->entries[id];
    } else if (b->header.kind == BLOCK_SET) {
        at = b->bytes + sizeof b->header + 8 + id * sizeof(struct column_entry);
    } else {
        return;
    }
    __builtin_prefetch(at);
    __builtin_prefetch(at + LINE_BYTES);
}

// Prefetches what a column of a hot block is decoded from: its times, which the data begin with,
// and its values.
static inline __attribute__((always_inline)) void prefetch_data(const struct block_ref *b,
                                                                const struct block_entry *e)
{
    if (b->header.flags & BLOCK_COLD || b->header.kind != BLOCK_SET)
        return;
    const uint8_t *data = b->bytes + sizeof b->header + b->header.directory_bytes;
    __builtin_prefetch(b->bytes + sizeof b->header);
    __builtin_prefetch(data);
    for (uint32_t at = 0; at < e->size && at < PREFETCH_BYTES; at += LINE_BYTES)
        __builtin_prefetch(data + e->offset + at);
}

// Prefetches the first blocks of the range, before visit_blocks accesses them.
static inline __attribute__((always_inline)) void prefetch_blocks(const struct block_list *l,
                                                                  int64_t from_ns)
{
    size_t first = block_list_from(l, from_ns);
    for (size_t i = first; i < l->count && i < first + STREAM_BATCH; i++)
        for (size_t at = 0; at < sizeof *l->blocks[i]; at += LINE_BYTES)
            __builtin_prefetch((const char *)l->blocks[i] + at);
}

// Stores an undecoded piece with points in the range in *p. Returns 1, 0 if this block has no such
// points, or a negative errno.
static int piece_of_block(struct store_cursor *c, struct block_ref *b, uint32_t id, struct piece *p)
{
    int rc = block_lookup(c->s, b, id, &p->entry);
    if (rc)
        // the damage was counted; the other pieces are read
        return rc == -ENOENT || rc == -EBADMSG ? 0 : rc;
    p->first_ns = p->entry.first_ns;
    p->last_ns = p->entry.last_ns;
    p->order = b->header.order;
    p->rank = piece_rank(b->header.kind == BLOCK_SET, b->header.owner, b->header.sequence_last);
    p->block = b;
    p->loaded = false;
    p->column = (struct column){0};
    p->at = 0;
    return in_range(c, p->first_ns, p->last_ns);
}

static int visit_blocks(struct store_cursor *c, struct block_list list, uint32_t id, piece_fn *each)
{
    if (list.ordered && c->streams && !c->stream.list.count) {
        struct stream *x = &c->stream;
        *x = (struct stream){list, block_list_from(&list, c->from_ns), stream_end(&list, c->to_ns),
                             id};
        for (size_t i = x->at; i < x->end && i < x->at + STREAM_AHEAD; i++)
            prefetch_entry(list.blocks[i], id);
        return 0;
    }
    for (size_t i = list.ordered ? stream_end(&list, c->to_ns) : list.count; i-- > 0;) {
        if (!in_range(c, list.ranges[i].first_ns, list.ranges[i].last_ns)) {
            if (list.ordered)
                break;
            continue;
        }
        if (i >= 2 * LOOKUPS_AHEAD) {
            __builtin_prefetch(list.blocks[i - 2 * LOOKUPS_AHEAD]);
            prefetch_entry(list.blocks[i - LOOKUPS_AHEAD], id);
        }
        struct piece p;
        int rc = piece_of_block(c, list.blocks[i], id, &p);
        if (rc > 0)
            rc = each(c, &p);
        if (rc)
            return rc;
    }
    return 0;
}

static int visit_tail(struct store_cursor *c, size_t tail, uint32_t columns, uint32_t column,
                      piece_fn *each)
{
    const struct view_tail *t = &c->s->view->tails[tail];
    struct piece p = {.order = TAIL_ORDER,
                      .rank = piece_rank(t->kind == EXTENT_SET_TAIL, t->owner, t->sequence),
                      .loaded = true};
    int rc = columns ? tail_column(c->s, tail, columns, column, &p.column)
                     : tail_series(c->s, tail, column, &p.column);
    if (!rc && p.column.count) {
        p.first_ns = p.column.t[0];
        p.last_ns = p.column.t[p.column.count - 1];
        if (in_range(c, p.first_ns, p.last_ns))
            return each(c, &p);
    }
    piece_free(c, &p);
    return rc == -EBADMSG ? 0 : rc; // the damage was counted; the other pieces are read
}

// Returns the first tail of this kind and owner. view->tails is sorted by kind and owner.
static size_t first_tail(const struct view *v, enum extent_kind kind, uint32_t owner)
{
    size_t i;
    SEARCH_FIRST(i, v->tail_count,
                 v->tails[i].kind > kind ||
                     (v->tails[i].kind == kind && v->tails[i].owner >= owner));
    return i;
}

// ---- Complete rows ----
//
// A reader reads a set's columns one after another. Meanwhile the writer may append rows and seal
// the tail, and the block then holds more rows than the tail did. So when a snapshot first reads a
// set, it notes which rows the tail has. From then on, it shows only these rows of the blocks into
// which the tail was sealed, for every column:
//
//   blocks before the tail │ the tail q, as noted │ later rows
//   shown                  │ rows noted           │ not shown
//
// A merged block may hold rows of all three parts. The snapshot shows the noted rows, and rows that
// are not newer than the blocks before the tail. (It may also show a row that arrived late
// meanwhile, if the row's time lies in these blocks.)

struct set_seen {
    uint64_t sequence; // number of the tail
    const struct view *view;
    uint64_t used;            // number of its rows
    struct cache_item *times; // times of these rows; NULL: no rows
};

// Finds the last tail of the owner, to which the writer appends. Returns false if the owner has
// none.
static bool growing_tail(const struct view *v, uint32_t owner, size_t *tail)
{
    bool found = false;
    for (size_t i = first_tail(v, EXTENT_SET_TAIL, owner);
         i < v->tail_count && v->tails[i].kind == EXTENT_SET_TAIL && v->tails[i].owner == owner;
         i++) {
        *tail = i;
        found = true;
    }
    return found;
}

static int see_set(struct store_snapshot *s, uint32_t owner, uint32_t columns,
                   const struct set_seen **out)
{
    struct cache_item *item = cache_find(&s->cache, CACHE_SET_SEEN, NULL, owner);
    if (item) {
        cache_unpin(item);
        *out = item->data;
        return 0;
    }
    struct set_seen seen = {.view = s->view};
    size_t tail;
    if (growing_tail(s->view, owner, &tail)) {
        seen.sequence = s->view->tails[tail].sequence;
        seen.used = s->used[tail];
    } else if (owner < s->view->set_count) {
        const struct block_list *l = &s->view->sets[owner];
        for (size_t i = 0; i < l->count; i++)
            if (l->blocks[i]->header.sequence_last >= seen.sequence)
                seen.sequence = l->blocks[i]->header.sequence_last + 1;
    }
    int rc = seen.used ? tail_times(s, tail, columns, &seen.times) : 0;
    if (rc == -EBADMSG) { // the damage was counted
        seen.used = 0;
        rc = 0;
    }
    struct set_seen *kept = rc ? NULL : malloc(sizeof *kept);
    if (!kept) {
        cache_unpin(seen.times);
        return rc ? rc : -ENOMEM;
    }
    *kept = seen;
    // The item stays pinned as long as the snapshot exists; so do its times.
    item = cache_add(
        &s->cache, (struct cache_item){
                       .part = owner, .kind = CACHE_SET_SEEN, .bytes = sizeof *kept, .data = kept});
    *out = item ? item->data : NULL;
    return item ? 0 : -ENOMEM;
}

// Finds the last time in the blocks that the snapshot had before the tail.
static bool seen_before(const struct set_seen *seen, uint32_t owner, int64_t *last_ns)
{
    const struct block_list *l = &seen->view->sets[owner];
    bool any = false;
    for (size_t i = 0; owner < seen->view->set_count && i < l->count; i++) {
        const struct block_header *h = &l->blocks[i]->header;
        if (h->sequence_last >= seen->sequence)
            continue;
        *last_ns = any && *last_ns > h->last_ns ? *last_ns : h->last_ns;
        any = true;
    }
    return any;
}

// Reduces a loaded piece to the rows that the snapshot shows.
static int keep_seen(struct store_cursor *c, struct piece *p, const struct set_seen *seen,
                     bool before, int64_t before_ns)
{
    struct column *all = &p->column, kept = {0};
    struct buffers *buffers = &c->s->buffers;
    size_t noted_count = 0, noted = 0;
    const int64_t *times = seen->times ? tail_times_of(seen->times, &noted_count) : NULL;
    kept.t = kept.own_t = buffer_take(buffers, all->count);
    kept.v = kept.own_v = buffer_take(buffers, all->count);
    if (!kept.own_t || !kept.own_v) {
        column_free(c->s, &kept);
        return -ENOMEM;
    }
    for (size_t i = 0; i < all->count; i++) {
        int64_t t = all->t[i];
        while (noted < noted_count && times[noted] < t)
            noted++;
        if (!(noted < noted_count && times[noted] == t) && !(before && t <= before_ns))
            continue;
        kept.own_t[kept.count] = t;
        kept.own_v[kept.count++] = all->v[i];
    }
    column_free(c->s, all);
    *all = kept;
    return 0;
}

// Visits a block into which the tail's rows were sealed.
static int visit_sealed(struct store_cursor *c, struct block_ref *b, uint32_t id,
                        const struct set_seen *seen, piece_fn *each)
{
    struct piece p;
    int64_t before_ns = 0;
    bool before =
        b->header.sequence_first < seen->sequence && seen_before(seen, b->header.owner, &before_ns);
    if (!seen->used && !before)
        return 0;
    int rc = piece_of_block(c, b, id, &p);
    if (rc <= 0)
        return rc;
    rc = piece_load(c, &p);
    if (!rc && p.block && p.column.count)
        rc = keep_seen(c, &p, seen, before, before_ns);
    p.block = NULL;
    if (rc || !p.column.count) {
        piece_free(c, &p);
        return rc;
    }
    p.first_ns = p.column.t[0];
    p.last_ns = p.column.t[p.column.count - 1];
    return each(c, &p);
}

// In a later view, visits the rows of the set that the snapshot had when it first read the set.
static int visit_moved_set(struct store_cursor *c, uint32_t owner, uint32_t columns,
                           uint32_t column, const struct set_seen *seen, piece_fn *each)
{
    struct store_snapshot *s = c->s;
    const struct view *v = s->view;
    int rc = 0;
    for (size_t i = first_tail(v, EXTENT_SET_TAIL, owner);
         !rc && i < v->tail_count && v->tails[i].kind == EXTENT_SET_TAIL &&
         v->tails[i].owner == owner && v->tails[i].sequence <= seen->sequence;
         i++) {
        if (v->tails[i].sequence == seen->sequence && s->used[i] > seen->used)
            s->used[i] = seen->used;
        rc = s->used[i] ? visit_tail(c, i, columns, column, each) : 0;
    }
    if (rc || owner >= v->set_count)
        return rc;
    struct block_list before = v->sets[owner], all = before;
    while (before.count && before.blocks[before.count - 1]->header.sequence_last >= seen->sequence)
        before.count--;
    for (size_t i = before.count;
         !rc && i < all.count && all.blocks[i]->header.sequence_first <= seen->sequence; i++)
        rc = visit_sealed(c, all.blocks[i], column, seen, each);
    return rc || !before.count ? rc : visit_blocks(c, before, column, each);
}

// `columns` is 0 for single points; `id` is then the series.
static int visit_owner(struct store_cursor *c, enum extent_kind kind, uint32_t owner,
                       uint32_t columns, uint32_t id, piece_fn *each)
{
    const struct set_seen *seen = NULL;
    int rc = columns ? see_set(c->s, owner, columns, &seen) : 0;
    if (!rc && seen && seen->view != c->s->view)
        return visit_moved_set(c, owner, columns, id, seen, each);
    const struct view *v = c->s->view;
    const struct block_list none = {0}, *blocks = kind == EXTENT_POINT_TAIL ? &v->points
                                                  : owner < v->set_count    ? &v->sets[owner]
                                                                            : &none;
    // The blocks of single points are those of all series, so they are in the cache.
    if (columns && blocks->ordered)
        prefetch_blocks(blocks, c->from_ns);
    for (size_t i = first_tail(v, kind, owner);
         !rc && i < v->tail_count && v->tails[i].kind == kind && v->tails[i].owner == owner; i++)
        rc = c->s->used[i] ? visit_tail(c, i, columns, id, each) : 0;
    return !rc && blocks->count ? visit_blocks(c, *blocks, id, each) : rc;
}

int pieces_visit(struct store_cursor *c, piece_fn *each)
{
    struct store_reader *r = c->s->reader;
    pthread_mutex_lock(&r->mutex);
    const struct membership *m = r->index.memberships[c->series];
    pthread_mutex_unlock(&r->mutex);
    int rc = 0;
    for (; m && !rc; m = m->next) {
        if (m->set >= c->s->view->set_count)
            continue;
        pthread_mutex_lock(&r->mutex);
        uint32_t columns = r->index.sets[m->set].count;
        pthread_mutex_unlock(&r->mutex);
        rc = visit_owner(c, EXTENT_SET_TAIL, m->set, columns, m->column, each);
    }
    return rc ? rc : visit_owner(c, EXTENT_POINT_TAIL, 0, 0, c->series, each);
}

// ---- Gathering ----

// Updates pending_ns, the earliest time at which a piece that is not loaded yet may begin.
static void note_pending(struct store_cursor *c)
{
    const struct stream *x = &c->stream;
    const struct piece_list *later = &c->later;
    bool streams = x->at < x->end, waiting = later->at < later->count;
    int64_t stream_ns = streams ? x->list.ranges[x->at].first_ns : INT64_MAX;
    int64_t later_ns = waiting ? later->all[later->at].first_ns : INT64_MAX;
    c->pending = streams || waiting;
    c->pending_ns = stream_ns < later_ns ? stream_ns : later_ns;
}

static int keep(struct store_cursor *c, struct piece *p)
{
    struct piece *room = list_room(&c->later);
    if (!room) {
        piece_free(c, p);
        return -ENOMEM;
    }
    *room = *p;
    c->later.count++;
    return 0;
}

static int by_first(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    return piece_newer(x, y) - piece_newer(y, x);
}

int pieces_gather(struct store_cursor *c)
{
    int rc = -ESTALE;
    for (int i = 0; i < MOVES_MAX && rc == -ESTALE; i++) {
        pieces_drop(c);
        if (c->s->moves && c->to_ns > c->s->newest_ns)
            c->to_ns = c->s->newest_ns;
        rc = pieces_visit(c, keep);
        if (rc == -ESTALE) {
            int moved = snapshot_move(c->s);
            rc = moved ? moved : -ESTALE;
        }
    }
    if (!rc && c->later.count > 1)
        qsort(c->later.all, c->later.count, sizeof *c->later.all, by_first);
    note_pending(c);
    return rc == -ESTALE ? -EAGAIN : rc;
}

// Moves the first waiting piece to its place among the loaded ones, which is mostly the end.
static void take(struct piece_list *l)
{
    for (size_t i = l->count++; i > l->at && l->all[i - 1].first_ns > l->all[i].first_ns; i--) {
        struct piece later = l->all[i - 1];
        l->all[i - 1] = l->all[i];
        l->all[i] = later;
    }
}

static int pull_stream(struct store_cursor *c, int64_t last_first_ns)
{
    struct stream *x = &c->stream;
    size_t end = x->at + STREAM_BATCH < x->end ? x->at + STREAM_BATCH : x->end;
    for (; x->at < end && x->list.ranges[x->at].first_ns <= last_first_ns; x->at++) {
        if (x->at + STREAM_AHEAD < x->end)
            prefetch_entry(x->list.blocks[x->at + STREAM_AHEAD], x->id);
        struct piece *p = list_room(&c->pieces);
        if (!p)
            return -ENOMEM;
        int rc = piece_of_block(c, x->list.blocks[x->at], x->id, p);
        if (rc < 0)
            return rc;
        if (rc) {
            prefetch_data(p->block, &p->entry);
            take(&c->pieces);
        }
    }
    return 0;
}

int pieces_pull(struct store_cursor *c)
{
    const struct stream *x = &c->stream;
    struct piece_list *later = &c->later;
    bool streams = x->at < x->end, waiting = later->at < later->count;
    int64_t later_ns = waiting ? later->all[later->at].first_ns : INT64_MAX;
    int rc = 0;
    if (streams && x->list.ranges[x->at].first_ns <= later_ns) {
        rc = pull_stream(c, later_ns);
    } else if (waiting) {
        struct piece *p = list_room(&c->pieces);
        rc = p ? 0 : -ENOMEM;
        if (p) {
            *p = later->all[later->at++];
            take(&c->pieces);
        }
    }
    note_pending(c);
    return rc;
}

// ---- Loading ----

// Makes room for n more points after those of the piece.
static bool piece_grow(struct store_cursor *c, struct piece *p, size_t n)
{
    struct column *column = &p->column;
    if (column->count + n <= buffer_words(column->own_t))
        return true;
    struct buffers *buffers = &c->s->buffers;
    int64_t *t = buffer_take(buffers, column->count + n);
    double *v = buffer_take(buffers, column->count + n);
    if (!t || !v) {
        buffer_give(buffers, t);
        buffer_give(buffers, v);
        return false;
    }
    if (column->count) {
        memcpy(t, column->own_t, column->count * sizeof *t);
        memcpy(v, column->own_v, column->count * sizeof *v);
    }
    buffer_give(buffers, column->own_t);
    buffer_give(buffers, column->own_v);
    column->t = column->own_t = t;
    column->v = column->own_v = v;
    return true;
}

// Handles a piece whose points have moved. If the points still exist, other pieces of the file
// contain them at the same times.
static int load_moved(struct store_cursor *c, struct piece *p)
{
    p->block = NULL; // the points that are loaded below come from other blocks
    if (c->depth == MOVED_DEPTH_MAX)
        return 0;
    int rc = snapshot_move(c->s);
    struct store_cursor *other =
        rc ? NULL : cursor_open(c->s, c->series, p->first_ns, p->last_ns, c->depth + 1);
    if (!other)
        return rc ? rc : -ENOMEM;
    struct store_run run;
    while ((rc = store_cursor_next(other, &run)) > 0) {
        const int64_t *t;
        const double *v;
        size_t n;
        rc = store_cursor_points(other, &t, &v, &n);
        if (!rc && n && !piece_grow(c, p, n))
            rc = -ENOMEM;
        if (rc)
            break;
        if (!n)
            continue;
        memcpy(p->column.own_t + p->column.count, t, n * sizeof *t);
        memcpy(p->column.own_v + p->column.count, v, n * sizeof *v);
        p->column.count += n;
    }
    store_cursor_close(other);
    return rc;
}

int piece_load(struct store_cursor *c, struct piece *p)
{
    if (p->loaded)
        return 0;
    p->loaded = true;
    if (column_take_cut(c->s, p->block, c->series, &p->column))
        return 0;
    int rc = block_load(c->s, p->block, &p->entry, &p->column);
    if (rc == -ESTALE)
        rc = load_moved(c, p);
    return rc == -EBADMSG ? 0 : rc; // the damage was counted; the other pieces are read
}
