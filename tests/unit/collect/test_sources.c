// The sources with recorded trees, and with damaged trees.
#include "tree.h"
#include "unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;

// The expected value in each recorded tree; NAN = missing.
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
    {"linux-3.10", "vmstat", "page_faults_total", 4123456789.0},
    {"linux-3.10", "vmstat", "oom_kills_total", NAN},
    {"linux-3.10", "vmstat", "numa_misses_total", NAN},
    {"linux-3.10", "vmstat", "paged_in_bytes_total", 5678.0 * 1024},
    {"linux-3.10", "memory", "swap_free_bytes", 8258556.0 * 1024},
    {"linux-6.18", "load", "tasks_runnable", 1},
    {"linux-6.18", "cpu", "context_switches_total", 412345},
    {"linux-6.18", "cpu", "forks_total", 7740},
    {"linux-6.18", "cpu", "cpu_percent", NAN},
    {"linux-6.18", "memory", "memory_used_bytes", 6000000.0 * 1024},
    {"linux-6.18", "memory", "memory_used_percent", 25},
    {"linux-6.18", "memory", "memory_page_tables_bytes", 2216.0 * 1024},
    {"linux-6.18", "memory", "memory_slab_reclaimable_bytes", 76108.0 * 1024},
    {"linux-6.18", "memory", "memory_slab_unreclaimable_bytes", 23484.0 * 1024},
    {"linux-6.18", "memory", "memory_huge_pages_bytes", 16 * 2048.0 * 1024},
    {"linux-6.18", "memory", "memory_huge_pages_free_bytes", 4 * 2048.0 * 1024},
    {"linux-6.18", "memory", "memory_transparent_huge_bytes", 40960.0 * 1024},
    {"linux-6.18", "vmstat", "page_faults_major_total", 1234},
    {"linux-6.18", "vmstat", "numa_hits_total", 500000},
    {"linux-6.18", "vmstat", "numa_misses_total", 70},
    {"linux-6.18", "vmstat", "numa_foreign_total", 80},
    {"linux-6.18", "vmstat", "oom_kills_total", 2},
    {"linux-6.18", "pressure", "pressure_cpu_some_percent", 39.06},
    {"linux-6.18", "pressure", "pressure_cpu_full_percent", 0},
    {"linux-6.18", "pressure", "pressure_cpu_some_seconds_total", 813.822751},
    {"linux-6.18", "pressure", "pressure_memory_full_seconds_total", 0.5},
    {"linux-6.18", "pressure", "pressure_io_some_percent", 0.18},
    {"linux-6.18", "memory", "swap_used_bytes", 2000000.0 * 1024},
    {"linux-6.18-aarch64-256", "load", "load_1m", 255.99},
    {"linux-6.18-aarch64-256", "cpu", "cpu_count", 256},
    {"linux-6.18-aarch64-256", "cpu", "interrupts_total", 987654321},
    {"linux-6.18-aarch64-256", "cpu", "tasks_running", 200},
    {"linux-6.18-aarch64-256", "memory", "memory_buffers_bytes", NAN},
    {"linux-6.18-aarch64-256", "pressure", "pressure_cpu_some_percent", 1.5},
    {"linux-6.18-aarch64-256", "pressure", "pressure_cpu_full_percent", NAN},
    {"linux-6.18-aarch64-256", "pressure", "pressure_memory_some_percent", NAN},
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
        if (store_is_missing(got) != missing ||
            (!missing && fabs(got - f->value) > 1e-9 * (1 + fabs(f->value))))
            fail_msg("%s: %s is %.17g, expected %.17g", f->tree, f->name, got, f->value);
        assert_int_equal(collect_reason(p.c, str_of(f->source)).size, 0);
        probe_free(&p);
    }
}

