// seal.c - from a full tail to a block.
//
// Rows are brought into order of time (stable), of equal times the cells appended last win, and columns take the place of rows.
// Then the block is appended and the tail emptied in one change of the table: readers see the points in one place or the other.
#include "store/block.h"
#include "store/event_record.h"
#include "store/writer.h"

#include <errno.h>
#include <stdlib.h>

int block_append(struct store *s, const uint8_t *block, size_t size, int emptied_slot, uint64_t next_sequence)
{
    const struct segment_entry *e = s->block_slot == EXTENT_NO_SLOT ? NULL : extent_entry(&s->file, s->block_slot);
    if (!e || e->size - e->used < size) {
        uint64_t wanted = size > BLOCK_SEGMENT_BYTES ? size : BLOCK_SEGMENT_BYTES;
        int slot = extent_allocate(&s->file, SEGMENT_BLOCKS, 0, s->block_sequence + 1, wanted);
        if (slot < 0)
            return space_failed(s, slot);
        s->block_sequence++;
        s->block_slot = slot;
    }
    struct segment_entry *entry = extent_entry(&s->file, s->block_slot);
    uint64_t *to = (uint64_t *)(void *)(s->file.base + entry->offset + entry->used);
    for (size_t i = 0; i < size / 8; i++) {
        uint64_t w;
        memcpy(&w, block + 8 * i, 8);
        __atomic_store_n(&to[i], w, __ATOMIC_RELAXED);
    }
    extents_begin(&s->file);
    extent_publish(entry, entry->used + size);
    if (emptied_slot != EXTENT_NO_SLOT)
        extent_reuse(&s->file, emptied_slot, next_sequence);
    extents_end(&s->file);
    s->stats.blocks++;
    return 0;
}

struct row_order {
    int64_t t_ns;
    uint32_t row;
};

static int by_time(const void *a, const void *b)
{
    const struct row_order *x = a, *y = b;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

// Fills t_ns and columns (stride `rows`); returns how many different time stamps there are, 0: no memory.
static uint32_t sort_rows(const uint8_t *tail, uint32_t rows, uint32_t columns, int64_t *t_ns, double *values)
{
    size_t row_bytes = (columns + 1) * sizeof(double);
    struct row_order *order = malloc(rows * sizeof *order);
    if (!order)
        return 0;
    bool sorted = true;
    for (uint32_t r = 0; r < rows; r++) {
        memcpy(&order[r].t_ns, tail + r * row_bytes, 8);
        order[r].row = r;
        sorted = sorted && (!r || order[r].t_ns > order[r - 1].t_ns);
    }
    if (!sorted)
        qsort(order, rows, sizeof *order, by_time);
    uint32_t n = 0;
    for (uint32_t r = 0; r < rows; r++) {
        bool same = n && t_ns[n - 1] == order[r].t_ns;
        if (!same)
            t_ns[n++] = order[r].t_ns;
        const uint8_t *row = tail + order[r].row * row_bytes + 8;
        for (uint32_t c = 0; c < columns; c++) {
            double v;
            memcpy(&v, row + c * sizeof v, sizeof v);
            if (!same || !store_is_missing(v))
                values[(size_t)c * rows + n - 1] = v;
        }
    }
    free(order);
    return n;
}

int seal_set(struct store *s, uint32_t id)
{
    struct set *set = &s->sets[id];
    if (set->slot == EXTENT_NO_SLOT || !set->rows)
        return 0;
    int64_t *t = malloc(set->rows * sizeof *t);
    double *values = malloc((size_t)set->rows * set->count * sizeof *values);
    struct buf out = {0};
    uint32_t n = 0;
    if (t && values)
        n = sort_rows(s->file.base + set->offset, set->rows, set->count, t, values);
    struct block_source source = {
        .owner = id,
        .sequence_first = set->sequence,
        .sequence_last = set->sequence,
        .order = extents_super(&s->file)->version,
    };
    int rc = n ? block_put_set(&out, &source, t, n, values, set->rows, set->count) : -ENOMEM;
    if (!rc)
        rc = block_append(s, (const uint8_t *)out.data, out.size, set->slot, set->sequence + 1);
    if (!rc) {
        set->sequence++;
        set->rows = 0;
    }
    free(t);
    free(values);
    buf_free(&out);
    return rc;
}

static int by_series(const void *a, const void *b)
{
    const struct point_record *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return x->zero < y->zero ? -1 : x->zero > y->zero;
}

int seal_points(struct store *s)
{
    if (s->point_slot == EXTENT_NO_SLOT || !s->point_count)
        return 0;
    struct point_record *points = malloc(s->point_count * sizeof *points);
    if (!points)
        return -ENOMEM;
    memcpy(points, s->file.base + s->point_offset, s->point_count * sizeof *points);
    for (uint32_t i = 0; i < s->point_count; i++)
        points[i].zero = i;
    qsort(points, s->point_count, sizeof *points, by_series);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->point_count; i++) {
        if (n && points[n - 1].series == points[i].series && points[n - 1].t_ns == points[i].t_ns)
            n--;
        points[n++] = points[i];
    }
    struct block_source source = {
        .sequence_first = s->point_sequence,
        .sequence_last = s->point_sequence,
        .order = extents_super(&s->file)->version,
    };
    struct buf out = {0};
    int rc = block_put_points(&out, &source, points, n);
    if (!rc)
        rc = block_append(s, (const uint8_t *)out.data, out.size, s->point_slot, s->point_sequence + 1);
    if (!rc) {
        s->point_sequence++;
        s->point_count = 0;
    }
    free(points);
    buf_free(&out);
    return rc;
}

int seal_events(struct store *s)
{
    if (s->event_slot == EXTENT_NO_SLOT || !s->event_bytes)
        return 0;
    struct str records = {(const char *)s->file.base + s->event_offset, s->event_bytes};
    struct bytes in = bytes_of(records.data, records.size);
    struct store_event event;
    struct store_label labels[STORE_LABELS_MAX];
    uint32_t count = 0;
    int64_t first = INT64_MAX, last = INT64_MIN;
    while (event_next(&in, &event, labels) > 0) {
        count++;
        first = event.start_ns < first ? event.start_ns : first;
        last = event.end_ns > last ? event.end_ns : last;
    }
    struct block_source source = {
        .sequence_first = s->event_sequence,
        .sequence_last = s->event_sequence,
        .order = extents_super(&s->file)->version,
    };
    struct buf out = {0};
    int rc = block_put_events(&out, &source, records, count, first, last);
    if (!rc)
        rc = block_append(s, (const uint8_t *)out.data, out.size, s->event_slot, s->event_sequence + 1);
    if (!rc) {
        s->event_sequence++;
        s->event_bytes = 0;
    }
    buf_free(&out);
    return rc;
}

int store_seal(struct store *s)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->stats.sets; i++) {
        int one = seal_set(s, i);
        rc = rc ? rc : one;
    }
    int points = seal_points(s), events = seal_events(s);
    return rc ? rc : points ? points : events;
}
