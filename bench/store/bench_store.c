// bench_store.c - what the store costs: appending, reading, opening, bytes a value. One JSON object a line.
//
// SONDE_DATA names the folder with recordings; without it those measurements are skipped.
#include "base/clock.h"
#include "base/error.h"
#include "store/import.h"
#include "store/inspect.h"
#include "store/read.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SERIES = 100, ROWS = 1000000, POINTS = 20000000, MANY_SERIES = 100000 };

static char folder[64];

static void say(const char *metric, double value, const char *unit, const char *peer, double peer_value)
{
    printf("{\"bench\":\"store\",\"metric\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"", metric, value, unit);
    if (peer)
        printf(",\"peer\":\"%s\",\"peer_value\":%.6g,\"ratio\":%.4g", peer, peer_value, value / peer_value);
    printf("}\n");
    fflush(stdout);
}

static void check(int rc, const char *what, const struct error *e)
{
    if (!rc)
        return;
    fprintf(stderr, "bench_store: %s: %s\n", what, e && e->text[0] ? e->text : strerror(-rc));
    exit(1);
}

static char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s.sonde", folder, name);
    return path;
}

static struct store *open_store(const char *name)
{
    struct store *s;
    struct error e = {0};
    struct store_options o = {.size_limit_bytes = UINT64_C(4) << 30};
    check(store_open(path_of(name), &o, &s, &e), "open", &e);
    return s;
}

static double seconds_since(int64_t start_ns)
{
    return (double)(clock_monotonic_ns() - start_ns) / NS_PER_S;
}

static void define(struct store *s, uint32_t count, uint32_t *ids)
{
    struct store_metric m = {.name = STR("metric")};
    uint32_t metric;
    check(store_define_metric(s, &m, &metric), "metric", NULL);
    for (uint32_t i = 0; i < count; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        struct store_label labels[] = {{STR("host"), STR("node0001")}, {STR("n"), str_of(text)}};
        check(store_define_series(s, metric, labels, 2, &ids[i]), "series", NULL);
    }
}

// Values as a node has them: a third constant, a third counters, a third gauges with one decimal.
static double next_value(double previous, int column, uint32_t random)
{
    if (column % 3 == 0)
        return previous;
    return column % 3 == 1 ? previous + random % 50 : (double)(random % 1000) / 10;
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

// The least that reading packed values can cost: 10-bit fields, unpacked and added.
static double bare_loop(void)
{
    enum { WORDS = 10 * 1024 / 64, ROUNDS = 200000 };
    static uint64_t packed[WORDS + 1];
    for (size_t i = 0; i < WORDS; i++)
        packed[i] = i * 0x9e3779b97f4a7c15u;
    uint64_t sum = 0;
    int64_t start = clock_monotonic_ns();
    for (int r = 0; r < ROUNDS; r++) {
        for (size_t i = 0; i < 1024; i++) {
            uint64_t word;
            memcpy(&word, (const char *)packed + i * 10 / 8, sizeof word);
            sum += word >> i * 10 % 8 & 1023;
        }
        __asm__ volatile("" ::: "memory");
    }
    double rate = 1024.0 * ROUNDS / seconds_since(start);
    return sum ? rate : 0;
}

static double average_all(struct store_reader *r, bool decode, uint64_t *values)
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
                sum += run.sum;
                n += run.count;
                continue;
            }
            const int64_t *t;
            const double *v;
            size_t count;
            store_cursor_points(c, &t, &v, &count);
            double parts[8] = {0};
            size_t i = 0;
            for (; i + 8 <= count; i += 8)
                for (size_t k = 0; k < 8; k++)
                    parts[k] += v[i + k];
            for (; i < count; i++)
                parts[0] += v[i];
            for (size_t k = 0; k < 8; k++)
                sum += parts[k];
            n += count;
        }
        store_cursor_close(c);
    }
    double rate = (double)n / seconds_since(start);
    store_snapshot_close(s);
    *values = n;
    return sum == sum ? rate : 0;
}

static void read_back(const char *kind, double bare)
{
    struct store_reader *r;
    struct error e = {0};
    int64_t start = clock_monotonic_ns();
    check(store_reader_open(path_of("rows"), &r, &e), "read", &e);
    char metric[64];
    snprintf(metric, sizeof metric, "open_%s", kind);
    say(metric, seconds_since(start) * 1e3, "ms", NULL, 0);
    uint64_t n;
    average_all(r, true, &n); // checksums, page faults
    snprintf(metric, sizeof metric, "decode_and_average_%s", kind);
    say(metric, average_all(r, true, &n) / 1e9, "G values/s", "bare_unpack_add", bare / 1e9);
    average_all(r, false, &n);
    snprintf(metric, sizeof metric, "average_from_summaries_%s", kind);
    say(metric, average_all(r, false, &n) / 1e9, "G values/s", "bare_unpack_add", bare / 1e9);
    store_reader_close(r);
}

// ── Appending ────────────────────────────────────────────────────────────────────────────────────────────────────

// What appending cannot do without: a copy of the rows.
static double copy_rate(const double *from, size_t bytes_each, size_t count, size_t values_each)
{
    enum { RING = 1024 };
    char *to = malloc(RING * bytes_each);
    int64_t start = clock_monotonic_ns();
    for (size_t i = 0; to && i < count; i++) {
        memcpy(to + i % RING * bytes_each, (const char *)from + i % 64 * bytes_each, bytes_each);
        __asm__ volatile("" ::: "memory");
    }
    double rate = (double)values_each * (double)count / seconds_since(start);
    free(to);
    return rate;
}

