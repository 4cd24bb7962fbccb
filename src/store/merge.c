// merge.c - hot blocks, a thousand rows each, become cold ones of thousands, which take a fraction of the space.
//
// A cold block carries the range of the numbers of those it replaces, so from the moment it is in the segment they do not count any
// more, for readers and for recovery alike: a crash in between neither doubles nor loses anything. They are freed after the next sync.
//
// A step merges at most MERGE_VALUES values, some tens of milliseconds' work, and is due as often as so many have come in: for a node with 150
// series at 10 Hz once in six minutes. At the end only so much is merged as takes a few seconds; the rest stays hot.
#include "store/block.h"
#include "store/cold.h"
#include "store/sort.h"
#include "store/writer.h"

#include <errno.h>
#include <stdlib.h>

enum {
    MERGE_ROWS = 8192,
    MERGE_VALUES = 1 << 19,
    CLOSING_MERGE_VALUES = 1 << 20, // a step, when closing
    MERGE_POINTS = 4 * TAIL_POINTS_MAX,
    LEVEL_LIVE = 3,     // of zstd, while data comes in
    LEVEL_CLOSING = 19, // when there is time
};

static uint64_t rows_wanted(const struct set *set, bool all)
{
    uint64_t rows = (all ? CLOSING_MERGE_VALUES : MERGE_VALUES) / set->count;
    return rows > MERGE_ROWS ? MERGE_ROWS : rows < 2 * TAIL_ROWS_MIN ? 2 * TAIL_ROWS_MIN : rows;
}

static void queue_drop(struct hot_queue *q, size_t n)
{
    for (size_t i = 0; i < n; i++)
        q->rows -= q->blocks[i].rows;
    q->count -= n;
    memmove(q->blocks, q->blocks + n, q->count * sizeof *q->blocks);
}

static const uint8_t *block_at(const struct store *s, const struct hot_block *b, struct block_header *h)
{
    const uint8_t *at = extent_bytes(&s->file, b->slot) + b->at;
    memcpy(h, at, sizeof *h);
    return at;
}

static bool there(const struct store *s, const struct hot_block *b)
{
    return extent_entry(&s->file, b->slot)->generation == b->generation;
}

// Whether it is what was written. The disk may have lost it since.
static bool intact(const struct store *s, const struct hot_block *b)
{
    struct block_header h;
    const uint8_t *at = block_at(s, b, &h);
    return block_header_fits(&h, b->size) && block_intact(&h, at);
}

// How many of the first blocks can go into one: retired and damaged ones are left where they are, and no merged block spans them.
static size_t choose(struct store *s, struct hot_queue *q, uint64_t rows_max)
{
    while (q->count && (!there(s, &q->blocks[0]) || !intact(s, &q->blocks[0])))
        queue_drop(q, 1);
    uint64_t rows = 0;
    size_t n = 0;
    for (; n < q->count; n++) {
        const struct hot_block *b = &q->blocks[n];
        if (n && (rows + b->rows > rows_max || b->sequence != b[-1].sequence + 1 || !there(s, b) || !intact(s, b)))
            break;
        rows += b->rows;
    }
    return n;
}

// The first n blocks of the queue are in the cold block now.
static void replaced(struct store *s, struct hot_queue *q, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct hot_block *b = &q->blocks[i];
        struct segment_sum *sum = &s->sums[b->slot];
        struct block_header h;
        block_at(s, b, &h);
        sum->live_bytes -= b->size;
        sum->blocks--;
        sum->values -= h.values;
        s->stats.blocks--;
        if (!sum->live_bytes && b->slot != s->hot_slot)
            extent_free_later(&s->file, b->slot);
    }
    queue_drop(q, n);
}

// ── Sets ─────────────────────────────────────────────────────────────────────────────────────────────────────────

