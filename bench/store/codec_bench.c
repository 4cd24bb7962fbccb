// codec_bench.c - measures the speed and the size of the codecs. Prints one JSON object a line.
//
//     bench_codec [DIRECTORY WITH RECORDINGS]
//
// A speed is that of the best of several rounds, for columns of 1024 values that stay in the cache,
// compared with a bare loop that unpacks 10-bit numbers and adds them up. Sizes are those of
// recordings (node-10hz.csv.gz, gpu-bdb/) if the directory has them, and of synthetic columns. Cold
// columns are compressed with zstd.
#include "base/clock.h"
#include "store/codec_parts.h"
#include "store/codec_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

enum {
    N = 1024,
    ROUNDS = 30,
    ROUND_NS = 1500000,
    LINE_MAX_BYTES = 1 << 16,
    COLUMNS_MAX = 1024,
    ROWS_MAX = 65536
};

static void print(const char *metric, double value, const char *unit, const char *peer,
                  double peer_value)
{
    printf("{\"bench\":\"codec\",\"metric\":\"%s\",\"value\":%.4g,\"unit\":\"%s\"", metric, value,
           unit);
    if (peer != NULL)
        printf(",\"peer\":\"%s\",\"peer_value\":%.4g,\"ratio\":%.3g", peer, peer_value,
               value / peer_value);
    printf("}\n");
}

// ---- Speed

struct job {
    const double *values;
    double *out;
    uint8_t *bytes;
    size_t size;
    struct codec_summary summary;
    uint64_t sum;
};

static void encode(struct job *j)
{
    j->size = codec_encode(j->values, N, CODEC_HOT, j->bytes, NULL);
}

static void decode(struct job *j)
{
    codec_decode(j->bytes, j->size, N, j->out);
}

static void add_up(struct job *j)
{
    codec_summarise_plain(j->values, N, &j->summary);
}

// The bare loop, which only unpacks groups of 10-bit numbers and adds them up.
static inline __attribute__((always_inline)) void add_groups(struct job *j)
{
    enum { WIDTH = 10, ROWS = GROUP / LANES };
    uint32_t sums[LANES] = {0};
    for (size_t group = 0; group < N / GROUP; group++) {
        uint32_t words[WIDTH + 1][LANES];
        memcpy(words, j->bytes + group * WIDTH * WORD_BYTES, sizeof words);
#pragma GCC unroll 32
        for (unsigned row = 0; row < ROWS; row++) {
            const unsigned word = row * WIDTH / 32, shift = row * WIDTH % 32;
            for (unsigned lane = 0; lane < LANES; lane++) {
                uint32_t v = words[word][lane] >> shift;
                if (shift + WIDTH > 32)
                    v |= words[word + 1][lane] << (32 - shift);
                sums[lane] += v & ((1u << WIDTH) - 1);
            }
        }
    }
    for (unsigned lane = 0; lane < LANES; lane++)
        j->sum += sums[lane];
}

static void add_groups_plain(struct job *j)
{
    add_groups(j);
}

#if defined __x86_64__
__attribute__((target("avx2"))) static void add_groups_avx2(struct job *j)
{
    add_groups(j);
}

__attribute__((target("avx512f,avx512bw,avx512vl"))) static void add_groups_avx512(struct job *j)
{
    add_groups(j);
}
#endif

static void unpack_and_add(struct job *j)
{
#if defined __x86_64__
    if (codec_kernels() == &codec_kernels_avx512)
        add_groups_avx512(j);
    else if (codec_kernels() == &codec_kernels_avx2)
        add_groups_avx2(j);
    else
#endif
        add_groups_plain(j);
}

// Returns the billions of values per second in the best round.
static double rate(void (*work)(struct job *), struct job *job)
{
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        size_t runs = 0;
        int64_t start = clock_monotonic_ns(), now = start;
        while (now - start < ROUND_NS) {
            for (int i = 0; i < 20; i++)
                work(job);
            runs += 20;
            now = clock_monotonic_ns();
        }
        double r = (double)(runs * N) / (double)(now - start);
        best = r > best ? r : best;
    }
    return best;
}

static uint64_t state = 88172645463325252;

static uint64_t random_number(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

enum kind {
    CONSTANT,
    COUNTER,
    LAZY_COUNTER,
    TEN_BITS,
    KILOBYTES,
    ONE_DECIMAL,
    TWO_DECIMALS,
    WALK,
    SINE,
    RANDOM,
    KINDS
};

static const char *const kind_names[KINDS] = {
    "constant",  "counter",     "lazy counter", "10-bit integers",
    "kilobytes", "one decimal", "two decimals", "walk, one decimal",
    "sine",      "random bits"};

static void fill(enum kind kind, size_t n, double *v)
{
    double now = kind == COUNTER ? 1e9 : kind == KILOBYTES ? 22652252 : kind == WALK ? 375 : 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t r = random_number();
        switch (kind) {
        case CONSTANT:
            now = 24684092;
            break;
        case COUNTER:
            now += (double)(r % 700);
            break;
        case LAZY_COUNTER:
            now += r % 10 ? 0 : r % 17 ? 1 : (double)(r >> 40);
            break;
        case TEN_BITS:
            now = (double)(r % 1024);
            break;
        case KILOBYTES:
            now += 4.0 * (double)((int64_t)(r % 2001) - 1000);
            break;
        case ONE_DECIMAL:
            now = (double)(r % 1001) / 10;
            break;
        case TWO_DECIMALS:
            now = (double)(r % 300) / 100;
            break;
        case WALK:
            now += (double)(r % 21) - 10;
            break;
        case SINE:
            now = 40 * sin((double)i * 0.013);
            break;
        default:
            memcpy(&now, &r, sizeof now);
            break;
        }
        v[i] = kind == WALK ? now / 10 : now;
    }
}

