// codec.c - which codec a column gets, and the two that need no thought: CONSTANT and PLAIN.
//
//   constant  +----+----------------+        plain  +----+----------------+----+----------------+
//             | id | value, 8 bytes |               | id | value 0        | …  | value n-1      |
//             +----+----------------+               +----+----------------+----+----------------+
#include "store/codec.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { PARTIAL_SUMS = 8, TIMES_PLAIN = 0 };

static const char *const names[CODEC_COUNT] = {"constant", "runs", "integer", "decimal", "bits", "plain"};

const char *codec_name(enum codec_id id)
{
    return id < CODEC_COUNT ? names[id] : "unknown";
}

size_t codec_bound(size_t n)
{
    return 64 + 8 * n;
}

void codec_summarise_plain(const double *values, size_t n, struct codec_summary *out)
{
    double sum[PARTIAL_SUMS] = {0}, squares[PARTIAL_SUMS] = {0};
    double min = INFINITY, max = -INFINITY;
    uint32_t nans = 0;
    for (size_t i = 0; i < n; i++) {
        double v = values[i];
        if (v != v) {
            nans++;
            continue;
        }
        sum[i % PARTIAL_SUMS] += v;
        squares[i % PARTIAL_SUMS] += v * v;
        min = v < min ? v : min;
        max = v > max ? v : max;
    }
    *out = (struct codec_summary){.nans = nans};
    if (nans == n)
        return;
    out->min = min + 0.0; // -0 becomes 0
    out->max = max + 0.0;
    out->sum = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
    out->sum_squares = ((squares[0] + squares[4]) + (squares[2] + squares[6])) +
                       ((squares[1] + squares[5]) + (squares[3] + squares[7]));
}

size_t codec_encode(const double *values, size_t n, enum codec_aim aim, uint8_t *out, struct codec_summary *summary)
{
    (void)aim;
    if (summary != NULL)
        codec_summarise_plain(values, n, summary);
    size_t same = 1;
    while (same < n && memcmp(&values[same], &values[0], sizeof values[0]) == 0)
        same++;
    size_t stored = same == n ? 1 : n;
    out[0] = same == n ? CODEC_CONSTANT : CODEC_PLAIN;
    memcpy(out + 1, values, stored * sizeof values[0]);
    return 1 + stored * sizeof values[0];
}

int codec_decode(const uint8_t *in, size_t size, size_t n, double *out)
{
    enum codec_id id = codec_of(in, size);
    size_t stored = id == CODEC_CONSTANT ? 1 : n;
    if ((id != CODEC_CONSTANT && id != CODEC_PLAIN) || n == 0 || size != 1 + stored * sizeof out[0])
        return -EBADMSG;
    memcpy(out, in + 1, stored * sizeof out[0]);
    for (size_t i = stored; i < n; i++)
        memcpy(&out[i], &out[0], sizeof out[0]);
    return 0;
}

enum codec_id codec_of(const uint8_t *in, size_t size)
{
    return size > 0 && in[0] < CODEC_COUNT ? (enum codec_id)in[0] : CODEC_COUNT;
}

int codec_summarise(const uint8_t *in, size_t size, size_t n, struct codec_summary *out)
{
    static _Thread_local double values[CODEC_VALUES_MAX];
    if (n > CODEC_VALUES_MAX)
        return -EBADMSG;
    int error = codec_decode(in, size, n, values);
    if (error == 0)
        codec_summarise_plain(values, n, out);
    return error;
}

size_t codec_encode_times(const int64_t *t_ns, size_t n, enum codec_aim aim, uint8_t *out)
{
    (void)aim;
    out[0] = TIMES_PLAIN;
    memcpy(out + 1, t_ns, n * sizeof t_ns[0]);
    return 1 + n * sizeof t_ns[0];
}

int codec_decode_times(const uint8_t *in, size_t size, size_t n, int64_t *out)
{
    if (size != 1 + n * sizeof out[0] || in[0] != TIMES_PLAIN)
        return -EBADMSG;
    memcpy(out, in + 1, n * sizeof out[0]);
    return 0;
}

void codec_force_scalar(bool scalar)
{
    (void)scalar;
}
