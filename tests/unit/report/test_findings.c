// Findings about nodes: each appears if its figures show it, not otherwise, and not with too few
// data.
#include "findings_world.h"

static void a_run_that_works_has_none(void **state)
{
    (void)state;
    struct world *w = begin();
    add(w, REPORT_JOB_CPU, "n1", "", steady, 12);
    add(w, REPORT_JOB_MEMORY, "n1", "", steady, 20 * GIB);
    add(w, REPORT_MEMORY_LIMIT, "n1", "", steady, 24 * GIB);
    add(w, REPORT_GPU, "n1", "0", steady, 93);
    add(w, REPORT_CGROUP_THROTTLED, "n1", "", steady, 0.1);
    add(w, REPORT_PRESSURE_IO, "n1", "", steady, 0.05);
    add(w, REPORT_NETWORK_IN, "n1", "eth0", steady, 2e8);
    report_find(&w->report);
    assert_int_equal(w->report.finding_count, 0);
    end(w);
    // And an empty report, without any finding.
    w = calloc(1, sizeof *w);
    w->report.arena = &w->arena;
    report_find(&w->report);
    assert_int_equal(w->report.finding_count, 0);
    end(w);
}

// ---- the end of a run

static void a_job_that_waits_at_its_end(void **state)
{
    (void)state;
    struct world *w = begin();
    add(w, REPORT_JOB_CPU, "n1", "", ends_at_half, 8);
    const struct report_finding *f = the(w, "idle_end");
    assert_int_equal(f->sureness, REPORT_SURE);
    assert_true(f->value == BUCKETS / 2 * BUCKET_S && f->weight == 0.5);
    expect_in(f->title, "after its last activity");
    assert_int_equal(f->start_ns, (int64_t)(BUCKETS / 2) * BUCKET_S * 1000000000);
    w->report.running = true;
    expect_in(the(w, "idle_end")->title, "nothing happens since 00:10:00");
    end(w);
    // A busy disk, network or GPU is not a pause.
    static const enum report_measure_id signs[] = {
        REPORT_DISK_READ, REPORT_DISK_WRITTEN, REPORT_NETWORK_IN, REPORT_NETWORK_OUT, REPORT_GPU};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        w = begin();
        add(w, REPORT_JOB_CPU, "n1", "", ends_at_half, 8);
        add(w, signs[i], "n1", "0", steady, signs[i] == REPORT_GPU ? 60 : 5e6);
        assert_int_equal(count_of(w, "idle_end"), 0);
        end(w);
    }
}

static void few_values_at_the_end(struct world *w, shape *s)
{
    w->report.measures[REPORT_CPU].count = 0;
    add(w, REPORT_JOB_CPU, "n1", "", s, 0);
}

// ---- processors

static void one_core(struct world *w, shape *s)
{
    add(w, REPORT_JOB_CPU, "n1", "", s, 1);
    add(w, REPORT_CPU_BUSIEST, "n1", "", s, 97);
}

static void one_core_of_many(void **state)
{
    (void)state;
    struct world *w = begin();
    one_core(w, steady);
    const struct report_finding *f = the(w, "one_core");
    assert_int_equal(f->sureness, REPORT_LIKELY);
    expect_in(f->title, "one core of 16 is busy");
    set_environment(w, "OMP_NUM_THREADS", "1");
    f = the(w, "one_core");
    assert_int_equal(f->sureness, REPORT_SURE);
    expect_in(f->advice, "OMP_NUM_THREADS");
    end(w);
    // Only 2 cores were requested; a GPU does the work; the work moves from core to core.
    w = begin();
    one_core(w, steady);
    set_environment(w, "SLURM_CPUS_ON_NODE", "2");
    assert_int_equal(count_of(w, "one_core"), 0);
    end(w);
    w = begin();
    one_core(w, steady);
    add(w, REPORT_GPU, "n1", "0", steady, 90);
    assert_int_equal(count_of(w, "one_core"), 0);
    end(w);
    w = begin();
    add(w, REPORT_JOB_CPU, "n1", "", steady, 1);
    add(w, REPORT_CPU_BUSIEST, "n1", "", steady, 30);
    assert_int_equal(count_of(w, "one_core"), 0);
    end(w);
    expect_silence_on_few_data(one_core, "one_core");
}