static void speeds(const char *set)
{
    static _Alignas(64) double values[N], out[N];
    static uint8_t bytes[1 << 16];
    struct job job = {.values = values, .out = out, .bytes = bytes};
    char metric[128];
    uint32_t q[GROUP];
    for (size_t i = 0; i < GROUP; i++)
        q[i] = (uint32_t)random_number() % 1024;
    codec_kernels()->pack(q, GROUP, 10, bytes);
    codec_kernels()->pack(q, GROUP, 10, bytes + group_bytes(GROUP, 10));
    double bare = rate(unpack_and_add, &job);
    snprintf(metric, sizeof metric, "unpack 10 bits and add, %s", set);
    print(metric, bare, "G values/s", NULL, 0);
    fill(TWO_DECIMALS, N, values);
    snprintf(metric, sizeof metric, "summarise plain values, %s", set);
    print(metric, rate(add_up, &job), "G values/s", NULL, 0);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        static const struct {
            const char *name;
            void (*work)(struct job *);
        } works[] = {{"encode", encode}, {"decode", decode}};
        fill(kind, N, values);
        for (size_t w = 0; w < sizeof works / sizeof works[0]; w++) {
            snprintf(metric, sizeof metric, "%s %s, %s", works[w].name, kind_names[kind], set);
            print(metric, rate(works[w].work, &job), "G values/s", "unpack-and-add", bare);
        }
    }
}

// ---- Size

struct table {
    double *columns[COLUMNS_MAX];
    int64_t *times;
    size_t n_columns, rows;
};

static size_t compressed(const uint8_t *bytes, size_t size, int level)
{
    size_t bound = ZSTD_compressBound(size);
    void *out = malloc(bound);
    size_t got = out != NULL ? ZSTD_compress(out, bound, bytes, size, level) : 0;
    free(out);
    return got;
}

static void hot_size(const char *name, const struct table *t)
{
    static uint8_t bytes[64 * N];
    size_t sizes[CODEC_COUNT] = {0}, counts[CODEC_COUNT] = {0}, all = 0, values = 0, times = 0;
    char metric[128];
    for (size_t first = 0; first < t->rows; first += N) {
        size_t n = t->rows - first < N ? t->rows - first : N;
        if (t->times != NULL)
            times += codec_encode_times(t->times + first, n, CODEC_HOT, bytes);
        for (size_t c = 0; c < t->n_columns; c++) {
            size_t size = codec_encode(t->columns[c] + first, n, CODEC_HOT, bytes, NULL);
            sizes[codec_of(bytes, size)] += size;
            counts[codec_of(bytes, size)] += n;
            all += size;
            values += n;
        }
    }
    for (enum codec_id id = 0; id < CODEC_COUNT; id++)
        if (counts[id] != 0) {
            snprintf(metric, sizeof metric, "%s, hot, %s (%.1f %% of values)", name, codec_name(id),
                     100.0 * (double)counts[id] / (double)values);
            print(metric, (double)sizes[id] / (double)counts[id], "B/value", NULL, 0);
        }
    snprintf(metric, sizeof metric, "%s, hot, all with time stamps", name);
    print(metric, (double)(all + times) / (double)values, "B/value", NULL, 0);
}

