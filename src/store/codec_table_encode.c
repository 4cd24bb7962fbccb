// codec_table_encode.c - writing tables. The layout is in codec_table_parts.h.
//
// Each column goes through five steps:
//   1. It becomes constant, whole numbers (codec_decimal.c), bit patterns, or plain.
//   2. Whole numbers become a series q: the numbers, their deltas or the deltas of the deltas,
//      whichever is smallest. Their common part (centre) is subtracted, then they are divided by
//      their common divisor (factor). So pages and kilobytes become the same q.
//   3. Columns of deltas are compared with columns that change less often, and stored as their
//      difference if that is cheaper: sums of columns and copies vanish.
//   4. Columns cut off the same number of low bits if that costs them little, so that their
//      tokens share one code.
//   5. The remaining numbers go to the streams.
#include "store/codec_table_parts.h"

#include <stdlib.h>

enum {
    ENTRY_BYTES_MAX = 96, // of an entry in the directory: at most 13 varints, few of them long
    TABLE_BYTES_MAX = 128,
    // a column of other values than whole numbers becomes runs if they are at least this long on
    // average
    RUN_LENGTH = 8,
    REFERENCE_BITS = 24,
    // number of columns that one column is compared with: those that change nearly as often
    CANDIDATES_MAX = 256,
    CHANGES_LOOKED_AT = 256 // changes that are compared before a column counts as unrelated
};

struct column {
    const struct codec_column *from;
    int64_t *q;      // the series
    uint64_t *marks; // a bit for each k at which the series is not 0
    size_t changes;
    size_t own_bytes; // bytes of this column in the streams
    int64_t first, centre;
    uint64_t factor, cost; // cost: bits that all changes take
    struct buf misses;
    uint32_t n_misses, expansions;
    uint32_t refers[REFERENCES_MAX];
    uint8_t n_refers, id, scale, order, low, form, apart;
    bool dense;
};

struct streams {
    struct buf directory, of[STREAMS];
};

size_t codec_table_bound(const struct codec_column *columns, size_t n_columns)
{
    size_t size = TABLE_BYTES_MAX;
    for (size_t i = 0; i < n_columns; i++)
        size += columns[i].n * (size_t)8 + ENTRY_BYTES_MAX;
    return size;
}

static bool is_series(const struct column *c)
{
    return c->id == CODEC_INTEGER || c->id == CODEC_DECIMAL;
}

// ---- Whole numbers to a series

// Stores the best series of x in c. `spare` has n places.
static void choose_series(struct column *c, int64_t *x, int64_t *spare)
{
    size_t n = c->from->n;
    c->first = x[0];
    struct series best = codec_series_of(x, n, 1, c->q);
    // Numbers with a constant step, which most columns of times are, cost no bits as deltas.
    for (unsigned order = 0; order <= 2 && best.cost.bits > 0; order += 2) {
        // Order 1 has a small advantage, because only a series of order 1 can use references or be
        // one.
        static const double handicap[] = {1.05, 1.0, 1.1};
        struct series s = codec_series_of(x, n, order, spare);
        s.cost.bits *= handicap[order];
        if (s.cost.bits < best.cost.bits || (order == 0 && s.cost.bits == best.cost.bits)) {
            best = s;
            memcpy(c->q, spare, n * sizeof spare[0]);
        }
    }
    c->order = (uint8_t)best.order;
    c->centre = best.centre;
    c->factor = best.factor;
    c->dense = best.dense;
    c->low = best.low;
    c->own_bytes = best.cost.bytes;
}

// ---- Bit patterns

static void planes_count(const uint64_t *pattern, size_t n, uint32_t counts[8][256])
{
    memset(counts, 0, 8 * sizeof counts[0]);
    for (size_t i = 0; i < n; i++)
        for (unsigned plane = 0; plane < 8; plane++)
            counts[plane][pattern[i] >> (56 - 8 * plane) & 255]++;
}

static void patterns_of(const uint64_t *bits, size_t n, unsigned form, uint64_t *out)
{
    out[0] = bits[0];
    for (size_t i = 1; i < n; i++)
        out[i] = form == BITS_AS_THEY_ARE ? bits[i]
                 : form == BITS_XOR       ? bits[i] ^ bits[i - 1]
                                          : zigzag((int64_t)(bits[i] - bits[i - 1]));
}