// user system idle iowait, in ticks; the busy share between two readings, -1 = must be missing.
static void busy_share(void **state)
{
    (void)state;
    static const struct {
        const char *stat;
        double percent;
    } readings[] = {
        // the first reading, counted from the opening of the source
        {"cpu  100 0 100 800 0 0 0 0 0 0\n", 20},
        {"cpu  125 0 125 950 0 0 0 0 0 0\n", 25},   // 50 of 200
        {"cpu  125 0 125 950 0 0 0 0 0 0\n", -1},   // no time has passed
        {"cpu  125 0 125 1050 0 0 0 0 0 0\n", 0},   // idle
        {"cpu  225 0 125 1050 0 0 0 0 0 0\n", 100}, // busy
        // idle decreased by 2: not 20/100, and never above 100
        {"cpu  245 0 125 1048 82 0 0 0 0 0\n", 100. * 20 / 102},
        {"cpu  5 0 5 10 0 0 0 0 0 0\n", -1}, // reset
        {"cpu  5 0 5 20 0 0 0 0 0 0\n", 0},  // and continues from there
        {"cpu  5 0 5 20 10 0 0 0 0 0\n", 0}, // waiting for a disk counts as idle
        // stolen counts as busy; guest is included in user
        {"cpu  5 0 5 20 10 0 0 10 900 0\n", 100},
        // columns are missing: the sum is still larger
        {"cpu  105 0 5 120\n", 50},
    };
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/stat", "cpu  0 0 0 0\n");
    struct probe p = probe_make(t.root, 2, getuid());
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        tree_write(&t, "proc/stat", readings[i].stat);
        assert_true(probe_sample(&p, "cpu", SECOND * (int64_t)(i + 1)) > 0);
        double got = probe_value(&p, "cpu", "cpu_percent");
        if (readings[i].percent < 0 ? !store_is_missing(got)
                                    : !(fabs(got - readings[i].percent) < 1e-9))
            fail_msg("reading %zu: %g, expected %g", i, got, readings[i].percent);
    }
    probe_free(&p);
    tree_free(&t);
}

static void write_processors(struct tree *t, int ticks, int busy)
{
    static char text[1 << 15];
    int size = snprintf(text, sizeof text, "cpu  0 0 0 %d 0\n", ticks * 256);
    for (int i = 0; i < 256; i++) {
        int used = i == 7 ? busy : i == 200 ? busy / 2 : 0;
        size += snprintf(text + size, sizeof text - (size_t)size, "cpu%d %d 0 0 %d 0 0 0 0 0 0\n",
                         i, used, ticks - used);
    }
    tree_write(t, "proc/stat", text);
}

// Two of 256 processors are busy, one of them half the time.
static void spread_of_processors(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    write_processors(&t, 1000, 0);
    struct probe p = probe_make(t.root, 4, getuid());
    assert_true(probe_sample(&p, "cpu", SECOND) > 0);
    // no time has passed
    assert_true(store_is_missing(probe_value(&p, "cpu", "cpu_core_max_percent")));
    write_processors(&t, 1100, 100);
    assert_true(probe_sample(&p, "cpu", 2 * SECOND) > 256);
    assert_true(probe_value(&p, "cpu", "cpu_core_max_percent") == 100);
    double mean = 150. / 256, deviation = sqrt((100. * 100 + 50. * 50) / 256 - mean * mean);
    assert_true(fabs(probe_value(&p, "cpu", "cpu_core_deviation_percent") - deviation) < 1e-9);
    assert_true(probe_tagged(&p, "cpu", "cpu_core_percent", "7", NULL) == 100);
    assert_true(probe_tagged(&p, "cpu", "cpu_core_percent", "200", NULL) == 50);
    assert_true(probe_tagged(&p, "cpu", "cpu_core_percent", "255", NULL) == 0);
    // One goes offline: its share is missing, not 0. The same if a counter decreases.
    tree_write(&t, "proc/stat", "cpu  0 0 0 51300 0\ncpu0 5 0 0 1195\ncpu1 0 0 0 3\n");
    uint32_t before = probe_generation(&p, "cpu");
    assert_true(probe_sample(&p, "cpu", 3 * SECOND) > 0);
    assert_true(probe_tagged(&p, "cpu", "cpu_core_percent", "0", NULL) == 5);
    assert_true(store_is_missing(probe_tagged(&p, "cpu", "cpu_core_percent", "1", NULL)));
    assert_true(store_is_missing(probe_tagged(&p, "cpu", "cpu_core_percent", "7", NULL)));
    assert_true(probe_value(&p, "cpu", "cpu_core_max_percent") == 5);
    assert_int_equal(probe_generation(&p, "cpu"), before);
    // One goes online: it has a series after the sample that found it.
    tree_write(&t, "proc/stat", "cpu  0 0 0 51400 0\ncpu300 5 0 0 95\n");
    assert_true(probe_sample(&p, "cpu", 4 * SECOND) > 0);
    assert_int_equal(probe_generation(&p, "cpu"), before + 1);
    tree_write(&t, "proc/stat", "cpu  0 0 0 51500 0\ncpu300 80 0 0 120\ncpu99999 1 2 3 4\n");
    assert_true(probe_sample(&p, "cpu", 5 * SECOND) > 0);
    assert_true(probe_tagged(&p, "cpu", "cpu_core_percent", "300", NULL) == 75);
    assert_int_equal(probe_generation(&p, "cpu"), before + 1);
    probe_free(&p);
    // Below level 4, single processors have no series.
    p = probe_make(t.root, 3, getuid());
    assert_false(probe_has(&p, "cpu", "cpu_core_percent", "300"));
    probe_free(&p);
    tree_free(&t);
}

