// reading.c - measures reading: the opening of a file, snapshots, averages over decoded values and
// over summaries.
//
// The limits of averages over decoded values were found on a Zen 4 at 3.4 GHz with AVX-512. A hot
// column has 1024 values; a third of the columns are constants, counters that wrap, and decimals
// each. Times are in ns per column.
//
// Decoding takes 80, 320 and 170 for the three kinds, 190 on average. Of these, 75 are the 128
// stores of 64 bytes, one every two cycles; counters are bound by the shuffles of their running
// sums. Adding up the decoded values takes 55. Finding a column, and checking and copying its
// bytes, takes 80 in the nearest caches, which makes 3.1 G values/s (hot_recent). Over 72 MB, with
// each column on its own page, this takes 80 more, although the lines are prefetched two columns
// ahead; that makes 2.5 (hot). Prefetching three columns ahead, prefetching into the second cache,
// or huge pages (4 %) change little; without prefetching it is 2.0.
//
// Cold columns: zstd takes 4 % of the time. zstd alone unpacks the recording of a node at 9.6 G
// values/s, because most values take no bytes. A decoded value takes 8 bytes; a loop that only
// writes and adds values of 8 bytes runs at 7.5. The rest of the time is the decoding of the table:
// tokens to numbers, sums of columns, running sums. (Adding dense tokens with AVX-512 instead of
// plain SSE changes nothing: 0.90 and 0.92.)
//
// The alternative, plain doubles under zstd (raw_doubles.c), reaches 0.56 G values/s and 0.20 bytes
// a value for this recording; sonde reaches 0.90 and 0.08. (The synthetic rows of this bench repeat
// after 64. For them zstd reaches 1.3 G values/s and 0.05 bytes, and sonde 0.63 and 0.35.)
#include "reading.h"

#include "base/clock.h"
#include "store/codec_parts.h"
#include "store/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum {
    ROUNDS = 7, // the result is the best round, because other programs may use the machine
    LARGE_STEP_ROWS = 100000,
    SMALL_ROWS = 3000,
    SNAPSHOTS = 20000,
};

static const uint64_t large_bytes = UINT64_C(1) << 30;

// ── Bare loops, which only unpack packed 10-bit numbers and add them up ──────────────────────────

enum { BARE_VALUES = 1024, BARE_WIDTH = 10, BARE_REPEATS = 50000 };

static uint32_t packed[BARE_VALUES * BARE_WIDTH / 32 + LANES];

// Unpacks one number after another, without vectorisation.
static uint64_t add_one_by_one(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < BARE_VALUES; i++) {
        uint64_t word;
        memcpy(&word, (const char *)packed + i * BARE_WIDTH / 8, sizeof word);
        sum += word >> i * BARE_WIDTH % 8 & ((1 << BARE_WIDTH) - 1);
    }
    return sum;
}

// Unpacks 16 numbers at once, which lie side by side in the layout of the codecs (codec_kernels.h).
static inline __attribute__((always_inline)) uint64_t add_side_by_side(void)
{
    enum { ROWS = GROUP / LANES };
    uint32_t sums[LANES] = {0};
    for (size_t group = 0; group < BARE_VALUES / GROUP; group++) {
        uint32_t words[BARE_WIDTH + 1][LANES];
        memcpy(words, packed + group * BARE_WIDTH * LANES, sizeof words);
#pragma GCC unroll 32
        for (unsigned row = 0; row < ROWS; row++) {
            const unsigned word = row * BARE_WIDTH / 32, shift = row * BARE_WIDTH % 32;
            for (unsigned lane = 0; lane < LANES; lane++) {
                uint32_t v = words[word][lane] >> shift;
                if (shift + BARE_WIDTH > 32)
                    v |= words[word + 1][lane] << (32 - shift);
                sums[lane] += v & ((1u << BARE_WIDTH) - 1);
            }
        }
    }
    uint64_t sum = 0;
    for (unsigned lane = 0; lane < LANES; lane++)
        sum += sums[lane];
    return sum;
}

