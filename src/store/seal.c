// seal.c - turns a full tail into a block.
//
// It sorts the rows by time (stable), keeps the last appended cell of equal times, and transposes
// rows to columns. Then it appends the block and empties the tail in one change of the table. So
// readers find the points in the tail or in the block, but never in both.
#include "base/array.h"
#include "store/block.h"
#include "store/event_record.h"
#include "store/sort.h"
#include "store/writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

_Static_assert((int)TAIL_ROWS_MAX <= (int)CODEC_VALUES_MAX &&
                   (int)TAIL_POINTS_MAX <= (int)CODEC_VALUES_MAX,
               "a tail fits into a block");
_Static_assert((int)EVENT_BYTES_MAX <= (int)TAIL_EVENT_BYTES_MIN / 2, "an event fits into a tail");

// ---- Blocks into extents ----

struct extent_sum *extent_sum(struct store *s, int slot)
{
    bool room = array_room_zeroed(&s->blocks.sums, &s->blocks.sum_capacity, (size_t)slot + 1,
                                  sizeof *s->blocks.sums);
    return room ? &s->blocks.sums[slot] : NULL;
}

void block_account(struct store *s, const struct block_header *h, int slot, uint64_t at, bool hot)
{
    assert((size_t)slot < s->blocks.sum_capacity);
    struct extent_sum *sum = &s->blocks.sums[slot];
    sum->live_bytes += h->size;
    sum->blocks++;
    sum->values += h->values;
    sum->last_ns = h->last_ns > sum->last_ns ? h->last_ns : sum->last_ns;
    s->stats.blocks++;
    struct hot_queue *q = !hot                      ? NULL
                          : h->kind == BLOCK_SET    ? &s->catalog.sets[h->owner].hot
                          : h->kind == BLOCK_POINTS ? &s->blocks.hot_points
                                                    : NULL;
    if (!q || !array_room(&q->blocks, &q->capacity, q->count + 1, sizeof *q->blocks))
        return;
    q->blocks[q->count++] = (struct hot_block){
        slot,    extent_entry(&s->file, slot)->generation, h->size, h->rows, at, h->sequence_first,
        h->order};
    q->rows += h->rows;
}

static int open_extent(struct store *s, int *slot, size_t size)
{
    const struct extent_entry *e = *slot == EXTENT_NO_SLOT ? NULL : extent_entry(&s->file, *slot);
    if (e && e->size - e->used >= size)
        return 0;
    size_t bytes = size > s->limits.extent_bytes ? size : s->limits.extent_bytes;
    retain_make_room(s, bytes);
    int new = extent_allocate(&s->file, EXTENT_BLOCKS, 0, s->blocks.sequence + 1, bytes);
    if (new < 0)
        return append_space_failed(s, new);
    struct extent_sum *sum = extent_sum(s, new);
    if (!sum) {
        extent_free(&s->file, new);
        return -ENOMEM;
    }
    *sum = (struct extent_sum){.last_ns = INT64_MIN};
    s->blocks.sequence++;
    *slot = new;
    return 0;
}

static void give_up_tail(struct store *s, struct tail *t)
{
    const struct extent_entry *e = extent_entry(&s->file, t->slot);
    s->tails.bytes -= e->size;
    s->tails.set_count -= e->kind == EXTENT_SET_TAIL;
    // Data that a sync has written to disk stay in the file until another sync has written the
    // block.
    if (extent_is_synced(&s->file, t->slot))
        extent_free_later(&s->file, t->slot);
    else
        extent_free(&s->file, t->slot);
    t->slot = EXTENT_NO_SLOT;
    t->room = 0;
}

// True if the tail should shrink in favour of others, because it takes more than twice an even
// share of memory.
static bool too_large(const struct store *s, const struct tail *t)
{
    return s->tails.bytes > append_tail_limit(s) / 2 &&
           extent_entry(&s->file, t->slot)->size >
               2 * (append_tail_limit(s) / (s->tails.set_count + 1));
}

static void empty_tail(struct store *s, struct tail *t)
{
    assert(t->slot != EXTENT_NO_SLOT);
    t->sequence++;
    t->used = t->checked = t->crc = t->idle = 0;
    if (extent_is_synced(&s->file, t->slot) || too_large(s, t))
        give_up_tail(s, t);
    else
        extent_reuse(&s->file, t->slot, t->sequence);
}

