// merge.c - merges hot blocks of a thousand rows into cold blocks of several thousand, which take a
// fraction of the space.
//
// A cold block carries the range of the numbers of the blocks that it replaces. As soon as it is in
// the extent, readers and recovery ignore the replaced blocks, so a crash neither duplicates nor
// loses data. The replaced blocks are freed after the next sync.
//
// A merge has up to half a million values and takes some tens of milliseconds, longer than a tick
// may take. So a merge is a job that continues from call to call, a block or a column at a time:
//
//   choose ─▶ thaw (a block a step) ─▶ order ─▶ encode (a column or series a step; parts as they
//   fill) ─▶ append, free the replaced blocks
//
// Meanwhile its blocks stay valid at their places, and sealing appends further blocks to the queue.
// If retention deletes one of the job's blocks, the job is cancelled, and no data are lost. The
// queue with the oldest due block comes first.
#include "store/block.h"
#include "store/cold_sizes.h"
#include "store/sort.h"
#include "store/stripes.h"
#include "store/thaw.h"
#include "store/writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum {
    MERGE_VALUES = 1 << 19,
    CLOSING_MERGE_VALUES = 1 << 20,
    // Memory of a merge for each point and each value: decoded, and in the writer. A closing merge
    // also needs zstd's memory.
    MERGE_POINT_BYTES = 48,
    MERGE_VALUE_BYTES = 24,
    POINTS_QUEUE = UINT32_MAX, // the queue of single points, instead of a set's id
};

enum { DENSE_LIMIT_SHARE = 8 }; // a dense merge may take this share of the file's limit in addition

struct merge_job {
    uint32_t queue; // the id of a set, or POINTS_QUEUE
    enum merge_pace pace;
    size_t n, thawed;    // number of blocks; number of decoded blocks
    uint32_t rows, kept; // rows in the blocks; rows that are kept
    bool writing;
    uint32_t at; // number of finished rows while decoding; of columns or points while encoding
    // Of a set: column by column, `rows` values each.
    int64_t *t_ns;
    double *values;
    uint32_t *order; // NULL: the rows are in order already
    double *column;  // scratch for one reordered column
    // Of single points: the thawed points, block after block, each block sorted by series and time;
    // then each block's start and read position.
    struct point_record *points;
    struct run {
        uint32_t at, end;
    } * runs;
    struct point_record *gathered; // scratch for the points of one series
    size_t gathered_capacity;
    struct stripes out;
};

static void job_free(struct store *s)
{
    struct merge_job *j = s->blocks.merge;
    if (!j)
        return;
    stripes_free(&j->out);
    free(j->t_ns);
    free(j->values);
    free(j->order);
    free(j->column);
    free(j->points);
    free(j->runs);
    free(j->gathered);
    free(j);
    s->blocks.merge = NULL;
}

void merge_forget(struct store *s)
{
    job_free(s);
}

size_t merge_memory(const struct store *s)
{
    const struct merge_job *j = s->blocks.merge;
    if (!j)
        return 0;
    uint32_t columns = j->queue == POINTS_QUEUE ? 0 : s->catalog.sets[j->queue].count;
    return sizeof *j + stripes_memory(&j->out) +
           (j->points ? (j->rows + j->gathered_capacity) * sizeof *j->points
                      : j->rows * (columns + 2) * sizeof *j->values);
}

static struct hot_queue *queue_of(struct store *s, uint32_t queue)
{
    return queue == POINTS_QUEUE ? &s->blocks.hot_points : &s->catalog.sets[queue].hot;
}

static void queue_drop(struct hot_queue *q, size_t n)
{
    assert(n <= q->count);
    for (size_t i = 0; i < n; i++)
        q->rows -= q->blocks[i].rows;
    q->count -= n;
    memmove(q->blocks, q->blocks + n, q->count * sizeof *q->blocks);
}

static const uint8_t *block_at(const struct store *s, const struct hot_block *b,
                               struct block_header *h)
{
    const uint8_t *at = extent_bytes(&s->file, b->slot) + b->at;
    memcpy(h, at, sizeof *h);
    return at;
}

static bool there(const struct store *s, const struct hot_block *b)
{
    return extent_entry(&s->file, b->slot)->generation == b->generation;
}

// True if the block is unchanged since it was written. The disk may have damaged it.
static bool intact(const struct store *s, const struct hot_block *b)
{
    struct block_header h;
    const uint8_t *at = block_at(s, b, &h);
    return block_header_fits(&h, b->size) && block_intact(&h, at);
}