// Lines that move, appear and disappear between two readings are found.
static void lines_are_found_by_name(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/vmstat", "pgfault 1\nnr_free_pages 2\npgmajfault 3\noom_kill 4\n");
    struct probe p = probe_make(t.root, 2, getuid());
    static const struct {
        const char *text;
        double faults, major, kills; // -1 = missing
    } readings[] = {
        {"pgfault 1\nnr_free_pages 2\npgmajfault 3\noom_kill 4\n", 1, 3, 4},
        {"pgfault 5\nnr_free_pages 2\npgmajfault 6\noom_kill 7\n", 5, 6, 7},
        {"new_one 9\npgfault 5\nnr_free_pages 2\npgmajfault 6\noom_kill 7\n", 5, 6, 7},
        {"pgfault 5\nnr_free_pages 2\npgmajfault 8\n", 5, 8, -1},
        {"nr_free_pages 2\npgfault 6\npgmajfault 8\n", 6, 8, -1},
        {"pgmajfault 9\npgfault 7\nnr_free_pages 3\n", 7, 9, -1},
        {"pgmajfault 9\npgfault 7\noom_kill 1\nlast 1", 7, 9, 1},
        {"pgmajfault 9\npgfault 7\noom_kill 18446744073709551616\nlast 1", 7, 9, -1},
        {"pgmajfault 9\npgfault 7\noom_kill 18446744073709551615\npgfault 8", 7, 9,
         18446744073709551615.0},
        {"pgmajfault -9\npgfault 7 kB\noom_kill 3\nlast 8", -1, -1, 3},
    };
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        tree_write(&t, "proc/vmstat", readings[i].text);
        assert_true(probe_sample(&p, "vmstat", SECOND * (int64_t)(i + 1)) > 0);
        static const char *const names[] = {"page_faults_total", "page_faults_major_total",
                                            "oom_kills_total"};
        const double expected[] = {readings[i].faults, readings[i].major, readings[i].kills};
        for (int k = 0; k < 3; k++) {
            double got = probe_value(&p, "vmstat", names[k]);
            if (expected[k] < 0 ? !store_is_missing(got) : !(got == expected[k]))
                fail_msg("reading %zu: %s is %g, expected %g", i, names[k], got, expected[k]);
        }
    }
    tree_write(&t, "proc/vmstat", "pswpout 3\n");
    assert_int_equal(probe_sample(&p, "vmstat", 100 * SECOND), 1);
    assert_true(probe_value(&p, "vmstat", "swapped_out_bytes_total") ==
                3. * (double)sysconf(_SC_PAGESIZE));
    probe_free(&p);
    tree_free(&t);
}

static void sources_are_switched_on_and_off(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_copy(&t, "linux-6.18");
    static const struct {
        const char *list;
        bool load, cpu, memory;
    } lists[] = {
        {NULL, true, true, true},
        {"", true, true, true},
        {"cpu", false, true, false},
        {"cpu,memory", false, true, true},
        {"-cpu", true, false, true},
        {" -cpu , -load ", false, false, true},
        {"load cpu -cpu", true, false, false},
        {"cpu=off,load=0.25", true, false, true},
        {"cpu=off,load", true, false, false},
        {"memory=2 load=on", true, true, true},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct probe p = probe_make_with(t.root, 2, getuid(), NULL, lists[i].list);
        assert_int_equal(probe_sample(&p, "load", SECOND) > 0, lists[i].load);
        assert_int_equal(probe_sample(&p, "cpu", SECOND) > 0, lists[i].cpu);
        assert_int_equal(probe_sample(&p, "memory", SECOND) > 0, lists[i].memory);
        if (!lists[i].cpu)
            assert_str_equal(collect_reason(p.c, STR("cpu")), "switched off");
        probe_free(&p);
    }
    struct collect *c;
    struct error e;
    struct collect_options options = {
        .root = t.root, .level = 2, .folder = "/tmp", .sources = "cpu,warp"};
    assert_int_equal(collect_create(&options, &c, &e), -EINVAL);
    assert_non_null(strstr(e.text, "no source 'warp'"));
    tree_free(&t);
}