int block_append(struct store *s, const struct buf *block, bool cold, struct tail *emptied)
{
    int *slot = cold ? &s->blocks.cold_slot : &s->blocks.hot_slot;
    int rc = open_extent(s, slot, block->size);
    if (!rc && !extents_whole(&s->file))
        // a write beyond the end would extend the file again, with zeros in the gap
        rc = -ESTALE;
    if (rc)
        return rc;
    struct extent_entry *entry = extent_entry(&s->file, *slot);
    uint64_t at = entry->used;
    uint64_t offset = entry->offset + at;
    int written = s->io->write
                      ? s->io->write(s->io->user, s->file.fd, block->data, block->size, offset)
                      : -ENOSYS;
    if (writer_space_error(written))
        return append_space_failed(s, written); // a store through the mapping would raise SIGBUS
    if (written)
        append_words(s->file.base + offset, block->data, block->size / 8);
    extents_begin(&s->file);
    extent_publish(entry, at + block->size);
    store_io_step(s->io, "block");
    if (emptied)
        empty_tail(s, emptied);
    extents_end(&s->file);
    struct block_header h;
    memcpy(&h, block->data, sizeof h);
    block_account(s, &h, *slot, at, !cold);
    return 0;
}

// ---- Rows ----

bool seal_reserve_rows(struct store *s, size_t rows, size_t values)
{
    if (rows > s->scratch.time_capacity) {
        free(s->scratch.times);
        s->scratch.times = malloc(rows * sizeof *s->scratch.times);
        s->scratch.time_capacity = s->scratch.times ? rows : 0;
    }
    if (values > s->scratch.value_capacity) {
        free(s->scratch.values);
        s->scratch.values = malloc(values * sizeof *s->scratch.values);
        s->scratch.value_capacity = s->scratch.values ? values : 0;
    }
    return rows <= s->scratch.time_capacity && values <= s->scratch.value_capacity;
}

static int sort_late_rows(struct store *s, const uint8_t *tail, uint32_t rows, uint32_t columns)
{
    size_t row_bytes = (columns + 1) * sizeof(double);
    struct row_time *order = malloc(rows * sizeof *order);
    if (!order)
        return -ENOMEM;
    for (uint32_t r = 0; r < rows; r++) {
        memcpy(&order[r].t_ns, tail + r * row_bytes, 8);
        order[r].row = r;
    }
    rows_sort(order, rows);
    uint32_t n = 0;
    for (uint32_t r = 0; r < rows; r++) {
        bool same = n && s->scratch.times[n - 1] == order[r].t_ns;
        if (!same)
            s->scratch.times[n++] = order[r].t_ns;
        const uint8_t *row = tail + order[r].row * row_bytes + 8;
        for (uint32_t c = 0; c < columns; c++) {
            double v;
            memcpy(&v, row + c * sizeof v, sizeof v);
            if (!same || !store_is_missing(v))
                s->scratch.values[(size_t)c * rows + n - 1] = v;
        }
    }
    free(order);
    return (int)n;
}

// rows and columns that are transposed at a time: source and target stay in the nearest cache
enum { TILE = 16 };

static void transpose(const uint8_t *rows_at, uint32_t rows, uint32_t columns, double *out)
{
    const double *in = (const double *)(const void *)rows_at;
    size_t stride = columns + 1;
    for (uint32_t r0 = 0; r0 < rows; r0 += TILE)
        for (uint32_t c0 = 0; c0 < columns; c0 += TILE) {
            uint32_t r1 = r0 + TILE < rows ? r0 + TILE : rows,
                     c1 = c0 + TILE < columns ? c0 + TILE : columns;
            for (uint32_t c = c0; c < c1; c++)
                for (uint32_t r = r0; r < r1; r++)
                    out[(size_t)c * rows + r] = in[r * stride + 1 + c];
        }
}

int seal_sort_rows(struct store *s, const uint8_t *tail, uint32_t rows, uint32_t columns)
{
    if (!seal_reserve_rows(s, rows, (size_t)rows * columns))
        return -ENOMEM;
    size_t row_bytes = (columns + 1) * sizeof(double);
    bool sorted = true;
    for (uint32_t r = 0; r < rows; r++) {
        memcpy(&s->scratch.times[r], tail + r * row_bytes, 8);
        sorted = sorted && (!r || s->scratch.times[r] > s->scratch.times[r - 1]);
    }
    if (!sorted)
        return sort_late_rows(s, tail, rows, columns);
    transpose(tail, rows, columns, s->scratch.values);
    return (int)rows;
}

