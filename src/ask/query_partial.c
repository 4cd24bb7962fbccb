// query_partial.c - partial results as bytes: a table of sections, each behind its number and size.
//
//   group       short key, varint source_series
//   tags        varint count, each: short key, short value, u8 differs
//   series      varint count, each: u8 how (SAME_PLACES, DENSE, BEFORE, AFTER), varint points,
//               places, values, neighbours
//   columns     varint count, columns n, x and y, u8 whether all are real, else a bit each
//   sketches    varint count, of each: varint buckets, and if there are any: varint zigzag of the
//               first key, varint difference to each next one, varint counts, f64 smallest, f64
//               largest; then u8 whether all are real, else a bit each
//
//   places      DENSE: varint zigzag of the first; SAME_PLACES: nothing, they equal those of the
//               previous series; else a column of times
//   neighbours  BEFORE, AFTER: of each i64 time, f64 value. A series without points has both, and
//               no places and values
//   column      pieces of at most CODEC_VALUES_MAX: varint size, so many bytes of the store's codec
//               (store/codec.h)
#include "ask/numbers.h"
#include "ask/query_wire.h"
#include "query/aggregator_table.h"

#include <errno.h>
#include <math.h>

enum { SAME_PLACES = 1, DENSE = 2, BEFORE = 4, AFTER = 8 };

// The state of reading a partial.
struct reading {
    struct query_context *c;
    const struct query_grid *grid;
    struct arena *arena;
    struct bytes b;
};

static int damaged(struct query_context *c)
{
    return error_set(c->e, -EBADMSG, "a damaged partial result");
}

// ---- columns of numbers ----

static int read_column(struct reading *r, void *values, size_t count, bool times)
{
    if (ask_numbers_read(&r->b, values, count, times))
        return damaged(r->c);
    return query_tick(r->c, count);
}

// Allocates `count` numbers of 8 bytes. If the query's memory is used up, returns NULL and sets
// *failed.
static void *room(struct reading *r, uint64_t count, int *failed)
{
    void *p = count <= SIZE_MAX / sizeof(double)
                  ? query_alloc(r->c, r->arena, (size_t)count, sizeof(double))
                  : NULL;
    *failed = p                                   ? 0
              : count > SIZE_MAX / sizeof(double) ? query_memory_limit(r->c)
                                                  : query_alloc_failed(r->c);
    return p;
}

// ---- group ----

static bool always(const struct query_partial *p)
{
    (void)p;
    return true;
}

static void write_group(const struct query_partial *p, struct buf *out)
{
    buf_short(out, p->key);
    buf_varint(out, p->source_series);
}

static int read_group(struct reading *r, struct query_partial *p)
{
    p->key = bytes_short(&r->b);
    p->source_series = (size_t)bytes_varint(&r->b);
    return p->source_series == 0 ? damaged(r->c) : 0;
}

// ---- tags ----

static bool has_tags(const struct query_partial *p)
{
    return p->tag_count > 0;
}

static void write_tags(const struct query_partial *p, struct buf *out)
{
    buf_varint(out, p->tag_count);
    for (size_t i = 0; i < p->tag_count; i++) {
        buf_short(out, p->tags[i].key);
        buf_short(out, p->tags[i].value);
        buf_u8(out, p->tags[i].differs);
    }
}

static int read_tags(struct reading *r, struct query_partial *p)
{
    enum { TAG_BYTES = 3 }; // minimum bytes of a tag
    uint64_t count = bytes_varint(&r->b);
    if (count > bytes_left(&r->b) / TAG_BYTES)
        return damaged(r->c);
    p->tags = query_alloc(r->c, r->arena, (size_t)count, sizeof *p->tags);
    if (!p->tags)
        return query_alloc_failed(r->c);
    for (size_t i = 0; i < count; i++) {
        struct query_partial_tag *tag = &p->tags[i];
        tag->key = bytes_short(&r->b);
        tag->value = bytes_short(&r->b);
        unsigned differs = bytes_u8(&r->b);
        tag->differs = differs;
        bool sound = differs <= 1 && tag->key.size && tag->key.size <= STORE_KEY_MAX &&
                     tag->value.size <= STORE_VALUE_MAX &&
                     (i == 0 || str_compare(tag[-1].key, tag->key) < 0);
        if (!sound)
            return damaged(r->c);
    }
    p->tag_count = p->tag_capacity = (size_t)count;
    return 0;
}

// ---- series ----

static bool has_series(const struct query_partial *p)
{
    return p->series_count > 0;
}

