#include "store/direct.h"

#include "base/parallel.h"
#include "store/cold_sizes.h"
#include "store/sort.h"
#include "store/stripes.h"

#include <assert.h>
#include <stdlib.h>

_Static_assert((int)DIRECT_POINTS_MAX == (int)MERGE_POINTS && (int)DIRECT_ROWS_MAX == MERGE_ROWS &&
                   (int)DIRECT_ROWS_MAX <= (int)CODEC_VALUES_MAX,
               "a cold block has as many");

enum {
    DIRECT_VALUES = 1 << 20, // values in a block of a set, as in a closing merge
    ROWS_LEAST = 2 * TAIL_ROWS_MIN,
    ROWS_FEW = 64, // fewer rows than this go through the tail
};

// Encodes the rest of the block.
static int end_block(struct stripes *x)
{
    int rc;
    do
        rc = stripes_end(x);
    while (rc > 0);
    return rc;
}

// Appends the complete block. It gets the number that the tail's next block would have had.
static int put_block(struct store *s, struct stripes *x, struct tail *t, struct hot_queue *q,
                     int64_t newest_ns)
{
    struct block_header h;
    int rc = block_append(s, &x->all[0].block, true, NULL);
    if (rc)
        return rc;
    struct superblock *sb = extents_super(&s->file); // the mapping may have moved
    memcpy(&h, x->all[0].block.data, sizeof h);
    q->dense = h.size * (uint64_t)DENSE_VALUES_A_BYTE > h.values;
    s->stats.merged_values += h.values;
    t->sequence++;
    if (newest_ns > s->newest_ns) {
        s->newest_ns = newest_ns;
        __atomic_store_n(&sb->newest_ns, newest_ns, __ATOMIC_RELAXED);
    }
    // The next block is newer, and the new version makes readers look again. Release: they then
    // find this block.
    __atomic_store_n(&sb->version, sb->version + 1, __ATOMIC_RELEASE);
    return 0;
}

static struct block_source source_of(const struct store *s, const struct tail *t, uint32_t owner)
{
    return (struct block_source){.owner = owner,
                                 .sequence_first = t->sequence,
                                 .sequence_last = t->sequence,
                                 .order = extents_super(&s->file)->version};
}

static int check(const struct store *s)
{
    return writer_is_cut(s) ? -ESTALE : spill_in_use(s) ? -ENOSPC : 0;
}

static void hold(pthread_mutex_t *lock)
{
    if (lock)
        pthread_mutex_lock(lock);
}

static void release(pthread_mutex_t *lock)
{
    if (lock)
        pthread_mutex_unlock(lock);
}

// ---------------------------------------------------------------- points

// Returns the end of the block that begins at `from`. A block has all points of a series, or as
// many as a column can hold.
static size_t end_of_block(const struct point_record *p, size_t from, size_t count,
                           uint64_t *series)
{
    size_t at = from;
    *series = 0;
    while (at < count) {
        size_t first = at;
        while (at < count && p[at].series == p[first].series && at - first < CODEC_VALUES_MAX)
            at++;
        ++*series;
        if (at < count && p[at].series == p[first].series)
            break;
    }
    return at;
}

static int put_points(struct store *s, const struct point_record *p, size_t count, uint64_t series,
                      pthread_mutex_t *lock)
{
    struct hot_queue *q = &s->blocks.hot_points;
    struct stripes x = {0};
    int64_t newest_ns = INT64_MIN;
    hold(lock);
    struct block_source source = source_of(s, &s->tails.points, 0);
    bool dense = q->dense;
    release(lock);
    int rc = stripes_begin_points(&x, &source, &efforts[MERGE_HURRIED], p, count,
                                  dense ? count / series / STRIPE_POINTS : 1);
    for (size_t from = 0, to; !rc && from < count; from = to) {
        for (to = from + 1; to < count && p[to].series == p[from].series; to++)
            ;
        newest_ns = p[to - 1].t_ns > newest_ns ? p[to - 1].t_ns : newest_ns;
        rc = stripes_put_series(&x, p + from, to - from);
    }
    if (!rc)
        rc = end_block(&x);
    hold(lock);
    if (!rc)
        rc = put_block(s, &x, &s->tails.points, q, newest_ns);
    release(lock);
    stripes_free(&x);
    return rc;
}

static bool is_sorted(const struct point_record *p, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (p[i].series < p[i - 1].series ||
            (p[i].series == p[i - 1].series && p[i].t_ns <= p[i - 1].t_ns))
            return false;
    return true;
}

static int put_sorted(struct store *s, const struct point_record *p, size_t count,
                      pthread_mutex_t *lock)
{
    int rc = 0;
    for (size_t from = 0, to; !rc && from < count; from = to) {
        uint64_t series;
        to = end_of_block(p, from, count, &series);
        rc = put_points(s, p + from, to - from, series, lock);
    }
    return rc;
}

// Checks that all points may bypass the tail: the tail is empty, and none of the series is in a
// set.
static int check_points(struct store *s, const struct point_record *p, size_t count, bool *bypass)
{
    int rc = check(s);
    *bypass = s->tails.points.slot == EXTENT_NO_SLOT && !s->limits.window_ns;
    for (size_t i = 0; i < count && !rc; i++) {
        if (p[i].series >= s->stats.series)
            return -EINVAL;
        if (s->catalog.series_use[p[i].series] == SERIES_SINGLE)
            continue;
        rc = shared_single(s, p[i].series, p[i].t_ns);
        *bypass = *bypass && s->catalog.series_use[p[i].series] == SERIES_SINGLE;
    }
    return rc;
}

