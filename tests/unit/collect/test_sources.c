// The sources with recorded trees, and with damaged trees.
#include "tree.h"
#include "unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
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

// This machine's own /proc: checks no exact values, only the existence of those that every Linux
// has.
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
    assert_true(probe_value(&p, "processes", "own_processes") >= 1);
    assert_true(probe_value(&p, "processes", "own_resident_bytes") > 0);
    probe_free(&p);
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
        cmocka_unit_test(this_machine),
    };
    return cmocka_run_group_tests_name("collect/sources", tests, NULL, NULL);
}
