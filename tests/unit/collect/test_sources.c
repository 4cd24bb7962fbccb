// The sources against recorded trees, and against trees that go wrong.
#include "tree.h"
#include "unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;

// What each recorded tree must give; NAN = missing.
struct fact {
    const char *tree, *source, *name;
    double value;
};

static const struct fact facts[] = {
    {"linux-2.6.32", "load", "load_1m", 0.75},
    {"linux-2.6.32", "load", "tasks", 25},
    {"linux-2.6.32", "cpu", "cpu_user_seconds_total", 101321.53},
    {"linux-2.6.32", "cpu", "cpu_guest_seconds_total", 1756.28},
    {"linux-2.6.32", "cpu", "cpu_guest_nice_seconds_total", NAN},
    {"linux-2.6.32", "cpu", "interrupts_total", 1462898},
    {"linux-2.6.32", "cpu", "tasks_blocked", 1},
    {"linux-2.6.32", "memory", "memory_total_bytes", 2054992.0 * 1024},
    {"linux-2.6.32", "memory", "memory_available_bytes", NAN},
    {"linux-2.6.32", "memory", "memory_used_bytes", NAN},
    {"linux-2.6.32", "memory", "memory_used_percent", NAN},
    {"linux-2.6.32", "memory", "swap_used_bytes", 760.0 * 1024},
    {"linux-3.10", "load", "load_15m", 2.51},
    {"linux-3.10", "cpu", "cpu_count", 2},
    {"linux-3.10", "cpu", "cpu_guest_nice_seconds_total", 0.03},
    {"linux-3.10", "cpu", "cpu_steal_seconds_total", 0.07},
    {"linux-3.10", "memory", "memory_cached_bytes", 9912928.0 * 1024},
    {"linux-3.10", "memory", "memory_dirty_bytes", 944.0 * 1024},
    {"linux-3.10", "memory", "memory_slab_bytes", NAN},
    {"linux-3.10", "memory", "memory_used_percent", 25},
    {"linux-3.10", "memory", "swap_free_bytes", 8258556.0 * 1024},
    {"linux-6.18", "load", "tasks_runnable", 1},
    {"linux-6.18", "cpu", "context_switches_total", 412345},
    {"linux-6.18", "cpu", "forks_total", 7740},
    {"linux-6.18", "cpu", "cpu_percent", NAN},
    {"linux-6.18", "memory", "memory_used_bytes", 6000000.0 * 1024},
    {"linux-6.18", "memory", "memory_used_percent", 25},
    {"linux-6.18", "memory", "swap_used_bytes", 2000000.0 * 1024},
    {"linux-6.18-aarch64-256", "load", "load_1m", 255.99},
    {"linux-6.18-aarch64-256", "cpu", "cpu_count", 256},
    {"linux-6.18-aarch64-256", "cpu", "interrupts_total", 987654321},
    {"linux-6.18-aarch64-256", "cpu", "tasks_running", 200},
    {"linux-6.18-aarch64-256", "memory", "memory_buffers_bytes", NAN},
};

static void recorded_trees(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const struct fact *f = &facts[i];
        char root[512];
        snprintf(root, sizeof root, "%s/%s", TREES, f->tree);
        struct probe p = probe_make(root, 2, getuid());
        if (probe_sample(&p, f->source, SECOND) <= 0)
            fail_msg("%s: %s gives nothing", f->tree, f->source);
        double got = probe_value(&p, f->source, f->name);
        bool missing = isnan(f->value);
        if (store_is_missing(got) != missing || (!missing && fabs(got - f->value) > 1e-9 * (1 + fabs(f->value))))
            fail_msg("%s: %s is %.17g, expected %.17g", f->tree, f->name, got, f->value);
        assert_int_equal(collect_reason(p.c, str_of(f->source)).size, 0);
        probe_free(&p);
    }
}