static int sort_and_put(struct store *s, const struct point_record *points, size_t count,
                        pthread_mutex_t *lock)
{
    if (is_sorted(points, count))
        return put_sorted(s, points, count, lock);
    struct point_record *sorted = malloc(count * (sizeof *sorted + 2 * sizeof(uint64_t)));
    if (!sorted)
        return -ENOMEM;
    size_t kept = points_sort(points, count, sorted, (uint64_t *)(void *)(sorted + count));
    int rc = put_sorted(s, sorted, kept, lock);
    free(sorted);
    return rc;
}

int direct_points(struct store *s, const struct point_record *points, size_t count,
                  pthread_mutex_t *lock)
{
    bool bypass;
    assert(count && count <= DIRECT_POINTS_MAX);
    hold(lock);
    int rc = check_points(s, points, count, &bypass);
    for (size_t i = 0; !rc && !bypass && i < count; i++)
        rc = store_append(s, points[i].series, points[i].t_ns, points[i].value);
    release(lock);
    if (rc || !bypass)
        return rc;
    rc = sort_and_put(s, points, count, lock);
    hold(lock);
    *(rc ? &s->stats.refused_space : &s->stats.points) += count;
    release(lock);
    return rc;
}

// ---------------------------------------------------------------- rows

// Returns as many rows as a merge takes; of dense values, at least the rows of two full tails.
uint32_t direct_rows_of_block(const struct store *s, uint32_t id)
{
    const struct set *set = &s->catalog.sets[id];
    uint64_t most = DIRECT_VALUES / set->count, tail = TAIL_VALUES_MAX / set->count;
    uint64_t rows = set->hot.dense ? 2 * (tail < TAIL_ROWS_MAX ? tail : TAIL_ROWS_MAX) : most;
    return rows > DIRECT_ROWS_MAX ? DIRECT_ROWS_MAX
           : rows < ROWS_LEAST    ? ROWS_LEAST
                                  : (uint32_t)rows;
}

// A block of a set while it is encoded, from sorted columns.
struct rows_block {
    struct block_source source;
    const int64_t *times;
    const double *values; // the first column
    size_t stride;        // from one column to the next
    uint32_t rows, columns;
    struct stripes stripes;
    int rc;
};

static void encode_rows(void *user, size_t i)
{
    struct rows_block *b = (struct rows_block *)user + i;
    struct cold_writer *w = stripes_begin_set(&b->stripes, &b->source, &efforts[MERGE_HURRIED]);
    b->rc = w ? 0 : -ENOMEM;
    if (w)
        cold_rows(w, b->times, b->rows, b->columns);
    for (uint32_t c = 0; c < b->columns && !b->rc; c++)
        b->rc = cold_put_column(w, b->values + (size_t)c * b->stride);
    if (!b->rc)
        b->rc = end_block(&b->stripes);
}

static int put_rows(struct store *s, uint32_t id, const void *rows, uint32_t count)
{
    struct set *set = &s->catalog.sets[id];
    struct rows_block blocks[DIRECT_BLOCKS] = {0};
    int kept = seal_sort_rows(s, rows, count, set->count);
    if (kept < 0)
        return kept;
    uint32_t all = (uint32_t)kept, most = direct_rows_of_block(s, id), n = 0;
    if (most * DIRECT_BLOCKS < all)
        most = (all + DIRECT_BLOCKS - 1) / DIRECT_BLOCKS;
    for (uint32_t from = 0; from < all; from += most, n++) {
        blocks[n] = (struct rows_block){.source = source_of(s, &set->tail, id),
                                        .times = s->scratch.times + from,
                                        .values = s->scratch.values + from,
                                        .stride = count,
                                        .rows = all - from < most ? all - from : most,
                                        .columns = set->count};
        // As if the blocks before were appended.
        blocks[n].source.sequence_first += n;
        blocks[n].source.sequence_last += n;
        blocks[n].source.order += n;
    }
    parallel_each(n, encode_rows, blocks);
    int rc = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct rows_block *b = &blocks[i];
        rc = rc ? rc : b->rc;
        if (!rc)
            rc = put_block(s, &b->stripes, &set->tail, &set->hot, b->times[b->rows - 1]);
        stripes_free(&b->stripes);
    }
    return rc;
}

int direct_rows(struct store *s, uint32_t id, const void *rows, uint32_t count)
{
    const uint8_t *at = rows;
    int rc = check(s);
    assert(count && count <= DIRECT_BLOCKS * DIRECT_ROWS_MAX);
    if (rc || id >= s->stats.sets)
        return rc ? rc : -EINVAL;
    const struct set *set = &s->catalog.sets[id];
    size_t row_bytes = (set->count + 1) * sizeof(double);
    bool bypass = count >= ROWS_FEW && !s->limits.window_ns && !set->shared &&
                  set->shared_seen == s->shared.count && s->shared.singles_before_ns == INT64_MIN;
    if (bypass && set->tail.slot != EXTENT_NO_SLOT)
        rc = seal_and_free(s, id); // the rows in the tail are older, so seal them first
    for (uint32_t i = 0; !rc && !bypass && i < count; i++, at += row_bytes) {
        int64_t t_ns;
        memcpy(&t_ns, at, sizeof t_ns);
        rc = store_append_row(s, id, t_ns, (const double *)(const void *)(at + sizeof t_ns));
    }
    if (rc || !bypass)
        return rc;
    rc = put_rows(s, id, rows, count);
    *(rc ? &s->stats.refused_space : &s->stats.points) += (uint64_t)count * set->count;
    s->stats.rows += rc ? 0 : count;
    return rc;
}
