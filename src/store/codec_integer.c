// codec_integer.c - packs whole numbers into bits, for hot blocks.
//
// A packed section holds n 64-bit numbers x. All arithmetic is modulo 2^64 (modulo 2^32 on c, u and
// p unless wide).
//
//     x[i] = base + (c[i] << shift)
//     c[i] = p[i]                                               frame of reference
//          = c[i-1] + u[i] + step,  c[-1] = start      delta; u = p, or unzigzag(p) with ZIGZAG
//
//     +-------+-------+-------+---+-------------+----------+----------+-----------+-----------+
//     | flags | width | shift | 0 | patches u32 | base i64 | step u64 | start u64 | range u64 |
//     +-------+-------+-------+---+-------------+----------+----------+-----------+-----------+
//     | groups of 512 numbers p, width bits each (codec_kernels.h); the last one may be short |
//     +---------------------------------------------------------------------------------------+
//     | patches × u16: the places where p is larger, ascending                                |
//     +---------------------------------------------------------------------------------------+
//     | patches × u32 (u64 when wide): the p at these places                                  |
//     +---------------------------------------------------------------------------------------+
//     The first row has 40 bytes.
//
// With width > 32 a group has two parts: the low 32 bits of all its numbers, then their width - 32
// high bits. `range` is the largest c; it shows a decoder whether all numbers fit into 32 signed
// bits. Patches keep a column small if its deltas are mostly 0 and occasionally huge. The encoder
// chooses the width from the lengths of the deltas, such that packed numbers and patches together
// take the fewest bytes.
//
// A column of whole numbers (codecs INTEGER and DECIMAL) is such a section and the exceptions
// (misses):
//
//     +----+-------+------------+----------------+----------------+-------------------+
//     | id | scale | misses u16 | packed section | misses × u16   | misses × 8 bytes  |
//     +----+-------+------------+----------------+----------------+-------------------+
//                                                  their places     their doubles
#include "store/codec_parts.h"

#include <errno.h>

enum { DELTA = 1, ZIGZAG = 2, WIDE = 4 }; // flags
enum { COLUMN_HEADER = 4, WIDTH_MAX = 64, MISS_BYTES = 2 + 8, DELTA_SAMPLES = 11 };

static size_t group_size(size_t n, unsigned width)
{
    return width <= 32 ? group_bytes(n, width) : group_bytes(n, 32) + group_bytes(n, width - 32);
}

static size_t groups_size(size_t n, unsigned width)
{
    return n / GROUP * group_size(GROUP, width) +
           (n % GROUP != 0 ? group_size(n % GROUP, width) : 0);
}

// ---- Packing

struct plan {
    struct codec_shape shape;
    unsigned width, shift;
    uint8_t flags;
    uint64_t step, range;
    size_t patches;
    size_t size; // in total
};

// Returns the difference between number i and its predecessor, shifted. Numbers differ by multiples
// of 2^shift, so the shift loses no bits.
static inline int64_t delta_at(const int64_t *x, size_t i, unsigned shift)
{
    return (int64_t)((uint64_t)x[i] - (uint64_t)x[i - 1]) >> shift;
}

// Returns the median of a few deltas.
static int64_t usual_delta(const int64_t *x, size_t n, unsigned shift)
{
    int64_t samples[DELTA_SAMPLES];
    for (size_t i = 0; i < DELTA_SAMPLES; i++) {
        int64_t delta = delta_at(x, 1 + i * (n - 1) / DELTA_SAMPLES, shift);
        size_t at = i;
        for (; at > 0 && samples[at - 1] > delta; at--)
            samples[at] = samples[at - 1];
        samples[at] = delta;
    }
    return samples[DELTA_SAMPLES / 2];
}

static size_t count_of(uint32_t lengths[LENGTH_COUNTERS][LENGTHS], unsigned length)
{
    size_t count = 0;
    for (size_t i = 0; i < LENGTH_COUNTERS; i++)
        count += lengths[i][length];
    return count;
}