static void choose_bits(struct column *c, int64_t *spare)
{
    size_t n = c->from->n;
    // the form is used only if it takes fewer bytes than this
    double best = 8.0 * (double)n * 0.995;
    c->id = CODEC_PLAIN;
    for (unsigned form = 0; form < BITS_FORMS; form++) {
        uint32_t counts[8][256];
        uint8_t apart = 0;
        double bytes = 0;
        patterns_of(c->from->data, n, form, (uint64_t *)spare);
        planes_count((const uint64_t *)spare, n, counts);
        for (unsigned plane = 0; plane < 8; plane++) {
            double plane_bytes = codec_entropy_bits(counts[plane], n) / 8;
            // With few values, the entropy is underestimated, and the share of distinct values
            // means little.
            bool random =
                plane_bytes > 0.97 * (double)n || (n < 1024 && plane_bytes > 0.75 * (double)n);
            apart |= (uint8_t)((random ? 1 : 0) << plane);
            bytes += random ? (double)n : plane_bytes;
        }
        if (bytes < best) {
            best = bytes;
            c->id = CODEC_BITS;
            c->form = (uint8_t)form;
            c->apart = apart;
        }
    }
    c->own_bytes = n * 8;
}

// ---- Steps 1 and 2

static bool all_equal(const uint64_t *bits, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (bits[i] != bits[0])
            return false;
    return true;
}

static void keep_misses(struct column *c, const double *v, const int64_t *x,
                        const struct codec_scale *scale)
{
    struct buf values = {0};
    for (size_t i = 0; i < c->from->n; i++)
        if (!codec_is_whole(v[i], x[i], scale)) {
            buf_u16(&c->misses, (uint16_t)i);
            buf_f64(&values, v[i]);
            c->n_misses++;
        }
    buf_add(&c->misses, values.data, values.size);
    c->misses.failed |= values.failed;
    buf_free(&values);
}

static void choose(struct column *c, int64_t *x, int64_t *spare)
{
    size_t n = c->from->n, misses = 0;
    c->expansions = 1;
    if (all_equal(c->from->data, n)) {
        c->id = CODEC_CONSTANT;
        return;
    }
    if (c->from->times)
        memcpy(x, c->from->data, n * sizeof x[0]);
    else
        misses = codec_wholes(c->from->data, n, &c->scale, x);
    if (misses == SIZE_MAX) {
        if (codec_kernels()->changes(c->from->data, n) <= n / RUN_LENGTH)
            c->id = CODEC_RUNS;
        else
            choose_bits(c, spare);
        return;
    }
    c->id = c->scale == 0 ? CODEC_INTEGER : CODEC_DECIMAL;
    if (misses > 0) {
        struct codec_scale scale;
        codec_scale_of(c->scale, &scale);
        keep_misses(c, c->from->data, x, &scale);
    }
    choose_series(c, x, spare);
    if (c->own_bytes + c->misses.size > n * 8) {
        buf_free(&c->misses);
        c->misses = (struct buf){0};
        c->n_misses = 0;
        choose_bits(c, spare);
        if (c->from->times)
            c->id = CODEC_PLAIN;
    }
}

// ---- Step 3: references

static size_t words_of(const struct column *c)
{
    return (c->from->n + 63) / 64;
}

// Marks the changes of a series and adds up their cost.
static size_t measure(const int64_t *q, size_t n, uint64_t *marks, uint64_t *cost)
{
    size_t changes = 0;
    memset(marks, 0, (n + 63) / 64 * sizeof marks[0]);
    *cost = 0;
    for (size_t k = 0; k < n; k++)
        if (q[k] != 0) {
            marks[k / 64] |= UINT64_C(1) << k % 64;
            changes++;
            *cost += change_cost(q[k]);
        }
    return changes;
}