static int64_t rate_of(struct collect *c, const char *source)
{
    for (size_t i = 0; i < collect_set_count(c); i++) {
        struct collect_set set;
        collect_get_set(c, i, &set);
        if (str_eq(set.source, str_of(source)))
            return set.rate_ns;
    }
    return 0;
}

static void rates(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_copy(&t, "linux-6.18");
    struct collect_options options = {.root = t.root,
                                      .level = 2,
                                      .folder = "/tmp",
                                      .rate_s = 0.1,
                                      .sources = "cpu=0.05,filesystem=0.5"};
    struct collect *c;
    struct error e;
    assert_int_equal(collect_create(&options, &c, &e), 0);
    assert_int_equal(rate_of(c, "cpu"), SECOND / 20);       // the user's rate
    assert_int_equal(rate_of(c, "filesystem"), SECOND / 2); // even for a slow source
    assert_int_equal(rate_of(c, "memory"), SECOND / 10);    // the collector's rate
    assert_int_equal(rate_of(c, "load"), SECOND);           // its own, slower rate
    collect_destroy(c);
    options.rate_s = 7;
    options.sources = NULL;
    assert_int_equal(collect_create(&options, &c, &e), 0);
    assert_int_equal(rate_of(c, "load"), 7 * SECOND);
    collect_destroy(c);
    static const struct {
        const char *list, *unknown;
    } wrong[] = {{"cpu=fast", ""},         {"cpu=0", ""},         {"cpu=nan", ""}, {"cpu=-1", ""},
                 {"cpu=1e9", ""},          {"cpu=", ""},          {"=1", ""},      {"-", ""},
                 {"cpu=1,disc=2", "disc"}, {"load,-warp", "warp"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct str unknown;
        assert_int_equal(collect_check_sources(wrong[i].list, &unknown, &e), -EINVAL);
        assert_true(str_eq(unknown, str_of(wrong[i].unknown)));
    }
    struct str unknown;
    assert_int_equal(collect_check_sources(" , cpu=0.01 ,, ", &unknown, &e), 0);
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
               "cpu  1 2 3 99999999999999999999999 5\nctxt -5\nintr abc\nprocesses\nprocs_running "
               "7\ncpux 3\n");
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
    // More available than total: the share is not negative.
    tree_write(&t, "proc/meminfo",
               "MemTotal: 10 kB\nMemAvailable: 11 kB\nSwapTotal: 1 kB\nSwapFree: 2 kB\n");
    assert_true(probe_sample(&p, "memory", SECOND) > 0);
    assert_true(store_is_missing(probe_value(&p, "memory", "memory_used_percent")));
    assert_true(store_is_missing(probe_value(&p, "memory", "swap_used_bytes")));
    probe_free(&p);
    tree_free(&t);
}

// Useless files: an error with a reason, and values again once the file is valid.
static void useless_files_have_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *source, *path;
    } sources[] = {{"load", "proc/loadavg"},
                   {"cpu", "proc/stat"},
                   {"memory", "proc/meminfo"},
                   {"vmstat", "proc/vmstat"}};
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
    assert_true(str_find(collect_reason(p.c, STR("memory")), STR("larger than 4194304 bytes")) >=
                0);
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
    assert_int_equal(probe_sample(&p, "memory", SECOND), -ENXIO);
    struct str reason = collect_reason(p.c, STR("memory"));
    assert_true(str_find(reason, STR("/proc/meminfo: No such file")) > 0);
    assert_true(probe_sample(&p, "cpu", SECOND) > 0);
    assert_true(collect_reason(p.c, STR("warp")).size > 0);
    probe_free(&p);
    // Below its level, a source reports that.
    p = probe_make(t.root, 1, getuid());
    assert_int_equal(collect_set_count(p.c), 0);
    assert_true(str_find(collect_reason(p.c, STR("cpu")), STR("level")) >= 0);
    probe_free(&p);
    tree_free(&t);
    // A missing tree.
    p = probe_make("/nonexistent", 4, getuid());
    assert_int_equal(probe_sample(&p, "cpu", SECOND), -ENXIO);
    assert_true(str_find(collect_reason(p.c, STR("processes")), STR("No such file")) > 0);
    probe_free(&p);
}