// user system idle iowait, in ticks; the busy share between two readings, -1 = there must be none.
static void busy_share(void **state)
{
    (void)state;
    static const struct {
        const char *stat;
        double percent;
    } readings[] = {
        {"cpu  100 0 100 800 0 0 0 0 0 0\n", 20},                // the first, counted from when the source was opened
        {"cpu  125 0 125 950 0 0 0 0 0 0\n", 25},                // 50 of 200
        {"cpu  125 0 125 950 0 0 0 0 0 0\n", -1},                // no time went by
        {"cpu  125 0 125 1050 0 0 0 0 0 0\n", 0},                // idle
        {"cpu  225 0 125 1050 0 0 0 0 0 0\n", 100},              // busy
        {"cpu  245 0 125 1048 82 0 0 0 0 0\n", 100. * 20 / 102}, // idle stepped back by 2: not 20/100, never above 100
        {"cpu  5 0 5 10 0 0 0 0 0 0\n", -1},                     // reset
        {"cpu  5 0 5 20 0 0 0 0 0 0\n", 0},                      // and goes on from there
        {"cpu  5 0 5 20 10 0 0 0 0 0\n", 0},                     // waiting for a disk is idle
        {"cpu  5 0 5 20 10 0 0 10 900 0\n", 100},                // stolen is busy; guest is in user's already
        {"cpu  105 0 5 120\n", 50},                              // columns went away: the sum is still larger
    };
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/stat", "cpu  0 0 0 0\n");
    struct probe p = probe_make(t.root, 2, getuid());
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        tree_write(&t, "proc/stat", readings[i].stat);
        assert_true(probe_sample(&p, "cpu", SECOND * (int64_t)(i + 1)) > 0);
        double got = probe_value(&p, "cpu", "cpu_percent");
        if (readings[i].percent < 0 ? !store_is_missing(got) : !(fabs(got - readings[i].percent) < 1e-9))
            fail_msg("reading %zu: %g, expected %g", i, got, readings[i].percent);
    }
    probe_free(&p);
    tree_free(&t);
}

static void wrapped_and_garbled_numbers_are_missing(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_copy(&t, "linux-6.18");
    struct probe p = probe_make(t.root, 2, getuid());
    tree_write(&t, "proc/stat",
               "cpu  1 2 3 99999999999999999999999 5\nctxt -5\nintr abc\nprocesses\nprocs_running 7\ncpux 3\n");
    assert_true(probe_sample(&p, "cpu", SECOND) > 0);
    assert_true(probe_value(&p, "cpu", "cpu_user_seconds_total") == 0.01);
    static const char *const missing[] = {"cpu_idle_seconds_total",
                                          "cpu_iowait_seconds_total",
                                          "context_switches_total",
                                          "interrupts_total",
                                          "forks_total",
                                          "cpu_percent",
                                          "cpu_count"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        assert_true(store_is_missing(probe_value(&p, "cpu", missing[i])));
    assert_true(probe_value(&p, "cpu", "tasks_running") == 7);
    tree_write(&t, "proc/loadavg", "nan 0x10 1.5 9999999999999999999999/8 1\n");
    assert_int_equal(probe_sample(&p, "load", SECOND), 1);
    assert_true(store_is_missing(probe_value(&p, "load", "load_1m")));
    assert_true(probe_value(&p, "load", "load_15m") == 1.5);
    // More available than there is: no share below zero.
    tree_write(&t, "proc/meminfo", "MemTotal: 10 kB\nMemAvailable: 11 kB\nSwapTotal: 1 kB\nSwapFree: 2 kB\n");
    assert_true(probe_sample(&p, "memory", SECOND) > 0);
    assert_true(store_is_missing(probe_value(&p, "memory", "memory_used_percent")));
    assert_true(store_is_missing(probe_value(&p, "memory", "swap_used_bytes")));
    probe_free(&p);
    tree_free(&t);
}

// Files that hold nothing of use: an error with a reason, and values again once the file is well.
static void useless_files_have_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *source, *path;
    } sources[] = {{"load", "proc/loadavg"}, {"cpu", "proc/stat"}, {"memory", "proc/meminfo"}};
    static const char *const useless[] = {"", "\n\n\n", "garbage", "\x01\xff\xfe)(:\n:::\n    \n",
                                          "cpu\nMemTotal\n: 5 kB\n"};
    struct tree t;
    tree_make(&t);
    tree_copy(&t, "linux-6.18");
    struct probe p = probe_make(t.root, 2, getuid());
    for (size_t s = 0; s < sizeof sources / sizeof *sources; s++)
        for (size_t i = 0; i < sizeof useless / sizeof *useless; i++) {
            tree_copy(&t, "linux-6.18");
            assert_true(probe_sample(&p, sources[s].source, SECOND) > 0);
            tree_write(&t, sources[s].path, useless[i]);
            assert_true(probe_sample(&p, sources[s].source, 2 * SECOND) < 0);
            struct str reason = collect_reason(p.c, str_of(sources[s].source));
            assert_true(str_find(reason, str_of(sources[s].path)) >= 0);
            tree_copy(&t, "linux-6.18");
            assert_true(probe_sample(&p, sources[s].source, 3 * SECOND) > 0);
            assert_int_equal(collect_reason(p.c, str_of(sources[s].source)).size, 0);
        }
    probe_free(&p);
    tree_free(&t);
}

