// events.c - reading spans and annotations.
//
// A span may have two records: one from its start and, later in the order of arrival, one from its
// end. The last record counts, and its block may lie outside the range. So a reader reads every
// block once, and afterwards only those that touch the range (event_index.h).
#include "base/array.h"
#include "base/bytes.h"
#include "base/search.h"
#include "store/event_index.h"
#include "store/event_record.h"
#include "store/reader.h"
#include "store/unpack.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

enum {
    EVENTS_RAW_MAX = 64 << 20,
    MOVES_MAX = 1000,
    // with a larger bound, a heap would take as much memory as all events
    BOUNDED_MAX = 1 << 16,
};
// events of tails come after those of blocks, whatever the order of reading
#define TAIL_PLACE (UINT64_C(1) << 62)

struct found {
    int64_t start_ns;
    uint64_t place; // place in the order of arrival
    uint64_t id;    // only of spans
    const uint8_t *at;
    uint32_t size, held; // held: index of the buffer with its bytes
    bool stale;
};

struct held {
    uint8_t *bytes;
    size_t users; // number of events in `found` that use the buffer
};

// The records of the tails are read first, because they replace records of blocks. Without a bound,
// the search collects all events of the blocks, and the last record of each span counts. With a
// bound, it first indexes all blocks. The index shows which records are replaced, so a heap can
// keep the earliest events.
struct search {
    struct store_event_selection selection;
    bool bounded;
    struct found *found; // with a bound, a heap whose first element is the latest event
    size_t count, capacity;
    struct held *held;
    size_t held_count, held_capacity;
    uint64_t place;
    struct found *tails; // all events of the tails, sorted by id
    size_t tail_count, tail_capacity;
};

static void search_free(struct search *x)
{
    for (size_t i = 0; i < x->held_count; i++)
        free(x->held[i].bytes);
    free(x->held);
    free(x->found);
    free(x->tails);
    *x = (struct search){.selection = x->selection};
}

static bool is_before(const struct found *x, const struct found *y)
{
    return x->start_ns != y->start_ns ? x->start_ns < y->start_ns : x->place < y->place;
}

static int by_start(const void *a, const void *b)
{
    return is_before(a, b) ? -1 : is_before(b, a);
}