// Returns the number of leading blocks that one cold block can replace. Retired and damaged blocks
// stay where they are, and no merged block spans them.
static size_t choose(struct store *s, struct hot_queue *q, uint64_t rows_max)
{
    while (q->count && (!there(s, &q->blocks[0]) || !intact(s, &q->blocks[0])))
        queue_drop(q, 1);
    uint64_t rows = 0;
    size_t n = 0;
    size_t most = q->most ? q->most : q->count;
    q->most = 0;
    for (; n < q->count && n < most; n++) {
        const struct hot_block *b = &q->blocks[n];
        if (n && (rows + b->rows > rows_max || b->sequence != b[-1].sequence + 1 || !there(s, b) ||
                  !intact(s, b)))
            break;
        rows += b->rows;
    }
    return n;
}

// Marks the first n blocks of the queue as replaced by the cold block.
static void replaced(struct store *s, struct hot_queue *q, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct hot_block *b = &q->blocks[i];
        if (!there(s, b))
            continue; // it was retired to make room for the merged block
        struct extent_sum *sum = &s->blocks.sums[b->slot];
        struct block_header h;
        block_at(s, b, &h);
        assert(sum->blocks && sum->live_bytes >= b->size);
        sum->live_bytes -= b->size;
        sum->blocks--;
        sum->values -= h.values;
        s->stats.blocks--;
        if (!sum->live_bytes && b->slot != s->blocks.hot_slot)
            extent_free_later(&s->file, b->slot);
    }
    queue_drop(q, n);
}

// ---- The steps ----

// Returns the maximum rows of a cold block of dense values: as many as DENSE_BYTES of hot blocks
// hold, but at least the rows of two blocks.
static uint64_t dense_rows(struct store *s, uint32_t set)
{
    const struct hot_queue *q = queue_of(s, set);
    const struct hot_block *b = q->count ? &q->blocks[0] : NULL;
    if (!b || !q->dense)
        return UINT64_MAX;
    uint64_t rows = (uint64_t)DENSE_BYTES * b->rows / b->size, least = 2 * (uint64_t)b->rows;
    rows = rows < least ? least : rows;
    bool fits = rows * b->size / b->rows <= s->limits.size_bytes / DENSE_LIMIT_SHARE;
    return fits ? rows : UINT64_MAX;
}

static uint64_t rows_of_merge(struct store *s, uint32_t queue, enum merge_pace pace)
{
    uint64_t points = s->limits.merge_bytes / MERGE_POINT_BYTES;
    if (queue == POINTS_QUEUE)
        return points < TAIL_POINTS_MAX ? TAIL_POINTS_MAX
               : points < MERGE_POINTS  ? points
                                        : MERGE_POINTS;
    uint64_t values = pace == MERGE_LIVE ? MERGE_VALUES : CLOSING_MERGE_VALUES;
    uint64_t most = s->limits.merge_bytes / MERGE_VALUE_BYTES;
    uint64_t rows = (values < most ? values : most) / s->catalog.sets[queue].count;
    uint64_t dense = dense_rows(s, queue);
    rows = rows < dense ? rows : dense;
    return rows > MERGE_ROWS ? MERGE_ROWS : rows < 2 * TAIL_ROWS_MIN ? 2 * TAIL_ROWS_MIN : rows;
}

// Picks a queue where a merge is due; of several, the one whose oldest block was sealed first. A
// live merge is due if the rows of a whole block wait.
static bool pick(struct store *s, enum merge_pace pace, uint32_t *queue)
{
    uint64_t oldest = UINT64_MAX;
    for (uint32_t i = 0; i <= s->stats.sets; i++) {
        uint32_t q = i < s->stats.sets ? i : POINTS_QUEUE;
        const struct hot_queue *hot = queue_of(s, q);
        if (!hot->count || hot->blocks[0].order >= oldest ||
            (pace == MERGE_LIVE && hot->rows < rows_of_merge(s, q, pace)))
            continue;
        oldest = hot->blocks[0].order;
        *queue = q;
    }
    return oldest < UINT64_MAX;
}

static int job_begin(struct store *s, enum merge_pace pace)
{
    uint32_t queue = 0;
    size_t n = 0;
    s->limits.merge_bytes = s->limits.merge_most_bytes;
    if (s->limits.merge_room) {
        size_t room = s->limits.merge_room(s->limits.user);
        s->limits.merge_bytes = room < s->limits.merge_bytes ? room : s->limits.merge_bytes;
    }
    while (!n) {
        if (!pick(s, pace, &queue))
            return 0;
        n = choose(s, queue_of(s, queue), rows_of_merge(s, queue, pace));
    }
    struct merge_job *j = s->blocks.merge = calloc(1, sizeof *j);
    if (!j)
        return -ENOMEM;
    j->queue = queue;
    j->pace = pace;
    j->n = n;
    const struct hot_queue *q = queue_of(s, queue);
    for (size_t i = 0; i < n; i++)
        j->rows += q->blocks[i].rows;
    if (queue == POINTS_QUEUE) {
        j->points = malloc((size_t)j->rows * sizeof *j->points);
        j->runs = malloc(n * sizeof *j->runs);
        return j->points && j->runs ? 1 : -ENOMEM;
    }
    j->t_ns = malloc(j->rows * sizeof *j->t_ns);
    j->values = malloc((size_t)j->rows * s->catalog.sets[queue].count * sizeof *j->values);
    return j->t_ns && j->values ? 1 : -ENOMEM;
}

