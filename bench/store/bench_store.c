// bench_store.c - measures the store: appending, reading, opening, bytes per value. Prints one JSON
// object a line.
//
//     bench_store [recordings | rows | hot | recent | small | open | points | index | ticks]
//
// Without an argument, it runs all but `hot` (rows without merging) and `open` (writes a file of
// 1 GiB). SONDE_DATA names the folder with recordings; without it, the measurements of recordings
// are skipped. The scripts in this folder measure other databases for comparison.
#include "base/clock.h"
#include "base/error.h"
#include "store/import.h"
#include "store/inspect.h"
#include "store/store.h"

#include "reading.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 1000000, RECENT_ROWS = 20000, POINTS = 20000000, MANY_SERIES = 100000 };

static char folder[64];

void bench_say(const char *metric, double value, const char *unit, const char *peer,
               double peer_value)
{
    printf("{\"bench\":\"store\",\"metric\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"", metric, value,
           unit);
    if (peer)
        printf(",\"peer\":\"%s\",\"peer_value\":%.6g,\"ratio\":%.4g", peer, peer_value,
               value / peer_value);
    printf("}\n");
    fflush(stdout);
}

void bench_check(int rc, const char *what, const struct error *e)
{
    if (!rc)
        return;
    fprintf(stderr, "bench_store: %s: %s\n", what, e && e->text[0] ? e->text : strerror(-rc));
    exit(1);
}

char *bench_path(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s.sonde", folder, name);
    return path;
}

struct store *bench_open_store(const char *name)
{
    struct store *s;
    struct error e = {0};
    struct store_options o = {.size_limit_bytes = UINT64_C(4) << 30};
    bench_check(store_open(bench_path(name), &o, &s, &e), "open", &e);
    return s;
}

double bench_seconds_since(int64_t start_ns)
{
    return (double)(clock_monotonic_ns() - start_ns) / NS_PER_S;
}

void bench_define(struct store *s, uint32_t count, uint32_t *ids)
{
    struct store_metric m = {.name = STR("metric")};
    uint32_t metric;
    bench_check(store_define_metric(s, &m, &metric), "metric", NULL);
    for (uint32_t i = 0; i < count; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        struct store_label labels[] = {{STR("host"), STR("node0001")}, {STR("n"), str_of(text)}};
        bench_check(store_define_series(s, metric, labels, 2, &ids[i]), "series", NULL);
    }
}

// Makes values like those of a node: a third of the columns are constants, a third are counters,
// and a third are gauges with one decimal.
static double next_value(double previous, int column, uint32_t random)
{
    if (column % 3 == 0)
        return previous;
    return column % 3 == 1 ? previous + random % 50 : (double)(random % 1000) / 10;
}

// ── Appending ────────────────────────────────────────────────────────────────────────────────────

// Measures a copy of the rows, which is the minimum cost of appending.
static double copy_rate(const double *from, size_t bytes_each, size_t count, size_t values_each)
{
    enum { RING = 1024 };
    char *to = malloc(RING * bytes_each);
    int64_t start = clock_monotonic_ns();
    for (size_t i = 0; to && i < count; i++) {
        memcpy(to + i % RING * bytes_each, (const char *)from + i % 64 * bytes_each, bytes_each);
        __asm__ volatile("" ::: "memory");
    }
    double rate = (double)values_each * (double)count / bench_seconds_since(start);
    free(to);
    return rate;
}

double bench_append_rows(struct store *s, int64_t rows)
{
    static double values[64][BENCH_SERIES];
    static int64_t next; // so that a second call continues after the first
    uint32_t ids[BENCH_SERIES], set, random = 1;
    for (int r = 0; r < 64; r++)
        for (int c = 0; c < BENCH_SERIES; c++) {
            random = random * 1664525 + 1013904223;
            values[r][c] = next_value(r ? values[r - 1][c] : c, c, random >> 8);
        }
    bench_define(s, BENCH_SERIES, ids);
    bench_check(store_define_set(s, ids, BENCH_SERIES, &set), "set", NULL);
    int64_t start = clock_monotonic_ns(), last = next + rows;
    for (; next < last; next++)
        bench_check(store_append_row(s, set, INT64_C(1700000000000000000) + next * 100000000,
                                     values[next % 64]),
                    "append", NULL);
    return bench_seconds_since(start);
}