static int decode_column(const struct block_header *h, const uint8_t *block, uint32_t column, double *present,
                         double *out)
{
    struct column_entry stored;
    memcpy(&stored, block + sizeof *h + 8 + column * sizeof stored, sizeof stored);
    struct block_entry e;
    int rc = block_entry_of_column(h, &stored, &e);
    if (!rc && e.count == h->rows)
        return block_decode_values(
            h, &e, (struct str){(const char *)block + sizeof *h + h->directory_bytes + e.offset, e.size}, out);
    for (uint32_t r = 0; r < h->rows; r++)
        out[r] = store_missing();
    if (rc == -ENOENT)
        return 0;
    if (rc)
        return rc;
    const uint8_t *at = block + sizeof *h + h->directory_bytes + e.offset;
    rc = block_decode_values(h, &e, (struct str){(const char *)at, e.size}, present);
    for (uint32_t r = 0, n = 0; !rc && r < h->rows && n < e.count; r++)
        if (at[r / 8] >> r % 8 & 1)
            out[r] = present[n++];
    return rc;
}

static int decode_rows(struct store *s, const struct hot_queue *q, size_t n, uint32_t rows, uint32_t columns)
{
    double *present = malloc(CODEC_VALUES_MAX * sizeof *present);
    int rc = present && reserve_rows(s, rows, (size_t)rows * columns) ? 0 : -ENOMEM;
    size_t at = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        struct block_header h;
        const uint8_t *block = block_at(s, &q->blocks[i], &h);
        uint32_t time_bytes;
        memcpy(&time_bytes, block + sizeof h, sizeof time_bytes);
        rc = h.columns != columns || time_bytes > h.data_bytes
                 ? -EBADMSG
                 : codec_decode_times(block + sizeof h + h.directory_bytes, time_bytes, h.rows, s->row_times + at);
        for (uint32_t c = 0; !rc && c < columns; c++)
            rc = decode_column(&h, block, c, present, s->row_values + (size_t)c * rows + at);
        at += h.rows;
    }
    free(present);
    return rc;
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

// Blocks that overlap: rows into order, of equal times the cells of the later block win. Returns how many are left.
static int order_rows(struct store *s, uint32_t rows, uint32_t columns)
{
    bool sorted = true;
    for (uint32_t r = 1; r < rows; r++)
        sorted = sorted && s->row_times[r - 1] < s->row_times[r];
    if (sorted)
        return (int)rows;
    struct row_order *order = malloc(rows * sizeof *order);
    double *old = malloc(rows * sizeof *old);
    uint32_t n = 0;
    for (uint32_t r = 0; order && r < rows; r++)
        order[r] = (struct row_order){s->row_times[r], r};
    if (order && old)
        qsort(order, rows, sizeof *order, by_time);
    for (uint32_t c = 0; order && old && c < columns; c++) {
        double *column = s->row_values + (size_t)c * rows;
        memcpy(old, column, rows * sizeof *old);
        n = 0;
        for (uint32_t r = 0; r < rows; r++) {
            bool same = r && order[r].t_ns == order[r - 1].t_ns;
            n += !same;
            if (!same || !store_is_missing(old[order[r].row]))
                column[n - 1] = old[order[r].row];
        }
    }
    n = 0;
    for (uint32_t r = 0; order && old && r < rows; r++)
        if (!r || order[r].t_ns != order[r - 1].t_ns)
            s->row_times[n++] = order[r].t_ns;
    free(order);
    free(old);
    return n ? (int)n : -ENOMEM;
}

static struct block_source source_of(const struct store *s, const struct hot_queue *q, size_t n, uint32_t owner)
{
    struct block_header h;
    block_at(s, &q->blocks[n - 1], &h);
    return (struct block_source){
        .owner = owner,
        .sequence_first = q->blocks[0].sequence,
        .sequence_last = q->blocks[n - 1].sequence,
        .order = h.order,
    };
}