// Root can read everything, so a child changes its uid.
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
             "%d (a) b (c)) R 1 1 1 0 -1 0 0 0 0 0 %d 10 0 0 20 0 %d 0 %d 1000 %d "
             "18446744073709551615\n",
             pid, ticks - 10, threads, start, pages);
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
    assert_true(store_is_missing(own(&p, "job_processes"))); // no job
    // One continues, one ends, one starts.
    write_process(&t, 100, 600, 3, 1, 10);
    tree_remove_all(&t, "proc/7");
    write_process(&t, 8, 50, 1, 3, 5);
    assert_int_equal(probe_sample(&p, "processes", t_ns += 100 * SECOND), 4);
    assert_true(own(&p, "own_processes") == 2);
    assert_true(own(&p, "own_cpu_seconds_total") == 7.5 + 1 + 0.5);
    // The same pid, but another process: all of its time is new, and nothing is subtracted.
    write_process(&t, 100, 20, 1, 9, 10);
    assert_int_equal(probe_sample(&p, "processes", t_ns += 100 * SECOND), 4);
    assert_true(own(&p, "own_cpu_seconds_total") == 9.2);
    // A decreasing counter subtracts nothing either.
    write_process(&t, 8, 30, 1, 3, 5);
    assert_int_equal(probe_sample(&p, "processes", t_ns += 100 * SECOND), 4);
    assert_true(own(&p, "own_cpu_seconds_total") == 9.2);
    // A process without readable details counts, but a sum over the others would not be the sum.
    static const char *const unreadable[] = {
        "9 (x R 1 2 3", "\n", "9 (x) R 1 1 1 0 -1 0 0 0 0 0 a b 0 0 20 0 c 0 1 1 1 1"};
    for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
        tree_write(&t, "proc/9/stat", unreadable[i]);
        assert_int_equal(probe_sample(&p, "processes", t_ns += 100 * SECOND), 1);
        assert_true(own(&p, "own_processes") == 3);
    }
    // A process that ends between the list and its file is not a gap.
    tree_remove(&t, "proc/9/stat");
    assert_int_equal(probe_sample(&p, "processes", t_ns += 100 * SECOND), 4);
    probe_free(&p);
    // Another user has no processes: that is a value, and it is 0.
    p = probe_make(t.root, 2, getuid() + 1);
    assert_int_equal(probe_sample(&p, "processes", SECOND), 4);
    assert_true(own(&p, "own_processes") == 0);
    probe_free(&p);
    tree_free(&t);
}

static void write_environ(struct tree *t, int pid, const char *text, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/proc/%d/environ", t->root, pid);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    fclose(f);
}

static void processes_of_the_job(void **state)
{
    (void)state;
    static char large[100000];
    struct tree t;
    tree_make(&t);
    for (int pid = 10; pid < 18; pid++)
        write_process(&t, pid, 100 * (pid - 9), 2, 1, 10);
#define ENVIRON(pid, text) write_environ(&t, pid, text, sizeof text)
    ENVIRON(10, "SONDE_JOB=j1\0PATH=/bin");
    ENVIRON(11, "PATH=/bin\0SONDE_JOB=j1");
    ENVIRON(12, "SONDE_JOB=j12\0PATH=/bin");
    ENVIRON(13, "XSONDE_JOB=j1\0PATH=/bin");
    // Across the boundary of a read.
    static const char variable[] = "SONDE_JOB=j1";
    memset(large, 'x', sizeof large);
    memcpy(large + 16384 - 6, variable, sizeof variable);
    large[16384 - 7] = 0;
    write_environ(&t, 14, large, sizeof large);
    memset(large, 'x', sizeof large);
    memcpy(large + 16384, variable, sizeof variable);
    large[16383] = 'x';
    write_environ(&t, 15, large, sizeof large); // the end of another variable's value
    large[16383] = 0;
    write_environ(&t, 16, large, sizeof large);
    // 17 has none yet, because it has not called exec.
    struct probe p = probe_make_with(t.root, 2, getuid(), "j1", NULL);
    assert_int_equal(probe_sample(&p, "processes", SECOND), 8);
    assert_true(own(&p, "own_processes") == 8);
    assert_true(own(&p, "job_processes") == 4);
    assert_true(own(&p, "job_threads") == 8);
    assert_true(own(&p, "job_resident_bytes") == 40. * (double)sysconf(_SC_PAGESIZE));
    assert_true(own(&p, "job_cpu_seconds_total") == 1 + 2 + 5 + 7);
    ENVIRON(17, "SONDE_JOB=j1");
    assert_int_equal(probe_sample(&p, "processes", 100 * SECOND), 8);
    assert_true(own(&p, "job_processes") == 5);
    probe_free(&p);
    tree_free(&t);
}

static void write_io(struct tree *t, int pid, unsigned long read_bytes, unsigned long written)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "proc/%d/io", pid);
    snprintf(text, sizeof text,
             "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: %lu\nwrite_bytes: "
             "%lu\ncancelled_write_bytes: 9\n",
             read_bytes, written);
    tree_write(t, path, text);
}

