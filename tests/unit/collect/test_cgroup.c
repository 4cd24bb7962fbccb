// The job's control group on machines with Slurm, in containers, and on plain machines.
#include "tree.h"
#include "unit/test.h"

#include <unistd.h>

static const int64_t SECOND = 1000000000;

static double value(struct probe *p, const char *name)
{
    return probe_value(p, "cgroup", name);
}

static void version_2(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/self/cgroup",
               "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n");
    tree_write(&t, "proc/self/mountinfo",
               "25 30 0:23 / /sys rw - sysfs sysfs rw\n"
               "29 25 0:25 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
#define JOB "sys/fs/cgroup/system.slice/slurmstepd.scope/job_42/"
    tree_write(&t, JOB "memory.current", "1048576\n");
    tree_write(&t, JOB "memory.peak", "2097152\n");
    tree_write(&t, JOB "memory.max", "max\n");
    tree_write(&t, "sys/fs/cgroup/system.slice/slurmstepd.scope/memory.max", "8388608\n");
    tree_write(&t, "sys/fs/cgroup/system.slice/memory.max", "16777216\n");
    tree_write(&t, JOB "memory.events",
               "low 0\nhigh 0\nmax 3\noom 2\noom_kill 1\noom_group_kill 0\n");
    tree_write(&t, JOB "cpu.stat",
               "usage_usec 1500000\nuser_usec 1\nnr_periods 10\nnr_throttled 4\nthrottled_usec "
               "250000\nnr_bursts 9\n");
    tree_write(&t, JOB "pids.current", "17\n");
    tree_write(&t, JOB "step_0/memory.current", "5\n");
    struct probe p = probe_make(t.root, 2, getuid());
    assert_int_equal(probe_sample(&p, "cgroup", SECOND), 9);
    assert_true(value(&p, "cgroup_memory_bytes") == 1048576);
    assert_true(value(&p, "cgroup_memory_peak_bytes") == 2097152);
    assert_true(value(&p, "cgroup_memory_limit_bytes") == 8388608); // the limit of a parent group
    assert_true(store_is_missing(value(&p, "cgroup_swap_bytes")));
    assert_true(value(&p, "cgroup_oom_kills_total") == 1);
    assert_true(value(&p, "cgroup_cpu_seconds_total") == 1.5);
    assert_true(value(&p, "cgroup_periods_total") == 10);
    assert_true(value(&p, "cgroup_throttled_periods_total") == 4);
    assert_true(value(&p, "cgroup_throttled_seconds_total") == 0.25);
    assert_true(value(&p, "cgroup_tasks") == 17);
    tree_write(&t, JOB "memory.current", "max\n");
    tree_write(&t, JOB "memory.max", "4096\n");
    tree_write(&t, JOB "cpu.stat", "usage_usec 1600000\nnr_throttled x\n");
    assert_true(probe_sample(&p, "cgroup", 2 * SECOND) > 0);
    assert_true(store_is_missing(value(&p, "cgroup_memory_bytes")));
    assert_true(value(&p, "cgroup_memory_limit_bytes") == 4096);
    assert_true(value(&p, "cgroup_cpu_seconds_total") == 1.6);
    assert_true(store_is_missing(value(&p, "cgroup_throttled_periods_total")));
    probe_free(&p);
    tree_free(&t);
}

static void version_1(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_write(
        &t, "proc/self/cgroup",
        "9:name=systemd:/\n4:memory:/docker/abc/inner\n2:cpuacct,cpu:/docker/abc/inner\n0::/\n");
    // In a container, the mounted group is the container's own.
    tree_write(
        &t, "proc/self/mountinfo",
        "30 25 0:26 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "31 25 0:27 /docker/abc /sys/fs/cgroup/cpu rw master:9 - cgroup cgroup rw,cpuacct,cpu\n"
        "32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    tree_write(&t, "sys/fs/cgroup/memory/inner/memory.usage_in_bytes", "777\n");
    tree_write(&t, "sys/fs/cgroup/memory/inner/memory.max_usage_in_bytes", "888\n");
    tree_write(&t, "sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "9223372036854771712\n");
    tree_write(&t, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    tree_write(&t, "sys/fs/cgroup/memory/inner/memory.stat",
               "cache 1\nswap 2\nswapcached 3\ntotal_cache 4\ntotal_swap 5\ntotal_swapcached 6\n");
    tree_write(&t, "sys/fs/cgroup/memory/inner/memory.oom_control",
               "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    tree_write(&t, "sys/fs/cgroup/cpu/inner/cpuacct.usage", "2500000000\n");
    tree_write(&t, "sys/fs/cgroup/cpu/inner/cpu.stat",
               "nr_periods 5\nnr_throttled 2\nthrottled_time 1500000000\n");
    struct probe p = probe_make(t.root, 2, getuid());
    assert_int_equal(probe_sample(&p, "cgroup", SECOND), 8);
    assert_true(value(&p, "cgroup_memory_bytes") == 777);
    assert_true(value(&p, "cgroup_swap_bytes") == 5);
    assert_true(value(&p, "cgroup_memory_peak_bytes") == 888);
    assert_true(store_is_missing(value(&p, "cgroup_memory_limit_bytes"))); // no limit
    assert_true(value(&p, "cgroup_oom_kills_total") == 3);
    assert_true(value(&p, "cgroup_cpu_seconds_total") == 2.5);
    assert_true(value(&p, "cgroup_throttled_seconds_total") == 1.5);
    // no such controller; version 2 does not have it
    assert_true(store_is_missing(value(&p, "cgroup_tasks")));
    tree_write(&t, "sys/fs/cgroup/memory/inner/memory.stat", "cache 1\ntotal_cache 4\n");
    assert_int_equal(probe_sample(&p, "cgroup", 2 * SECOND), 7); // without swap accounting
    assert_true(store_is_missing(value(&p, "cgroup_swap_bytes")));
    probe_free(&p);
    tree_free(&t);
}

static void no_group(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/self/cgroup", "garbage\n0::/../../elsewhere\n");
    struct probe p = probe_make(t.root, 2, getuid());
    assert_true(str_find(collect_reason(p.c, STR("cgroup")), STR("mountinfo: No such file")) > 0);
    probe_free(&p);
    tree_write(&t, "proc/self/mountinfo",
               "- - -\n29 25 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    p = probe_make(t.root, 2, getuid());
    assert_true(str_find(collect_reason(p.c, STR("cgroup")), STR("in no control group")) > 0);
    probe_free(&p);
    // A group outside of what is mounted here: the mount point is the nearest.
    tree_write(&t, "sys/fs/cgroup/memory.current", "5\n");
    p = probe_make(t.root, 2, getuid());
    assert_int_equal(probe_sample(&p, "cgroup", SECOND), 1);
    assert_true(value(&p, "cgroup_memory_bytes") == 5);
    probe_free(&p);
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_2),
        cmocka_unit_test(version_1),
        cmocka_unit_test(no_group),
    };
    return cmocka_run_group_tests_name("collect/cgroup", tests, NULL, NULL);
}
