#include "store/sort.h"
#include "base/search.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { DIGIT_BITS_MAX = 11, DIGITS_MAX = 1 << DIGIT_BITS_MAX };

// Sorts keys by one digit. A key is a series and a place, and takes a third of a point's size.
static void count_pass(const uint64_t *from, uint64_t *to, size_t count, unsigned shift,
                       uint32_t digits)
{
    uint32_t at[DIGITS_MAX], sum = 0;
    memset(at, 0, digits * sizeof *at);
    for (size_t i = 0; i < count; i++)
        at[from[i] >> shift & (digits - 1)]++;
    for (uint32_t d = 0; d < digits; d++) {
        uint32_t n = at[d];
        at[d] = sum;
        sum += n;
    }
    for (size_t i = 0; i < count; i++)
        to[at[from[i] >> shift & (digits - 1)]++] = from[i];
}

static int by_time(const void *a, const void *b)
{
    const struct point_record *x = a, *y = b;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return x->zero < y->zero ? -1 : x->zero > y->zero;
}

// Sorts points by time, stably. `zero` temporarily holds the place of arrival.
static void sort_times(struct point_record *p, size_t n)
{
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = p[i - 1].t_ns <= p[i].t_ns;
    if (sorted)
        return;
    for (size_t i = 0; i < n; i++)
        p[i].zero = (uint32_t)i;
    qsort(p, n, sizeof *p, by_time);
    for (size_t i = 0; i < n; i++)
        p[i].zero = 0;
}

// Returns the end of the ascending stretch that begins at `at`. Sets *repeated if a series occurs
// twice in it.
static size_t stretch(const struct point_record *from, size_t at, size_t count, bool *repeated)
{
    size_t i = at + (at < count);
    for (; i < count && from[i - 1].series <= from[i].series; i++)
        *repeated |= from[i - 1].series == from[i].series;
    return i;
}

// Merges two ascending stretches; the second begins at `middle`. Sets *repeated if a series occurs
// in both.
static void merge_two(const struct point_record *from, size_t middle, size_t count,
                      struct point_record *out, bool *repeated)
{
    size_t a = 0, b = middle, i = 0;
    while (a < middle && b < count) {
        *repeated |= from[a].series == from[b].series;
        out[i++] = from[a].series <= from[b].series ? from[a++] : from[b++];
    }
    memcpy(out + i, from + a, (middle - a) * sizeof *out);
    memcpy(out + i + (middle - a), from + b, (count - b) * sizeof *out);
}

// Orders points by series, then by arrival. A client with many series mostly sends them in the
// order of their ids, round after round. So a tail holds one round, or the end of one round and the
// beginning of the next. Returns false if each series has only one point.
static bool by_series(const struct point_record *from, size_t count, struct point_record *out,
                      uint64_t *keys)
{
    bool repeated = false;
    size_t middle = stretch(from, 0, count, &repeated);
    if (stretch(from, middle, count, &repeated) == count) {
        merge_two(from, middle, count, out, &repeated);
        return repeated;
    }
    uint32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        most = from[i].series > most ? from[i].series : most;
        keys[i] = (uint64_t)from[i].series << 32 | i;
    }
    // Use as few passes as possible, with digits of equal length, because small counters stay in
    // the nearest cache.
    unsigned bits = most ? 32 - (unsigned)__builtin_clz(most) : 1;
    unsigned passes = (bits + DIGIT_BITS_MAX - 1) / DIGIT_BITS_MAX,
             digit_bits = (bits + passes - 1) / passes;
    uint64_t *other = keys + count;
    for (unsigned pass = 0; pass < passes; pass++) {
        count_pass(keys, other, count, 32 + pass * digit_bits, UINT32_C(1) << digit_bits);
        uint64_t *done = other;
        other = keys;
        keys = done;
    }
    for (size_t i = 0; i < count; i++)
        out[i] = from[(uint32_t)keys[i]];
    return true;
}

static int by_time_and_row(const void *a, const void *b)
{
    const struct row_time *x = a, *y = b;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

void rows_sort(struct row_time *rows, size_t count)
{
    if (count)
        qsort(rows, count, sizeof *rows, by_time_and_row);
}

size_t points_sort(const struct point_record *from, size_t count, struct point_record *out,
                   uint64_t *keys)
{
    if (!by_series(from, count, out, keys))
        return count;
    size_t kept = 0;
    for (size_t i = 0; i < count;) {
        size_t n = 1;
        while (i + n < count && out[i + n].series == out[i].series)
            n++;
        sort_times(out + i, n);
        if (n == 1 && kept == i) {
            kept = ++i;
            continue;
        }
        for (size_t end = i + n; i < end; i++)
            if (i + 1 == end || out[i + 1].t_ns != out[i].t_ns)
                out[kept++] = out[i];
    }
    return kept;
}

size_t points_find(const struct point_record *points, size_t count, uint32_t series, size_t *found)
{
    size_t first;
    SEARCH_FIRST(first, count, points[first].series >= series);
    size_t end = first;
    while (end < count && points[end].series == series)
        end++;
    *found = end - first;
    return first;
}