static int merge_set(struct store *s, uint32_t id, bool all)
{
    struct set *set = &s->sets[id];
    struct hot_queue *q = &set->hot;
    uint64_t wanted = rows_wanted(set, all);
    if (!q->count || (!all && q->rows < wanted))
        return 0;
    size_t n = choose(s, q, wanted);
    if (!n)
        return 0;
    uint32_t rows = 0;
    for (size_t i = 0; i < n; i++)
        rows += q->blocks[i].rows;
    int rc = decode_rows(s, q, n, rows, set->count);
    if (rc == -EBADMSG) {
        queue_drop(q, 1);
        return 1;
    }
    int kept = rc ? rc : order_rows(s, rows, set->count);
    if (kept < 0)
        return kept;
    struct block_source source = source_of(s, q, n, id);
    s->block.size = 0;
    s->block.failed = false;
    rc = cold_put_set(&s->block, &source, s->row_times, (uint32_t)kept, s->row_values, rows, set->count,
                      all ? LEVEL_CLOSING : LEVEL_LIVE);
    if (!rc)
        rc = block_append(s, &s->block, true, NULL);
    if (rc)
        return rc;
    replaced(s, &s->sets[id].hot, n);
    s->merged_values += (uint64_t)kept * s->sets[id].count;
    return 1;
}

// ── Points ───────────────────────────────────────────────────────────────────────────────────────────────────────

static int decode_points(const struct block_header *h, const uint8_t *block, struct point_record *out)
{
    const uint8_t *directory = block + sizeof *h, *data = directory + h->directory_bytes;
    int64_t *t = malloc(CODEC_VALUES_MAX * sizeof *t);
    double *v = malloc(CODEC_VALUES_MAX * sizeof *v);
    int rc = t && v ? 0 : -ENOMEM;
    size_t at = 0;
    for (uint32_t g = 0; !rc && g < h->columns; g++) {
        uint32_t series, range[2];
        memcpy(&series, directory + 4 * (size_t)g, sizeof series);
        memcpy(range, directory + 4 * ((size_t)h->columns + g), sizeof range);
        struct str record = {(const char *)data + range[0], range[1] - range[0]};
        struct block_entry e = {0};
        rc = range[0] > range[1] || range[1] > h->data_bytes ? -EBADMSG : block_entry_of_group(h, series, record, &e);
        if (!rc && e.count > h->rows - at)
            rc = -EBADMSG;
        if (!rc)
            rc = block_decode_group_times(&e, record, t);
        if (!rc)
            rc = block_decode_values(h, &e, record, v);
        for (uint32_t i = 0; !rc && i < e.count; i++)
            out[at++] = (struct point_record){series, 0, t[i], v[i]};
    }
    free(t);
    free(v);
    return rc ? rc : at == h->rows ? 0 : -EBADMSG;
}

static int merge_points(struct store *s, bool all)
{
    struct hot_queue *q = &s->hot_points;
    if (!q->count || (!all && q->rows < MERGE_POINTS))
        return 0;
    size_t n = choose(s, q, MERGE_POINTS);
    for (; n; n /= 2) {
        uint64_t rows = 0;
        for (size_t i = 0; i < n; i++)
            rows += q->blocks[i].rows;
        struct point_record *points = malloc(2 * rows * sizeof *points);
        if (!points)
            return -ENOMEM;
        int rc = 0;
        size_t at = 0;
        for (size_t i = 0; !rc && i < n; i++) {
            struct block_header h;
            const uint8_t *block = block_at(s, &q->blocks[i], &h);
            rc = decode_points(&h, block, points + at);
            at += h.rows;
        }
        size_t kept = rc ? 0 : points_sort(points, at, points + rows);
        struct block_source source = source_of(s, q, n, 0);
        s->block.size = 0;
        s->block.failed = false;
        if (!rc)
            rc = cold_put_points(&s->block, &source, points, kept, all ? LEVEL_CLOSING : LEVEL_LIVE);
        free(points);
        if (rc == -EFBIG && n > 1)
            continue; // too many points of one series: fewer blocks
        if (rc == -EBADMSG) {
            queue_drop(q, 1);
            return 1;
        }
        if (!rc)
            rc = block_append(s, &s->block, true, NULL);
        if (rc)
            return rc;
        replaced(s, q, n);
        s->merged_values += kept;
        return 1;
    }
    return 0;
}

int merge_step(struct store *s, bool all)
{
    int rc = merge_points(s, all);
    for (uint32_t i = 0; !rc && i < s->stats.sets; i++) {
        if (s->next_merge >= s->stats.sets)
            s->next_merge = 0;
        rc = merge_set(s, s->next_merge, all);
        if (!rc)
            s->next_merge++;
    }
    return rc;
}