static void write_neighbour(const struct query_edge *edge, struct buf *out)
{
    if (!edge->there)
        return;
    buf_u64(out, (uint64_t)edge->t_ns);
    buf_f64(out, edge->value);
}

static void write_series(const struct query_partial *p, struct buf *out)
{
    buf_varint(out, p->series_count);
    for (size_t i = 0; i < p->series_count; i++) {
        const struct query_points *s = &p->series[i];
        bool same = i > 0 && s->count && s->at == s[-1].at && s->count == s[-1].count;
        bool dense = !same && query_points_dense(s);
        buf_u8(out, (uint8_t)((same ? SAME_PLACES : 0) | (dense ? DENSE : 0) |
                              (s->before.there ? BEFORE : 0) | (s->after.there ? AFTER : 0)));
        buf_varint(out, s->count);
        if (dense)
            buf_varint(out, zigzag(s->at[0]));
        else if (!same && s->count)
            ask_numbers_write(s->at, s->count, true, out);
        if (s->count)
            ask_numbers_write(s->values, s->count, false, out);
        write_neighbour(&s->before, out);
        write_neighbour(&s->after, out);
    }
}

// True if the places ascend and lie on the grid. Without a grid, they must lie in the time range.
static bool places_sound(const struct reading *r, const struct query_points *s)
{
    int64_t low = r->grid->times ? 0 : r->c->q->start_ns;
    int64_t high = r->grid->times ? (int64_t)r->grid->count - 1 : r->c->q->end_ns;
    if (s->at[0] < low || s->at[s->count - 1] > high)
        return false;
    for (size_t i = 1; i < s->count; i++)
        if (s->at[i - 1] >= s->at[i])
            return false;
    return true;
}

static int read_places(struct reading *r, struct query_points *s, bool dense)
{
    int failed;
    s->at = room(r, s->count, &failed);
    if (failed || !dense)
        return failed ? failed : read_column(r, s->at, s->count, true);
    int64_t first = unzigzag(bytes_varint(&r->b)), last;
    if (__builtin_add_overflow(first, (int64_t)s->count - 1, &last))
        return damaged(r->c);
    for (size_t i = 0; i < s->count; i++)
        s->at[i] = first + (int64_t)i;
    return 0;
}

// Neighbours lie outside of the time range, so they differ from all places.
static int read_neighbours(struct reading *r, struct query_points *s, unsigned how)
{
    struct query_edge *const edges[] = {how & BEFORE ? &s->before : NULL,
                                        how & AFTER ? &s->after : NULL};
    for (size_t i = 0; i < 2; i++)
        if (edges[i]) {
            *edges[i] = (struct query_edge){.there = true, .t_ns = (int64_t)bytes_u64(&r->b)};
            edges[i]->value = bytes_f64(&r->b);
        }
    bool sound = (!s->before.there || s->before.t_ns < r->c->q->start_ns) &&
                 (!s->after.there || s->after.t_ns > r->c->q->end_ns);
    return r->b.failed || !sound ? damaged(r->c) : 0;
}

static int read_one_series(struct reading *r, struct query_points *s,
                           const struct query_points *before)
{
    unsigned how = bytes_u8(&r->b);
    uint64_t count = bytes_varint(&r->b);
    *s = (struct query_points){.count = (size_t)count, .capacity = (size_t)count};
    unsigned places = how & (SAME_PLACES | DENSE), neighbours = how & (BEFORE | AFTER);
    bool same = places == SAME_PLACES && before && before->count == count;
    bool there = count ? count <= INT64_MAX : neighbours == (BEFORE | AFTER) && places == 0;
    if (r->b.failed || !there || (places == SAME_PLACES && !same) || places > DENSE ||
        how != (places | neighbours))
        return damaged(r->c);
    int failed = 0;
    if (count == 0)
        return read_neighbours(r, s, how);
    if (same)
        s->at = before->at;
    else
        failed = read_places(r, s, places == DENSE);
    if (failed)
        return failed;
    if (r->b.failed || !places_sound(r, s))
        return damaged(r->c);
    s->values = room(r, count, &failed);
    if (!failed)
        failed = read_column(r, s->values, s->count, false);
    return failed ? failed : read_neighbours(r, s, how);
}

