// events.c - spans and annotations, read back.
#include "base/bytes.h"
#include "store/event_record.h"
#include "store/reader.h"

#include <errno.h>
#include <stdlib.h>

struct found {
    int64_t start_ns;
    uint64_t place; // of arrival
    uint64_t id;    // spans
    const uint8_t *at, *end;
    bool stale;
};

struct search {
    struct found *found;
    size_t count, capacity;
};

static int scan(struct search *x, const uint8_t *bytes, size_t size)
{
    struct bytes in = bytes_of(bytes, size);
    struct store_event event;
    struct store_label labels[STORE_LABELS_MAX];
    for (;;) {
        const uint8_t *at = in.at;
        int rc = event_next(&in, &event, labels);
        if (rc <= 0)
            return 0;
        if (x->count == x->capacity) {
            void *grown = array_grow(x->found, &x->capacity, sizeof *x->found);
            if (!grown)
                return -ENOMEM;
            x->found = grown;
        }
        x->found[x->count] = (struct found){event.start_ns, x->count, 0, at, in.at, false};
        if (event.kind == STORE_SPAN)
            x->found[x->count].id = event.id;
        x->count++;
    }
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

static int by_sequence(const void *a, const void *b)
{
    const struct block_ref *x = *(const struct block_ref *const *)a, *y = *(const struct block_ref *const *)b;
    return x->header.sequence_first < y->header.sequence_first ? -1
                                                               : x->header.sequence_first > y->header.sequence_first;
}

int store_events(struct store_snapshot *s, int64_t from_ns, int64_t to_ns, store_event_fn *each, void *user)
{
    struct search x = {0};
    uint8_t **held = calloc(s->block_count + 1, sizeof *held);
    const struct block_ref **blocks = calloc(s->block_count + 1, sizeof *blocks);
    size_t n = 0;
    int rc = held && blocks ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < s->block_count; i++)
        if (s->blocks[i].header.kind == BLOCK_EVENTS)
            blocks[n++] = &s->blocks[i];
    if (!rc)
        qsort(blocks, n, sizeof *blocks, by_sequence);
    for (size_t i = 0; !rc && i < n; i++)
        if ((held[i] = block_fetch(s, blocks[i])))
            rc = scan(&x, held[i] + sizeof(struct block_header), blocks[i]->header.data_bytes);
    for (size_t i = 0; !rc && i < s->tail_count; i++)
        if (s->tails[i].kind == SEGMENT_EVENT_TAIL)
            rc = scan(&x, s->tails[i].bytes, s->tails[i].used);
    if (!rc && x.count) {
        qsort(x.found, x.count, sizeof *x.found, by_id);
        for (size_t i = 0; i + 1 < x.count; i++)
            x.found[i].stale = x.found[i].id && x.found[i].id == x.found[i + 1].id;
        qsort(x.found, x.count, sizeof *x.found, by_start);
    }
    for (size_t i = 0; !rc && i < x.count; i++) {
        struct bytes in = bytes_of(x.found[i].at, (size_t)(x.found[i].end - x.found[i].at));
        struct store_event event;
        struct store_label labels[STORE_LABELS_MAX];
        if (x.found[i].stale || event_next(&in, &event, labels) <= 0)
            continue;
        if (event.start_ns <= to_ns && event.end_ns >= from_ns && !each(&event, user))
            break;
    }
    for (size_t i = 0; held && i < n; i++)
        free(held[i]);
    free(held);
    free(blocks);
    free(x.found);
    return rc;
}