static int thaw_one(struct store *s)
{
    struct merge_job *j = s->blocks.merge;
    struct block_header h;
    assert(j->thawed < j->n);
    const uint8_t *block = block_at(s, &queue_of(s, j->queue)->blocks[j->thawed], &h);
    int rc;
    if (j->queue == POINTS_QUEUE) {
        rc = thaw_points(&h, block, j->points + j->at);
        j->runs[j->thawed] = (struct run){j->at, j->at + h.rows};
    } else {
        rc = h.columns == s->catalog.sets[j->queue].count
                 ? thaw_rows(&h, block, j->t_ns + j->at, j->values + j->at, j->rows)
                 : -EBADMSG;
    }
    j->thawed++;
    j->at += h.rows;
    return rc;
}

enum { SAME_TIME = UINT32_C(1) << 31 }; // in `order`: the row has the time of the previous row

// For blocks that overlap: finds the order of their rows, and the time stamps without duplicates.
static int order_rows(struct merge_job *j)
{
    bool sorted = true;
    for (uint32_t r = 1; r < j->rows; r++)
        sorted = sorted && j->t_ns[r - 1] < j->t_ns[r];
    j->kept = j->rows;
    if (sorted)
        return 0;
    struct row_time *order = malloc(j->rows * sizeof *order);
    j->order = malloc(j->rows * sizeof *j->order);
    j->column = malloc(j->rows * sizeof *j->column);
    if (!order || !j->order || !j->column) {
        free(order);
        return -ENOMEM;
    }
    for (uint32_t r = 0; r < j->rows; r++)
        order[r] = (struct row_time){j->t_ns[r], r};
    rows_sort(order, j->rows);
    j->kept = 0;
    for (uint32_t r = 0; r < j->rows; r++) {
        bool same = r && order[r].t_ns == order[r - 1].t_ns;
        j->order[r] = order[r].row | (same ? SAME_TIME : 0);
        if (!same)
            j->t_ns[j->kept++] = order[r].t_ns;
    }
    free(order);
    return 0;
}

// Returns a column in this order. At equal times the cell of the later block wins.
static const double *ordered(struct merge_job *j, const double *column)
{
    if (!j->order)
        return column;
    uint32_t n = 0;
    for (uint32_t r = 0; r < j->rows; r++) {
        double v = column[j->order[r] & ~SAME_TIME];
        bool same = j->order[r] & SAME_TIME;
        n += !same;
        if (!same || !store_is_missing(v))
            j->column[n - 1] = v;
    }
    return j->column;
}

// Returns the number of stripes for the points.
static uint64_t stripe_count(const struct store *s, const struct hot_queue *q)
{
    const struct merge_job *j = s->blocks.merge;
    uint64_t columns = 0;
    for (size_t i = 0; i < j->n; i++) {
        struct block_header h;
        block_at(s, &q->blocks[i], &h);
        columns += h.columns;
    }
    return q->dense ? j->rows / columns / STRIPE_POINTS : 1;
}

static int start_writing(struct store *s)
{
    struct merge_job *j = s->blocks.merge;
    const struct hot_queue *q = queue_of(s, j->queue);
    struct block_header h;
    block_at(s, &q->blocks[j->n - 1], &h);
    bool set = j->queue != POINTS_QUEUE;
    struct block_source source = {
        .owner = set ? j->queue : 0,
        .sequence_first = q->blocks[0].sequence,
        .sequence_last = q->blocks[j->n - 1].sequence,
        .order = h.order,
    };
    int rc = set ? order_rows(j)
                 : stripes_begin_points(&j->out, &source, &efforts[j->pace], j->points, j->rows,
                                        stripe_count(s, q));
    if (rc)
        return rc;
    if (set) {
        struct cold_writer *w = stripes_begin_set(&j->out, &source, &efforts[j->pace]);
        if (!w)
            return -ENOMEM;
        cold_rows(w, j->t_ns, j->kept, s->catalog.sets[j->queue].count);
    }
    j->writing = true;
    j->at = 0;
    return 0;
}