// Measures the last half hour of a recording, whose blocks fit into the processor's cache.
static void recent(void)
{
    struct store *s = bench_open_store("recent");
    bench_append_rows(s, RECENT_ROWS);
    store_seal(s);
    reading_all("recent", "hot_recent");
    store_abandon(s);
    unlink(bench_path("recent"));
}

static void rows(bool merge)
{
    struct store *s = bench_open_store("rows");
    double values = BENCH_SERIES * (double)ROWS;
    static const double row[64][BENCH_SERIES];
    bench_say("append_rows_of_100", values / bench_append_rows(s, ROWS) / 1e6, "M values/s",
              "memcpy", copy_rate(row[0], sizeof row[0], ROWS, BENCH_SERIES) / 1e6);
    store_seal(s);
    reading_all("rows", "hot");
    if (!merge) {
        store_abandon(s);
        unlink(bench_path("rows"));
        return;
    }
    int64_t start = clock_monotonic_ns();
    struct error e = {0};
    bench_check(store_close(s, &e), "close", &e);
    bench_say("close_with_merging", values / bench_seconds_since(start) / 1e6, "M values/s", NULL,
              0);
    struct stat st;
    stat(bench_path("rows"), &st);
    bench_say("bytes_per_value_synthetic", (double)st.st_size / values, "B", NULL, 0);
    reading_all("rows", "cold");
    unlink(bench_path("rows"));
}

// Measures the appending of single points, to 100 series and to 100,000, where a tail consists of
// two runs that are sorted by series. With 100,000 series the file has 12 bytes a point, and the
// kernel takes 2 to 6 of 19 ns a point for new pages of the file.
static void points(void)
{
    static struct store_point batch[10000];
    uint32_t *ids = malloc(MANY_SERIES * sizeof *ids);
    struct store *s = bench_open_store("points");
    int64_t start = clock_monotonic_ns();
    bench_define(s, MANY_SERIES, ids);
    bench_say("define_series", bench_seconds_since(start) * 1e9 / MANY_SERIES, "ns", NULL, 0);
    struct store_stats stats;
    store_get_stats(s, &stats);
    bench_say("memory_per_series", (double)stats.memory_bytes / MANY_SERIES, "B", NULL, 0);
    for (uint32_t series = 100; series <= MANY_SERIES; series *= 1000) {
        start = clock_monotonic_ns();
        for (int64_t i = 0; i < POINTS; i += 10000) {
            for (int k = 0; k < 10000; k++)
                batch[k] =
                    (struct store_point){INT64_C(1700000000000000000) + (i + k) * 1000,
                                         (double)(k % 1000) / 10, ids[(uint32_t)(i + k) % series]};
            bench_check(store_append_points(s, batch, 10000, NULL), "append", NULL);
        }
        double rate = POINTS / bench_seconds_since(start) / 1e6;
        static const struct store_point one[64];
        bench_say(series == 100 ? "append_points_100_series" : "append_points_100000_series", rate,
                  "M points/s", "memcpy",
                  copy_rate((const double *)(const void *)one, sizeof *one, POINTS, 1) / 1e6);
    }
    store_get_stats(s, &stats);
    bench_say("memory_100000_live_series", (double)stats.memory_bytes / (1 << 20), "MiB", NULL, 0);
    store_abandon(s);
    unlink(bench_path("points"));
    free(ids);
}

// ── Ticks ────────────────────────────────────────────────────────────────────────────────────────

static double thread_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

// Measures the longest call of store_tick() until nothing is left to merge, in processor time (to
// which other programs add nothing) and in wall time.
static void longest_tick(struct store *s, const char *what)
{
    double longest = 0, longest_wall = 0, all = 0;
    int64_t now = 1;
    struct store_stats stats;
    store_get_stats(s, &stats);
    uint64_t merged = stats.merged_values;
    for (int quiet = 0; quiet < 5; now++) {
        double start = thread_ms();
        int64_t wall = clock_monotonic_ns();
        bench_check(store_tick(s, now), "tick", NULL);
        double took = thread_ms() - start, took_wall = bench_seconds_since(wall) * 1e3;
        longest = took > longest ? took : longest;
        longest_wall = took_wall > longest_wall ? took_wall : longest_wall;
        all += took;
        quiet = took < 0.1 ? quiet + 1 : 0;
    }
    store_get_stats(s, &stats);
    char metric[64];
    snprintf(metric, sizeof metric, "longest_tick_%s", what);
    bench_say(metric, longest, "ms", "wall clock", longest_wall);
    snprintf(metric, sizeof metric, "merge_in_ticks_%s", what);
    bench_say(metric, (double)(stats.merged_values - merged) / all / 1e3, "M values/s", NULL, 0);
}