static void too_large_a_file_is_refused(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_copy(&t, "linux-6.18");
    struct probe p = probe_make(t.root, 2, getuid());
    char path[512];
    snprintf(path, sizeof path, "%s/proc/meminfo", t.root);
    assert_int_equal(truncate(path, 64 << 20), 0);
    assert_int_equal(probe_sample(&p, "memory", SECOND), -EFBIG);
    assert_true(str_find(collect_reason(p.c, STR("memory")), STR("larger than 4194304 bytes")) >= 0);
    probe_free(&p);
    tree_free(&t);
}

static void absent_sources_are_left_out(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_copy(&t, "linux-6.18");
    tree_remove(&t, "proc/meminfo");
    struct probe p = probe_make(t.root, 2, getuid());
    assert_int_equal(collect_set_count(p.c), 3);
    assert_int_equal(probe_sample(&p, "memory", SECOND), -ENXIO);
    struct str reason = collect_reason(p.c, STR("memory"));
    assert_true(str_find(reason, STR("/proc/meminfo: No such file")) > 0);
    assert_true(probe_sample(&p, "cpu", SECOND) > 0);
    assert_true(collect_reason(p.c, STR("warp")).size > 0);
    probe_free(&p);
    // Below its level a source says so.
    p = probe_make(t.root, 1, getuid());
    assert_int_equal(collect_set_count(p.c), 0);
    assert_true(str_find(collect_reason(p.c, STR("cpu")), STR("level")) >= 0);
    probe_free(&p);
    tree_free(&t);
    // No tree at all.
    p = probe_make("/nonexistent", 4, getuid());
    assert_int_equal(collect_set_count(p.c), 0);
    assert_true(str_find(collect_reason(p.c, STR("processes")), STR("No such file")) > 0);
    probe_free(&p);
}

// Root reads everything: a child becomes somebody else.
static void files_without_permission_have_a_reason(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_copy(&t, "linux-6.18");
    tree_chmod(&t, "proc/stat", 0);
    tree_chmod(&t, ".", 0755);
    tree_chmod(&t, "proc", 0755);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct collect_options options = {
            .root = t.root, .level = 2, .rate_s = 0.5, .folder = "/tmp", .uid = getuid()};
        struct collect *c = NULL;
        if (getuid() == 0 && setuid(65534) != 0)
            _exit(2);
        if (collect_create(&options, &c, NULL) != 0)
            _exit(3);
        struct str reason = collect_reason(c, STR("cpu"));
        bool said = str_ends(reason, STR("proc/stat: Permission denied"));
        collect_destroy(c);
        _exit(said ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    tree_free(&t);
}

static void write_process(struct tree *t, int pid, int ticks, int threads, int start, int pages)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "proc/%d/stat", pid);
    snprintf(text, sizeof text,
             "%d (a) b (c)) R 1 1 1 0 -1 0 0 0 0 0 %d 10 0 0 20 0 %d 0 %d 1000 %d 18446744073709551615\n", pid,
             ticks - 10, threads, start, pages);
    tree_write(t, path, text);
}

static double own(struct probe *p, const char *name)
{
    return probe_value(p, "processes", name);
}