static void held_back(struct world *w, shape *s)
{
    add(w, REPORT_JOB_CPU, "n1", "", s, 3);
    add(w, REPORT_CGROUP_THROTTLED, "n1", "", s, 1);
}

static void a_limit_of_processor_time(void **state)
{
    (void)state;
    struct world *w = begin();
    held_back(w, steady);
    const struct report_finding *f = the(w, "cpu_limit");
    assert_true(f->value == 0.25);
    expect_in(f->title, "25 %");
    end(w);
    w = begin();
    add(w, REPORT_JOB_CPU, "n1", "", steady, 3);
    add(w, REPORT_CGROUP_THROTTLED, "n1", "", steady, 0.2);
    assert_int_equal(count_of(w, "cpu_limit"), 0);
    end(w);
    expect_silence_on_few_data(held_back, "cpu_limit");
}

// ---- memory

static void small_use(struct world *w, shape *s)
{
    add(w, REPORT_JOB_MEMORY, "n1", "", s, 12 * GIB);
    add(w, REPORT_MEMORY_LIMIT, "n1", "", s, 200 * GIB);
    add(w, REPORT_MEMORY_TOTAL, "n1", "", s, 256 * GIB);
}

static void more_memory_than_was_used(void **state)
{
    (void)state;
    struct world *w = begin();
    small_use(w, steady);
    const struct report_finding *f = the(w, "memory_request");
    assert_true(f->value == 0.06);
    expect_in(f->title, "used 6 % of");
    expect_in(f->title, "ask for 16G"); // 12 plus a quarter is 15, rounded up
    end(w);
    // The limit is only the node's memory; or most of it was used.
    w = begin();
    add(w, REPORT_JOB_MEMORY, "n1", "", steady, 12 * GIB);
    add(w, REPORT_MEMORY_LIMIT, "n1", "", steady, 256 * GIB);
    add(w, REPORT_MEMORY_TOTAL, "n1", "", steady, 256 * GIB);
    assert_int_equal(count_of(w, "memory_request"), 0);
    set_environment(w, "SLURM_MEM_PER_NODE", "102400"); // MiB
    expect_in(the(w, "memory_request")->title, "used 12 % of");
    end(w);
    w = begin();
    add(w, REPORT_JOB_MEMORY, "n1", "", steady, 120 * GIB);
    add(w, REPORT_MEMORY_LIMIT, "n1", "", steady, 200 * GIB);
    assert_int_equal(count_of(w, "memory_request"), 0);
    end(w);
    expect_silence_on_few_data(small_use, "memory_request");
}

static void memory_that_grows(void **state)
{
    (void)state;
    struct world *w = begin();
    add(w, REPORT_JOB_MEMORY, "n1", "", grows, 60 * GIB);
    add(w, REPORT_MEMORY_TOTAL, "n1", "", steady, 64 * GIB);
    const struct report_finding *f = the(w, "memory_growth");
    assert_int_equal(f->sureness, REPORT_LIKELY);
    assert_true(fabs(f->value / (180 * GIB) - 1) < 1e-6); // 60 GiB in a third of an hour
    expect_in(f->advice, "memory is full");
    add(w, REPORT_CGROUP_OOM, "n1", "", ends_at_half, 0.1);
    assert_int_equal(the(w, "memory_growth")->sureness, REPORT_SURE);
    end(w);
    // It grows to a plateau; it is freed at the end; it grows by little.
    static const struct {
        shape *at;
        double bytes;
    } others[] = {{grows_then_rests, 60}, {ends_at_half, 60}, {steady, 60}, {grows, 0.1}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        w = begin();
        add(w, REPORT_JOB_MEMORY, "n1", "", others[i].at, others[i].bytes * GIB);
        assert_int_equal(count_of(w, "memory_growth"), 0);
        end(w);
    }
    w = begin();
    add(w, REPORT_JOB_MEMORY, "n1", "", grows, 60 * GIB);
    w->report.to_ns = (int64_t)100 * 1000000000; // below the minimum of 2 minutes
    assert_int_equal(count_of(w, "memory_growth"), 0);
    end(w);
}

