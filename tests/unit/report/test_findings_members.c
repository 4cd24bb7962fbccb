// Findings about ranks, files, spans and several hosts: each appears if its figures show it, and
// one cause is one finding.
#include "findings_world.h"
#include "report/finding_hosts.h"

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
        waiting[i] = (struct report_waiting){
            .rank = str_of(ranks[i]), .comm = STR("world"), .seconds = seconds[i]};
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

static void communicators_of_gpus(void **state)
{
    (void)state;
    struct world *w = begin();
    struct report_waiting waiting[] = {
        {REPORT_NCCL, STR("0"), STR("size-2"), 100}, {REPORT_NCCL, STR("0"), STR("data"), 300},
        {REPORT_NCCL, STR("1"), STR("size-2"), 200}, {REPORT_NCCL, STR("1"), STR("data"), 20},
        {REPORT_MPI, STR("0"), STR("data"), 900},    {REPORT_MPI, STR("1"), STR("data"), 0},
    };
    w->report.waiting = waiting;
    w->report.waiting_count = 6;
    assert_int_equal(count_of(w, "nccl_waiting"), 2); // a finding for each communicator
    assert_int_equal(count_of(w, "mpi_waiting"), 0);  // of MPI, only the world counts
    waiting[4].library = waiting[5].library = REPORT_NCCL;
    waiting[4].comm = waiting[5].comm = STR("size-2");
    waiting[4].rank = STR("2"), waiting[5].rank = STR("3");
    // There are two communicators of size 2, so it is not known who waits for whom in them.
    expect_in(the(w, "nccl_waiting")->title, "NCCL's collectives wait for rank 1: ");
    expect_in(the(w, "nccl_waiting")->m, "{comm=data,op=*,rank=*}");
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
        cmocka_unit_test(spans_within_each_other),
        cmocka_unit_test(slow_members),
        cmocka_unit_test(slow_members_of_one_cause_are_one_finding),
        cmocka_unit_test(one_cause_on_several_hosts_is_one_finding),
        cmocka_unit_test(many_hosts_are_counted),
        cmocka_unit_test(the_rank_that_collectives_wait_for),
        cmocka_unit_test(communicators_of_gpus),
        cmocka_unit_test(the_largest_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