static void own_processes(void **state)
{
    (void)state;
    const double page = (double)sysconf(_SC_PAGESIZE);
    struct tree t;
    tree_make(&t);
    tree_copy(&t, "linux-6.18");
    tree_write(&t, "proc/self/stat", "not a number: not looked at");
    write_process(&t, 100, 500, 3, 1, 10);
    write_process(&t, 7, 250, 1, 2, 5);
    struct probe p = probe_make(t.root, 2, getuid());
    int64_t t_ns = SECOND;
    assert_int_equal(probe_sample(&p, "processes", t_ns), 4);
    assert_true(own(&p, "own_processes") == 2);
    assert_true(own(&p, "own_threads") == 4);
    assert_true(own(&p, "own_resident_bytes") == 15 * page);
    assert_true(own(&p, "own_cpu_seconds_total") == 7.5);
    // One works on, one ends, one begins.
    write_process(&t, 100, 600, 3, 1, 10);
    tree_remove(&t, "proc/7/stat");
    tree_remove(&t, "proc/7");
    write_process(&t, 8, 50, 1, 3, 5);
    assert_int_equal(probe_sample(&p, "processes", t_ns += 100 * SECOND), 4);
    assert_true(own(&p, "own_processes") == 2);
    assert_true(own(&p, "own_cpu_seconds_total") == 7.5 + 1 + 0.5);
    // The same number, another process: all of its time is new, nothing is taken away.
    write_process(&t, 100, 20, 1, 9, 10);
    assert_int_equal(probe_sample(&p, "processes", t_ns += 100 * SECOND), 4);
    assert_true(own(&p, "own_cpu_seconds_total") == 9.2);
    // A counter that steps back takes nothing away either; garbage is no process.
    write_process(&t, 8, 30, 1, 3, 5);
    tree_write(&t, "proc/9/stat", "9 (x R 1 2 3");
    tree_write(&t, "proc/10/stat", "");
    tree_write(&t, "proc/11/stat", "11 (x) R 1 1 1 0 -1 0 0 0 0 0 a b 0 0 20 0 c 0 1 1 1 1");
    assert_int_equal(probe_sample(&p, "processes", t_ns += 100 * SECOND), 4);
    assert_true(own(&p, "own_cpu_seconds_total") == 9.2);
    assert_true(own(&p, "own_processes") == 2);
    probe_free(&p);
    // Of another user there are none: that is a value, and it is 0.
    p = probe_make(t.root, 2, getuid() + 1);
    assert_int_equal(probe_sample(&p, "processes", SECOND), 4);
    assert_true(own(&p, "own_processes") == 0);
    probe_free(&p);
    tree_free(&t);
}

static void a_name_with_brackets(void **state)
{
    (void)state;
    struct probe p = probe_make(TREES "/linux-6.18", 2, getuid());
    // The tree belongs to whoever checked it out.
    if (probe_sample(&p, "processes", SECOND) == 4 && own(&p, "own_processes") > 0) {
        assert_true(own(&p, "own_threads") == 12);
        assert_true(own(&p, "own_cpu_seconds_total") == 4);
    } else {
        skip();
    }
    probe_free(&p);
}

// This machine's own /proc: nothing exact, but what no Linux lacks.
static void this_machine(void **state)
{
    (void)state;
    struct probe p = probe_make("", 2, getuid());
    assert_int_equal(collect_set_count(p.c), 4);
    assert_true(probe_sample(&p, "load", SECOND) == 5);
    assert_true(probe_sample(&p, "cpu", SECOND) > 10);
    assert_true(probe_value(&p, "cpu", "cpu_count") >= 1);
    assert_true(probe_sample(&p, "memory", SECOND) > 8);
    double used = probe_value(&p, "memory", "memory_used_percent");
    assert_true(used > 0 && used < 100);
    assert_int_equal(probe_sample(&p, "processes", SECOND), 4);
    assert_true(own(&p, "own_processes") >= 1);
    assert_true(own(&p, "own_resident_bytes") > 0);
    probe_free(&p);
}

// The walk over processes asks to be left alone for a while; a clock that steps back does not silence it.
static void expensive_sources_are_sampled_less_often(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    for (int pid = 1; pid <= 300; pid++)
        write_process(&t, pid, 100, 1, 1, 1);
    struct probe p = probe_make(t.root, 2, getuid());
    int64_t t_ns = 1000 * SECOND;
    assert_int_equal(probe_sample(&p, "processes", t_ns), 4);
    // 300 files opened and read take more than 100 us, so 1/5000 of a processor is more than half a second away.
    assert_int_equal(probe_sample(&p, "processes", t_ns + SECOND / 100), 0);
    assert_true(store_is_missing(own(&p, "own_processes")));
    assert_int_equal(probe_sample(&p, "processes", t_ns + 11 * SECOND), 4);
    assert_int_equal(probe_sample(&p, "processes", t_ns - 500 * SECOND), 4);
    probe_free(&p);
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_trees),
        cmocka_unit_test(busy_share),
        cmocka_unit_test(wrapped_and_garbled_numbers_are_missing),
        cmocka_unit_test(useless_files_have_a_reason),
        cmocka_unit_test(too_large_a_file_is_refused),
        cmocka_unit_test(absent_sources_are_left_out),
        cmocka_unit_test(files_without_permission_have_a_reason),
        cmocka_unit_test(own_processes),
        cmocka_unit_test(a_name_with_brackets),
        cmocka_unit_test(this_machine),
        cmocka_unit_test(expensive_sources_are_sampled_less_often),
    };
    return cmocka_run_group_tests_name("collect/sources", tests, NULL, NULL);
}
