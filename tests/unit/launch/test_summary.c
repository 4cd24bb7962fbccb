#include "base/clock.h"
#include "launch/folder.h"
#include "launch/summary.h"
#include "store/store.h"
#include "unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/sonde-summary-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return folder_remove(root, NULL);
}

static uint32_t define(struct store *s, const char *name, const char *cause)
{
    struct store_metric m = {.name = str_of(name)};
    struct store_label labels[] = {{STR("host"), STR("n1")}, {STR("cause"), str_of(cause)}};
    uint32_t metric, series;
    assert_int_equal(store_define_metric(s, &m, &metric), 0);
    assert_int_equal(store_define_series(s, metric, labels, cause[0] ? 2 : 1, &series), 0);
    return series;
}

static void append(struct store *s, uint32_t series, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(store_append(s, series, (int64_t)(1700000000 + i) * NS_PER_S, values[i]),
                         0);
}

// A FIFO, a file that is not a recording, and a truncated one beside a recording do not hide it.
static void other_files_do_not_hide_a_recording(void **state)
{
    (void)state;
    static const char *const names[] = {"a-fifo", "b-text", "z-cut"};
    struct summary summary = {0};
    struct error e;
    struct store *s;
    char path[128], bad[128];
    snprintf(path, sizeof path, "%s/n1.sonde", root);
    assert_int_equal(store_open(path, &(struct store_options){0}, &s, &e), 0);
    append(s, define(s, "cpu_percent", ""), (const double[]){10, 40, 70}, 3);
    assert_int_equal(store_close(s, &e), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(bad, sizeof bad, "%s/%s.sonde", root, names[i]);
        if (i == 0) {
            assert_int_equal(mkfifo(bad, 0600), 0);
            continue;
        }
        assert_int_equal(store_open(bad, &(struct store_options){0}, &s, &e), 0);
        store_abandon(s);
        assert_int_equal(truncate(bad, i == 1 ? 3 : 700), 0);
    }
    alarm(10); // kills the test if opening blocks
    assert_int_equal(summary_add_folder(root, &summary, &e), 0);
    alarm(0);
    assert_int_equal(summary.points, 3);
    unlink(path);
    assert_true(summary_add_folder(root, &summary, &e) < 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(bad, sizeof bad, "%s/%s.sonde", root, names[i]);
        unlink(bad);
    }
}

static void figures(void **state)
{
    (void)state;
    struct summary live = {0}, closed = {0};
    struct error e;
    struct store *s;
    char path[128];
    snprintf(path, sizeof path, "%s/n1.sonde", root);
    assert_int_equal(summary_add_folder(root, &live, &e), -ENOENT); // no file yet
    assert_int_equal(store_open(path, &(struct store_options){0}, &s, &e), 0);
    append(s, define(s, "cpu_percent", ""), (const double[]){10, NAN, 40, 70}, 4);
    append(s, define(s, "memory_used_bytes", ""), (const double[]){1e9, 3e9}, 2);
    append(s, define(s, "memory_total_bytes", ""), (const double[]){8e9}, 1);
    append(s, define(s, "sonde_dropped_total", "ring_full"), (const double[]){0, 5, 2, 3},
           4); // 5 before the restart of the agent, and 3 after it
    append(s, define(s, "sonde_dropped_total", "limit"), (const double[]){1}, 1);
    assert_int_equal(summary_add_folder(root, &live, &e), 0);
    assert_int_equal(store_close(s, &e), 0);
    assert_int_equal(summary_add_folder(root, &closed, &e), 0);
    const struct summary *both[] = {&live, &closed};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(both[i]->points, 12);
        assert_int_equal(both[i]->series, 5);
        assert_int_equal(both[i]->dropped, 9);
        assert_int_equal(both[i]->cpu_percent.count, 3);
        assert_true(both[i]->cpu_percent.mean == 40 && both[i]->cpu_percent.peak == 70);
        assert_true(both[i]->memory_bytes.mean == 2e9 && both[i]->memory_bytes.peak == 3e9 &&
                    both[i]->memory_total_bytes == 8e9);
        assert_int_equal(both[i]->damaged_blocks, 0);
    }
}