// Uses so many partial sums that additions do not wait for each other.
static inline __attribute__((always_inline)) double add_doubles(const double *v, size_t count)
{
    enum { SUMS = 32 };
    double parts[SUMS] = {0};
    size_t i = 0;
    for (; i + SUMS <= count; i += SUMS)
        for (size_t k = 0; k < SUMS; k++)
            parts[k] += v[i + k];
    for (; i < count; i++)
        parts[0] += v[i];
    for (size_t half = SUMS / 2; half; half /= 2)
        for (size_t k = 0; k < half; k++)
            parts[k] += parts[k + half];
    return parts[0];
}

static uint64_t add_vectors_plain(void)
{
    return add_side_by_side();
}

static double add_up_plain(const double *v, size_t count)
{
    return add_doubles(v, count);
}

#if defined __x86_64__
__attribute__((target("avx2"))) static uint64_t add_vectors_avx2(void)
{
    return add_side_by_side();
}

__attribute__((target("avx512f,avx512bw,avx512vl"))) static uint64_t add_vectors_avx512(void)
{
    return add_side_by_side();
}

__attribute__((target("avx2"))) static double add_up_avx2(const double *v, size_t count)
{
    return add_doubles(v, count);
}

__attribute__((target("avx512f"))) static double add_up_avx512(const double *v, size_t count)
{
    return add_doubles(v, count);
}
#endif

static uint64_t (*add_vectors)(void) = add_vectors_plain;
static double (*add_up)(const double *, size_t) = add_up_plain;

double reading_add_up(const double *values, size_t count)
{
    return add_up(values, count);
}

static void choose_loops(void)
{
#if defined __x86_64__
    if (codec_kernels() != &codec_kernels_plain) {
        add_vectors =
            codec_kernels() == &codec_kernels_avx512 ? add_vectors_avx512 : add_vectors_avx2;
        add_up = codec_kernels() == &codec_kernels_avx512 ? add_up_avx512 : add_up_avx2;
    }
#endif
}

// Returns G values/s.
static double bare_rate(uint64_t (*loop)(void))
{
    double best = 0;
    uint64_t sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start = clock_monotonic_ns();
        for (int i = 0; i < BARE_REPEATS / 10; i++) {
            sum += loop();
            __asm__ volatile("" ::: "memory");
        }
        double rate = (double)BARE_VALUES * (BARE_REPEATS / 10) / bench_seconds_since(start) / 1e9;
        best = rate > best ? rate : best;
    }
    return sum ? best : 0;
}

void reading_bare_loops(void)
{
    choose_loops();
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++)
        packed[i] = (uint32_t)i * 0x9e3779b9u;
    bench_say("bare_unpack_add_one_by_one", bare_rate(add_one_by_one), "G values/s", NULL, 0);
    bench_say("bare_unpack_add_vectors", bare_rate(add_vectors), "G values/s", NULL, 0);
}

// ── Averages ─────────────────────────────────────────────────────────────────────────────────────

// Averages every series of the file, one after another. Returns values per second.
static double average_all(struct store_reader *r, bool decode)
{
    struct store_snapshot *s = store_snapshot_open(r);
    int64_t start = clock_monotonic_ns();
    double sum = 0;
    uint64_t n = 0;
    for (uint32_t id = 0; id < store_series_count(s); id++) {
        struct store_cursor *c = store_cursor_open(s, id, INT64_MIN, INT64_MAX);
        struct store_run run;
        while (store_cursor_next(c, &run) > 0) {
            if (!decode && run.has_summary) {
                sum += run.summary.sum;
                n += run.count;
                continue;
            }
            const int64_t *t;
            const double *v;
            size_t count;
            bench_check(store_cursor_points(c, &t, &v, &count), "read", NULL);
            sum += add_up(v, count);
            n += count;
        }
        store_cursor_close(c);
    }
    double rate = (double)n / bench_seconds_since(start);
    store_snapshot_close(s);
    return sum == sum ? rate : 0;
}