static int read_series(struct reading *r, struct query_partial *p)
{
    enum { SERIES_BYTES = 4 }; // minimum bytes of a series
    uint64_t count = bytes_varint(&r->b);
    if (count == 0 || count > bytes_left(&r->b) / SERIES_BYTES)
        return damaged(r->c);
    p->series = query_alloc(r->c, r->arena, (size_t)count, sizeof *p->series);
    if (!p->series)
        return query_alloc_failed(r->c);
    for (size_t i = 0; i < count; i++) {
        int failed = read_one_series(r, &p->series[i], i ? &p->series[i - 1] : NULL);
        if (failed)
            return failed;
    }
    p->series_count = p->series_capacity = (size_t)count;
    return 0;
}

// ---- which places are real ----

static void write_real(const uint8_t *real, size_t count, struct buf *out)
{
    bool all = memchr(real, 0, count) == NULL;
    buf_u8(out, all);
    for (size_t i = 0; i < count && !all; i += 8) {
        unsigned bits = 0;
        for (size_t bit = 0; bit < 8 && i + bit < count; bit++)
            bits |= (unsigned)real[i + bit] << bit;
        buf_u8(out, (uint8_t)bits);
    }
}

static int read_real(struct reading *r, size_t count, uint8_t **out)
{
    uint8_t *real = *out = query_alloc(r->c, r->arena, count, 1);
    if (!real)
        return query_alloc_failed(r->c);
    unsigned all = bytes_u8(&r->b);
    struct str bits = bytes_take(&r->b, all ? 0 : (count + 7) / 8);
    if (r->b.failed || all > 1)
        return damaged(r->c);
    for (size_t i = 0; i < count; i++)
        real[i] = all || ((uint8_t)bits.data[i / 8] >> i % 8 & 1);
    return 0;
}

// ---- columns ----

static bool has_columns(const struct query_partial *p)
{
    return p->folded;
}

static void write_columns(const struct query_partial *p, struct buf *out)
{
    const struct query_columns *k = &p->columns;
    buf_varint(out, k->count);
    ask_numbers_write(k->n, k->count, false, out);
    ask_numbers_write(k->x, k->count, false, out);
    ask_numbers_write(k->y, k->count, false, out);
    write_real(k->real, k->count, out);
}

static int read_columns(struct reading *r, struct query_partial *p)
{
    struct query_columns *k = &p->columns;
    int failed = 0;
    // Accept columns only for the buckets of this query's grid, and only for functions that can be
    // folded.
    if (!r->grid->times || bytes_varint(&r->b) != r->grid->count || r->grid->count == 0 ||
        query_aggregator_row(r->c->q->aggregator)->fold == FOLD_VALUES)
        return damaged(r->c);
    k->count = r->grid->count;
    double **const columns[] = {&k->n, &k->x, &k->y};
    for (size_t i = 0; i < sizeof columns / sizeof *columns && !failed; i++) {
        *columns[i] = room(r, k->count, &failed);
        if (!failed)
            failed = read_column(r, *columns[i], k->count, false);
    }
    p->folded = !failed;
    return failed ? failed : read_real(r, k->count, &k->real);
}

// ---- sketches ----

static bool has_sketches(const struct query_partial *p)
{
    return p->sketched;
}

static void write_sketches(const struct query_partial *p, struct buf *out)
{
    buf_varint(out, p->sketches.count);
    for (size_t i = 0; i < p->sketches.count; i++) {
        const struct query_sketch *s = &p->sketches.all[i];
        buf_varint(out, s->used);
        for (uint32_t k = 0; k < s->used; k++)
            buf_varint(out, k ? (uint64_t)(s->keys[k] - s->keys[k - 1]) : zigzag(s->keys[0]));
        for (uint32_t k = 0; k < s->used; k++)
            buf_varint(out, s->counts[k]);
        if (s->used) {
            buf_f64(out, s->smallest);
            buf_f64(out, s->largest);
        }
    }
    write_real(p->sketches.real, p->sketches.count, out);
}

static int read_keys(struct reading *r, struct query_sketch *s)
{
    int64_t key = 0;
    for (uint32_t k = 0; k < s->used; k++) {
        uint64_t more = bytes_varint(&r->b);
        if (k && (more == 0 || more > 2 * QUERY_SKETCH_KEY_MAX))
            return damaged(r->c);
        key = k ? key + (int64_t)more : unzigzag(more);
        if (key < -QUERY_SKETCH_KEY_MAX || key > QUERY_SKETCH_KEY_MAX)
            return damaged(r->c);
        s->keys[k] = (int32_t)key;
    }
    return 0;
}