static void killed_processes(void **state)
{
    (void)state;
    struct world *w = begin();
    add(w, REPORT_OOM, "n1", "", steady, 0);
    assert_int_equal(count_of(w, "out_of_memory"), 0);
    end(w);
    w = begin();
    add(w, REPORT_OOM, "n1", "", steady, 0)->total = 2;
    const struct report_finding *f = the(w, "out_of_memory");
    assert_int_equal(f->sureness, REPORT_LIKELY); // of everything that the node runs
    expect_in(f->title, "2 processes were");
    add(w, REPORT_CGROUP_OOM, "n1", "", steady, 0)->total = 1;
    f = the(w, "out_of_memory");
    assert_int_equal(f->sureness, REPORT_SURE);
    expect_in(f->title, "1 process was");
    w->report.to_ns = 1000000000; // also for a run of 1 s
    assert_int_equal(count_of(w, "out_of_memory"), 1);
    end(w);
}

static void waits_for_memory(struct world *w, shape *s)
{
    add(w, REPORT_PRESSURE_MEMORY, "n1", "", s, 0.15);
    add(w, REPORT_SWAP_IN, "n1", "", s, 1e6);
    add(w, REPORT_SWAP_OUT, "n1", "", s, 1e6);
}

static void swapping(void **state)
{
    (void)state;
    struct world *w = begin();
    waits_for_memory(w, steady);
    const struct report_finding *f = the(w, "memory_pressure");
    assert_int_equal(f->sureness, REPORT_SURE);
    expect_in(f->title, "waited for memory 15 % of the time on n1");
    end(w);
    w = begin();
    add(w, REPORT_PRESSURE_MEMORY, "n1", "", steady, 0.01);
    add(w, REPORT_SWAP_IN, "n1", "", steady, 1e6);
    add(w, REPORT_SWAP_OUT, "n1", "", steady, 1e6);
    assert_int_equal(count_of(w, "memory_pressure"), 0);
    end(w);
    w = begin(); // a kernel that does not report how long tasks wait
    add(w, REPORT_SWAP_IN, "n1", "", steady, 1e6);
    add(w, REPORT_SWAP_OUT, "n1", "", steady, 1e6);
    expect_in(the(w, "memory_pressure")->title, "came back from swap space");
    end(w);
}

// ---- GPUs

static void idle_gpus(void **state)
{
    (void)state;
    struct world *w = begin();
    add(w, REPORT_JOB_CPU, "n1", "", steady, 8);
    for (int i = 0; i < 4; i++)
        add(w, REPORT_GPU, "n1", (const char *[]){"0", "1", "2", "3"}[i],
            i < 2 ? steady : ends_at_half, 90);
    const struct report_finding *f = the(w, "gpu_idle");
    expect_in(f->title, "GPUs 2 and 3 idle after 00:10:00");
    expect_in(f->m, "{host=n1,gpu=2|3}");
    assert_true(f->value == 600);
    assert_int_equal(count_of(w, "gpu_unused"), 0);
    end(w);
    w = begin();
    add(w, REPORT_JOB_CPU, "n1", "", steady, 8);
    add(w, REPORT_GPU, "n1", "0", steady, 90);
    add(w, REPORT_GPU, "n1", "1", steady, 0);
    expect_in(the(w, "gpu_unused")->title, "GPU 1 never used");
    assert_int_equal(count_of(w, "gpu_idle"), 0);
    end(w);
    w = begin(); // all GPUs, because the job waits: one finding
    add(w, REPORT_JOB_CPU, "n1", "", ends_at_half, 8);
    add(w, REPORT_GPU, "n1", "0", ends_at_half, 90);
    assert_int_equal(count_of(w, "gpu_idle"), 0);
    assert_int_equal(count_of(w, "idle_end"), 1);
    end(w);
}

static void unused_gpu(struct world *w, shape *s)
{
    add(w, REPORT_JOB_CPU, "n1", "", steady, 8);
    add(w, REPORT_GPU, "n1", "0", s, 0);
}

static void gpus_that_wait(void **state)
{
    (void)state;
    struct world *w = begin();
    struct report_span *s = step_of(w);
    expect_in(the(w, "gpu_waits")->title, "GPUs idle 38 % of the spans 'step'");
    assert_int_equal(w->report.findings[0].sureness, REPORT_LIKELY);
    s->inner = STR("load");
    s->inner_share = 0.4;
    const struct report_finding *f = the(w, "gpu_waits");
    assert_int_equal(f->sureness, REPORT_SURE);
    expect_in(f->title, "'load' takes 40 %");
    struct report_span before = *s;
    for (int i = 0; i < 5; i++) {
        *s = before;
        s->gpu_idle = i == 0 ? 0.2 : i == 1 ? (double)NAN : before.gpu_idle;
        s->share = i == 2 ? 0.1 : before.share;
        s->gpu_samples = i == 3 ? 99 : before.gpu_samples;
        s->count = i == 4 ? 9 : before.count;
        assert_int_equal(count_of(w, "gpu_waits"), 0);
    }
    end(w);
}