// Runs a bare loop in turn with the measured code, so that both see the same load.
static void beside_bare_loop(struct store_reader *r, bool decode, const char *what,
                             const char *kind)
{
    char metric[64];
    double ours = 0, bare = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double rate = average_all(r, decode) / 1e9, floor = bare_rate(add_vectors);
        ours = rate > ours ? rate : ours;
        bare = floor > bare ? floor : bare;
    }
    snprintf(metric, sizeof metric, "%s_%s", what, kind);
    bench_say(metric, ours, "G values/s", "bare_unpack_add_vectors", bare);
}

// Measures the minimum for cold blocks: zstd alone unpacks their frames. Returns values per second,
// or 0 if there are no cold blocks.
static double unpack_all(struct store_reader *r)
{
    struct store_snapshot *s = store_snapshot_open(r);
    ZSTD_DCtx *context = ZSTD_createDCtx();
    uint8_t *raw = NULL;
    size_t room = 0;
    uint64_t values = 0;
    int64_t spent = 0;
    for (size_t i = 0; i < s->view->block_count; i++) {
        struct block_ref *b = s->view->blocks[i];
        struct cold_directory *d;
        if (!(b->header.flags & BLOCK_COLD) || cold_directory_of(s, b, &d))
            continue;
        const uint8_t *data = b->bytes + sizeof b->header + b->header.directory_bytes;
        for (uint32_t part = 0; part < d->part_count; part++) {
            if (room < d->parts[part].raw_size) {
                free(raw);
                room = d->parts[part].raw_size;
                raw = malloc(room);
                memset(raw, 0, room);
            }
            int64_t start = clock_monotonic_ns();
            size_t n = ZSTD_decompressDCtx(context, raw, room, data + d->parts[part].offset,
                                           d->parts[part].size);
            spent += clock_monotonic_ns() - start;
            bench_check(ZSTD_isError(n) ? -EBADMSG : 0, "zstd", NULL);
        }
        values += b->header.values;
    }
    free(raw);
    ZSTD_freeDCtx(context);
    store_snapshot_close(s);
    return spent ? (double)values / (double)spent * 1e9 : 0;
}

static uint64_t values_of(struct store_reader *r)
{
    struct store_snapshot *s = store_snapshot_open(r);
    uint64_t values = 0;
    for (size_t i = 0; i < s->view->block_count; i++)
        values += s->view->blocks[i]->header.values;
    store_snapshot_close(s);
    return values;
}

static void beside_zstd(struct store_reader *r, const char *path, const char *kind)
{
    char metric[64];
    double ours = 0, theirs = 0, raw = 0;
    struct raw_doubles *doubles = raw_doubles_of(r);
    for (int round = 0; round < ROUNDS; round++) {
        double rate = average_all(r, true) / 1e9, bare = unpack_all(r) / 1e9;
        double other = raw_doubles_average(doubles) / 1e9;
        ours = rate > ours ? rate : ours;
        theirs = bare > theirs ? bare : theirs;
        raw = other > raw ? other : raw;
    }
    snprintf(metric, sizeof metric, "decode_and_average_%s", kind);
    bench_say(metric, ours, "G values/s", "zstd", theirs);
    snprintf(metric, sizeof metric, "average_beside_raw_%s", kind);
    bench_say(metric, ours, "G values/s", "zstd_raw_doubles", raw);
    struct stat st = {0};
    bench_check(stat(path, &st) ? -errno : 0, path, NULL);
    snprintf(metric, sizeof metric, "bytes_beside_raw_%s", kind);
    bench_say(metric, (double)st.st_size / (double)values_of(r), "B", "zstd_raw_doubles",
              raw_doubles_bytes_per_value(doubles));
    raw_doubles_free(doubles);
}