// Computes the cost of q after subtracting (0) or adding (1) the series of `other`. Most pairs of
// columns are unrelated, and some changes are enough to show it. Then both returned costs are too
// high; they cover only these changes.
static void difference_costs(const int64_t *q, uint64_t own_cost, const struct column *other,
                             uint64_t cost[2])
{
    size_t changes = 0;
    struct change_costs sum = {0};
    for (size_t w = 0; w < words_of(other); w++) {
        if (changes >= CHANGES_LOOKED_AT && sum.less > sum.own && sum.more > sum.own)
            break;
        const int64_t *x = q + w * MARKS, *y = other->q + w * MARKS;
        bool whole = (w + 1) * MARKS <= other->from->n;
        changes += (size_t)__builtin_popcountll(other->marks[w]);
        (whole ? codec_kernels()->change_costs : add_change_costs)(x, y, other->marks[w], &sum);
    }
    cost[0] = own_cost + sum.less - sum.own;
    cost[1] = own_cost + sum.more - sum.own;
}

static size_t common_changes(const uint64_t *a, const uint64_t *b, size_t words)
{
    size_t count = 0;
    for (size_t w = 0; w < words; w++)
        count += (size_t)__builtin_popcountll(a[w] & b[w]);
    return count;
}

static bool may_refer(const struct column *c, const struct column *other)
{
    return other->from->n == c->from->n && other->order == 1 && other->changes > 0 &&
           c->expansions + other->expansions <= EXPANSIONS_MAX;
}

// Returns q minus the series of the columns that c refers to. `rest` has room for it.
static const int64_t *rest_of(const struct column *columns, const struct column *c, int64_t *rest)
{
    size_t n = c->from->n;
    if (c->n_refers == 0)
        return c->q;
    memcpy(rest, c->q, n * sizeof rest[0]);
    for (size_t i = 0; i < c->n_refers; i++) {
        const int64_t *other = columns[c->refers[i] >> 1].q;
        bool subtract = c->refers[i] & 1;
        for (size_t k = 0; k < n; k++)
            rest[k] = (int64_t)((uint64_t)rest[k] -
                                (subtract ? 0 - (uint64_t)other[k] : (uint64_t)other[k]));
    }
    return rest;
}

// Finds references for column c. `earlier` lists the columns that it may refer to. `rest` has n
// places, `marks` a bit for each.
static void find_references(struct column *columns, struct column *c, const uint32_t *earlier,
                            size_t n_earlier, int64_t *rest, uint64_t *marks)
{
    size_t n = c->from->n;
    while (c->n_refers < REFERENCES_MAX) {
        uint64_t cost = c->cost, best_cost, both[2];
        size_t best = SIZE_MAX, best_sign = 0;
        const uint64_t *marked = c->marks;
        const int64_t *left = rest_of(columns, c, rest);
        if (c->n_refers) {
            measure(left, n, marks, &cost);
            marked = marks;
        }
        best_cost = cost - cost / 10; // a reference is used only if it saves a tenth
        for (size_t i = 0; i < n_earlier; i++) {
            const struct column *other = &columns[earlier[i]];
            if (!may_refer(c, other) ||
                common_changes(marked, other->marks, words_of(c)) * 2 < other->changes)
                continue;
            difference_costs(left, cost, other, both);
            size_t sign = both[1] < both[0] ? 1 : 0;
            if (both[sign] + REFERENCE_BITS < best_cost) {
                best_cost = both[sign] + REFERENCE_BITS;
                best = earlier[i];
                best_sign = sign;
            }
        }
        if (best == SIZE_MAX)
            break;
        c->refers[c->n_refers++] = (uint32_t)(best << 1 | best_sign);
        c->expansions += columns[best].expansions;
    }
    if (c->n_refers == 0)
        return;
    struct cost own = codec_form_of(rest_of(columns, c, rest), 1, n, &c->dense, &c->low);
    c->own_bytes = own.bytes;
    if (own.bytes + c->misses.size > n * 8) { // nearly impossible, but codec_table_bound must hold
        c->n_refers = 0;
        c->expansions = 1;
        c->own_bytes = codec_form_of(c->q, 1, n, &c->dense, &c->low).bytes;
    }
}

struct place {
    size_t changes;
    uint32_t column;
};