static struct block_source source_of(const struct store *s, const struct tail *t, uint32_t owner)
{
    return (struct block_source){
        .owner = owner,
        .sequence_first = t->sequence,
        .sequence_last = t->sequence,
        .order = extents_super(&s->file)->version,
    };
}

int seal_set(struct store *s, uint32_t id)
{
    struct set *set = &s->catalog.sets[id];
    if (set->tail.slot == EXTENT_NO_SLOT || !set->tail.used)
        return 0;
    int rows = seal_sort_rows(s, s->file.base + set->tail.offset, set->tail.used, set->count);
    if (rows < 0)
        return rows;
    struct block_source source = source_of(s, &set->tail, id);
    s->scratch.block.size = 0;
    s->scratch.block.failed = false;
    int rc = block_put_set(&s->scratch.block, &source, s->scratch.times, (uint32_t)rows,
                           s->scratch.values, set->tail.used, set->count);
    return rc ? rc : block_append(s, &s->scratch.block, false, &s->catalog.sets[id].tail);
}

// ---- Points and events ----

int seal_points(struct store *s)
{
    struct tail *t = &s->tails.points;
    if (t->slot == EXTENT_NO_SLOT || !t->used)
        return 0;
    if (!s->scratch.points &&
        !(s->scratch.points = malloc(2 * TAIL_POINTS_MAX * sizeof *s->scratch.points)))
        return -ENOMEM;
    struct point_record *points = s->scratch.points;
    size_t count =
        points_sort((const struct point_record *)(const void *)(s->file.base + t->offset), t->used,
                    points, (uint64_t *)(void *)(points + TAIL_POINTS_MAX));
    struct block_source source = source_of(s, t, 0);
    s->scratch.block.size = 0;
    s->scratch.block.failed = false;
    int rc = block_put_points(&s->scratch.block, &source, points, count);
    return rc ? rc : block_append(s, &s->scratch.block, false, t);
}

int seal_events(struct store *s)
{
    struct tail *t = &s->tails.events;
    if (t->slot == EXTENT_NO_SLOT || !t->used)
        return 0;
    struct str records = {(const char *)s->file.base + t->offset, t->used};
    struct bytes in = bytes_of(records.data, records.size);
    struct store_event event;
    struct store_label labels[STORE_LABELS_MAX];
    uint32_t count = 0;
    int64_t first = INT64_MAX, last = INT64_MIN;
    while (event_next(&in, &event, labels) > 0) {
        count++;
        first = event.start_ns < first ? event.start_ns : first;
        last = event.start_ns > last ? event.start_ns : last;
    }
    struct block_source source = source_of(s, t, 0);
    s->scratch.block.size = 0;
    s->scratch.block.failed = false;
    int rc = block_put_events(&s->scratch.block, &source, records, count, first, last);
    return rc ? rc : block_append(s, &s->scratch.block, false, t);
}

int seal_and_free(struct store *s, uint32_t id)
{
    int rc = seal_set(s, id);
    if (!rc && s->catalog.sets[id].tail.slot != EXTENT_NO_SLOT)
        give_up_tail(s, &s->catalog.sets[id].tail);
    return rc;
}

enum { IDLE_SYNCS = 60, IDLE_LOOKS = 1024, IDLE_SEALS = 4 };

// A tail counts as idle after five minutes with the usual sync interval. Sealing earlier would cost
// space, because a few rows take more space in a block than in a tail.
int seal_idle(struct store *s)
{
    uint32_t sealed = 0;
    for (uint32_t looked = 0; looked < s->stats.sets && looked < IDLE_LOOKS && sealed < IDLE_SEALS;
         looked++) {
        s->tails.idle_hand = (s->tails.idle_hand + 1) % (uint32_t)s->stats.sets;
        const struct tail *t = &s->catalog.sets[s->tails.idle_hand].tail;
        if (t->slot == EXTENT_NO_SLOT || t->idle < IDLE_SYNCS)
            continue;
        int rc = seal_and_free(s, s->tails.idle_hand);
        if (rc)
            return rc;
        sealed++;
    }
    return 0;
}

int seal_all(struct store *s)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->stats.sets; i++) {
        int one = seal_set(s, i);
        rc = rc ? rc : one;
    }
    int points = seal_points(s), events = seal_events(s);
    return rc ? rc : points ? points : events;
}

int store_seal(struct store *s)
{
    return seal_all(s);
}