static void snapshots(struct store_reader *r, const char *kind)
{
    char metric[64];
    int64_t start = clock_monotonic_ns();
    for (int i = 0; i < SNAPSHOTS; i++)
        store_snapshot_close(store_snapshot_open(r));
    snprintf(metric, sizeof metric, "snapshot_unchanged_%s", kind);
    bench_say(metric, bench_seconds_since(start) * 1e9 / SNAPSHOTS, "ns", NULL, 0);
}

void reading_all(const char *name, const char *kind)
{
    char metric[64];
    struct store_reader *r;
    struct error e = {0};
    int64_t start = clock_monotonic_ns();
    bench_check(store_reader_open(bench_path(name), &r, &e), "read", &e);
    snprintf(metric, sizeof metric, "open_%s", kind);
    bench_say(metric, bench_seconds_since(start) * 1e3, "ms", NULL, 0);
    snapshots(r, kind);
    average_all(r, true); // warms up: checksums, page faults
    if (unpack_all(r) > 0)
        beside_zstd(r, bench_path(name), kind);
    else
        beside_bare_loop(r, true, "decode_and_average", kind);
    beside_bare_loop(r, false, "average_from_summaries", kind);
    store_reader_close(r);
}

// ── Like a query ─────────────────────────────────────────────────────────────────────────────────

// Takes a snapshot and reads all points of all series, like a dashboard's query to a job that has
// run for five minutes.
static double small_ms(struct store_reader *r)
{
    double best = 1e9;
    for (int round = 0; round < 10 * ROUNDS; round++) {
        int64_t start = clock_monotonic_ns();
        average_all(r, true);
        double ms = bench_seconds_since(start) * 1e3;
        best = ms < best ? ms : best;
    }
    return best;
}

void reading_small(void)
{
    struct error e = {0};
    struct store_reader *r;
    struct store *s = bench_open_store("small");
    bench_append_rows(s, SMALL_ROWS);
    bench_check(store_reader_open(bench_path("small"), &r, &e), "read", &e);
    bench_say("read_100_series_3000_points_live", small_ms(r), "ms", NULL, 0);
    store_reader_close(r);
    bench_check(store_close(s, &e), "close", &e);
    bench_check(store_reader_open(bench_path("small"), &r, &e), "read", &e);
    bench_say("read_100_series_3000_points_closed", small_ms(r), "ms", NULL, 0);
    store_reader_close(r);
    unlink(bench_path("small"));
}

// ── A large file ─────────────────────────────────────────────────────────────────────────────────

// Writes a file as a killed writer leaves it: with many blocks, because they were not merged, and
// without holes.
double reading_write_large(void)
{
    struct store *s = bench_open_store("large");
    struct stat st = {0};
    double seconds = 0;
    while ((uint64_t)st.st_size < large_bytes) {
        seconds += bench_append_rows(s, LARGE_STEP_ROWS);
        if (stat(bench_path("large"), &st))
            bench_check(-errno, "stat", NULL);
    }
    store_seal(s);
    store_abandon(s);
    return seconds;
}

void reading_open_large(void)
{
    struct stat st = {0};
    double seconds = reading_write_large(), best = 1e9, first = 0;
    stat(bench_path("large"), &st);
    for (int round = 0; round < ROUNDS; round++) {
        struct store_reader *r;
        struct error e = {0};
        int64_t start = clock_monotonic_ns();
        bench_check(store_reader_open(bench_path("large"), &r, &e), "read", &e);
        double ms = bench_seconds_since(start) * 1e3;
        first = round ? first : ms;
        best = ms < best ? ms : best;
        store_reader_close(r);
    }
    unlink(bench_path("large"));
    bench_say("large_file_size", (double)st.st_size / (1 << 20), "MiB", NULL, 0);
    bench_say("large_file_on_disk", (double)st.st_blocks * 512 / (1 << 20), "MiB", NULL, 0);
    bench_say("large_file_written_in", seconds, "s", NULL, 0);
    bench_say("open_large_first", first, "ms", NULL, 0);
    bench_say("open_large", best, "ms", NULL, 0);
}
