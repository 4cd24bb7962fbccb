// codec_table_series.c - turns whole numbers into a series and estimates its cost.
//
// Step 2 of codec_table_encode.c. Costs are the entropy of the bytes, in bits, which is close to
// their compressed size. They are computed from the numbers, without compressing.
#include "store/codec_table_parts.h"

#include <math.h>

enum {
    CENTRE_SAMPLES = 255,
    SORTED_BYTES_MAX = 4,
    LOW_BITS_FROM = 6, // low bits are cut off only from numbers of at least this mean length
    LOW_BITS_TRIED = 6,
    LOW_BITS_SAMPLES = 768, // number of numbers on which cutting low bits off is tried
};

// a cost counts as smaller only if it is below this fraction of the other
static const double WORTH_IT = 0.997;

// ---- The estimated cost of bytes after compression: their entropy

double codec_entropy_bits(const uint32_t counts[256], size_t total)
{
    double bits = 0;
    for (size_t i = 0; i < 256; i++)
        if (counts[i] != 0)
            bits += counts[i] * log2((double)total / counts[i]);
    return bits;
}

// Computes the cost of the dense form with two histograms: with one, equal tokens that follow each
// other would wait for each other.
static struct cost cost_of_dense(const int64_t *q, size_t n, unsigned low)
{
    uint32_t counts[2][256] = {{0}};
    size_t extras = 0;
    for (size_t k = 0; k < n; k++) {
        uint64_t rest = zigzag(q[k]) >> low;
        unsigned extra = token_extra(rest);
        counts[k & 1][extra ? TOKEN_LONG - 1 + extra : rest]++;
        extras += extra;
    }
    for (size_t i = 0; i < 256; i++)
        counts[0][i] += counts[1][i];
    return (struct cost){codec_entropy_bits(counts[0], n) + 8.0 * (double)extras +
                             (double)(n * low),
                         n + extras + low_bytes(n, low)};
}

struct cost codec_cost_of(const int64_t *q, size_t from, size_t n, bool dense, unsigned low)
{
    uint32_t counts[256] = {0};
    size_t count = 0, extras = 0, gap_extras = 0, gap = 0;
    if (dense)
        return cost_of_dense(q + from, n - from, low);
    for (size_t k = from; k < n; k++) {
        if (q[k] == 0) {
            gap++;
            continue;
        }
        uint64_t rest = (zigzag(q[k]) - 1) >> low;
        counts[token_byte(rest)]++;
        extras += token_extra(rest);
        gap_extras += token_extra(gap);
        gap = 0;
        count++;
    }
    struct cost cost = {
        codec_entropy_bits(counts, count) + 8.0 * (double)extras + (double)(count * low), 0};
    cost.bytes = count + extras + low_bytes(count, low);
    size_t all = n - from;
    if (count > 0) {
        cost.bytes += count + gap_extras;
        double share = (double)count / (double)all;
        cost.bits += (double)count * log2(1 / share);
        cost.bits += count < all ? (double)(all - count) * log2(1 / (1 - share)) : 0;
    }
    return cost;
}

// Chooses how many low bits to cut off dense numbers of this mean length. If the numbers are many,
// it tries a sample.
static uint8_t low_of_dense(const int64_t *q, size_t n, unsigned mean)
{
    int64_t samples[LOW_BITS_SAMPLES];
    if (n > 2 * LOW_BITS_SAMPLES) {
        for (size_t i = 0; i < LOW_BITS_SAMPLES; i++)
            samples[i] = q[i * n / LOW_BITS_SAMPLES];
        q = samples;
        n = LOW_BITS_SAMPLES;
    }
    struct cost best = cost_of_dense(q, n, 0);
    uint8_t low = 0;
    for (unsigned tried = 0; tried < LOW_BITS_TRIED; tried++) {
        unsigned bits = mean - 2 - tried < LOW_MAX ? mean - 2 - tried : LOW_MAX;
        struct cost cost = cost_of_dense(q, n, bits);
        // Try the greatest number of bits first, because noise that is cut off costs the compressor
        // no time.
        if (cost.bits < best.bits * WORTH_IT) {
            best = cost;
            low = (uint8_t)bits;
        }
    }
    return low;
}

