// events.c - spans and annotations, read back.
//
// A span may be there twice: as it began and, later in the order of arrival, as it ended. The last one counts, and it may lie in a block that does
// not touch the range: so a reader looks through every block once, and afterwards through those that touch (event_index.h).
#include "base/bytes.h"
#include "store/event_index.h"
#include "store/event_record.h"
#include "store/reader.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zstd.h>

enum { EVENTS_RAW_MAX = 64 << 20, MOVES_MAX = 1000 };

struct found {
    int64_t start_ns;
    uint64_t place; // of arrival
    uint64_t id;    // spans
    const uint8_t *at;
    size_t size;
    bool stale;
};

struct search {
    unsigned kinds;
    struct found *found;
    size_t count, capacity;
    uint8_t **held; // the bytes they lie in
    size_t held_count, held_capacity;
};

static void search_free(struct search *x)
{
    for (size_t i = 0; i < x->held_count; i++)
        free(x->held[i]);
    free(x->held);
    free(x->found);
    *x = (struct search){.kinds = x->kinds};
}

static int note(struct search *x, const struct store_event *event, const uint8_t *at, size_t size)
{
    if (x->count == x->capacity) {
        void *grown = array_grow(x->found, &x->capacity, sizeof *x->found);
        if (!grown)
            return -ENOMEM;
        x->found = grown;
    }
    uint64_t id = event->kind == STORE_SPAN ? event->id : 0;
    x->found[x->count] = (struct found){event->start_ns, x->count, id, at, size, false};
    x->count++;
    return 0;
}

// Takes `bytes` over. Of a block that is known what later ones have replaced is left out; one that is not becomes known to `index`.
static int scan(struct search *x, uint8_t *bytes, size_t size, const struct event_block *known,
                struct event_index *index)
{
    if (x->held_count == x->held_capacity) {
        void *grown = array_grow(x->held, &x->held_capacity, sizeof *x->held);
        if (!grown) {
            free(bytes);
            return -ENOMEM;
        }
        x->held = grown;
    }
    size_t before = x->count;
    x->held[x->held_count++] = bytes;
    struct bytes in = bytes_of(bytes, size);
    struct store_event event;
    struct store_label labels[STORE_LABELS_MAX];
    for (uint32_t place = 0;; place++) {
        const uint8_t *at = in.at;
        int rc = event_next(&in, &event, labels);
        if (rc <= 0) {
            if (x->count == before)
                free(x->held[--x->held_count]);
            return rc;
        }
        if (known && event_block_replaced(known, place))
            continue;
        if (x->kinds >> event.kind & 1)
            rc = note(x, &event, at, (size_t)(in.at - at));
        else
            rc = 0;
        if (!rc && index)
            rc = event_index_add(index, place, &event);
        if (rc)
            return rc;
    }
}

// The index is locked.
static int scan_block(struct store_snapshot *s, struct search *x, struct block_ref *b, int64_t from_ns, int64_t to_ns)
{
    const struct block_header *h = &b->header;
    struct event_index *index = &s->reader->events;
    const struct event_block *known = event_index_find(index, h->sequence_first, h->data_crc);
    if (known && (!event_block_touches(known, from_ns, to_ns) || !(known->kinds & x->kinds)))
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
        rc = ZSTD_isError(frame) ? -EBADMSG : unpack_frame(s, bytes, size, stored, frame);
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
        if (rc == -EAGAIN) // it begins anew, here
            rc = event_index_begin(index, h->sequence_first, h->data_crc);
    }
    if (!ok || rc)
        free(bytes);
    else
        rc = scan(x, bytes, size, known, known ? NULL : index);
    if (rc && rc != -EBADMSG && !known)
        event_index_free(index); // the block is in it by half
    if (!ok || rc == -EBADMSG)
        reader_report(s->reader, b->offset, h->size, "a block of events");
    return rc == -EBADMSG ? 0 : rc;
}

static int scan_tail(struct store_snapshot *s, struct search *x, size_t tail)
{
    const struct view_tail *t = &s->view->tails[tail];
    size_t size = s->used[tail] / 8 * 8;
    uint8_t *bytes = malloc(size + 1);
    if (!bytes)
        return -ENOMEM;
    copy_words(bytes, t->bytes, size);
    int rc = tail_standing(t);
    if (rc) {
        free(bytes);
        return rc == -EBADMSG ? 0 : rc; // counted with the cut
    }
    rc = scan(x, bytes, size, NULL, NULL);
    if (rc == -EBADMSG)
        reader_report(s->reader, t->offset, size, "the newest events");
    return rc == -EBADMSG ? 0 : rc;
}

static int search_all(struct store_snapshot *s, struct search *x, int64_t from_ns, int64_t to_ns)
{
    const struct view *v = s->view;
    int rc = 0;
    pthread_mutex_lock(&s->reader->events_mutex);
    for (size_t i = 0; !rc && i < v->events.count; i++)
        rc = scan_block(s, x, v->events.blocks[i], from_ns, to_ns);
    pthread_mutex_unlock(&s->reader->events_mutex);
    for (size_t i = 0; !rc && i < v->tail_count; i++)
        if (v->tails[i].kind == SEGMENT_EVENT_TAIL && s->used[i])
            rc = scan_tail(s, x, i);
    return rc;
}

static int by_id(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static int by_start(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

int store_events_of(struct store_snapshot *s, unsigned kinds, int64_t from_ns, int64_t to_ns, store_event_fn *each,
                    void *user)
{
    struct search x = {.kinds = kinds ? kinds : UINT_MAX};
    int rc = -ESTALE;
    for (int i = 0; i < MOVES_MAX && rc == -ESTALE; i++) {
        search_free(&x);
        rc = search_all(s, &x, from_ns, to_ns);
        if (rc == -ESTALE && snapshot_move(s))
            rc = -ENOMEM;
    }
    if (!rc && x.count) {
        qsort(x.found, x.count, sizeof *x.found, by_id);
        for (size_t i = 0; i + 1 < x.count; i++)
            x.found[i].stale = x.found[i].id && x.found[i].id == x.found[i + 1].id;
        qsort(x.found, x.count, sizeof *x.found, by_start);
    }
    for (size_t i = 0; !rc && i < x.count && x.found[i].start_ns <= to_ns; i++) {
        struct bytes in = bytes_of(x.found[i].at, x.found[i].size);
        struct store_event event;
        struct store_label labels[STORE_LABELS_MAX];
        if (x.found[i].stale || event_next(&in, &event, labels) <= 0)
            continue;
        if (event.end_ns >= from_ns && !each(&event, user))
            break;
    }
    search_free(&x);
    return rc;
}

int store_events(struct store_snapshot *s, int64_t from_ns, int64_t to_ns, store_event_fn *each, void *user)
{
    return store_events_of(s, 0, from_ns, to_ns, each, user);
}
