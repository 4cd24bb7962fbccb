// codec.c - chooses the codec of a column and calls it; each codec has a file of its own.
//
// An encoded column begins with its enum codec_id, plus COLD_FORM if the rest is a table of one
// column (codec_table.h). Two codecs are simple enough to live here:
//
//   constant  +----+----------------+        plain  +----+----------------+----+----------------+
//             | id | value, 8 bytes |               | id | value 0        | …  | value n-1      |
//             +----+----------------+               +----+----------------+----+----------------+
#include "store/codec_parts.h"
#include "store/codec_table.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    // a hot column is encoded as runs if they are at least this long on average: 0.16 bytes a value
    RUN_LENGTH = 64,
    BOUND_BYTES = 128, // room for headers
    CONSTANT_START = 64,
    STACK_VALUES = 2048, // for a longer column, scratch memory is allocated
};

static const char *const names[CODEC_COUNT] = {"constant", "runs", "integer",
                                               "decimal",  "bits", "plain"};

const char *codec_name(enum codec_id id)
{
    return id < CODEC_COUNT ? names[id] : "unknown";
}

// ---- The loops of this processor

static const struct codec_kernels *_Atomic kernels_in_use;

static const struct codec_kernels *best_kernels(void)
{
#if defined SONDE_X86_KERNELS
    __builtin_cpu_init();
#if defined SONDE_AVX512_KERNELS
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd"))
        return &codec_kernels_avx512;
#endif
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &codec_kernels_avx2;
#endif
    return &codec_kernels_plain;
}

const struct codec_kernels *codec_kernels(void)
{
    const struct codec_kernels *k = atomic_load_explicit(&kernels_in_use, memory_order_relaxed);
    if (__builtin_expect(k == NULL, 0)) {
        k = best_kernels();
        atomic_store_explicit(&kernels_in_use, k, memory_order_relaxed);
    }
    return k;
}

void codec_use_kernels(const struct codec_kernels *kernels)
{
    atomic_store_explicit(&kernels_in_use, kernels, memory_order_relaxed);
}

void codec_force_scalar(bool scalar)
{
    codec_use_kernels(scalar ? &codec_kernels_plain : best_kernels());
}

// ---- Summaries

void codec_sums_start(struct codec_sums *sums)
{
    *sums = (struct codec_sums){.nans = 0};
    for (size_t i = 0; i < PARTIAL_SUMS; i++) {
        sums->min[i] = INFINITY;
        sums->max[i] = -INFINITY;
    }
}

static double total_of(const double partial[PARTIAL_SUMS])
{
    double sum = ((partial[0] + partial[4]) + (partial[2] + partial[6])) +
                 ((partial[1] + partial[5]) + (partial[3] + partial[7]));
    return sum == sum ? sum : NAN; // a sum of infinities: the same NaN on every machine
}

void codec_sums_finish(const struct codec_sums *sums, size_t n, struct codec_summary *out)
{
    *out = (struct codec_summary){.nans = (uint32_t)sums->nans};
    if (sums->nans == n)
        return;
    double min = sums->min[0], max = sums->max[0];
    for (size_t i = 1; i < PARTIAL_SUMS; i++) {
        min = sums->min[i] < min ? sums->min[i] : min;
        max = sums->max[i] > max ? sums->max[i] : max;
    }
    // -0 and 0 are equal, so their order would decide which of them is the minimum. The sum makes
    // it 0.
    out->min = min + 0.0;
    out->max = max + 0.0;
    out->sum = total_of(sums->sum);
    out->sum_squares = total_of(sums->squares);
}

void codec_summarise_plain(const double *values, size_t n, struct codec_summary *out)
{
    struct codec_sums sums;
    codec_sums_start(&sums);
    codec_kernels()->accumulate(values, n, &sums);
    codec_sums_finish(&sums, n, out);
}

// ---- Constant and plain

static size_t encode_raw(enum codec_id id, const double *values, size_t n, uint8_t *out)
{
    out[0] = (uint8_t)id;
    memcpy(out + 1, values, n * sizeof values[0]);
    return 1 + n * sizeof values[0];
}