// Chooses the width that takes the fewest bytes. Deltas are stored as distances from the most
// frequent delta, and longer distances as patches.
static void plan_patched(const int64_t *x, size_t n, bool wide, struct plan *plan)
{
    uint32_t lengths[LENGTH_COUNTERS][LENGTHS] = {{0}};
    uint64_t usual = (uint64_t)usual_delta(x, n, plan->shift), numbers[GROUP];
    for (size_t first = 1; first < n; first += GROUP) {
        size_t count = n - first < GROUP ? n - first : GROUP;
        codec_kernels()->numbers(x + first, count, usual << plan->shift, plan->shift, ZIGZAG_DELTAS,
                                 numbers);
        codec_kernels()->count_lengths(numbers, count, lengths);
    }
    // From the longest number down: with more bits no number is a patch, and the groups are not
    // smaller.
    unsigned width = WIDTH_MAX;
    while (width > 0 && count_of(lengths, width) == 0)
        width--;
    size_t patch_bytes = wide ? 10 : 6, patches = 0;
    for (;; width--) {
        size_t patches_end = PACKED_HEADER + patches * patch_bytes;
        if (patches_end >= plan->size)
            return;
        size_t size = patches_end + groups_size(n, width);
        if (size < plan->size && (wide || width <= 32)) {
            plan->size = size;
            plan->width = width;
            plan->patches = patches;
            plan->flags = DELTA | ZIGZAG;
            plan->step = usual;
        }
        if (width == 0)
            return;
        patches += count_of(lengths, width);
    }
}

static struct plan plan_packing(const int64_t *x, size_t n)
{
    struct plan plan = {.shift = 0};
    codec_kernels()->shape(x, n, &plan.shape);
    const struct codec_shape *s = &plan.shape;
    if (s->delta_bits != 0)
        plan.shift = (unsigned)__builtin_ctzll(s->delta_bits);
    plan.range = ((uint64_t)s->max - (uint64_t)s->min) >> plan.shift;
    bool wide = plan.range > UINT32_MAX;
    plan.width = bit_length(plan.range);
    plan.size = PACKED_HEADER + groups_size(n, plan.width);
    // Deltas of numbers that are further apart would wrap around, and the distances between deltas
    // need two more bits.
    bool wraps = ((uint64_t)s->max - (uint64_t)s->min) >> 61 != 0;
    if (!wraps && n > 1) {
        unsigned width =
            bit_length(((uint64_t)s->max_delta - (uint64_t)s->min_delta) >> plan.shift);
        size_t size = PACKED_HEADER + groups_size(n, width);
        if (size < plan.size && width <= (wide ? 64 : 32)) {
            plan.size = size;
            plan.width = width;
            plan.flags = DELTA;
            plan.step = (uint64_t)(s->min_delta >> plan.shift);
        }
        // With fewer than 2 bits, almost no bytes are left to save.
        if (plan.size > PACKED_HEADER + groups_size(n, 1))
            plan_patched(x, n, wide, &plan);
    }
    if (wide)
        plan.flags |= WIDE;
    return plan;
}

size_t codec_packed_bound(size_t n)
{
    return PACKED_HEADER + groups_size(n, WIDTH_MAX);
}

