#include "store/event_index.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/search.h"
#include "store/reader.h"

#include <errno.h>
#include <stdlib.h>

enum {
    IDS_MIN = 256,
    // slots, 512 KiB: before the table grows beyond this size, the index removes spans that ended
    // long ago
    IDS_SWEPT = 1 << 15,
    // number of the last blocks that may repeat the record of an ended span, because a killed agent
    // repeats its last records
    RECENT_BLOCKS = 4,
};

void event_index_free(struct event_index *x)
{
    for (size_t i = 0; i < x->count; i++)
        free(x->blocks[i].replaced);
    free(x->blocks);
    free(x->ids);
    *x = (struct event_index){.full = x->full, .blocks_read = x->blocks_read};
}

const struct event_block *event_index_find(const struct event_index *x, uint64_t number,
                                           uint32_t crc)
{
    size_t i;
    SEARCH_FIRST(i, x->count, x->blocks[i].number >= number);
    bool found = i < x->count && x->blocks[i].number == number && x->blocks[i].crc == crc;
    return found ? &x->blocks[i] : NULL;
}

int event_index_begin(struct event_index *x, uint64_t number, uint32_t crc)
{
    if (x->full)
        return 0;
    if (x->count && x->blocks[x->count - 1].number >= number) {
        event_index_free(x);
        return -EAGAIN;
    }
    if (!array_room(&x->blocks, &x->capacity, x->count + 1, sizeof *x->blocks)) {
        event_index_free(x);
        return -ENOMEM;
    }
    x->blocks[x->count++] = (struct event_block){
        .number = number, .crc = crc, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    return 0;
}

static struct event_id *slot_of(struct event_id *ids, size_t capacity, uint64_t id)
{
    size_t i = hash_u64(id) & (capacity - 1);
    while (ids[i].id && ids[i].id != id)
        i = (i + 1) & (capacity - 1);
    return &ids[i];
}

static bool grow_ids(struct event_index *x)
{
    size_t capacity = x->id_capacity ? 2 * x->id_capacity : IDS_MIN;
    struct event_id *ids = calloc(capacity, sizeof *ids);
    if (!ids)
        return false;
    for (size_t i = 0; i < x->id_capacity; i++)
        if (x->ids[i].id)
            *slot_of(ids, capacity, x->ids[i].id) = x->ids[i];
    free(x->ids);
    x->ids = ids;
    x->id_capacity = capacity;
    return true;
}

// Removes the spans that have ended, except those in recent blocks. Returns false if that does not
// free enough slots.
static bool sweep_ids(struct event_index *x)
{
    size_t kept = 0;
    struct event_id *ids = x->id_capacity < IDS_SWEPT ? NULL : calloc(x->id_capacity, sizeof *ids);
    for (size_t i = 0; ids && i < x->id_capacity; i++) {
        const struct event_id *id = &x->ids[i];
        if (!id->id || !(id->open || id->block + RECENT_BLOCKS >= x->count))
            continue;
        *slot_of(ids, x->id_capacity, id->id) = *id;
        kept++;
    }
    if (!ids || 4 * kept > x->id_capacity) {
        free(ids);
        return false;
    }
    free(x->ids);
    x->ids = ids;
    x->id_count = kept;
    return true;
}

// Marks the event at this place of an earlier block as replaced.
static bool replace(struct event_block *b, const struct event_id *old)
{
    size_t capacity = b->replaced_capacity;
    if (!array_room(&b->replaced, &capacity, (size_t)b->replaced_count + 1, sizeof *b->replaced))
        return false;
    b->replaced_capacity = (uint32_t)capacity;
    uint32_t at = b->replaced_count++;
    for (; at && b->replaced[at - 1] > old->place; at--)
        b->replaced[at] = b->replaced[at - 1];
    b->replaced[at] = old->place;
    return true;
}

int event_index_add(struct event_index *x, uint32_t place, const struct store_event *event)
{
    if (x->full)
        return 0;
    uint32_t number = (uint32_t)x->count - 1;
    struct event_block *b = &x->blocks[number];
    b->first_ns = event->start_ns < b->first_ns ? event->start_ns : b->first_ns;
    bool open = event->end_ns == INT64_MAX;
    b->kinds |= 1u << event->kind;
    if (open)
        b->open++;
    else
        b->last_ns = event->end_ns > b->last_ns ? event->end_ns : b->last_ns;
    if (event->kind != STORE_SPAN || !event->id)
        return 0;
    if (x->id_count == EVENT_IDS_MAX && !sweep_ids(x)) {
        x->full = true;
        event_index_free(x);
        return 0;
    }
    if (2 * (x->id_count + 1) > x->id_capacity && !sweep_ids(x) && !grow_ids(x)) {
        event_index_free(x);
        return -ENOMEM;
    }
    struct event_id *slot = slot_of(x->ids, x->id_capacity, event->id);
    if (slot->id) {
        struct event_block *before = &x->blocks[slot->block];
        before->open -= slot->open;
        if (!replace(before, slot)) {
            event_index_free(x);
            return -ENOMEM;
        }
    }
    x->id_count += !slot->id;
    *slot = (struct event_id){event->id, number, place & INT32_MAX, open};
    return 0;
}

bool event_block_touches(const struct event_block *b, int64_t from_ns, int64_t to_ns)
{
    return b->first_ns <= to_ns && (b->open || b->last_ns >= from_ns);
}

bool event_block_replaced(const struct event_block *b, uint32_t place)
{
    size_t i;
    SEARCH_FIRST(i, b->replaced_count, b->replaced[i] >= place);
    return i < b->replaced_count && b->replaced[i] == place;
}