static int by_changes(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->changes != y->changes ? (x->changes > y->changes ? 1 : -1)
                                    : (x->column > y->column) - (x->column < y->column);
}

static void find_all_references(struct column *columns, size_t n_columns, struct place *places,
                                uint32_t *order, int64_t *rest, uint64_t *marks)
{
    size_t count = 0;
    for (size_t i = 0; i < n_columns; i++)
        if (is_series(&columns[i]) && columns[i].order == 1)
            places[count++] = (struct place){columns[i].changes, (uint32_t)i};
    qsort(places, count, sizeof places[0], by_changes);
    for (size_t i = 0; i < count; i++) {
        size_t first = i > CANDIDATES_MAX ? i - CANDIDATES_MAX : 0;
        order[i] = places[i].column;
        find_references(columns, &columns[order[i]], order + first, i - first, rest, marks);
    }
}

// ---- Step 4: low bits that many columns share

enum { FORMS = 2 }; // sparse, dense

// The tokens of all columns of a form lie in one stream and get one code. If similar columns differ
// in `low`, their tokens differ. That costs more than the best `low` of each column saves.
static const double AGREEMENT_COST = 1.01;

static void agree_on_low_bits(struct column *columns, size_t n_columns, int64_t *rest)
{
    size_t uses[FORMS][LOW_MAX + 1] = {0}, usual[FORMS] = {0};
    for (size_t i = 0; i < n_columns; i++)
        if (is_series(&columns[i]))
            uses[columns[i].dense][columns[i].low] += columns[i].changes;
    for (size_t form = 0; form < FORMS; form++)
        for (size_t low = 1; low <= LOW_MAX; low++)
            if (uses[form][low] > uses[form][usual[form]])
                usual[form] = low;
    for (size_t i = 0; i < n_columns; i++) {
        struct column *c = &columns[i];
        if (!is_series(c) || c->low == usual[c->dense])
            continue;
        size_t from = c->order == 0 ? 0 : 1, n = c->from->n;
        const int64_t *left = rest_of(columns, c, rest);
        struct cost own = codec_cost_of(left, from, n, c->dense, c->low);
        struct cost same = codec_cost_of(left, from, n, c->dense, (unsigned)usual[c->dense]);
        if (same.bits > own.bits * AGREEMENT_COST || same.bytes + c->misses.size > n * 8)
            continue;
        c->low = (uint8_t)usual[c->dense];
        c->own_bytes = same.bytes;
    }
}

// ---- Step 5: writing

// The next bytes of the streams, which have room for all numbers of a column.
struct next_bytes {
    uint8_t *tokens, *gaps, *extras, *low;
};

static inline uint8_t *put_token(uint8_t *tokens, uint8_t **extras, uint64_t v)
{
    *tokens = token_byte(v);
    if (v >= TOKEN_LONG) {
        uint64_t rest = v - TOKEN_LONG;
        memcpy(*extras, &rest, sizeof rest);
        *extras += token_extra(v);
    }
    return tokens + 1;
}

static uint8_t *room_in(struct buf *b, size_t bytes)
{
    return buf_reserve(b, bytes) ? (uint8_t *)b->data + b->size : NULL;
}

static void filled_to(struct buf *b, const uint8_t *end)
{
    b->size = (size_t)(end - (uint8_t *)b->data);
}