// A series has at most one value at a place, so no sketch may count more values than the group has
// series.
static int read_sketch(struct reading *r, struct query_sketch *s, uint64_t series)
{
    enum { BUCKET_BYTES = 2 }; // minimum bytes of a bucket
    uint64_t used = bytes_varint(&r->b);
    *s = (struct query_sketch){.smallest = NAN, .largest = NAN};
    if (r->b.failed || used > bytes_left(&r->b) / BUCKET_BYTES ||
        used > 2 * QUERY_SKETCH_KEY_MAX + 1)
        return damaged(r->c);
    if (used == 0)
        return query_tick(r->c, 1);
    s->used = s->capacity = (uint32_t)used;
    s->keys = query_alloc(r->c, r->arena, s->used, sizeof *s->keys);
    s->counts = s->keys ? query_alloc(r->c, r->arena, s->used, sizeof *s->counts) : NULL;
    if (!s->counts)
        return query_alloc_failed(r->c);
    int failed = read_keys(r, s);
    for (uint32_t k = 0; k < s->used && !failed; k++) {
        s->counts[k] = bytes_varint(&r->b);
        if (s->counts[k] == 0 || s->counts[k] > series - s->total)
            return damaged(r->c);
        s->total += s->counts[k];
    }
    s->smallest = bytes_f64(&r->b);
    s->largest = bytes_f64(&r->b);
    if (!failed && (r->b.failed || !(s->smallest <= s->largest)))
        return damaged(r->c);
    return failed ? failed : query_tick(r->c, s->used);
}

static int read_sketches(struct reading *r, struct query_partial *p)
{
    struct query_sketches *k = &p->sketches;
    // Accept sketches only for the buckets of this query's grid, only for quantiles, and only for
    // groups with more than exact_max series: a whole group is either exact or estimated.
    if (!r->grid->times || bytes_varint(&r->b) != r->grid->count || r->grid->count == 0 ||
        p->series_count || p->folded ||
        query_aggregator_row(r->c->q->aggregator)->fold != FOLD_VALUES ||
        p->source_series <= r->c->exact_max)
        return damaged(r->c);
    k->count = r->grid->count;
    k->all = query_alloc(r->c, r->arena, k->count, sizeof *k->all);
    if (!k->all)
        return query_alloc_failed(r->c);
    int failed = 0;
    for (size_t i = 0; i < k->count && !failed; i++)
        failed = read_sketch(r, &k->all[i], p->source_series);
    p->sketched = !failed;
    return failed ? failed : read_real(r, k->count, &k->real);
}

// ---- the table ----

static const struct {
    bool (*present)(const struct query_partial *p);
    void (*write)(const struct query_partial *p, struct buf *out);
    int (*read)(struct reading *r, struct query_partial *p);
} sections[] = {
    {always, write_group, read_group},
    {has_tags, write_tags, read_tags},
    {has_series, write_series, read_series},
    {has_columns, write_columns, read_columns},
    {has_sketches, write_sketches, read_sketches},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

void query_partial_write(const struct query_partial *p, struct buf *out)
{
    for (unsigned i = 0; i < SECTIONS; i++) {
        struct buf one = {0};
        if (!sections[i].present(p))
            continue;
        sections[i].write(p, &one);
        buf_u8(out, (uint8_t)i);
        buf_short(out, buf_str(&one));
        out->failed |= one.failed;
        buf_free(&one);
    }
}

int query_partial_key(struct str record, struct str *key)
{
    struct bytes b = bytes_of(record.data, record.size);
    unsigned which = bytes_u8(&b);
    struct str body = bytes_short(&b);
    struct bytes group = bytes_of(body.data, body.size);
    *key = bytes_short(&group);
    return b.failed || group.failed || which != 0 ? -EBADMSG : 0;
}

int query_partial_read(struct query_context *c, const struct query_grid *g, struct arena *arena,
                       struct str record, struct query_partial *out)
{
    struct bytes b = bytes_of(record.data, record.size);
    *out = (struct query_partial){0};
    // Sections come in order, each at most once.
    for (int before = -1; bytes_left(&b);) {
        int which = bytes_u8(&b);
        struct str body = bytes_short(&b);
        if (b.failed || which >= (int)SECTIONS || which <= before)
            return damaged(c);
        struct reading r = {c, g, arena, bytes_of(body.data, body.size)};
        int failed = sections[which].read(&r, out);
        if (failed)
            return failed;
        if (r.b.failed || bytes_left(&r.b))
            return damaged(c);
        before = which;
    }
    return out->source_series && (out->folded || out->sketched || out->series_count) ? 0
                                                                                     : damaged(c);
}
