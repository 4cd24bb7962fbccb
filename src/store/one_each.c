#include "store/one_each.h"

#include "base/search.h"

#include <errno.h>
#include <string.h>

enum { WORD_BITS = 64, WORDS = STRETCH_SERIES / WORD_BITS };

// ---- Writing ----

bool one_each_is_smaller(const struct block_header *h, size_t stretches)
{
    // A record has one byte more than a point here, and two words in the directory.
    enum { RECORD_EXTRA = 1 + 2 * sizeof(uint32_t) };
    return stretches * sizeof(struct series_stretch) < h->columns * (uint64_t)RECORD_EXTRA;
}

bool one_each_put(struct buf *out, struct block_header *h, const struct point_record *points,
                  size_t count, size_t stretches)
{
    size_t directory_bytes = stretches * sizeof(struct series_stretch),
           point_bytes = one_each_point_bytes(h);
    // The last point's value is written behind a whole word with its time.
    if (!buf_reserve(out, directory_bytes + count * point_bytes + sizeof(uint64_t)))
        return false;
    h->flags |= BLOCK_ONE_EACH;
    h->directory_bytes = (uint32_t)directory_bytes;
    char *directory = out->data + out->size, *at = directory + directory_bytes;
    unsigned time_bytes = block_time_bytes(h);
    uint64_t first_ns = (uint64_t)h->first_ns;
    for (size_t i = 0; i < count; directory += sizeof(struct series_stretch)) {
        struct series_stretch s = {.number = stretch_of(points[i].series), .before = (uint32_t)i};
        for (; i < count && stretch_of(points[i].series) == s.number; i++) {
            uint32_t bit = points[i].series % STRETCH_SERIES;
            s.there[bit / WORD_BITS] |= UINT64_C(1) << bit % WORD_BITS;
            uint64_t since = (uint64_t)points[i].t_ns - first_ns;
            memcpy(at, &since, sizeof since); // the value overwrites the surplus bytes
            memcpy(at + time_bytes, &points[i].value, sizeof points->value);
            at += point_bytes;
        }
        memcpy(directory, &s, sizeof s);
    }
    out->size = (size_t)(at - out->data);
    return true;
}

// ---- Reading ----

bool one_each_fits(const struct block_header *h)
{
    uint64_t data = h->rows * (uint64_t)one_each_point_bytes(h);
    return h->kind == BLOCK_POINTS && !(h->flags & BLOCK_COLD) && h->rows == h->columns &&
           h->directory_bytes && h->directory_bytes % sizeof(struct series_stretch) == 0 &&
           h->data_bytes >= data && h->data_bytes - data < 8;
}

static uint32_t half_at(const uint8_t *p)
{
    return __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_RELAXED);
}

static uint64_t word_at(const uint8_t *p)
{
    return __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_RELAXED);
}

bool one_each_find(const struct block_header *h, const uint8_t *directory, uint32_t series,
                   uint32_t *place)
{
    size_t stretches = h->directory_bytes / sizeof(struct series_stretch);
    uint32_t number = stretch_of(series), first = half_at(directory);
    // Usually, the block has all stretches from the first one to this one.
    size_t i = number - first;
    if (number < first)
        return false;
    if (i >= stretches || half_at(directory + i * sizeof(struct series_stretch)) != number) {
        SEARCH_FIRST(i, stretches,
                     half_at(directory + i * sizeof(struct series_stretch)) >= number);
        if (i == stretches || half_at(directory + i * sizeof(struct series_stretch)) != number)
            return false;
    }
    const uint8_t *stretch = directory + i * sizeof(struct series_stretch),
                  *there = stretch + offsetof(struct series_stretch, there);
    uint32_t bit = series % STRETCH_SERIES;
    uint64_t word = word_at(there + bit / WORD_BITS * sizeof word), mask = UINT64_C(1)
                                                                           << bit % WORD_BITS;
    if (!(word & mask))
        return false;
    *place = half_at(stretch + offsetof(struct series_stretch, before)) +
             (uint32_t)__builtin_popcountll(word & (mask - 1));
    for (uint32_t w = 0; w < bit / WORD_BITS; w++)
        *place += (uint32_t)__builtin_popcountll(word_at(there + w * sizeof word));
    return *place < h->rows;
}

struct point_record one_each_point(const struct block_header *h, const uint8_t *at, uint32_t series)
{
    // A point has at least eight bytes.
    unsigned time_bytes = block_time_bytes(h);
    uint64_t since;
    memcpy(&since, at, sizeof since);
    if (time_bytes < sizeof since)
        since &= (UINT64_C(1) << 8 * time_bytes) - 1;
    struct point_record p = {.series = series, .t_ns = (int64_t)((uint64_t)h->first_ns + since)};
    memcpy(&p.value, at + time_bytes, sizeof p.value);
    return p;
}

int one_each_points(const struct block_header *h, const uint8_t *directory,
                    struct point_record *out)
{
    const uint8_t *at = directory + h->directory_bytes, *end = at;
    size_t point_bytes = one_each_point_bytes(h);
    uint32_t n = 0;
    int64_t before = -1;
    for (; directory < end; directory += sizeof(struct series_stretch)) {
        struct series_stretch s;
        memcpy(&s, directory, sizeof s);
        if (s.number <= before || s.number > stretch_of(UINT32_MAX) || s.before != n)
            return -EBADMSG;
        before = s.number;
        for (uint32_t w = 0; w < WORDS; w++)
            for (uint64_t bits = s.there[w]; bits; bits &= bits - 1, at += point_bytes) {
                if (n == h->rows)
                    return -EBADMSG;
                uint32_t series =
                    s.number * STRETCH_SERIES + w * WORD_BITS + (uint32_t)__builtin_ctzll(bits);
                out[n] = one_each_point(h, at, series);
                if (out[n].t_ns < h->first_ns || out[n].t_ns > h->last_ns)
                    return -EBADMSG;
                n++;
            }
    }
    return n == h->rows ? 0 : -EBADMSG;
}