// The name in the brackets of stat, as a tag.
static const char NAME_AS_TAG[] = "a__b__c_";

static double of_process(struct probe *p, const char *name, const char *pid)
{
    return probe_tagged(p, "processes", name, pid, NAME_AS_TAG);
}

// The default of `sonde run` is level 2: each process of the job has a point in every sample,
// however seldom the sums of all processes come.
static void processes_of_the_job_at_every_sample(void **state)
{
    (void)state;
    static const struct {
        const char *sources;
        int64_t step_ns;
    } cases[] = {{NULL, 2 * SECOND}, {"processes=0.1", SECOND / 10}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        enum { OTHERS = 400 }; // enough that the details of all are due only after many samples
        struct tree t;
        tree_make(&t);
        tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/93 7740\n");
        for (int pid = 1000; pid < 1000 + OTHERS; pid++)
            write_process(&t, pid, 100, 1, 1, 1);
        write_process(&t, 100, 100, 4, 1, 10);
        ENVIRON(100, "SONDE_JOB=j1");
        write_io(&t, 100, 4096, 8192);
        write_process(&t, 101, 50, 1, 1, 20); // /proc/101/io cannot be read
        ENVIRON(101, "SONDE_JOB=j1");
        struct probe p = probe_make_with(t.root, 2, getuid(), "j1", cases[k].sources);
        int64_t t_ns = 1000 * SECOND;
        for (int i = 0; i < 2; i++, t_ns += cases[k].step_ns) // found, then reported
            probe_sample(&p, "processes", t_ns);
        for (int i = 0; i < 20; i++, t_ns += cases[k].step_ns) {
            write_process(&t, 100, 200 + i, 4, 1, 10);
            write_io(&t, 100, 4096ul * (unsigned)i, 8192ul * (unsigned)i);
            if (i % 3 == 0) // other users' processes start and end: the walk may not be due
                tree_write(&t, "proc/loadavg", i % 2 ? "0 0 0 1/93 7740\n" : "0 0 0 1/94 7741\n");
            assert_true(probe_sample(&p, "processes", t_ns) >= 8);
            assert_true(of_process(&p, "process_cpu_seconds_total", "100") == (200 + i) / 100.);
            assert_true(of_process(&p, "process_resident_bytes", "100") ==
                        10. * (double)sysconf(_SC_PAGESIZE));
            assert_true(of_process(&p, "process_threads", "100") == 4);
            assert_true(of_process(&p, "process_read_bytes_total", "100") == 4096. * i);
            assert_true(of_process(&p, "process_write_bytes_total", "100") == 8192. * i);
            assert_true(of_process(&p, "process_threads", "101") == 1);
            assert_true(store_is_missing(of_process(&p, "process_read_bytes_total", "101")));
            if (cases[k].sources) // requested explicitly: the sums of all are in every sample, too
                assert_true(own(&p, "own_threads") == OTHERS + 5 &&
                            own(&p, "own_processes") == OTHERS + 2);
        }
        probe_free(&p);
        tree_free(&t);
    }
}

// Time that was read between two walks counts once in the sums: a process counts from its last
// reading.
static void processor_time_is_counted_once(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    write_process(&t, 100, 100, 1, 1, 10);
    ENVIRON(100, "SONDE_JOB=j1");
    struct probe p = probe_make_with(t.root, 2, getuid(), "j1", NULL);
    for (int i = 0; i < 50; i++) {
        write_process(&t, 100, 100 + 10 * i, 1, 1, 10);
        probe_sample(&p, "processes", SECOND * (1 + 2 * i));
        double total = own(&p, "job_cpu_seconds_total");
        assert_true(store_is_missing(total) || total == (100 + 10 * i) / 100.);
        assert_true(store_is_missing(total) || own(&p, "own_cpu_seconds_total") == total);
    }
    probe_free(&p);
    tree_free(&t);
}

static void write_child(struct tree *t, int pid, int parent)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "proc/%d/stat", pid);
    snprintf(text, sizeof text, "%d (x) S %d 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 1 1000 1 1\n", pid,
             parent);
    tree_write(t, path, text);
}