static void slowed_down(struct world *w, shape *s)
{
    add(w, REPORT_GPU_THERMAL, "n1", "0", s, 0.2);
}

static void gpus_that_are_slowed_down(void **state)
{
    (void)state;
    struct world *w = begin();
    slowed_down(w, steady);
    expect_in(the(w, "gpu_throttled")->title, "GPU 0 slowed down, at the temperature limit");
    add(w, REPORT_GPU_OVERHEATED, "n1", "0", steady, 0.1);
    expect_in(the(w, "gpu_throttled")->title, "too hot"); // only the worst cause
    end(w);
    w = begin();
    add(w, REPORT_GPU_THERMAL, "n1", "0", steady, 0.01);
    assert_int_equal(count_of(w, "gpu_throttled"), 0);
    end(w);
    expect_silence_on_few_data(slowed_down, "gpu_throttled");
    expect_silence_on_few_data(unused_gpu, "gpu_unused");
    expect_silence_on_few_data(few_values_at_the_end, "idle_end");
}

// ---- disks and networks

static void waits_for_disk(struct world *w, shape *s)
{
    add(w, REPORT_PRESSURE_IO, "n1", "", s, 0.4);
}

static void a_slow_disk(void **state)
{
    (void)state;
    struct world *w = begin();
    waits_for_disk(w, steady);
    const struct report_finding *f = the(w, "disk");
    assert_int_equal(f->sureness, REPORT_LIKELY);
    expect_in(f->title, "waited for a disk 40 % of the time");
    add(w, REPORT_DISK_BUSY, "n1", "sda", steady, 0.95);
    add(w, REPORT_DISK_READ, "n1", "sda", steady, 1e6);
    add(w, REPORT_DISK_WRITTEN, "n1", "sda", steady, 9e6);
    f = the(w, "disk");
    assert_int_equal(f->sureness, REPORT_SURE);
    expect_in(f->evidence, "sda was busy 95 %");
    expect_in(f->advice, "Write less");
    end(w);
    w = begin();
    add(w, REPORT_PRESSURE_IO, "n1", "", steady, 0.1);
    assert_int_equal(count_of(w, "disk"), 0);
    end(w);
    expect_silence_on_few_data(waits_for_disk, "disk");
}

static void full_link(struct world *w, shape *s)
{
    add(w, REPORT_NETWORK_OUT, "n1", "eth0", s, 0.94 * 1e9 / 8);
}

static void a_full_network(void **state)
{
    (void)state;
    struct world *w = begin();
    full_link(w, steady);
    const struct report_finding *f = the(w, "network");
    assert_int_equal(f->sureness, REPORT_POSSIBLE); // the link's own rate is unknown
    expect_in(f->title, "eth0 of n1 sent");
    expect_in(f->evidence, "of a link of 1 Gbit/s");
    end(w);
    // No usual link's rate; a moment only.
    w = begin();
    add(w, REPORT_NETWORK_OUT, "n1", "eth0", steady, 0.5 * 1e9 / 8);
    add(w, REPORT_NETWORK_OUT, "n1", "eth1", grows, 0.94 * 1e9 / 8);
    assert_int_equal(count_of(w, "network"), 0);
    end(w);
    expect_silence_on_few_data(full_link, "network");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_works_has_none),
        cmocka_unit_test(a_job_that_waits_at_its_end),
        cmocka_unit_test(one_core_of_many),
        cmocka_unit_test(a_limit_of_processor_time),
        cmocka_unit_test(more_memory_than_was_used),
        cmocka_unit_test(memory_that_grows),
        cmocka_unit_test(killed_processes),
        cmocka_unit_test(swapping),
        cmocka_unit_test(idle_gpus),
        cmocka_unit_test(gpus_that_wait),
        cmocka_unit_test(gpus_that_are_slowed_down),
        cmocka_unit_test(a_slow_disk),
        cmocka_unit_test(a_full_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