static int decode_constant(const uint8_t *in, size_t size, size_t n, double *out)
{
    double value;
    if (size != 1 + sizeof value)
        return -EBADMSG;
    memcpy(&value, in + 1, sizeof value);
    // Writes the first CONSTANT_START values, then doubles the written part with copies, because
    // memcpy uses the machine's widest stores.
    size_t done = n < CONSTANT_START ? n : CONSTANT_START;
    for (size_t i = 0; i < done; i++)
        out[i] = value;
    while (done < n) {
        size_t more = done < n - done ? done : n - done;
        memcpy(out + done, out, more * sizeof out[0]);
        done += more;
    }
    return 0;
}

static int decode_plain(const uint8_t *in, size_t size, size_t n, double *out)
{
    if (size != 1 + n * sizeof out[0])
        return -EBADMSG;
    memcpy(out, in + 1, n * sizeof out[0]);
    return 0;
}

// ---- Choice

size_t codec_bound(size_t n)
{
    struct codec_column column = {NULL, (uint32_t)n, false};
    size_t hot = codec_packed_bound(n) + n / 8 * 10 + BOUND_BYTES,
           cold = codec_table_bound(&column, 1) + 1;
    return hot > cold ? hot : cold;
}

// The scratch is not thread-local, because then every thread of the process would have a scratch of
// its own in memory.
static size_t encode_numbers(const double *values, size_t n, int64_t *scratch, uint8_t *out)
{
    uint8_t code;
    size_t misses = codec_wholes(values, n, &code, scratch);
    return misses != SIZE_MAX ? codec_integer_encode(values, scratch, n, code, misses, out)
                              : codec_bits_encode(values, n, scratch, out);
}

static size_t encode_hot(const double *values, size_t n, size_t changes, uint8_t *out)
{
    if (changes <= n / RUN_LENGTH)
        return codec_runs_encode(values, n, out);
    int64_t few[STACK_VALUES];
    int64_t *scratch = n <= STACK_VALUES ? few : malloc(n * sizeof *scratch);
    size_t size = scratch ? encode_numbers(values, n, scratch, out) : SIZE_MAX;
    if (scratch != few)
        free(scratch);
    return size <= n * sizeof values[0] ? size : encode_raw(CODEC_PLAIN, values, n, out);
}

size_t codec_encode(const double *values, size_t n, enum codec_aim aim, uint8_t *out,
                    struct codec_summary *summary)
{
    if (summary != NULL)
        codec_summarise_plain(values, n, summary);
    size_t changes = codec_kernels()->changes(values, n);
    if (changes == 0)
        return encode_raw(CODEC_CONSTANT, values, 1, out);
    if (aim == CODEC_HOT)
        return encode_hot(values, n, changes, out);
    struct codec_column column = {values, (uint32_t)n, false};
    size_t size = codec_table_encode(&column, 1, out + 1);
    if (size == 0) // out of memory
        return encode_raw(CODEC_PLAIN, values, n, out);
    out[0] = (uint8_t)(COLD_FORM | codec_table_first(out + 1, size));
    return 1 + size;
}

enum codec_id codec_of(const uint8_t *in, size_t size)
{
    unsigned id = size > 0 ? in[0] & ~(unsigned)COLD_FORM : CODEC_COUNT;
    return id < CODEC_COUNT ? (enum codec_id)id : CODEC_COUNT;
}

typedef int decoder(const uint8_t *in, size_t size, size_t n, double *out);

static decoder *const decoders[CODEC_COUNT] = {
    [CODEC_CONSTANT] = decode_constant,     [CODEC_RUNS] = codec_runs_decode,
    [CODEC_INTEGER] = codec_integer_decode, [CODEC_DECIMAL] = codec_integer_decode,
    [CODEC_BITS] = codec_bits_decode,       [CODEC_PLAIN] = decode_plain};

int codec_decode(const uint8_t *in, size_t size, size_t n, double *out)
{
    enum codec_id id = codec_of(in, size);
    if (id == CODEC_COUNT || n == 0 || n > CODEC_VALUES_MAX)
        return -EBADMSG;
    if (in[0] & COLD_FORM)
        return codec_table_only(in + 1, size - 1, n, out);
    return decoders[id](in, size, n, out);
}