// `env -i` and setuid programs have no readable environment: a child of the job's process belongs
// to the job.
static void children_of_the_job_are_of_the_job(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    write_process(&t, 100, 100, 1, 1, 10);
    ENVIRON(100, "SONDE_JOB=j1");
    write_child(&t, 101, 100);
    write_child(&t, 102, 101);
    write_child(&t, 90, 102); // pids have wrapped around: its parent is listed after it
    write_child(&t, 103, 7);
    struct probe p = probe_make_with(t.root, 2, getuid(), "j1", NULL);
    probe_sample(&p, "processes", SECOND);
    probe_sample(&p, "processes", 100 * SECOND);
    assert_true(own(&p, "own_processes") == 5 && own(&p, "job_processes") == 4);
    probe_free(&p);
    tree_free(&t);
}

// If there are more processes than places, those with the most time and the most memory are
// selected; they keep their series to the end.
static void processes_one_by_one(void **state)
{
    (void)state;
    enum { MANY = 300, ROWS = 5 };
    struct tree t;
    tree_make(&t);
    for (int pid = 100; pid < 100 + MANY; pid++) {
        write_process(&t, pid, pid, 2, 1,
                      // ticks increase with the number; the last ten have much memory, too
                      pid < 390 ? 1 : pid);
        ENVIRON(pid, "SONDE_JOB=j1");
        write_io(&t, pid, 1, 2);
    }
    write_process(&t, 105, 105, 3, 1, 1000);       // a process with more memory than time
    write_process(&t, 500, 1000000, 1, 1, 100000); // not part of the job
    struct probe p = probe_make_with(t.root, 1, getuid(), "j1", NULL);
    assert_true(probe_sample(&p, "processes", SECOND) <= 0); // not below level 2
    probe_free(&p);
    p = probe_make_with(t.root, 2, getuid(), "j1", NULL);
    probe_sample(&p, "processes", 100 * SECOND);
    for (int pid = 390; pid < 400; pid++)
        write_process(&t, pid, pid + 100, 2, 1, pid);
    probe_sample(&p, "processes", 200 * SECOND);
    assert_int_equal(probe_sample(&p, "processes", 300 * SECOND),
                     // 390…399 use the most time; 105 and nine of these the most memory
                     8 + ROWS * 11);
    assert_true(of_process(&p, "process_threads", "105") == 3);
    assert_true(of_process(&p, "process_cpu_seconds_total", "399") == 4.99);
    assert_true(of_process(&p, "process_resident_bytes", "105") ==
                1000. * (double)sysconf(_SC_PAGESIZE));
    // Another one becomes busy; the previous ones stay. An ended one has no values any more.
    write_process(&t, 101, 100000, 2, 1, 1);
    tree_remove_all(&t, "proc/399");
    probe_sample(&p, "processes", 400 * SECOND);
    probe_sample(&p, "processes", 500 * SECOND);
    assert_true(of_process(&p, "process_cpu_seconds_total", "101") == 1000);
    assert_true(of_process(&p, "process_threads", "105") == 3);
    assert_true(store_is_missing(of_process(&p, "process_threads", "399")));
    // A zombie has processor time, but no memory value, not even 0.
    tree_write(&t, "proc/101/stat",
               "101 (a) b (c)) Z 1 1 1 0 -1 0 0 0 0 0 100001 10 0 0 20 0 1 0 1 0 0 "
               "18446744073709551615\n");
    probe_sample(&p, "processes", 550 * SECOND);
    assert_true(of_process(&p, "process_cpu_seconds_total", "101") == 1000.11);
    assert_true(store_is_missing(of_process(&p, "process_resident_bytes", "101")));
    // Another process with the same pid gets series of its own only when it is read twice.
    write_process(&t, 101, 5, 2, 77, 1);
    probe_sample(&p, "processes", 600 * SECOND);
    assert_true(store_is_missing(of_process(&p, "process_cpu_seconds_total", "101")));
    probe_free(&p);
    tree_free(&t);
}