static void rows(bool merge)
{
    static double values[64][SERIES];
    uint32_t ids[SERIES], set, random = 1;
    for (int r = 0; r < 64; r++)
        for (int c = 0; c < SERIES; c++) {
            random = random * 1664525 + 1013904223;
            values[r][c] = next_value(r ? values[r - 1][c] : c, c, random >> 8);
        }
    struct store *s = open_store("rows");
    define(s, SERIES, ids);
    check(store_define_set(s, ids, SERIES, &set), "set", NULL);
    int64_t start = clock_monotonic_ns();
    for (int64_t i = 0; i < ROWS; i++)
        check(store_append_row(s, set, INT64_C(1700000000000000000) + i * 100000000, values[i % 64]), "append", NULL);
    double rate = SERIES * (double)ROWS / seconds_since(start) / 1e6;
    say("append_rows_of_100", rate, "M values/s", "prometheus_in_process", 12.6);
    say("append_rows_of_100", rate, "M values/s", "memcpy", copy_rate(values[0], sizeof values[0], ROWS, SERIES) / 1e6);
    double bare = bare_loop();
    store_seal(s);
    read_back("hot", bare);
    if (!merge) {
        store_abandon(s);
        unlink(path_of("rows"));
        return;
    }
    start = clock_monotonic_ns();
    struct error e = {0};
    check(store_close(s, &e), "close", &e);
    say("close_with_merging", SERIES * (double)ROWS / seconds_since(start) / 1e6, "M values/s", NULL, 0);
    struct stat st;
    stat(path_of("rows"), &st);
    say("bytes_per_value_synthetic", (double)st.st_size / ((double)SERIES * ROWS), "B", NULL, 0);
    read_back("cold", bare);
    unlink(path_of("rows"));
}

static void points(void)
{
    static struct store_point batch[10000];
    uint32_t *ids = malloc(MANY_SERIES * sizeof *ids);
    struct store *s = open_store("points");
    int64_t start = clock_monotonic_ns();
    define(s, MANY_SERIES, ids);
    say("define_series", seconds_since(start) * 1e9 / MANY_SERIES, "ns", NULL, 0);
    struct store_stats stats;
    store_get_stats(s, &stats);
    say("memory_per_series", (double)stats.memory_bytes / MANY_SERIES, "B", NULL, 0);
    for (uint32_t series = 100; series <= MANY_SERIES; series *= 1000) {
        start = clock_monotonic_ns();
        for (int64_t i = 0; i < POINTS; i += 10000) {
            for (int k = 0; k < 10000; k++)
                batch[k] = (struct store_point){INT64_C(1700000000000000000) + (i + k) * 1000, (double)(k % 1000) / 10,
                                                ids[(uint32_t)(i + k) % series]};
            check(store_append_points(s, batch, 10000, NULL), "append", NULL);
        }
        double rate = POINTS / seconds_since(start) / 1e6;
        const char *metric = series == 100 ? "append_points_100_series" : "append_points_100000_series";
        say(metric, rate, "M points/s", "prometheus_in_process", 12.6);
        static const struct store_point one[64];
        say(metric, rate, "M points/s", "memcpy",
            copy_rate((const double *)(const void *)one, sizeof *one, POINTS, 1) / 1e6);
    }
    store_get_stats(s, &stats);
    say("memory_100000_live_series", (double)stats.memory_bytes / (1 << 20), "MiB", NULL, 0);
    store_abandon(s);
    unlink(path_of("points"));
    free(ids);
}

// ── Recordings ───────────────────────────────────────────────────────────────────────────────────────────────────

static void recording(const char *data, const char *name)
{
    char csv[512], metric[128];
    snprintf(csv, sizeof csv, "%s/%s.csv.gz", data, name);
    if (access(csv, R_OK)) {
        fprintf(stderr, "bench_store: %s is not there, skipped\n", csv);
        return;
    }
    struct store_import_stats stats;
    struct error e = {0};
    unlink(path_of("import"));
    int64_t start = clock_monotonic_ns();
    check(store_import_wide_csv(csv, path_of("import"), STR("node0001"), &stats, &e), "import", &e);
    double seconds = seconds_since(start);
    snprintf(metric, sizeof metric, "bytes_per_value_%s", name);
    say(metric, (double)stats.file_bytes / (double)stats.values, "B", "victoriametrics", 0.12);
    snprintf(metric, sizeof metric, "import_%s", name);
    say(metric, (double)stats.values / seconds / 1e6, "M values/s", NULL, 0);
    struct store_inspection in;
    check(store_inspect(path_of("import"), &in, &e), "inspect", &e);
    fprintf(stderr, "  %s: %llu bytes: catalog %llu, directories %llu, times %llu\n", name,
            (unsigned long long)in.file_bytes, (unsigned long long)in.catalog_bytes,
            (unsigned long long)in.directory_bytes, (unsigned long long)in.time_bytes);
    for (int c = 0; c < CODEC_COUNT; c++)
        if (in.codecs[c].values) {
            snprintf(metric, sizeof metric, "bytes_per_value_%s_%s", name, codec_name((enum codec_id)c));
            say(metric, (double)in.codecs[c].bytes / (double)in.codecs[c].values, "B", NULL, 0);
        }
    unlink(path_of("import"));
}

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR"), *data = getenv("SONDE_DATA"), *only = argc > 1 ? argv[1] : "";
    snprintf(folder, sizeof folder, "%.40s/sonde-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    if (!*only || !strcmp(only, "recordings"))
        recording(data ? data : "../shared/data", "node-10hz");
    if (!*only || !strcmp(only, "rows"))
        rows(true);
    if (!strcmp(only, "hot"))
        rows(false);
    if (!*only || !strcmp(only, "points"))
        points();
    return rmdir(folder) ? 1 : 0;
}