static int finish(struct store *s)
{
    struct merge_job *j = s->blocks.merge;
    struct buf *block = &j->out.all[0].block;
    int rc = stripes_end(&j->out);
    if (!rc)
        rc = block_append(s, block, true, NULL);
    if (rc)
        return rc;
    struct hot_queue *q = queue_of(s, j->queue);
    struct block_header h;
    memcpy(&h, block->data, sizeof h);
    q->dense = h.size * (uint64_t)DENSE_VALUES_A_BYTE > h.values;
    replaced(s, q, j->n);
    s->stats.merged_values +=
        j->kept * (uint64_t)(j->queue == POINTS_QUEUE ? 1 : s->catalog.sets[j->queue].count);
    job_free(s);
    return 1;
}

// Allocates memory for n points of one series. If they must be sorted, also for n sorted points and
// their keys.
static bool gather_room(struct merge_job *j, size_t n)
{
    if (3 * n <= j->gathered_capacity)
        return true;
    size_t capacity = 6 * n;
    free(j->gathered);
    j->gathered = malloc(capacity * sizeof *j->gathered);
    j->gathered_capacity = j->gathered ? capacity : 0;
    return j->gathered;
}

// Gathers the points of the lowest remaining series from all blocks. Mostly they are already in
// order.
static int put_series(struct merge_job *j, uint32_t series, size_t n)
{
    if (!gather_room(j, n))
        return -ENOMEM;
    struct point_record *out = j->gathered;
    size_t at = 0;
    bool sorted = true;
    for (size_t i = 0; i < j->n; i++)
        for (struct run *r = &j->runs[i]; r->at < r->end && j->points[r->at].series == series;
             r->at++, at++) {
            out[at] = j->points[r->at];
            sorted = sorted && (!at || out[at - 1].t_ns < out[at].t_ns);
        }
    if (!sorted) {
        out = j->gathered + n;
        n = points_sort(j->gathered, n, out, (uint64_t *)(void *)(out + n));
    }
    j->kept += (uint32_t)n;
    return stripes_put_series(&j->out, out, n);
}

static int put_next_series(struct store *s)
{
    struct merge_job *j = s->blocks.merge;
    uint32_t series = UINT32_MAX;
    size_t n = 0;
    for (size_t i = 0; i < j->n; i++) {
        const struct run *r = &j->runs[i];
        if (r->at < r->end && j->points[r->at].series < series)
            series = j->points[r->at].series;
    }
    for (size_t i = 0; i < j->n; i++) {
        const struct run *r = &j->runs[i];
        uint32_t end = r->at;
        while (end < r->end && j->points[end].series == series)
            end++;
        n += end - r->at;
    }
    return n ? put_series(j, series, n) : finish(s);
}

static int put_next(struct store *s)
{
    struct merge_job *j = s->blocks.merge;
    if (j->queue == POINTS_QUEUE)
        return put_next_series(s);
    uint32_t columns = s->catalog.sets[j->queue].count;
    if (j->at == columns)
        return finish(s);
    const double *column = j->values + (size_t)j->at++ * j->rows;
    return cold_put_column(j->out.all[0].writer, ordered(j, column));
}

// True if all blocks of the job are still at their places and unchanged.
static bool holds(struct store *s)
{
    const struct merge_job *j = s->blocks.merge;
    const struct hot_queue *q = queue_of(s, j->queue);
    for (size_t i = 0; i < j->n; i++)
        if (!there(s, &q->blocks[i]))
            return false;
    return true;
}

static int step(struct store *s, enum merge_pace pace)
{
    if (!s->blocks.merge)
        return job_begin(s, pace);
    struct merge_job *j = s->blocks.merge;
    int rc = j->thawed < j->n ? thaw_one(s) : !j->writing ? start_writing(s) : put_next(s);
    return rc < 0 ? rc : 1;
}

int merge_step(struct store *s, enum merge_pace pace)
{
    if (s->blocks.merge && !holds(s))
        job_free(s);
    int rc = step(s, pace);
    if (rc >= 0)
        return rc;
    struct merge_job *j = s->blocks.merge;
    struct hot_queue *q = j ? queue_of(s, j->queue) : NULL;
    if (q && rc == -EBADMSG)
        queue_drop(q, 1);
    // If one series has too many points for one block, merge half of the blocks. A single block
    // stays as it is.
    bool too_much = q && rc == -EFBIG;
    size_t n = j ? j->n : 0;
    job_free(s);
    if (too_much && n == 1)
        queue_drop(q, 1);
    else if (too_much)
        q->most = n / 2;
    return rc == -EBADMSG || too_much ? 1 : rc;
}