// While no process starts or ends, the counts hold without a walk.
static void counts_hold_while_nothing_changes(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    write_process(&t, 7, 250, 1, 2, 5);
    tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/93 7740\n");
    struct probe p = probe_make(t.root, 2, getuid());
    int64_t t_ns = 1000 * SECOND;
    assert_true(probe_sample(&p, "processes", t_ns) > 0);
    write_process(&t, 8, 250, 1, 2, 5); // not noticed: loadavg shows no new process
    assert_true(probe_sample(&p, "processes", t_ns += SECOND) > 0);
    assert_true(own(&p, "own_processes") == 1);
    tree_write(&t, "proc/loadavg", "0.99 0.12 0.04 2/93 7740\n"); // more of them run
    assert_true(probe_sample(&p, "processes", t_ns += SECOND / 2) > 0);
    assert_true(own(&p, "own_processes") == 1);
    static const char *const changes[] = {"0.41 0.12 0.04 1/92 7740\n",
                                          "0.41 0.12 0.04 1/92 7741\n", "garbage\n",
                                          "0.41 0.12 0.04 1-92 7741\n"};
    for (int i = 0; i < 4; i++) {
        tree_write(&t, "proc/loadavg", changes[i]);
        write_process(&t, 9 + i, 250, 1, 2, 5);
        assert_true(probe_sample(&p, "processes", t_ns += 11 * SECOND / 10) > 0);
        assert_true(own(&p, "own_processes") == 3 + i);
    }
    // A walk happens now and then nevertheless.
    tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/92 7741\n");
    assert_true(probe_sample(&p, "processes", t_ns += 3 * SECOND) > 0);
    write_process(&t, 20, 250, 1, 2, 5);
    assert_true(probe_sample(&p, "processes", t_ns += SECOND / 10) > 0);
    assert_true(own(&p, "own_processes") == 6);
    assert_true(probe_sample(&p, "processes", t_ns += 3 * SECOND) > 0);
    assert_true(own(&p, "own_processes") == 7);
    probe_free(&p);
    tree_free(&t);
}

static void a_name_with_brackets(void **state)
{
    (void)state;
    struct probe p = probe_make(TREES "/linux-6.18", 2, getuid());
    // The tree belongs to the user who checked it out.
    if (probe_sample(&p, "processes", SECOND) == 4 && own(&p, "own_processes") > 0) {
        assert_true(own(&p, "own_threads") == 12);
        assert_true(own(&p, "own_cpu_seconds_total") == 4);
    } else {
        skip();
    }
    probe_free(&p);
}

// This machine's own /proc: no exact values, only those that every Linux has.
static void this_machine(void **state)
{
    (void)state;
    struct probe p = probe_make("", 2, getuid());
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

// The details of many processes come less often, their number in every sample; a clock that goes
// back does not stop them.
static void details_come_less_often(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/93 7740\n");
    for (int pid = 1; pid <= 300; pid++)
        write_process(&t, pid, 100, 1, 1, 1);
    struct probe p = probe_make(t.root, 2, getuid());
    int64_t t_ns = 1000 * SECOND;
    assert_int_equal(probe_sample(&p, "processes", t_ns), 4);
    // Opening and reading 300 files takes more than 100 us, so 1/10000 of a processor is reached
    // only after more than a second.
    assert_int_equal(probe_sample(&p, "processes", t_ns + SECOND / 2), 1);
    assert_true(own(&p, "own_processes") == 300);
    assert_true(store_is_missing(own(&p, "own_threads")));
    assert_int_equal(probe_sample(&p, "processes", t_ns + 11 * SECOND), 4);
    assert_int_equal(probe_sample(&p, "processes", t_ns - 500 * SECOND), 4);
    // A process started right after a walk over many: the count would be outdated, so it is
    // missing.
    tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/93 7741\n");
    assert_true(probe_sample(&p, "processes", t_ns - 400 * SECOND) > 0);
    tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/93 7742\n");
    assert_int_equal(probe_sample(&p, "processes", t_ns - 400 * SECOND + 1000), 0);
    assert_true(store_is_missing(own(&p, "own_processes")));
    probe_free(&p);
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        // First, because it forks: a source that another test has abandoned may still have its
        // thread.
        cmocka_unit_test(files_without_permission_have_a_reason),
        cmocka_unit_test(recorded_trees),
        cmocka_unit_test(busy_share),
        cmocka_unit_test(spread_of_processors),
        cmocka_unit_test(lines_are_found_by_name),
        cmocka_unit_test(sources_are_switched_on_and_off),
        cmocka_unit_test(rates),
        cmocka_unit_test(wrapped_and_garbled_numbers_are_missing),
        cmocka_unit_test(useless_files_have_a_reason),
        cmocka_unit_test(too_large_a_file_is_refused),
        cmocka_unit_test(absent_sources_are_left_out),
        cmocka_unit_test(own_processes),
        cmocka_unit_test(a_name_with_brackets),
        cmocka_unit_test(this_machine),
        cmocka_unit_test(processes_of_the_job),
        cmocka_unit_test(processes_of_the_job_at_every_sample),
        cmocka_unit_test(processor_time_is_counted_once),
        cmocka_unit_test(children_of_the_job_are_of_the_job),
        cmocka_unit_test(processes_one_by_one),
        cmocka_unit_test(counts_hold_while_nothing_changes),
        cmocka_unit_test(details_come_less_often),
    };
    return cmocka_run_group_tests_name("collect/sources", tests, NULL, NULL);
}
