// From sonde_emit() to a file that is read back, through the real store. The process is its own
// agent.
#include "base/clock.h"
#include "ingest/hello.h"
#include "ingest/ingest.h"
#include "store/read.h"
#include "unit/ingest/listen.h"
#include "unit/test.h"

#include "sonde.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { POINTS = 100000, ROWS = 1000 };

static char folder[] = "/tmp/sonde-test-XXXXXX", socket_path[96], file_path[96];

static void emit_everything(struct ingest *in)
{
    sonde_handle point = sonde_gauge("point", "seconds"), a = sonde_gauge("a", ""),
                 b = sonde_gauge("b", "");
    sonde_handle group = sonde_group((sonde_handle[]){a, b}, 2),
                 cell = sonde_counter("cell_total", "");
    sonde_span_begin("job", "job", "1");
    for (int i = 0; i < POINTS; i++) {
        sonde_emit(point, i);
        if (i % 10000 == 0)
            ingest_drain(in, NULL);
    }
    for (int i = 0; i < ROWS; i++)
        sonde_emit_group(group, (double[]){i, i % 2 ? sonde_missing() : -i});
    sonde_add(cell, 3);
    sonde_annotate("done", "file", "x");
    sonde_span_end();
    ingest_drain(in, NULL);
    ingest_sample_cells(in, clock_realtime_ns());
}

static bool take_event(const struct store_event *event, void *user)
{
    struct store_event *found = user;
    found[event->kind] = *event;
    return true;
}

// Reads the values of the metric's only series, in the order of time.
static size_t values_of(struct store_snapshot *s, const char *name, double *out, size_t max)
{
    uint32_t metric;
    size_t series_count, count = 0;
    assert_true(store_metric_find(s, str_of(name), &metric));
    const uint32_t *series = store_metric_series(s, metric, &series_count);
    assert_int_equal(series_count, 1);
    struct store_series_info info;
    assert_true(store_series_get(s, series[0], &info));
    assert_int_equal(info.label_count, 1);
    assert_str_equal(info.labels[0].key, "host");
    assert_str_equal(info.labels[0].value, "here");
    struct store_cursor *c = store_cursor_open(s, series[0], INT64_MIN, INT64_MAX);
    assert_non_null(c);
    for (struct store_run run; store_cursor_next(c, &run) == 1;) {
        const int64_t *t;
        const double *v;
        size_t n;
        assert_int_equal(store_cursor_points(c, &t, &v, &n), 0);
        for (size_t i = 0; i < n; i++)
            if (count < max)
                out[count++] = v[i];
    }
    store_cursor_close(c);
    return count;
}

static void emitted_values_are_read_from_the_store(void **state)
{
    (void)state;
    struct error e = {0};
    struct store *store = NULL;
    struct ingest *in = NULL;
    struct store_label host = {STR("host"), STR("here")};
    assert_non_null(mkdtemp(folder));
    snprintf(socket_path, sizeof socket_path, "%s/agent.sock", folder);
    snprintf(file_path, sizeof file_path, "%s/node.sonde", folder);
    setenv("SONDE_LEVEL", "1", 1);
    setenv("SONDE_SOCKET", socket_path, 1);
    setenv("SONDE_RING_BYTES", "1000000", 1);
    unsetenv("SONDE_TAGS");
    static const char *const ranks[] = {
        "PMIX_RANK",    "OMPI_COMM_WORLD_RANK", "PMI_RANK",       "MV2_COMM_WORLD_RANK",
        "MPT_MPI_RANK", "PALS_RANKID",          "FLUX_TASK_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        unsetenv(ranks[i]);
    struct store_options store_options = {0};
    struct ingest_options options = {
        .socket_path = socket_path, .labels = &host, .label_count = 1, .level = 4};
    if (store_open(file_path, &store_options, &store, &e) != 0 ||
        ingest_create(store, &options, &in, &e) != 0)
        fail_msg("%s", e.text);
    int listener = listen_at(socket_path);
    struct ingest_descriptors fds;
    pid_t pid;
    assert_int_equal(sonde_level(), 1);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_int_equal(ingest_receive_hello(fd, &fds, &pid), 0);
    assert_int_equal(pid, getpid());
    assert_int_equal(ingest_attach(in, fds, pid), 0);
    emit_everything(in);
    struct ingest_stats stats;
    ingest_get_stats(in, &stats);
    assert_int_equal(stats.points, POINTS + 2 * ROWS);
    assert_int_equal(sonde_dropped() + stats.dropped_store + stats.dropped_corrupt +
                         stats.dropped_limit + stats.clamped,
                     0);
    ingest_destroy(in);
    assert_int_equal(store_close(store, &e), 0);

    struct store_reader *reader;
    static double values[POINTS + 1];
    if (store_reader_open(file_path, &reader, &e) != 0)
        fail_msg("%s", e.text);
    struct store_snapshot *s = store_snapshot_open(reader);
    size_t count = values_of(s, "point", values, POINTS + 1);
    assert_int_equal(count, POINTS);
    for (int i = 0; i < POINTS; i++)
        assert_true(values[i] == i);
    assert_int_equal(values_of(s, "a", values, POINTS), ROWS);
    assert_int_equal(values_of(s, "b", values, POINTS), ROWS / 2); // missing values are not stored
    assert_true(values[ROWS / 2 - 1] == -(ROWS - 2));
    assert_int_equal(values_of(s, "cell_total", values, POINTS), 1);
    assert_true(values[0] == 3);
    struct store_event events[2] = {{0}};
    assert_int_equal(store_events(s, INT64_MIN, INT64_MAX, take_event, events), 0);
    assert_true(events[STORE_SPAN].end_ns < INT64_MAX &&
                events[STORE_SPAN].start_ns <= events[STORE_ANNOTATION].start_ns);
    assert_int_equal(events[STORE_SPAN].label_count, 2);
    store_snapshot_close(s);
    store_reader_close(reader);
    close(fd);
    close(listener);
    unlink(socket_path);
    unlink(file_path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(emitted_values_are_read_from_the_store)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
