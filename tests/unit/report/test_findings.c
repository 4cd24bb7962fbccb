// Findings: each appears if its figures show it, not otherwise, and not with too few data.
#include "report/finding_hosts.h"
#include "report/findings.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS = 120, BUCKET_S = 10, LINES_MAX = 4 };
static const double GIB = 1 << 30;

// A report with manual data: a run of 1,200 s on one node that is busy until its end.
struct world {
    struct arena arena;
    struct report report;
    struct report_line lines[REPORT_MEASURES_COUNT][LINES_MAX];
    double buckets[REPORT_MEASURES_COUNT][LINES_MAX][BUCKETS];
    struct report_key environment[2];
    struct report_straggler straggler;
    struct report_node nodes[LINES_MAX];
};

typedef double shape(size_t bucket, double value);

static double steady(size_t bucket, double value)
{
    (void)bucket;
    return value;
}

static double ends_at_half(size_t bucket, double value)
{
    return bucket < BUCKETS / 2 ? value : 0;
}

static double grows(size_t bucket, double value)
{
    return value * (double)(bucket + 1) / BUCKETS;
}

static double grows_then_rests(size_t bucket, double value)
{
    return bucket < BUCKETS / 2 ? grows(2 * bucket, value) : value;
}

static double rarely_there(size_t bucket, double value)
{
    return bucket % 15 == 0 ? value : (double)NAN;
}

// Adds a series with the maximum `value`. A counter's values are rates.
static struct report_line *add(struct world *w, enum report_measure_id id, const char *host,
                               const char *part, shape *at, double value)
{
    struct report_measure *m = &w->report.measures[id];
    struct report_line *l = &w->lines[id][m->count];
    double *buckets = w->buckets[id][m->count], sum = 0;
    assert_true(m->count < LINES_MAX);
    *l = (struct report_line){
        .host = str_of(host), .part = str_of(part), .buckets = buckets, .total = (double)NAN};
    for (size_t i = 0; i < BUCKETS; i++) {
        buckets[i] = at(i, value);
        if (isnan(buckets[i]))
            continue;
        sum += buckets[i];
        l->points += 1;
        l->peak = fmax(l->peak, buckets[i]);
    }
    l->mean = sum / l->points;
    if (m->counter)
        l->total = sum * BUCKET_S;
    m->lines = w->lines[id];
    m->count++;
    return l;
}