size_t codec_pack(const int64_t *x, size_t n, uint8_t *out)
{
    const struct codec_kernels *k = codec_kernels();
    struct plan plan = plan_packing(x, n);
    bool wide = plan.flags & WIDE;
    uint32_t patches = (uint32_t)plan.patches;
    uint64_t start = 0;
    if (plan.flags & DELTA) { // p[0] is 0
        start = (((uint64_t)x[0] - (uint64_t)plan.shape.min) >> plan.shift) - plan.step;
        start = wide ? start : (uint32_t)start;
    }
    uint64_t step = wide ? plan.step : (uint32_t)plan.step;
    memcpy(out, (uint8_t[]){plan.flags, (uint8_t)plan.width, (uint8_t)plan.shift, 0}, 4);
    memcpy(out + 4, &patches, 4);
    memcpy(out + 8, &plan.shape.min, 8);
    memcpy(out + 16, &step, 8);
    memcpy(out + 24, &start, 8);
    memcpy(out + 32, &plan.range, 8);

    uint8_t *at = out + PACKED_HEADER;
    uint8_t *positions = at + groups_size(n, plan.width), *values = positions + plan.patches * 2;
    uint64_t limit = plan.width < 64 ? (UINT64_C(1) << plan.width) - 1 : UINT64_MAX;
    enum codec_numbers what = plan.flags & ZIGZAG  ? ZIGZAG_DELTAS
                              : plan.flags & DELTA ? DELTAS
                                                   : NUMBERS;
    uint64_t base = what == NUMBERS ? (uint64_t)plan.shape.min : plan.step << plan.shift;
    for (size_t first = 0; first < n; first += GROUP) {
        size_t count = n - first < GROUP ? n - first : GROUP;
        _Alignas(WORD_BYTES) uint64_t numbers[GROUP];
        _Alignas(WORD_BYTES) uint32_t low[GROUP], high[GROUP];
        size_t skip = first == 0 && what != NUMBERS ? 1 : 0; // the first number has no delta
        numbers[0] = 0;
        k->numbers(x + first + skip, count - skip, base, plan.shift, what, numbers + skip);
        if (k->split(numbers, count, limit, low, high))
            for (size_t i = 0; i < count; i++)
                if (numbers[i] > limit) {
                    uint16_t position = (uint16_t)(first + i);
                    uint64_t patch = numbers[i];
                    if (!wide) { // zigzag numbers of 32 bits
                        uint32_t u = (uint32_t)unzigzag(patch);
                        patch = u << 1 ^ (0 - (u >> 31));
                    }
                    memcpy(positions, &position, 2);
                    memcpy(values, &patch, wide ? 8 : 4);
                    positions += 2;
                    values += wide ? 8 : 4;
                    low[i] = high[i] = 0;
                }
        size_t rounded = (count + LANES - 1) / LANES * LANES;
        memset(low + count, 0, (rounded - count) * sizeof low[0]);
        memset(high + count, 0, (rounded - count) * sizeof high[0]);
        unsigned low_width = plan.width < 32 ? plan.width : 32;
        k->pack(low, count, low_width, at);
        at += group_bytes(count, low_width);
        if (plan.width > 32) {
            k->pack(high, count, plan.width - 32, at);
            at += group_bytes(count, plan.width - 32);
        }
    }
    return plan.size;
}

// ---- Unpacking

int codec_packed_open(const uint8_t *in, size_t size, size_t n, struct codec_packed *out)
{
    if (size < PACKED_HEADER || n == 0 || n > CODEC_VALUES_MAX)
        return -EBADMSG;
    uint8_t flags = in[0];
    *out = (struct codec_packed){.n = n,
                                 .n_patches = load_u32(in + 4),
                                 .width = in[1],
                                 .shift = in[2],
                                 .delta = flags & DELTA,
                                 .zigzag = flags & ZIGZAG,
                                 .wide = flags & WIDE,
                                 .base = (int64_t)load_u64(in + 8),
                                 .step = load_u64(in + 16),
                                 .start = load_u64(in + 24),
                                 .range = load_u64(in + 32)};
    if (flags > (DELTA | ZIGZAG | WIDE) || out->width > (out->wide ? 64 : 32) || out->shift > 63 ||
        out->n_patches > n)
        return -EBADMSG;
    size_t groups = groups_size(n, out->width), patch_bytes = out->wide ? 8 : 4;
    out->size = PACKED_HEADER + groups + out->n_patches * (2 + patch_bytes);
    if (size < out->size)
        return -EBADMSG;
    out->groups = in + PACKED_HEADER;
    out->positions = out->groups + groups;
    out->patches = out->positions + out->n_patches * 2;
    out->carry = out->start;
    return 0;
}