static void write_series(struct streams *s, const struct column *c, const int64_t *q)
{
    size_t gap = 0, n = c->from->n;
    struct buf *tokens = &s->of[c->dense ? DENSE : CHANGES];
    // A number has at most two tokens, of itself and of the gap before it. The bytes of a token,
    // and the low bits, are written 8 at a time.
    struct next_bytes p = {room_in(tokens, n), room_in(&s->of[GAPS], n),
                           room_in(&s->of[EXTRAS], (2 * n + 1) * TOKEN_EXTRA_MAX),
                           room_in(&s->of[LOW], low_bytes(n, c->low) + sizeof(uint64_t))};
    if (!p.tokens || !p.gaps || !p.extras || !p.low)
        return;
    uint64_t low = 0, mask = (UINT64_C(1) << c->low) - 1;
    // number of bits in `low` that are not written yet; below 8 between two numbers
    unsigned held = 0;
    for (size_t k = c->order == 0 ? 0 : 1; k < n; k++) {
        if (q[k] == 0 && !c->dense) {
            gap++;
            continue;
        }
        if (!c->dense)
            p.gaps = put_token(p.gaps, &p.extras, gap);
        gap = 0;
        uint64_t z = zigzag(q[k]) - (c->dense ? 0 : 1);
        p.tokens = put_token(p.tokens, &p.extras, z >> c->low);
        low |= (z & mask) << held;
        held += c->low;
        memcpy(p.low, &low, sizeof low);
        p.low += held / 8;
        low >>= held & ~7U;
        held &= 7;
    }
    if (held > 0)
        *p.low++ = (uint8_t)low;
    filled_to(tokens, p.tokens);
    filled_to(&s->of[GAPS], p.gaps);
    filled_to(&s->of[EXTRAS], p.extras);
    filled_to(&s->of[LOW], p.low);
}

static void write_whole(struct streams *s, const struct column *columns, const struct column *c,
                        int64_t *rest)
{
    struct buf *d = &s->directory;
    size_t extras_before = s->of[EXTRAS].size, changes_before = s->of[CHANGES].size;
    write_series(s, c, rest_of(columns, c, rest));
    buf_add(&s->of[RAW], c->misses.data, c->misses.size);
    buf_u8(d, c->scale);
    buf_u8(d, (uint8_t)(c->order | (c->dense ? FORM_DENSE : 0)));
    buf_u8(d, c->low);
    buf_varint(d, zigzag(c->first));
    buf_varint(d, zigzag(c->centre));
    buf_varint(d, c->factor);
    buf_varint(d, c->n_misses);
    if (!c->dense)
        buf_varint(d, s->of[CHANGES].size - changes_before);
    buf_varint(d, s->of[EXTRAS].size - extras_before);
    buf_varint(d, c->n_refers);
    for (size_t i = 0; i < c->n_refers; i++)
        buf_varint(d, c->refers[i]);
}

static void write_bits(struct streams *s, const struct column *c, uint64_t *spare)
{
    size_t n = c->from->n;
    buf_u8(&s->directory, c->form);
    buf_u8(&s->directory, c->apart);
    patterns_of(c->from->data, n, c->form, spare);
    for (unsigned plane = 0; plane < 8; plane++) {
        struct buf *to = &s->of[c->apart >> plane & 1 ? LOW : RAW];
        uint8_t *bytes = room_in(to, n);
        if (!bytes)
            return;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(spare[i] >> (56 - 8 * plane));
        filled_to(to, bytes + n);
    }
}

static void write_runs(struct streams *s, const struct column *c)
{
    const uint64_t *pattern = c->from->data;
    size_t gap = 0, n = c->from->n, gaps_before = s->of[GAPS].size,
           extras_before = s->of[EXTRAS].size;
    uint8_t *gaps = room_in(&s->of[GAPS], n),
            *extras = room_in(&s->of[EXTRAS], (n + 1) * TOKEN_EXTRA_MAX);
    if (!gaps || !extras)
        return;
    buf_u64(&s->of[RAW], pattern[0]);
    for (size_t k = 1; k < n; k++, gap++)
        if (pattern[k] != pattern[k - 1]) {
            gaps = put_token(gaps, &extras, gap);
            buf_u64(&s->of[RAW], pattern[k]);
            gap = SIZE_MAX; // the next addition makes it 0
        }
    filled_to(&s->of[GAPS], gaps);
    filled_to(&s->of[EXTRAS], extras);
    buf_varint(&s->directory, s->of[GAPS].size - gaps_before);
    buf_varint(&s->directory, s->of[EXTRAS].size - extras_before);
}

