// codec_times.c - columns of time stamps.
//
//     regular  +---+---------+-----------+----------+        hot   +---+---------+----------------+
//              | 1 | 0, 0, 0 | first i64 | step i64 |              | 2 | 0, 0, 0 | packed section |
//              +---+---------+-----------+----------+              +---+---------+----------------+
//     cold     +---+---------------------+                   plain +---+----------+
//              | 3 | table of one column |                         | 0 | n × i64  |
//              +---+---------------------+                         +---+----------+
#include "store/codec_parts.h"
#include "store/codec_table.h"

#include <errno.h>

enum { TIMES_PLAIN, TIMES_REGULAR, TIMES_PACKED, TIMES_TABLE };
enum { HEADER = 4, REGULAR_BYTES = HEADER + 16 };

// Returns 0 if each of n times is one step after its predecessor. Inlined, because compilers
// vectorise a loop only if they know its length.
static inline __attribute__((always_inline)) uint64_t off_step(const int64_t *t_ns, size_t n,
                                                               uint64_t step)
{
    uint64_t off = 0;
    for (size_t i = 0; i < n; i++)
        off |= ((uint64_t)t_ns[i] - (uint64_t)t_ns[(ptrdiff_t)i - 1]) ^ step;
    return off;
}

// Examines a group at a time, because compilers do not vectorise a loop that may end early.
static bool regular(const int64_t *t_ns, size_t n)
{
    uint64_t step = n > 1 ? (uint64_t)t_ns[1] - (uint64_t)t_ns[0] : 0;
    size_t at = 1;
    for (; at + GROUP <= n; at += GROUP)
        if (off_step(t_ns + at, GROUP, step))
            return false;
    return at >= n || off_step(t_ns + at, n - at, step) == 0;
}

size_t codec_encode_times(const int64_t *t_ns, size_t n, enum codec_aim aim, uint8_t *out)
{
    size_t size = 0;
    memset(out, 0, HEADER);
    if (regular(t_ns, n)) {
        uint64_t step = n > 1 ? (uint64_t)t_ns[1] - (uint64_t)t_ns[0] : 0;
        out[0] = TIMES_REGULAR;
        memcpy(out + HEADER, &t_ns[0], 8);
        memcpy(out + HEADER + 8, &step, 8);
        return REGULAR_BYTES;
    }
    if (aim == CODEC_HOT) {
        out[0] = TIMES_PACKED;
        size = HEADER + codec_pack(t_ns, n, out + HEADER);
    } else {
        struct codec_column column = {t_ns, (uint32_t)n, true};
        out[0] = TIMES_TABLE;
        size = codec_table_encode(&column, 1, out + 1);
        size = size == 0 ? SIZE_MAX : size + 1; // without memory, the plain form is used
    }
    if (size <= n * sizeof t_ns[0])
        return size;
    out[0] = TIMES_PLAIN;
    memcpy(out + 1, t_ns, n * sizeof t_ns[0]);
    return 1 + n * sizeof t_ns[0];
}

// The sign bit of the result is set if each of n times is above its predecessor. The comparison has
// no branch, and uses operations that every vector unit has.
static inline __attribute__((always_inline)) uint64_t rises(const int64_t *t_ns, size_t n)
{
    uint64_t less = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        uint64_t a = (uint64_t)t_ns[(ptrdiff_t)i - 1], b = (uint64_t)t_ns[i], d = a - b;
        less &= d ^ ((a ^ b) & (d ^ a)); // the sign of a - b, also if it overflows
    }
    return less;
}

bool codec_ascending(const int64_t *t_ns, size_t n)
{
    uint64_t less = UINT64_MAX;
    size_t at = 1;
    for (; at + GROUP <= n; at += GROUP)
        less &= rises(t_ns + at, GROUP);
    if (at < n)
        less &= rises(t_ns + at, n - at);
    return less >> 63;
}

// Decodes n times from `at` on, at most a group.
static void decode_group(const uint8_t *in, struct codec_packed *packed, size_t at, size_t n,
                         int64_t *out)
{
    if (in[0] == TIMES_PLAIN) {
        memcpy(out, in + 1 + at * sizeof out[0], n * sizeof out[0]);
    } else if (in[0] == TIMES_REGULAR) {
        uint64_t first = load_u64(in + HEADER), step = load_u64(in + HEADER + 8);
        for (size_t i = 0; i < n; i++)
            out[i] = (int64_t)(first + (at + i) * step);
    } else {
        uint64_t x[GROUP];
        codec_packed_numbers(packed, at / GROUP, x);
        memcpy(out, x, n * sizeof x[0]);
    }
}

static int decode(const uint8_t *in, size_t size, size_t n, int64_t *out, bool ascending)
{
    struct codec_packed packed = {0};
    if (size == 0 || n == 0 || n > CODEC_VALUES_MAX)
        return -EBADMSG;
    if (in[0] == TIMES_TABLE) {
        int rc = codec_table_only_times(in + 1, size - 1, n, out);
        return rc ? rc : ascending && !codec_ascending(out, n) ? -EBADMSG : 0;
    }
    if (in[0] == TIMES_PACKED) {
        if (size < HEADER || codec_packed_open(in + HEADER, size - HEADER, n, &packed) != 0 ||
            packed.size != size - HEADER)
            return -EBADMSG;
    } else if (size != (in[0] == TIMES_PLAIN     ? 1 + n * sizeof out[0]
                        : in[0] == TIMES_REGULAR ? REGULAR_BYTES
                                                 : 0)) {
        return -EBADMSG;
    }
    for (size_t at = 0; at < n; at += GROUP) {
        size_t count = n - at < GROUP ? n - at : GROUP, before = at > 0;
        decode_group(in, &packed, at, count, out + at);
        if (ascending && !codec_ascending(out + at - before, count + before))
            return -EBADMSG;
    }
    return 0;
}

int codec_decode_times(const uint8_t *in, size_t size, size_t n, int64_t *out)
{
    return decode(in, size, n, out, false);
}

int codec_decode_ascending_times(const uint8_t *in, size_t size, size_t n, int64_t *out)
{
    return decode(in, size, n, out, true);
}