static size_t packed_count(const struct codec_packed *p, size_t group)
{
    size_t left = p->n - group * GROUP;
    return left < GROUP ? left : GROUP;
}

// Returns the place of the next patch within this group, or GROUP if the group has no more. Skips
// places that do not ascend.
static inline size_t next_patch(struct codec_packed *p, size_t group, size_t *patch)
{
    while (p->next_patch < p->n_patches) {
        size_t position = load_u16(p->positions + p->next_patch * 2);
        if (position >= (group + 1) * GROUP)
            break;
        *patch = p->next_patch++;
        if (position >= group * GROUP)
            return position - group * GROUP;
    }
    return GROUP;
}

// Unpacks the stored numbers, and inserts the patches.
static void stored_group32(struct codec_packed *p, size_t group, uint32_t *q)
{
    size_t patch = 0;
    codec_kernels()->unpack(p->groups + group * group_size(GROUP, p->width), packed_count(p, group),
                            p->width, q);
    for (size_t place; (place = next_patch(p, group, &patch)) < GROUP;)
        q[place] = load_u32(p->patches + patch * 4);
}

void codec_packed_group32(struct codec_packed *p, size_t group, uint32_t *q)
{
    size_t count = packed_count(p, group);
    stored_group32(p, group, q);
    if (p->delta) {
        uint32_t carry = (uint32_t)p->carry;
        codec_kernels()->prefix32(q, (count + LANES - 1) / LANES * LANES, p->zigzag,
                                  (uint32_t)p->step, &carry);
        p->carry = carry;
    }
}

void codec_packed_group64(struct codec_packed *p, size_t group, uint64_t *q)
{
    const struct codec_kernels *k = codec_kernels();
    _Alignas(WORD_BYTES) uint32_t low[GROUP], high[GROUP];
    size_t count = packed_count(p, group), rounded = (count + LANES - 1) / LANES * LANES, patch = 0;
    unsigned low_width = p->width < 32 ? p->width : 32;
    const uint8_t *at = p->groups + group * group_size(GROUP, p->width);
    k->unpack(at, count, low_width, low);
    if (p->width > 32) {
        k->unpack(at + group_bytes(count, 32), count, p->width - 32, high);
        for (size_t i = 0; i < rounded; i++)
            q[i] = (uint64_t)high[i] << 32 | low[i];
    } else {
        for (size_t i = 0; i < rounded; i++)
            q[i] = low[i];
    }
    for (size_t place; (place = next_patch(p, group, &patch)) < GROUP;)
        q[place] = load_u64(p->patches + patch * 8);
    if (p->delta)
        k->prefix64(q, rounded, p->zigzag, p->step, &p->carry);
}

void codec_packed_numbers(struct codec_packed *p, size_t group, uint64_t *x)
{
    size_t count = packed_count(p, group);
    if (p->wide) {
        codec_packed_group64(p, group, x);
        for (size_t i = 0; i < count; i++)
            x[i] = (uint64_t)p->base + (x[i] << p->shift);
    } else {
        _Alignas(WORD_BYTES) uint32_t q[GROUP];
        codec_packed_group32(p, group, q);
        for (size_t i = 0; i < count; i++)
            x[i] = (uint64_t)p->base + ((uint64_t)q[i] << p->shift);
    }
}

// ---- Columns