static void write_column(struct streams *s, const struct column *columns, const struct column *c,
                         int64_t *spare)
{
    buf_u8(&s->directory, (uint8_t)(c->id | (c->from->times ? KIND_TIMES : 0)));
    buf_varint(&s->directory, c->from->n);
    if (is_series(c))
        write_whole(s, columns, c, spare);
    else if (c->id == CODEC_RUNS)
        write_runs(s, c);
    else if (c->id == CODEC_BITS)
        write_bits(s, c, (uint64_t *)spare);
    else if (c->id == CODEC_PLAIN)
        buf_add(&s->of[RAW], c->from->data, c->from->n * (size_t)8);
    else
        buf_add(&s->directory, c->from->data, 8);
}

static size_t join(const struct streams *s, size_t n_columns, uint8_t *out)
{
    struct buf head = {0};
    bool failed = s->directory.failed;
    buf_u8(&head, TABLE_VERSION);
    buf_varint(&head, n_columns);
    buf_varint(&head, s->directory.size);
    for (size_t i = 0; i < STREAMS; i++) {
        buf_varint(&head, s->of[i].size);
        failed |= s->of[i].failed;
    }
    failed |= head.failed;
    size_t size = 0;
    if (!failed) {
        memcpy(out, head.data, head.size);
        size = head.size;
        memcpy(out + size, s->directory.data, s->directory.size);
        size += s->directory.size;
        for (size_t i = 0; i < STREAMS; i++)
            if (s->of[i].size > 0) {
                memcpy(out + size, s->of[i].data, s->of[i].size);
                size += s->of[i].size;
            }
    }
    buf_free(&head);
    return size;
}

// All scratch memory in one piece: a series and marks for each column, and the buffers of the
// steps.
struct scratch {
    struct column *columns;
    struct place *places;
    uint32_t *order;
    int64_t *whole, *spare;
    uint64_t *marks;
};

static bool scratch_of(const struct codec_column *from, size_t n_columns, struct scratch *s)
{
    size_t longest = 0, values = 0, words = 0;
    for (size_t i = 0; i < n_columns; i++) {
        longest = from[i].n > longest ? from[i].n : longest;
        values += from[i].n;
        words += (from[i].n + 63) / 64;
    }
    words += (longest + 63) / 64;
    *s = (struct scratch){.columns = calloc(n_columns, sizeof s->columns[0]),
                          .places = calloc(n_columns, sizeof s->places[0]),
                          .order = calloc(n_columns, sizeof s->order[0]),
                          .whole = malloc((2 * longest + values) * sizeof s->whole[0]),
                          .marks = malloc(words * sizeof s->marks[0])};
    if (s->columns == NULL || s->places == NULL || s->order == NULL || s->whole == NULL ||
        s->marks == NULL)
        return false;
    s->spare = s->whole + longest;
    int64_t *series = s->spare + longest;
    uint64_t *marks = s->marks + (longest + 63) / 64;
    for (size_t i = 0; i < n_columns; i++) {
        s->columns[i] = (struct column){.from = &from[i], .q = series, .marks = marks};
        series += from[i].n;
        marks += (from[i].n + 63) / 64;
    }
    return true;
}

size_t codec_table_encode(const struct codec_column *columns, size_t n_columns, uint8_t *out)
{
    struct scratch s;
    struct streams streams = {0};
    size_t size = 0;
    if (scratch_of(columns, n_columns, &s)) {
        for (size_t i = 0; i < n_columns; i++) {
            struct column *c = &s.columns[i];
            choose(c, s.whole, s.spare);
            if (is_series(c))
                c->changes = measure(c->q, c->from->n, c->marks, &c->cost);
        }
        if (n_columns > 1)
            find_all_references(s.columns, n_columns, s.places, s.order, s.spare, s.marks);
        agree_on_low_bits(s.columns, n_columns, s.spare);
        for (size_t i = 0; i < n_columns; i++) {
            streams.directory.failed |= s.columns[i].misses.failed;
            write_column(&streams, s.columns, &s.columns[i], s.spare);
        }
        size = join(&streams, n_columns, out);
        for (size_t i = 0; i < n_columns; i++)
            buf_free(&s.columns[i].misses);
    }
    buf_free(&streams.directory);
    for (size_t i = 0; i < STREAMS; i++)
        buf_free(&streams.of[i]);
    free(s.columns);
    free(s.places);
    free(s.order);
    free(s.whole);
    free(s.marks);
    return size;
}