// Processor time is counted in ticks, so a short job may have used none.
static void processor_time_below_a_tick_is_known(void **state)
{
    (void)state;
    struct summary without = {0}, zero = {0};
    struct error e;
    struct store *s;
    char path[128];
    snprintf(path, sizeof path, "%s/n1.sonde", root);
    assert_int_equal(store_open(path, &(struct store_options){0}, &s, &e), 0);
    uint32_t used = define(s, "job_cpu_seconds_total", "");
    assert_int_equal(summary_add_file(path, &without, &e), 0);
    append(s, used, (const double[]){0, 0}, 2);
    assert_int_equal(summary_add_file(path, &zero, &e), 0);
    assert_int_equal(store_close(s, &e), 0);
    assert_true(!without.job_cpu_known && zero.job_cpu_known && zero.job_cpu_seconds == 0);
}

static void texts(void **state)
{
    (void)state;
    char out[32];
    static const struct {
        double seconds;
        const char *text;
    } durations[] = {{0.04, "0.0 s"},
                     {3.25, "3.2 s"},
                     {59.9, "59.9 s"},
                     {250, "4 min 10 s"},
                     {7381, "2 h 3 min"}};
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        summary_duration_text((int64_t)(durations[i].seconds * NS_PER_S), out, sizeof out);
        assert_string_equal(out, durations[i].text);
    }
    summary_bytes_text(0, out, sizeof out);
    assert_string_equal(out, "0 B");
    summary_bytes_text(1536, out, sizeof out);
    assert_string_equal(out, "1.5 KiB");
    summary_bytes_text(16.0 * 1024 * 1024 * 1024, out, sizeof out);
    assert_string_equal(out, "16.0 GiB");
}

static void say(struct store *s, const char *source, const char *cut_off, int64_t t_ns)
{
    const struct store_label tags[] = {{STR("host"), STR("n1")},
                                       {STR("source"), str_of(source)},
                                       {STR("cut_off"), str_of(cut_off)}};
    struct store_event event = {.kind = STORE_ANNOTATION,
                                .start_ns = t_ns,
                                .end_ns = t_ns,
                                .text = STR("x"),
                                .labels = tags,
                                .label_count = cut_off[0] ? 3 : 2};
    assert_int_equal(store_append_event(s, &event), 0);
}

static void sources_that_are_cut_off(void **state)
{
    (void)state;
    struct summary live = {0};
    struct error e;
    struct store *s;
    char path[128];
    snprintf(path, sizeof path, "%s/n2.sonde", root);
    assert_int_equal(store_open(path, &(struct store_options){0}, &s, &e), 0);
    say(s, "nfs", "yes", 1000);
    say(s, "gpu-nvidia", "yes", 2000);
    say(s, "note", "", 2500); // of another program
    say(s, "nfs", "no", 3000);
    say(s, "lustre", "no", 4000);
    say(s, "gpu-nvidia", "no", 5000);
    say(s, "gpu-nvidia", "yes", 6000);
    assert_int_equal(summary_add_file(path, &live, &e), 0);
    assert_int_equal(live.cut_off_count, 1);
    assert_string_equal(live.cut_off[0].source, "gpu-nvidia");
    assert_string_equal(live.cut_off[0].host, "n1");
    assert_int_equal(live.cut_off[0].since_ns, 6000);
    assert_int_equal(store_close(s, &e), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_files_do_not_hide_a_recording), cmocka_unit_test(figures),
        cmocka_unit_test(processor_time_below_a_tick_is_known),
        cmocka_unit_test(sources_that_are_cut_off), cmocka_unit_test(texts)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