size_t codec_integer_encode(const double *v, const int64_t *x, size_t n, uint8_t code,
                            size_t misses, uint8_t *out)
{
    uint16_t misses16 = (uint16_t)misses;
    out[0] = code == 0 ? CODEC_INTEGER : CODEC_DECIMAL;
    out[1] = code;
    memcpy(out + 2, &misses16, 2);
    size_t size = COLUMN_HEADER + codec_pack(x, n, out + COLUMN_HEADER);
    if (misses > 0) {
        struct codec_scale scale;
        codec_scale_of(code, &scale);
        uint8_t *positions = out + size, *values = positions + misses * 2;
        for (size_t i = 0; i < n; i++)
            if (!codec_is_whole(v[i], x[i], &scale)) {
                uint16_t position = (uint16_t)i;
                memcpy(positions, &position, 2);
                memcpy(values, &v[i], 8);
                positions += 2;
                values += 8;
            }
    }
    return size + misses * MISS_BYTES;
}

struct column {
    struct codec_packed packed;
    struct codec_walk walk;
    const uint8_t *positions, *values; // places and values of the exceptions
    size_t misses, next_miss;
};

static int column_open(const uint8_t *in, size_t size, size_t n, struct column *c)
{
    if (size < COLUMN_HEADER || !codec_scale_of(in[1], &c->walk.scale))
        return -EBADMSG;
    c->misses = load_u16(in + 2);
    c->next_miss = 0;
    if (codec_packed_open(in + COLUMN_HEADER, size - COLUMN_HEADER, n, &c->packed) != 0 ||
        size != COLUMN_HEADER + c->packed.size + c->misses * MISS_BYTES)
        return -EBADMSG;
    c->positions = in + COLUMN_HEADER + c->packed.size;
    c->values = c->positions + c->misses * 2;
    const struct codec_packed *p = &c->packed;
    c->walk.what = !p->delta ? NUMBERS : p->zigzag ? ZIGZAG_DELTAS : DELTAS;
    c->walk.addend = p->delta ? (uint32_t)p->step : 0;
    c->walk.carry = (uint32_t)p->start;
    c->walk.base = (double)p->base;
    c->walk.step = (double)(UINT64_C(1) << p->shift);
    // An encoder writes only numbers below 2^51. Larger numbers could decode to different bits on
    // different machines.
    int64_t limit = INT64_C(1) << 51;
    if (c->packed.base <= -limit || c->packed.base >= limit || c->packed.shift > 52)
        return -EBADMSG;
    c->walk.narrow = !p->wide && p->shift == 0 && p->range <= INT32_MAX && p->base >= INT32_MIN &&
                     p->base <= INT32_MAX - (int64_t)p->range;
    if (c->walk.narrow)
        *(p->delta ? &c->walk.carry : &c->walk.addend) += (uint32_t)p->base;
    return 0;
}

// Decodes the values of one group, and inserts the exceptions.
static void column_group(struct column *c, size_t group, double *out)
{
    const struct codec_kernels *k = codec_kernels();
    struct codec_packed *p = &c->packed;
    size_t count = packed_count(p, group);
    if (p->wide) {
        _Alignas(WORD_BYTES) uint64_t q[GROUP];
        codec_packed_group64(p, group, q);
        for (size_t i = 0; i < count; i++)
            q[i] = (uint64_t)p->base + (q[i] << p->shift);
        k->values64((const int64_t *)q, count, &c->walk.scale, out);
    } else {
        _Alignas(WORD_BYTES) uint32_t q[GROUP];
        stored_group32(p, group, q);
        k->values32(q, count, &c->walk, out);
    }
    while (c->next_miss < c->misses) {
        size_t position = load_u16(c->positions + c->next_miss * 2);
        if (position >= group * GROUP + count)
            break;
        if (position >= group * GROUP)
            memcpy(&out[position - group * GROUP], c->values + c->next_miss * 8, 8);
        c->next_miss++;
    }
}

int codec_integer_decode(const uint8_t *in, size_t size, size_t n, double *out)
{
    struct column c;
    if (column_open(in, size, n, &c) != 0)
        return -EBADMSG;
    for (size_t at = 0; at < n; at += GROUP)
        column_group(&c, at / GROUP, out + at);
    return 0;
}