static int by_id(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

// Sorts records by id, and marks all but the last record of each span as replaced.
static void mark_stale(struct found *found, size_t count)
{
    if (count)
        qsort(found, count, sizeof *found, by_id);
    for (size_t i = 0; i + 1 < count; i++)
        found[i].stale = found[i].id && found[i].id == found[i + 1].id;
}

// ---- the heap ----

static void release(struct search *x, uint32_t held)
{
    struct held *h = &x->held[held];
    assert(h->users);
    if (--h->users)
        return;
    free(h->bytes);
    h->bytes = NULL;
    if (held + 1 == x->held_count)
        x->held_count--;
}

static void sink(struct search *x, size_t at)
{
    for (;;) {
        size_t latest = at, child = 2 * at + 1;
        for (size_t i = child; i < child + 2 && i < x->count; i++)
            if (is_before(&x->found[latest], &x->found[i]))
                latest = i;
        if (latest == at)
            return;
        struct found moved = x->found[at];
        x->found[at] = x->found[latest];
        x->found[latest] = moved;
        at = latest;
    }
}

static void rise(struct search *x, size_t at)
{
    while (at && is_before(&x->found[(at - 1) / 2], &x->found[at])) {
        struct found moved = x->found[at];
        x->found[at] = x->found[(at - 1) / 2];
        x->found[(at - 1) / 2] = moved;
        at = (at - 1) / 2;
    }
}

static bool is_full(const struct search *x)
{
    return x->bounded && x->count == x->selection.most;
}

// ---- collecting ----

static int note(struct search *x, const struct found *f)
{
    if (is_full(x)) {
        if (!is_before(f, &x->found[0]))
            return 0;
        uint32_t before = x->found[0].held;
        x->found[0] = *f;
        x->held[f->held].users++;
        sink(x, 0);
        release(x, before);
        return 0;
    }
    if (!array_room(&x->found, &x->capacity, x->count + 1, sizeof *x->found))
        return -ENOMEM;
    x->found[x->count++] = *f;
    x->held[f->held].users++;
    if (x->bounded)
        rise(x, x->count - 1);
    return 0;
}

static bool is_selected(const struct store_event_selection *w, const struct store_event *event)
{
    return (!w->kinds || w->kinds >> event->kind & 1) &&
           (!w->name.size || str_eq(w->name, event->text)) &&
           (!w->unfinished || (event->kind == STORE_SPAN && store_span_is_unfinished(event))) &&
           event->start_ns <= w->to_ns && event->end_ns >= w->from_ns;
}

// True if a tail has a later record of the span.
static bool is_in_tails(const struct search *x, uint64_t id)
{
    size_t i;
    SEARCH_FIRST(i, x->tail_count, x->tails[i].id >= id);
    return id && i < x->tail_count && x->tails[i].id == id;
}

// True if the record of a block must be collected. Without a bound every record is collected,
// because a later block may have another record of the span.
static bool is_candidate(const struct search *x, const struct store_event *event)
{
    if (event->kind == STORE_SPAN && is_in_tails(x, event->id))
        return false;
    return x->bounded ? is_selected(&x->selection, event)
                      : !x->selection.kinds || x->selection.kinds >> event->kind & 1;
}

// Takes ownership of `bytes` for one user, the caller. *out is their index in x->held.
static int hold(struct search *x, uint8_t *bytes, uint32_t *out)
{
    if (x->held_count == UINT32_MAX ||
        !array_room(&x->held, &x->held_capacity, x->held_count + 1, sizeof *x->held)) {
        free(bytes);
        return -ENOMEM;
    }
    x->held[x->held_count] = (struct held){bytes, 1};
    *out = (uint32_t)x->held_count++;
    return 0;
}

static struct found found_at(struct search *x, const struct store_event *event, const uint8_t *at,
                             size_t size, uint32_t held)
{
    uint64_t id = event->kind == STORE_SPAN ? event->id : 0;
    return (struct found){event->start_ns, x->place++, id, at, (uint32_t)size, held, false};
}

// Takes ownership of `bytes`, the records of a block. If the index knows the block, leaves out the
// records that later blocks have replaced; otherwise adds the block to `index`.
static int scan(struct search *x, uint8_t *bytes, size_t size, const struct event_block *known,
                struct event_index *index)
{
    uint32_t held;
    int rc = hold(x, bytes, &held);
    if (rc)
        return rc;
    struct bytes in = bytes_of(bytes, size);
    struct store_event event;
    struct store_label labels[STORE_LABELS_MAX];
    bool only_index = x->bounded && index;
    for (uint32_t place = 0; !rc; place++) {
        const uint8_t *at = in.at;
        int next = event_next(&in, &event, labels);
        if (next <= 0) {
            rc = next;
            break;
        }
        if (known && event_block_replaced(known, place))
            continue;
        struct found f = found_at(x, &event, at, (size_t)(in.at - at), held);
        if (!only_index && is_candidate(x, &event))
            rc = note(x, &f);
        if (!rc && index)
            rc = event_index_add(index, place, &event);
    }
    release(x, held);
    return rc;
}

// The caller holds the index's lock.
static int scan_block(struct store_snapshot *s, struct search *x, struct block_ref *b)
{
    const struct block_header *h = &b->header;
    struct event_index *index = &s->reader->events;
    const struct event_block *known = event_index_find(index, h->sequence_first, h->data_crc);
    const struct store_event_selection *w = &x->selection;
    if (known && (!event_block_touches(known, w->from_ns, w->to_ns) ||
                  (w->kinds && !(known->kinds & w->kinds)) ||
                  (is_full(x) && known->first_ns > x->found[0].start_ns)))
        return 0;
    int rc = block_check(s->reader, b, true);
    if (rc)
        return rc == -EBADMSG ? 0 : rc;
    const uint8_t *stored = block_copy(s, b, sizeof *h + h->directory_bytes, h->data_bytes, &rc);
    if (rc)
        return rc;
    index->blocks_read++;
    bool packed = h->flags & BLOCK_ZSTD_DATA;
    size_t size = packed ? h->data_raw_bytes : h->data_bytes;
    uint8_t *bytes = size <= EVENTS_RAW_MAX ? malloc(size + 1) : NULL;
    if (!bytes)
        return -ENOMEM;
    if (packed) {
        size_t frame = ZSTD_findFrameCompressedSize(stored, h->data_bytes);
        rc = ZSTD_isError(frame) ? -EBADMSG : unpack(bytes, size, stored, frame);
        if (rc == -ENOMEM) {
            free(bytes);
            return rc;
        }
    } else {
        memcpy(bytes, stored, size);
    }
    bool ok = !rc;
    if (ok && !known) {
        rc = event_index_begin(index, h->sequence_first, h->data_crc);
        if (rc == -EAGAIN) // the index is empty now, and continues with this block
            rc = event_index_begin(index, h->sequence_first, h->data_crc);
    }
    if (!ok || rc)
        free(bytes);
    else
        rc = scan(x, bytes, size, known, known ? NULL : index);
    if (rc && rc != -EBADMSG && !known)
        event_index_free(index); // a part of the block is in the index
    if (!ok || rc == -EBADMSG)
        reader_report(s->reader, b->offset, h->size, "a block of events");
    return rc == -EBADMSG ? 0 : rc;
}

// Takes ownership of `bytes`, the records of a tail, and adds its events to x->tails.
static int take_tail(struct search *x, uint8_t *bytes, size_t size)
{
    uint32_t held;
    int rc = hold(x, bytes, &held);
    if (rc)
        return rc;
    struct bytes in = bytes_of(bytes, size);
    for (;;) {
        struct store_event event;
        struct store_label labels[STORE_LABELS_MAX];
        const uint8_t *at = in.at;
        int next = event_next(&in, &event, labels);
        if (next <= 0)
            return next;
        if (!array_room(&x->tails, &x->tail_capacity, x->tail_count + 1, sizeof *x->tails))
            return -ENOMEM;
        struct found f = found_at(x, &event, at, (size_t)(in.at - at), held);
        f.place += TAIL_PLACE;
        x->tails[x->tail_count++] = f;
    }
}

static int scan_tail(struct store_snapshot *s, struct search *x, size_t tail)
{
    const struct view_tail *t = &s->view->tails[tail];
    size_t size = s->used[tail] / 8 * 8;
    uint8_t *bytes = malloc(size + 1);
    if (!bytes)
        return -ENOMEM;
    reader_copy_words(bytes, t->bytes, size);
    int rc = tail_standing(t);
    if (rc) {
        free(bytes);
        return rc == -EBADMSG ? 0 : rc; // the damage was counted as part of the truncation
    }
    rc = take_tail(x, bytes, size);
    if (rc == -EBADMSG)
        reader_report(s->reader, t->offset, size, "the newest events");
    return rc == -EBADMSG ? 0 : rc;
}

static int scan_tails(struct store_snapshot *s, struct search *x)
{
    const struct view *v = s->view;
    int rc = 0;
    for (size_t i = 0; !rc && i < v->tail_count; i++)
        if (v->tails[i].kind == EXTENT_EVENT_TAIL && s->used[i])
            rc = scan_tail(s, x, i);
    mark_stale(x->tails, x->tail_count);
    return rc;
}

// The caller holds the index's lock.
static int scan_blocks(struct store_snapshot *s, struct search *x)
{
    const struct view *v = s->view;
    int rc = 0;
    for (size_t i = 0; !rc && i < v->events.count; i++)
        rc = scan_block(s, x, v->events.blocks[i]);
    return rc;
}

static bool is_indexed(const struct store_snapshot *s, const struct block_ref *b)
{
    return event_index_find(&s->reader->events, b->header.sequence_first, b->header.data_crc) !=
           NULL;
}

// Adds the missing blocks to the index. The search becomes unbounded if the index is full or a
// block is damaged. The caller holds the index's lock.
static int index_blocks(struct store_snapshot *s, struct search *x)
{
    const struct view *v = s->view;
    int rc = 0;
    x->bounded = !s->reader->events.full;
    for (size_t i = 0; !rc && x->bounded && i < v->events.count; i++)
        if (!is_indexed(s, v->events.blocks[i]))
            rc = scan_block(s, x, v->events.blocks[i]);
    for (size_t i = 0; !rc && i < v->events.count; i++)
        x->bounded = x->bounded && is_indexed(s, v->events.blocks[i]);
    return rc;
}

static int note_tails(struct search *x)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < x->tail_count; i++) {
        struct bytes in = bytes_of(x->tails[i].at, x->tails[i].size);
        struct store_event event;
        struct store_label labels[STORE_LABELS_MAX];
        if (!x->tails[i].stale && event_next(&in, &event, labels) > 0 &&
            is_selected(&x->selection, &event))
            rc = note(x, &x->tails[i]);
    }
    return rc;
}