static void cold_size(const char *name, const struct table *t)
{
    struct codec_column columns[COLUMNS_MAX + 1];
    size_t n = 0, values = t->rows * t->n_columns;
    char metric[128];
    if (t->times != NULL)
        columns[n++] = (struct codec_column){t->times, (uint32_t)t->rows, true};
    for (size_t c = 0; c < t->n_columns; c++)
        columns[n++] = (struct codec_column){t->columns[c], (uint32_t)t->rows, false};
    uint8_t *bytes = malloc(codec_table_bound(columns, n)),
            *apart = malloc(codec_bound(t->rows) * n);
    if (bytes == NULL || apart == NULL)
        exit(1);
    int64_t start = clock_monotonic_ns();
    size_t size = codec_table_encode(columns, n, bytes);
    uint8_t *frame = malloc(codec_table_compress_bound(size));
    if (frame == NULL)
        exit(1);
    double encode_ns = (double)(clock_monotonic_ns() - start);
    for (int level = 3; level <= 19; level += 8) {
        start = clock_monotonic_ns();
        size_t packed = codec_table_compress(bytes, size, level, frame);
        double zstd_ns = (double)(clock_monotonic_ns() - start);
        snprintf(metric, sizeof metric, "%s, cold table with time stamps, zstd -%d", name, level);
        print(metric, (double)packed / (double)values, "B/value", NULL, 0);
        snprintf(metric, sizeof metric, "%s, cold table with time stamps, zstd -%d, bytes", name,
                 level);
        print(metric, (double)packed, "B", NULL, 0);
        snprintf(metric, sizeof metric, "%s, cold table, encode and zstd -%d", name, level);
        print(metric, (double)values / (encode_ns + zstd_ns) * 1e3, "M values/s", NULL, 0);
    }
    snprintf(metric, sizeof metric, "%s, cold table before zstd", name);
    print(metric, (double)size, "B", NULL, 0);
    struct codec_table *table;
    double *out = malloc(t->rows * sizeof out[0]);
    if (codec_table_open(bytes, size, &table) == 0 && out != NULL) {
        start = clock_monotonic_ns();
        for (size_t c = n - t->n_columns; c < n; c++)
            codec_table_values(table, c, out);
        snprintf(metric, sizeof metric, "%s, cold table, decode all columns after zstd", name);
        print(metric, (double)values / (double)(clock_monotonic_ns() - start) * 1e3, "M values/s",
              NULL, 0);
        codec_table_close(table);
    }
    size_t total = 0;
    for (size_t c = 0; c < n; c++)
        total += columns[c].times
                     ? codec_encode_times(columns[c].data, t->rows, CODEC_COLD, apart + total)
                     : codec_encode(columns[c].data, t->rows, CODEC_COLD, apart + total, NULL);
    snprintf(metric, sizeof metric, "%s, cold, columns one by one, zstd -19", name);
    print(metric, (double)compressed(apart, total, 19) / (double)values, "B/value", NULL, 0);
    free(out);
    free(bytes);
    free(apart);
    free(frame);
}

static void both_sizes(const char *name, const struct table *t)
{
    hot_size(name, t);
    cold_size(name, t);
}

// Reads numbers separated by commas; ignores quotes and blanks. With `times`, the first column has
// time stamps.
static bool read_table(const char *path, bool times, struct table *t)
{
    static char line[LINE_MAX_BYTES];
    char command[512];
    *t = (struct table){.n_columns = 0};
    snprintf(command, sizeof command, "gzip -dc '%s' 2>/dev/null", path);
    FILE *in = popen(command, "r");
    if (in == NULL)
        return false;
    if (times)
        t->times = malloc(ROWS_MAX * sizeof t->times[0]);
    for (bool head = true; fgets(line, sizeof line, in) != NULL && t->rows < ROWS_MAX;
         head = false) {
        if (head)
            continue;
        size_t c = 0;
        char *at = line, *end;
        if (times)
            t->times[t->rows] = strtoll(at, &at, 10);
        while (*at != '\0') {
            double v = strtod(at, &end);
            if (end == at) {
                at++;
                continue;
            }
            at = end;
            if (c >= COLUMNS_MAX)
                break;
            if (t->columns[c] == NULL)
                t->columns[c] = calloc(ROWS_MAX, sizeof(double));
            t->columns[c++][t->rows] = v;
        }
        t->n_columns = c > t->n_columns ? c : t->n_columns;
        t->rows += c > 0 ? 1 : 0;
    }
    pclose(in);
    return t->rows > 0;
}

static void release(struct table *t)
{
    for (size_t c = 0; c < t->n_columns; c++)
        free(t->columns[c]);
    free(t->times);
}

static void recordings(const char *directory)
{
    static const struct {
        const char *file, *name;
        bool times;
    } all[] = {{"node-10hz.csv.gz", "node-10hz", true},
               {"gpu-bdb/worker_0.csv.gz", "gpu-bdb worker_0", false},
               {"gpu-bdb/worker_1.csv.gz", "gpu-bdb worker_1", false}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char path[400];
        struct table t;
        snprintf(path, sizeof path, "%s/%s", directory, all[i].file);
        if (read_table(path, all[i].times, &t))
            both_sizes(all[i].name, &t);
        else
            fprintf(stderr, "skipped: no %s\n", path);
        release(&t);
    }
}

int main(int argc, char **argv)
{
    codec_force_scalar(true);
    speeds("plain C");
#if defined __x86_64__
    codec_force_scalar(false);
    if (codec_kernels() == &codec_kernels_avx512) {
        codec_use_kernels(&codec_kernels_avx2);
        speeds("AVX2");
    }
#endif
    codec_force_scalar(false);
    if (codec_kernels() != &codec_kernels_plain)
        speeds(codec_kernels()->name);
    for (enum kind kind = KILOBYTES; kind < KINDS; kind++) {
        struct table t = {.n_columns = 1, .rows = ROWS_MAX};
        t.columns[0] = malloc(ROWS_MAX * sizeof(double));
        fill(kind, ROWS_MAX, t.columns[0]);
        both_sizes(kind_names[kind], &t);
        release(&t);
    }
    recordings(argc > 1 ? argv[1] : "../shared/data");
    return 0;
}