static void ticks(void)
{
    struct store *s = bench_open_store("ticks");
    bench_append_rows(s, 100000);
    longest_tick(s, "rows");
    store_abandon(s);
    unlink(bench_path("ticks"));
    static struct store_point batch[10000];
    uint32_t *ids = malloc(MANY_SERIES * sizeof *ids);
    for (uint32_t series = 100; series <= MANY_SERIES; series *= 1000) {
        s = bench_open_store("ticks");
        bench_define(s, MANY_SERIES, ids);
        for (int64_t i = 0; i < 2000000; i += 10000) {
            for (int k = 0; k < 10000; k++)
                batch[k] =
                    (struct store_point){INT64_C(1700000000000000000) + (i + k) * 1000,
                                         (double)(k % 1000) / 10, ids[(uint32_t)(i + k) % series]};
            bench_check(store_append_points(s, batch, 10000, NULL), "append", NULL);
        }
        longest_tick(s, series == 100 ? "points_100_series" : "points_100000_series");
        store_abandon(s);
        unlink(bench_path("ticks"));
    }
    free(ids);
}

// ── Recordings ───────────────────────────────────────────────────────────────────────────────────

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
    unlink(bench_path("import"));
    int64_t start = clock_monotonic_ns();
    bench_check(
        store_import(IMPORT_WIDE_CSV, csv, bench_path("import"), STR("node0001"), &stats, &e),
        "import", &e);
    double seconds = bench_seconds_since(start);
    snprintf(metric, sizeof metric, "bytes_per_value_%s", name);
    bench_say(metric, (double)stats.file_bytes / (double)stats.values, "B", NULL, 0);
    snprintf(metric, sizeof metric, "import_%s", name);
    bench_say(metric, (double)stats.values / seconds / 1e6, "M values/s", NULL, 0);
    struct store_inspection in;
    bench_check(store_inspect(bench_path("import"), &in, &e), "inspect", &e);
    fprintf(stderr, "  %s: %llu bytes: catalog %llu, directories %llu, times %llu\n", name,
            (unsigned long long)in.file_bytes, (unsigned long long)in.catalog_bytes,
            (unsigned long long)in.directory_bytes, (unsigned long long)in.time_bytes);
    for (int c = 0; c < CODEC_COUNT; c++)
        if (in.codecs[c].values) {
            snprintf(metric, sizeof metric, "bytes_per_value_%s_%s", name,
                     codec_name((enum codec_id)c));
            bench_say(metric, (double)in.codecs[c].bytes / (double)in.codecs[c].values, "B", NULL,
                      0);
        }
    reading_all("import", "cold_recording");
    unlink(bench_path("import"));
}

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR"), *data = getenv("SONDE_DATA"),
               *only = argc > 1 ? argv[1] : "";
    snprintf(folder, sizeof folder, "%.40s/sonde-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    reading_bare_loops();
    if (!*only || !strcmp(only, "recordings"))
        recording(data ? data : "../shared/data", "node-10hz");
    if (!*only || !strcmp(only, "rows"))
        rows(true);
    if (!strcmp(only, "hot"))
        rows(false);
    if (!*only || !strcmp(only, "recent"))
        recent();
    if (!*only || !strcmp(only, "small"))
        reading_small();
    if (!strcmp(only, "open"))
        reading_open_large();
    if (!strcmp(only, "write") && argc > 2) { // for other benches: writes a file to a path
        reading_write_large();
        bench_check(rename(bench_path("large"), argv[2]) ? -errno : 0, argv[2], NULL);
    }
    if (!*only || !strcmp(only, "points"))
        points();
    if (!*only || !strcmp(only, "index"))
        index_large();
    if (!*only || !strcmp(only, "ticks"))
        ticks();
    return rmdir(folder) ? 1 : 0;
}