static struct world *begin(void)
{
    struct world *w = calloc(1, sizeof *w);
    struct report *r = &w->report;
    assert_non_null(w);
    *r = (struct report){.arena = &w->arena,
                         .nodes = w->nodes,
                         .node_count = 1,
                         .ended = true,
                         .bucket_count = BUCKETS,
                         .bucket_ns = (int64_t)BUCKET_S * 1000000000,
                         .to_ns = (int64_t)BUCKETS * BUCKET_S * 1000000000,
                         .end_ns = (int64_t)BUCKETS * BUCKET_S * 1000000000,
                         .environment = w->environment};
#define NAME(id, name, tag, kind)                   \
    r->measures[REPORT_##id].metric = str_of(name); \
    r->measures[REPORT_##id].counter = strcmp(#kind, "COUNTER") == 0;
    REPORT_MEASURES(NAME)
#undef NAME
    add(w, REPORT_CPU, "n1", "", steady, 50);
    add(w, REPORT_CPU_COUNT, "n1", "", steady, 16);
    return w;
}

static void set_environment(struct world *w, const char *key, const char *value)
{
    w->environment[w->report.environment_count++] = (struct report_key){str_of(key), str_of(value)};
}

static size_t count_of(struct world *w, const char *kind)
{
    size_t found = 0;
    report_find(&w->report);
    for (size_t i = 0; i < w->report.finding_count; i++) {
        const struct report_finding *f = &w->report.findings[i];
        found += strcmp(f->kind, kind) == 0;
        // Every finding has all of these fields.
        assert_true(f->title.size && f->evidence.size && f->advice.size && f->unit[0]);
        assert_true(isfinite(f->value) && f->weight >= 0 && f->weight <= 1);
        assert_true(f->start_ns < f->end_ns);
    }
    return found;
}

static const struct report_finding *the(struct world *w, const char *kind)
{
    assert_int_equal(count_of(w, kind), 1);
    for (size_t i = 0;; i++)
        if (strcmp(w->report.findings[i].kind, kind) == 0)
            return &w->report.findings[i];
}

static void end(struct world *w)
{
    arena_free(&w->arena);
    free(w);
}

static void expect_in(struct str text, const char *words)
{
    char line[512];
    snprintf(line, sizeof line, "%.*s", STR_ARG(text));
    if (!strstr(line, words))
        fail_msg("'%s' does not say '%s'", line, words);
}

// Checks each case once more with a tenth of the values, and as a run of 40 s.
typedef void fill(struct world *w, shape *s);

static void expect_silence_on_few_data(fill *f, const char *kind)
{
    struct world *w = begin();
    f(w, rarely_there);
    assert_int_equal(count_of(w, kind), 0);
    end(w);
    w = begin();
    f(w, steady);
    w->report.to_ns = (int64_t)40 * 1000000000;
    w->report.bucket_count = 4;
    assert_int_equal(count_of(w, kind), 0);
    end(w);
}

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

static struct report_span *step_of(struct world *w)
{
    struct report_span *s = &w->report.spans[w->report.span_count++];
    *s = (struct report_span){.name = STR("step"),
                              .count = 1000,
                              .mean_s = 1,
                              .share = 0.9,
                              .members = 1,
                              .imbalance = (double)NAN,
                              .gpu_idle = 0.38,
                              .gpu_samples = 5000};
    return s;
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

// ---- ranks

static void slow_members(void **state)
{
    (void)state;
    struct world *w = begin();
    w->straggler = (struct report_straggler){.what = STR("step"),
                                             .member = STR("host=n1,rank=3"),
                                             .span = true,
                                             .now = true,
                                             .factor = 1.5,
                                             .against = STR("others"),
                                             .rounds = 40,
                                             .since_ns = (int64_t)300 * 1000000000,
                                             .until_ns = (int64_t)1200 * 1000000000};
    w->report.stragglers = &w->straggler;
    w->report.straggler_count = 1;
    const struct report_finding *f = the(w, "straggler");
    assert_int_equal(f->sureness, REPORT_SURE);
    expect_in(f->title,
              "host=n1,rank=3 is 1.50 times as slow as the others in step since 00:05:00");
    expect_in(f->hosts, "n1");
    // Its unevenly divided span is part of the same finding.
    struct report_span *s = step_of(w);
    s->gpu_idle = (double)NAN;
    s->members = 4;
    s->imbalance = 1.5;
    s->slowest = w->straggler.member;
    assert_int_equal(count_of(w, "imbalance"), 0);
    w->straggler.factor = 1; // not slower
    assert_int_equal(count_of(w, "straggler"), 0);
    w->report.straggler_count = 0;
    expect_in(the(w, "imbalance")->title, "'step' takes host=n1,rank=3 50 % longer");
    struct report_span before = *s;
    for (int i = 0; i < 4; i++) {
        *s = before;
        s->members = i == 0 ? 1 : before.members;
        s->imbalance = i == 1 ? 1.1 : before.imbalance;
        s->count = i == 2 ? 39 : before.count;
        s->share = i == 3 ? 0.1 : before.share;
        assert_int_equal(count_of(w, "imbalance"), 0);
    }
    end(w);
}

static struct report_straggler slow(const char *what, bool span, const char *member, double factor)
{
    return (struct report_straggler){.what = str_of(what),
                                     .member = str_of(member),
                                     .span = span,
                                     .now = true,
                                     .factor = factor,
                                     .against = STR("others"),
                                     .rounds = (uint64_t)(factor * 10),
                                     .since_ns = (int64_t)(factor * 100) * 1000000000,
                                     .until_ns = (int64_t)1200 * 1000000000};
}

static void slow_members_of_one_cause_are_one_finding(void **state)
{
    (void)state;
    struct world *w = begin();
    struct report_straggler all[] = {
        slow("step", true, "host=n10,rank=4", 2), slow("step", true, "host=n2,rank=2", 1.8),
        slow("step", true, "gpu=0,host=n2,rank=3", 1.6), slow("wait", false, "host=n3", 1.5)};
    w->report.node_count = 3;
    w->report.stragglers = all;
    w->report.straggler_count = 3;
    const struct report_finding *f = the(w, "straggler");
    expect_in(f->title,
              "3 members of n2 and n10 are up to 2.00 times as slow as the others in step "
              "since 00:02:40");
    expect_in(f->evidence, "gpu=0,host=n2,rank=3, host=n2,rank=2 and host=n10,rank=4: 1.60 to 2.00 "
                           "times, 16 to 20 rounds, until 00:20:00");
    expect_in(f->evidence, "the slowest is host=n10,rank=4");
    expect_in(f->advice, "exclude them");
    assert_true(str_eq(f->hosts, STR("n2,n10")) && f->value == 2 && str_eq(f->span, STR("step")));
    w->report.straggler_count = 4; // another measure, another member
    assert_int_equal(count_of(w, "straggler"), 2);
    all[2].now = false; // over
    assert_int_equal(count_of(w, "straggler"), 3);
    all[0] = slow("step", true, "host=n3", 2);
    all[1] = slow("step", true, "host=n1", 2);
    w->report.straggler_count = 2;
    f = the(w, "straggler");
    expect_in(f->title, "n1 and n3 are up to 2.00 times");
    expect_in(f->evidence, "2.00 to 2.00 times, 20 rounds, until");
    // One member in two measures beside each other: one finding that names both.
    all[0] = slow("step", true, "host=n3", 1.7);
    all[1] = all[3];
    w->report.straggler_count = 2;
    f = the(w, "straggler");
    expect_in(f->title, "host=n3 is 1.70 times as slow as the others in step");
    expect_in(f->evidence, "also slow in wait, 1.50 times");
    end(w);
}

static void one_cause_on_several_hosts_is_one_finding(void **state)
{
    (void)state;
    static const struct {
        enum report_measure_id id;
        const char *kind, *part, *title, *m;
        shape *at;
        double value;
    } causes[] = {
        {REPORT_PRESSURE_IO, "disk", "", "up to 40 % of the time on n2 and n10",
         "pressure_io_some_seconds_total{host=n2|n10}", steady, 0.4},
        {REPORT_PRESSURE_MEMORY, "memory_pressure", "", "up to 40 % of the time on n2 and n10",
         "pressure_memory_some_seconds_total{host=n2|n10}", steady, 0.4},
        {REPORT_NETWORK_IN, "network", "eth0", "eth0 of n2 and n10 received up to",
         "{host=n2|n10,interface=eth0}", steady, 0.94 * 1e9 / 8},
        {REPORT_MEMORY, "memory_growth", "", "an hour on n2 and n10",
         "memory_used_bytes{host=n2|n10}", grows, 60 * (double)(1 << 30)},
        {REPORT_OOM, "out_of_memory", "", "because memory ran out on n2 and n10", "oom_kills_total",
         steady, 1},
        {REPORT_GPU_THERMAL, "gpu_throttled", "0", "GPUs 0 of n2; 0 of n10 slowed down",
         "gpu_throttle_thermal{host=n2|n10,gpu=0}", steady, 0.4},
    };
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        struct world *w = begin();
        w->report.node_count = 3;
        add(w, causes[i].id, "n2", causes[i].part, causes[i].at, causes[i].value * 0.98);
        add(w, causes[i].id, "n10", causes[i].part, causes[i].at, causes[i].value);
        add(w, causes[i].id, "n11", causes[i].part, steady, 0);
        const struct report_finding *f = the(w, causes[i].kind);
        expect_in(f->title, causes[i].title);
        expect_in(f->m, causes[i].m);
        assert_true(str_eq(f->hosts, STR("n2,n10")));
        end(w);
    }
}

static void many_hosts_are_counted(void **state)
{
    (void)state;
    struct world *w = begin();
    struct report *r = &w->report;
    struct finding_hosts hosts = {0};
    r->node_count = 40;
    for (int i = 39; i >= 0; i--) {
        finding_hosts_add(r, &hosts, finding_text(r, "n%d", i));
        finding_hosts_add(r, &hosts, finding_text(r, "n%d", 39 - i / 2));
    }
    assert_int_equal(hosts.count, 40);
    expect_in(finding_hosts_names(r, &hosts), "all 40 nodes");
    r->node_count = 41;
    expect_in(finding_hosts_names(r, &hosts), "n0, n1, n2, n3 and 36 more");
    expect_in(finding_hosts_list(r, &hosts), "n8,n9,n10,n11");
    assert_int_equal(finding_hosts_filter(r, &hosts, STR("")).size, 0);
    expect_in(finding_hosts_filter(r, &hosts, STR("gpu=1")), "{gpu=1}");
    end(w);
}

// Seconds of the ranks 0, 1, … in collectives of MPI_COMM_WORLD.
static size_t waiting_for(struct world *w, const double *seconds, size_t count)
{
    static const char *const ranks[] = {"0", "1", "2", "3", "4"};
    static struct report_waiting waiting[5];
    for (size_t i = 0; i < count; i++)
        waiting[i] = (struct report_waiting){str_of(ranks[i]), STR("world"), seconds[i]};
    w->report.waiting = waiting;
    w->report.waiting_count = count;
    return count_of(w, "mpi_waiting");
}

static void the_rank_that_collectives_wait_for(void **state)
{
    (void)state;
    struct world *w = begin();
    static const double late[] = {300, 310, 20, 290}, even[] = {300, 310, 280, 290},
                        two_late[] = {300, 30, 20, 310}, pair[] = {20, 300};
    assert_int_equal(waiting_for(w, even, 4), 0); // less than 5 % of 1,200 s
    assert_int_equal(waiting_for(w, late, 1), 0); // one rank
    assert_int_equal(waiting_for(w, late, 4), 1);
    const struct report_finding *f = the(w, "mpi_waiting");
    expect_in(f->title, "rank 2:");
    expect_in(f->title, "23 % of the run"); // the upper median, 300 s, less 20 s
    assert_true(str_eq(f->member, STR("rank=2")));
    assert_int_equal(f->sureness, REPORT_SURE);
    assert_int_equal(waiting_for(w, two_late, 4), 1);
    assert_int_equal(the(w, "mpi_waiting")->sureness, REPORT_LIKELY);
    assert_int_equal(waiting_for(w, pair, 2), 1);
    expect_in(the(w, "mpi_waiting")->title, "rank 0:");
    w->report.to_ns = 10 * (int64_t)1000000000; // too short a time, although a large share
    static const double short_time[] = {0.9, 0.05};
    assert_int_equal(waiting_for(w, short_time, 2), 0);
    end(w);
}

static void the_largest_file(void **state)
{
    (void)state;
    struct world *w = begin();
    static struct report_file files[] = {
        {.path = {"other", 5}, .read = 9e9, .calls = 1e6, .seconds = 500},
        {.path = {"/a", 2}, .read = 1e6, .written = 2e8, .calls = 1000, .seconds = 1},
        {.path = {"/b", 2}, .read = 2e6, .calls = 100, .seconds = 2}};
    w->report.files = files;
    assert_int_equal(count_of(w, "io_file"), 0); // not traced
    w->report.file_count = 3;
    assert_int_equal(count_of(w, "io_file"), 0); // neither large nor slow
    files[1].written = 3e8;
    expect_in(the(w, "io_file")->title, "/a,");
    assert_int_equal(the(w, "io_file")->sureness, REPORT_POSSIBLE);
    expect_in(the(w, "io_file")->evidence, "1000 calls");
    files[1].written = 1e5;
    files[1].read = 0;
    files[2].seconds = 100;
    expect_in(the(w, "io_file")->title, "/b,");
    expect_in(the(w, "io_file")->advice, "larger blocks");
    assert_int_equal(the(w, "io_file")->sureness, REPORT_LIKELY);
    end(w);
}

// An epoch consists of steps; a step loads for a part of its time.
static void spans_within_each_other(void **state)
{
    (void)state;
    struct world *w = begin();
    static const char *const names[] = {"epoch", "step", "load"};
    static const double seconds[] = {1000, 980, 500};
    for (size_t i = 0; i < 3; i++) {
        struct report_span *s = step_of(w);
        s->name = str_of(names[i]);
        s->outer = str_of(i ? names[i - 1] : "");
        s->total_s = seconds[i];
    }
    // The epoch says nothing else than the step; the step's GPUs idle while it does not load, too.
    expect_in(the(w, "gpu_waits")->title, "'step'");
    expect_in(the(w, "gpu_waits")->evidence, "'epoch', around it");
    expect_in(the(w, "gpu_waits")->evidence, "'load', within it");
    w->report.spans[2].outer = STR("");
    assert_int_equal(count_of(w, "gpu_waits"), 2); // beside each other
    w->report.spans[2].outer = STR("step");
    for (size_t i = 0; i < 3; i++) {
        struct report_span *s = &w->report.spans[i];
        s->gpu_idle = (double)NAN;
        s->members = 4;
        s->slowest = STR("host=n1,rank=3");
        s->imbalance = i == 2 ? 2 : 1.5;
    }
    // 500 s of a member that takes twice as long are all of 490 s and of 500 s.
    expect_in(the(w, "imbalance")->title, "'load'");
    w->report.spans[2].imbalance = 1.25; // 125 s
    expect_in(the(w, "imbalance")->title, "'step'");
    w->report.spans[2].slowest = STR("host=n2,rank=4"); // another one
    assert_int_equal(count_of(w, "imbalance"), 2);
    end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_works_has_none),
        cmocka_unit_test(spans_within_each_other),
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
        cmocka_unit_test(slow_members),
        cmocka_unit_test(slow_members_of_one_cause_are_one_finding),
        cmocka_unit_test(one_cause_on_several_hosts_is_one_finding),
        cmocka_unit_test(many_hosts_are_counted),
        cmocka_unit_test(the_rank_that_collectives_wait_for),
        cmocka_unit_test(the_largest_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
