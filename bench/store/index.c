// index.c - measures a million series: their definition, the opening of their file, lookups, and
// the memory of the index.
//
// The series are 1000 metrics on 1000 hosts. Like a query, a lookup finds the series of a metric
// with a given label.
#include "reading.h"

#include "base/clock.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { METRICS = 1000, HOSTS = 1000, LOOKUPS = 20000, OPENS = 3 };

static void define_all(struct store *s)
{
    for (uint32_t m = 0; m < METRICS; m++) {
        char name[32], host[32];
        snprintf(name, sizeof name, "metric_%u_bytes_total", m);
        struct store_metric metric = {.name = str_of(name)};
        uint32_t id, series;
        bench_check(store_define_metric(s, &metric, &id), "metric", NULL);
        for (uint32_t h = 0; h < HOSTS; h++) {
            snprintf(host, sizeof host, "node%04u", h);
            struct store_label labels[] = {{STR("device"), h % 2 ? STR("eth0") : STR("ib0")},
                                           {STR("host"), str_of(host)}};
            bench_check(store_define_series(s, id, labels, 2, &series), "series", NULL);
        }
    }
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Returns the number of series with both the metric and the host.
static size_t find(struct store_snapshot *s, uint32_t m, uint32_t h)
{
    char name[32], host[32];
    uint32_t metric;
    size_t count, n, found = 0;
    int size = snprintf(name, sizeof name, "metric_%u_bytes_total", m);
    if (!store_metric_find(s, (struct str){name, (size_t)size}, &metric))
        return 0;
    const uint32_t *ids = store_metric_series(s, metric, &count);
    size = snprintf(host, sizeof host, "node%04u", h);
    const uint32_t *list = store_label_series(s, STR("host"), (struct str){host, (size_t)size}, &n);
    for (size_t i = 0; i < n; i++)
        found += bsearch(&list[i], ids, count, sizeof *ids, compare_ids) != NULL;
    return found;
}

static size_t allocated(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

void index_large(void)
{
    const double series = (double)METRICS * HOSTS;
    struct store *s = bench_open_store("index");
    int64_t start = clock_monotonic_ns();
    define_all(s);
    bench_say("index_define_1M_series", bench_seconds_since(start) * 1e9 / series, "ns", NULL, 0);
    struct error e = {0};
    bench_check(store_close(s, &e), "close", &e);
    struct store_reader *r = NULL;
    double best_ms = 1e9;
    size_t before = 0;
    for (int i = 0; i < OPENS; i++) {
        store_reader_close(r);
        before = allocated();
        start = clock_monotonic_ns();
        bench_check(store_reader_open(bench_path("index"), &r, &e), "read", &e);
        double ms = bench_seconds_since(start) * 1e3;
        best_ms = ms < best_ms ? ms : best_ms;
    }
    bench_say("index_open_1M_series", best_ms, "ms", NULL, 0);
    bench_say("index_memory_per_series", (double)(allocated() - before) / series, "B", NULL, 0);
    struct store_snapshot *snapshot = store_snapshot_open(r);
    double best_ns = 1e9;
    for (int round = 0; round < OPENS; round++) {
        size_t found = 0;
        start = clock_monotonic_ns();
        for (uint32_t i = 0; i < LOOKUPS; i++)
            found += find(snapshot, i * 7919 % METRICS, i * 104729 % HOSTS);
        double ns = bench_seconds_since(start) * 1e9 / LOOKUPS;
        best_ns = ns < best_ns ? ns : best_ns;
        bench_check(found == LOOKUPS ? 0 : -1, "lookup", NULL);
    }
    bench_say("index_lookup_metric_and_label_1M_series", best_ns / 1e3, "us", NULL, 0);
    start = clock_monotonic_ns();
    size_t values;
    store_label_values(snapshot, STR("host"), &values);
    bench_check(values == HOSTS ? 0 : -1, "values", NULL);
    bench_say("index_label_values_1M_series", bench_seconds_since(start) * 1e6, "us", NULL, 0);
    store_snapshot_close(snapshot);
    store_reader_close(r);
    unlink(bench_path("index"));
}