struct cost codec_form_of(const int64_t *q, size_t from, size_t n, bool *dense, uint8_t *low)
{
    size_t count = 0, length = 0;
    for (size_t k = from; k < n; k++) {
        count += q[k] != 0 ? 1 : 0;
        length += bit_length(zigzag(q[k]));
    }
    *dense = count * 2 > n;
    *low = 0;
    unsigned mean = count == 0 ? 0 : (unsigned)(length / count);
    if (*dense && mean >= LOW_BITS_FROM)
        *low = low_of_dense(q + from, n - from, mean);
    struct cost best = codec_cost_of(q, from, n, *dense, *low);
    if (*dense || mean < LOW_BITS_FROM)
        return best;
    for (unsigned tried = 0; tried < LOW_BITS_TRIED; tried++) {
        unsigned bits = mean - 2 - tried < LOW_MAX ? mean - 2 - tried : LOW_MAX;
        struct cost cost = codec_cost_of(q, from, n, *dense, bits);
        if (cost.bits < best.bits * WORTH_IT) {
            best = cost;
            *low = (uint8_t)bits;
        }
    }
    return best;
}

// ---- Whole numbers to a series

static void sort_far_samples(int64_t *samples, size_t count)
{
    static const size_t gaps[] = {57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (size_t i = gaps[g]; i < count; i++) {
            int64_t v = samples[i];
            size_t at = i;
            for (; at >= gaps[g] && samples[at - gaps[g]] > v; at -= gaps[g])
                samples[at] = samples[at - gaps[g]];
            samples[at] = v;
        }
}

// Sorts by the bytes in which the numbers differ, the lowest first; or with Shell's algorithm if
// those are many. The calls of qsort would take most of the time.
static void sort_samples(int64_t *samples, size_t count)
{
    int64_t spare[CENTRE_SAMPLES], low = samples[0], high = samples[0];
    for (size_t i = 1; i < count; i++) {
        low = samples[i] < low ? samples[i] : low;
        high = samples[i] > high ? samples[i] : high;
    }
    uint64_t range = (uint64_t)high - (uint64_t)low;
    if (range >> 8 * SORTED_BYTES_MAX) {
        sort_far_samples(samples, count);
        return;
    }
    for (unsigned shift = 0; range >> shift; shift += 8) {
        uint8_t places[256] = {0}, place = 0; // at most CENTRE_SAMPLES
        for (size_t i = 0; i < count; i++)
            places[((uint64_t)samples[i] - (uint64_t)low) >> shift & 255]++;
        for (size_t i = 0; i < 256; i++) {
            uint8_t here = places[i];
            places[i] = place;
            place = (uint8_t)(place + here);
        }
        for (size_t i = 0; i < count; i++)
            spare[places[((uint64_t)samples[i] - (uint64_t)low) >> shift & 255]++] = samples[i];
        memcpy(samples, spare, count * sizeof *samples);
    }
}

// Returns the most frequent number of a sample, or else the median of the sample.
static int64_t centre_of(const int64_t *y, size_t from, size_t n)
{
    int64_t samples[CENTRE_SAMPLES];
    size_t all = n - from, count = all < CENTRE_SAMPLES ? all : CENTRE_SAMPLES;
    if (count == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        samples[i] = y[from + i * all / count];
    sort_samples(samples, count);
    size_t longest = 0, run = 0;
    int64_t most = samples[count / 2];
    for (size_t i = 0; i < count; i++) {
        run = i > 0 && samples[i] == samples[i - 1] ? run + 1 : 1;
        if (run > longest) {
            longest = run;
            if (run >= count / 4)
                most = samples[i];
        }
    }
    return most;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

struct series codec_series_of(const int64_t *x, size_t n, unsigned order, int64_t *q)
{
    size_t from = order == 0 ? 0 : 1;
    struct series s = {.order = order};
    q[0] = order == 0 ? x[0] : 0;
    for (size_t k = 1; k < n; k++)
        q[k] = order == 0 ? x[k] : difference(x[k], x[k - 1]);
    if (order == 2)
        for (size_t k = n - 1; k > 1; k--)
            q[k] = difference(q[k], q[k - 1]);
    s.centre = centre_of(q, from, n);
    s.factor = 0;
    for (size_t k = from; k < n; k++) {
        q[k] = difference(q[k], s.centre);
        if (s.factor != 1 && q[k] != 0)
            s.factor = common_divisor(s.factor, size_of(q[k]));
    }
    // INT64_MIN is its own negative, and a large factor would not be a positive int64_t.
    if (s.factor == 0 || s.factor > INT64_MAX)
        s.factor = 1;
    if (s.factor > 1)
        for (size_t k = from; k < n; k++)
            q[k] /= (int64_t)s.factor;
    s.cost = codec_form_of(q, from, n, &s.dense, &s.low);
    return s;
}
