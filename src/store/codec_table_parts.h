// codec_table_parts.h - the layout of a table, for the files that write and read it.
//
//     +---------+---------+-----------+------------------+-----------+---------------------+
//     | version | columns | directory | bytes of each of | directory | the streams         |
//     | u8      |         | bytes     | the 6 streams    |           | one after another   |
//     +---------+---------+-----------+------------------+-----------+---------------------+
//     Numbers are varints (LEB128) unless a size is given; signed ones are zigzagged first.
//
// The directory has one entry per column: kind (u8: enum codec_id, + KIND_TIMES), n, and then
//     CONSTANT            the 8 bytes of the value
//     PLAIN               nothing; 8n bytes in RAW
//     RUNS                number of changes, bytes in EXTRAS; the gaps between them (as below) in
//                         GAPS; in RAW the first value and the value after each change, 8 bytes
//                         each
//     BITS                form u8, apart u8; byte planes in RAW, those of `apart` in LOW
//     INTEGER, DECIMAL    scale u8, form u8, low u8, first, centre, factor, misses, count if
//                         sparse, bytes in EXTRAS, references, then for each:
//                         column << 1 | subtract
//
// Whole numbers x[0..n-1] are a series q of n numbers (modulo 2^64 all):
//     order 0: x[k] = centre + factor * q[k]
//     order 1: x[0] = first, x[k] = x[k-1] + centre + factor * q[k]          (q[0] is 0)
//     order 2: x[0] = first, d[0] = 0, d[k] = d[k-1] + centre + factor * q[k], x[k] = x[k-1] + d[k]
// and q is the sum of the numbers stored for the column itself (own q) and, plus or minus, the q of
// each column that it refers to.
//
// The file stores numbers z = zigzag(own q). The dense form stores all k from 0 (order 0) or 1
// (other orders) on. The sparse form stores only numbers other than 0, as z - 1, each after its gap
// (the number of skipped zeros). A number's lowest `low` bits go to LOW, lowest first, each column
// starting at a byte; the rest is a token in CHANGES or DENSE. Gaps are tokens in GAPS. A token
// below 120 is one byte; otherwise the byte is 119 + k, and the number less 120 follows in EXTRAS,
// in k bytes, lowest first. In EXTRAS the bytes of a gap precede those of the change after it.
//
// Misses (values that are not whole) are in RAW: their positions as u16, then their 8 bytes each.
#ifndef SONDE_STORE_CODEC_TABLE_PARTS_H
#define SONDE_STORE_CODEC_TABLE_PARTS_H

#include "store/codec_parts.h"
#include "store/codec_table.h"

enum { TABLE_VERSION = 1, KIND_TIMES = 8 };

enum stream { GAPS, CHANGES, DENSE, EXTRAS, RAW, LOW, STREAMS };

enum { ORDER_MASK = 3, FORM_DENSE = 4 };                     // form of whole numbers
enum { BITS_AS_THEY_ARE, BITS_XOR, BITS_DELTA, BITS_FORMS }; // form of patterns
enum { TOKEN_LONG = 120, TOKEN_EXTRA_MAX = 8, MISS_BYTES = 10, LOW_MAX = 56 };

// limit of the columns that are visited while the references of one column are followed, with the
// column itself and repetitions
enum { EXPANSIONS_MAX = 64, REFERENCES_MAX = 3 };

static inline size_t low_bytes(size_t count, unsigned low)
{
    return (count * low + 7) / 8;
}

// Returns number z of a series to add (sign 0), or its negative to subtract (sign: all bits set).
static inline uint64_t signed_number(uint64_t z, uint64_t sign)
{
    return ((uint64_t)unzigzag(z) ^ sign) - sign;
}

// Finds the ends of the directory and of each stream. Returns the number of ends, or 0 if the bytes
// are not a table.
size_t codec_table_ends(const uint8_t *in, size_t size, size_t ends[STREAMS + 1]);

// ---- Writing: codec_table_series.c

static inline unsigned token_extra(uint64_t v)
{
    return v < TOKEN_LONG ? 0 : (bit_length((v - TOKEN_LONG) | 1) + 7) / 8; // at least one byte
}

static inline uint8_t token_byte(uint64_t v)
{
    return (uint8_t)(v < TOKEN_LONG ? v : TOKEN_LONG - 1 + token_extra(v));
}

// Returns the magnitude of a number, also of INT64_MIN.
static inline uint64_t size_of(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

// Returns the cost of a change in bits: about that of its gap, and twice its length.
static inline uint64_t change_cost(int64_t v)
{
    return v == 0 ? 0 : 5 + 2 * bit_length(size_of(v));
}

static inline int64_t difference(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

// Adds the costs of the marked changes to *sum (codec_kernels.h), one after the other.
static inline void add_change_costs(const int64_t *q, const int64_t *other, uint64_t marks,
                                    struct change_costs *sum)
{
    for (; marks != 0; marks &= marks - 1) {
        int k = __builtin_ctzll(marks);
        sum->own += change_cost(q[k]);
        sum->less += change_cost(difference(q[k], other[k]));
        sum->more += change_cost((int64_t)((uint64_t)q[k] + (uint64_t)other[k]));
    }
}

struct cost {
    double bits;
    size_t bytes; // written
};

struct series {
    unsigned order;
    int64_t centre;
    uint64_t factor;
    bool dense;
    uint8_t low;
    struct cost cost;
};

// Returns the entropy, in bits, of n bytes with these counts.
double codec_entropy_bits(const uint32_t counts[256], size_t n);

// Returns the cost of the numbers q[from..n-1] in dense or sparse form, with `low` bits cut off.
struct cost codec_cost_of(const int64_t *q, size_t from, size_t n, bool dense, unsigned low);

// Finds the cheapest form of q[from..n-1]: dense if most numbers are not 0, and the number of low
// bits to cut off. Returns its cost.
struct cost codec_form_of(const int64_t *q, size_t from, size_t n, bool *dense, uint8_t *low);

// Makes the series of the given order from whole numbers x. x and q may not overlap.
struct series codec_series_of(const int64_t *x, size_t n, unsigned order, int64_t *q);

#endif