static int search_all(struct store_snapshot *s, struct search *x)
{
    int rc = scan_tails(s, x);
    pthread_mutex_lock(&s->reader->events_mutex);
    if (!rc && x->selection.most && x->selection.most <= BOUNDED_MAX)
        rc = index_blocks(s, x);
    rc = rc ? rc : note_tails(x);
    rc = rc ? rc : scan_blocks(s, x);
    pthread_mutex_unlock(&s->reader->events_mutex);
    if (!rc && !x->bounded)
        mark_stale(x->found, x->count);
    return rc;
}

int store_events_find(struct store_snapshot *s, const struct store_event_selection *selection,
                      store_event_fn *each, void *user)
{
    struct search x = {.selection = *selection};
    int rc = -ESTALE;
    for (int i = 0; i < MOVES_MAX && rc == -ESTALE; i++) {
        search_free(&x);
        rc = search_all(s, &x);
        if (rc == -ESTALE && snapshot_move(s))
            rc = -ENOMEM;
    }
    if (!rc && x.count)
        qsort(x.found, x.count, sizeof *x.found, by_start);
    size_t given = 0;
    for (size_t i = 0; !rc && i < x.count && x.found[i].start_ns <= selection->to_ns; i++) {
        struct bytes in = bytes_of(x.found[i].at, x.found[i].size);
        struct store_event event;
        struct store_label labels[STORE_LABELS_MAX];
        if (x.found[i].stale || event_next(&in, &event, labels) <= 0 ||
            !is_selected(selection, &event))
            continue;
        if (!each(&event, user) || ++given == selection->most)
            break;
    }
    search_free(&x);
    return rc;
}

int store_events(struct store_snapshot *s, int64_t from_ns, int64_t to_ns, store_event_fn *each,
                 void *user)
{
    return store_events_find(s, &(struct store_event_selection){.from_ns = from_ns, .to_ns = to_ns},
                             each, user);
}

bool store_span_is_unfinished(const struct store_event *event)
{
    bool unfinished = event->end_ns == INT64_MAX;
    for (size_t i = 0; i < event->label_count && !unfinished; i++)
        unfinished = str_eq(event->labels[i].key, STR(STORE_UNFINISHED_TAG));
    return event->kind == STORE_SPAN && unfinished;
}
