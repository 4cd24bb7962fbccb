// The queue between the sampling thread and the storing thread: its order, a full queue, and both
// threads at once.
#include "agent/sampler.h"
#include "base/clock.h"
#include "unit/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    unsigned count;
};

static void ring(void *user)
{
    struct bell *bell = user;
    pthread_mutex_lock(&bell->lock);
    bell->count++;
    pthread_cond_signal(&bell->rung);
    pthread_mutex_unlock(&bell->lock);
}

// The delay after which a hanging source is reported.
static int64_t silence_ns = 1;

static struct collect *collect_within(int64_t deadline_ns, double rate_s, const char *sources,
                                      const char *folder)
{
    static const struct store_label host = {{"host", 4}, {"lab", 3}};
    struct collect_options options = {.root = "",
                                      .labels = &host,
                                      .label_count = 1,
                                      .level = 2,
                                      .rate_s = rate_s,
                                      .folder = folder,
                                      .uid = getuid(),
                                      .sources = sources,
                                      .deadline_ns = deadline_ns,
                                      .silence_ns = silence_ns};
    struct collect *c;
    assert_int_equal(collect_create(&options, &c, NULL), 0);
    return c;
}

static struct collect *collect_with_folder(double rate_s, const char *sources, const char *folder)
{
    return collect_within(0, rate_s, sources, folder);
}

// All sources of this machine, which may be busy: none misses an instant.
static struct collect *collect_here(double rate_s)
{
    return collect_within(INT64_C(60) * NS_PER_S, rate_s, NULL, "/tmp");
}

static void rows_come_in_order_and_end_with_the_instant(void **state)
{
    (void)state;
    struct collect *c = collect_here(1);
    struct sampler *s;
    assert_int_equal(sampler_create(c, 1, ring, NULL, &s, NULL), 0);
    size_t sets = collect_set_count(c);
    assert_true(sets >= 3);
    assert_null(sampler_next(s));
    for (int64_t t_ns = 100 * INT64_C(1000000000); t_ns <= 200 * INT64_C(1000000000);
         t_ns += 50 * INT64_C(1000000000)) {
        sampler_take(s, t_ns);
        size_t rows = 0;
        for (struct sampler_row *row; (row = sampler_next(s)) && row->set;
             sampler_done(s), rows++) {
            assert_int_equal(row->t_ns, t_ns);
            assert_true(row->set->count > 0);
            assert_str_equal(row->set->series[0].labels[0].value, "lab");
        }
        assert_int_equal(rows, sets);
        assert_non_null(sampler_next(s));
        assert_int_equal(sampler_next(s)->figures.dropped, 0);
        sampler_done(s);
        assert_null(sampler_next(s));
    }
    sampler_destroy(s);
    collect_destroy(c);
}

static void a_full_queue_drops_and_counts(void **state)
{
    (void)state;
    struct collect *c = collect_here(1);
    struct sampler *s;
    assert_int_equal(sampler_create(c, 1, ring, NULL, &s, NULL), 0);
    int64_t t_ns = 100 * INT64_C(1000000000);
    // Nothing reads the queue while far more rows arrive than it has places.
    for (int i = 0; i < SAMPLER_PLACES; i++)
        sampler_take(s, t_ns += 50 * INT64_C(1000000000));
    size_t rows = 0;
    while (sampler_next(s)) {
        sampler_done(s);
        rows++;
    }
    assert_int_equal(rows, SAMPLER_PLACES);
    // With room again, later rows arrive complete, with the number of lost ones.
    sampler_take(s, t_ns += 50 * INT64_C(1000000000));
    uint64_t dropped = 0;
    rows = 0;
    for (struct sampler_row *row; (row = sampler_next(s)); sampler_done(s), rows++)
        dropped = row->set ? dropped : row->figures.dropped;
    assert_int_equal(rows, collect_set_count(c) + 1);
    assert_true(dropped > SAMPLER_PLACES);
    sampler_destroy(s);
    collect_destroy(c);
}

static void two_threads(void **state)
{
    (void)state;
    enum { INSTANTS = 30 };
    struct bell bell = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    struct collect *c = collect_here(0.005);
    struct sampler *s;
    assert_int_equal(sampler_create(c, 0.005, ring, &bell, &s, NULL), 0);
    assert_int_equal(sampler_start(s, NULL), 0);
    unsigned instants = 0;
    int64_t last_ns = 0;
    while (instants < INSTANTS) {
        pthread_mutex_lock(&bell.lock);
        while (bell.count == 0)
            pthread_cond_wait(&bell.rung, &bell.lock);
        bell.count = 0;
        pthread_mutex_unlock(&bell.lock);
        for (struct sampler_row *row; (row = sampler_next(s)); sampler_done(s)) {
            assert_int_equal(row->t_ns % 5000000, 0);
            if (row->set)
                continue;
            assert_true(row->t_ns > last_ns || last_ns - row->t_ns > NS_PER_S);
            last_ns = row->t_ns;
            assert_true(row->figures.lateness_ns >= 0);
            instants++;
        }
    }
    sampler_stop(s);
    sampler_destroy(s);
    collect_destroy(c);
    pthread_cond_destroy(&bell.rung);
}

static _Atomic bool hang;
static const char *_Atomic answers = ""; // this folder still answers

// Replaces the C library's: simulates a file server that does not answer.
int statvfs(const char *path, struct statvfs *out)
{
    while (atomic_load(&hang) && !str_eq(str_of(path), str_of(answers)))
        usleep(1000);
    *out = (struct statvfs){.f_bsize = 4096, .f_blocks = 1000};
    return 0;
}

// The collector reports the hang once, and once more when the folder answers.
static void cut_off_and_back(const char *folder, const char *part)
{
    struct collect *c = collect_with_folder(1, "filesystem", folder);
    struct sampler *s;
    assert_int_equal(sampler_create(c, 1, ring, NULL, &s, NULL), 0);
    atomic_store(&hang, true);
    unsigned off = 0, on = 0, instants = 0;
    for (int64_t i = 1; i <= 200 && on == 0; i++) {
        sampler_take(s, i * NS_PER_S);
        for (struct sampler_row *row; (row = sampler_next(s)); sampler_done(s)) {
            off += row->source.size && row->cut_off;
            on += row->source.size && !row->cut_off;
            instants += !row->set && !row->source.size;
            assert_true(!row->source.size || str_eq(row->source, STR("filesystem")));
            assert_true(!row->source.size || row->t_ns == i * NS_PER_S);
            if (row->source.size)
                assert_string_equal(row->part, part);
        }
        assert_int_equal(off, 1);
        if (i == 3)
            atomic_store(&hang, false);
        if (i >= 3)
            usleep(10000);
    }
    assert_int_equal(on, 1);
    assert_true(instants >= 4);
    sampler_destroy(s);
    collect_destroy(c);
}

static void a_hanging_source_is_cut_off(void **state)
{
    (void)state;
    cut_off_and_back("/tmp", "/tmp");
}

// A source that only answers late is not reported, because that is normal on a busy machine.
static void a_late_source_misses_its_instant(void **state)
{
    (void)state;
    silence_ns = INT64_C(60) * NS_PER_S;
    struct collect *c = collect_with_folder(1, "filesystem", "/tmp");
    silence_ns = 1;
    struct sampler *s;
    assert_int_equal(sampler_create(c, 1, ring, NULL, &s, NULL), 0);
    double values[STORE_SET_SERIES_MAX];
    atomic_store(&hang, true);
    assert_true(collect_sample(c, 0, NS_PER_S, values) <= 1);
    assert_true(collect_reason(c, STR("filesystem")).size > 0);
    sampler_take(s, 2 * NS_PER_S);
    atomic_store(&hang, false);
    for (struct sampler_row *row; (row = sampler_next(s)); sampler_done(s))
        assert_int_equal(row->source.size, 0);
    sampler_destroy(s);
    collect_destroy(c);
}

static void a_hanging_folder_is_cut_off_alone(void **state)
{
    (void)state;
    answers = "/tmp";
    cut_off_and_back("/some/run", "/some/run");
    answers = "";
}

static bool has_value(const struct sampler_row *row, double value)
{
    for (size_t i = 0; row->set && i < row->set->count; i++)
        if (row->values[i] == value)
            return true;
    return false;
}

// An answer that comes after the wait is recorded soon, although the next sample is an hour away.
static void a_late_source_that_is_sampled_seldom(void **state)
{
    (void)state;
    struct bell bell = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    atomic_store(&hang, true);
    struct collect *c = collect_with_folder(0.03, "cpu,filesystem=3600", "/tmp");
    struct sampler *s;
    assert_int_equal(sampler_create(c, 0.03, ring, &bell, &s, NULL), 0);
    sampler_be_prompt(s, true);
    assert_int_equal(sampler_start(s, NULL), 0);
    int64_t begun_ns = clock_monotonic_ns();
    for (bool answered = false; !answered;) {
        pthread_mutex_lock(&bell.lock);
        while (bell.count == 0)
            pthread_cond_wait(&bell.rung, &bell.lock);
        bell.count = 0;
        pthread_mutex_unlock(&bell.lock);
        for (struct sampler_row *row; (row = sampler_next(s)); sampler_done(s)) {
            answered = answered || has_value(row, 4096 * 1000.0);
            if (!row->set)
                atomic_store(&hang, false); // the first instant is over
        }
        assert_true(clock_monotonic_ns() - begun_ns < INT64_C(10) * NS_PER_S);
    }
    sampler_stop(s);
    sampler_destroy(s);
    collect_destroy(c);
    pthread_cond_destroy(&bell.rung);
}

static bool is_of(const struct sampler_row *row, const char *source)
{
    return row->set && str_eq(row->set->series[0].metric->source, str_of(source));
}

// Each rate has instants of its own, which are multiples of it; the first sample has all sources,
// even slow ones.
static void each_source_has_its_own_rate(void **state)
{
    (void)state;
    enum { FAST_NS = 10000000, BASE_NS = 30000000 };
    struct bell bell = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    struct collect *c = collect_with_folder(0.03, "cpu=0.01,memory,load=3600", "/tmp");
    struct sampler *s;
    assert_int_equal(sampler_create(c, 0.03, ring, &bell, &s, NULL), 0);
    sampler_be_prompt(s, true);
    assert_int_equal(sampler_start(s, NULL), 0);
    unsigned cpu = 0, memory = 0, load = 0, complete = 0;
    int64_t first_ns = 0;
    while (complete < 20 || cpu < 40) {
        pthread_mutex_lock(&bell.lock);
        while (bell.count == 0)
            pthread_cond_wait(&bell.rung, &bell.lock);
        bell.count = 0;
        pthread_mutex_unlock(&bell.lock);
        for (struct sampler_row *row; (row = sampler_next(s)); sampler_done(s)) {
            first_ns = first_ns ? first_ns : row->t_ns;
            bool first = row->t_ns == first_ns;
            assert_int_equal(row->t_ns % (is_of(row, "cpu") || first ? FAST_NS : BASE_NS), 0);
            cpu += is_of(row, "cpu");
            memory += is_of(row, "memory");
            load += is_of(row, "load");
            complete += !row->set;
            assert_true(!is_of(row, "load") || first ||
                        row->t_ns % (3600 * (int64_t)NS_PER_S) == 0);
        }
    }
    assert_true(load >= 1 && load <= 2); // 2 if a full hour passed meanwhile
    assert_true(memory <= complete + 1);
    sampler_stop(s);
    sampler_destroy(s);
    collect_destroy(c);
    pthread_cond_destroy(&bell.rung);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_in_order_and_end_with_the_instant),
        cmocka_unit_test(a_full_queue_drops_and_counts),
        cmocka_unit_test(two_threads),
        cmocka_unit_test(each_source_has_its_own_rate),
        cmocka_unit_test(a_hanging_source_is_cut_off),
        cmocka_unit_test(a_late_source_misses_its_instant),
        cmocka_unit_test(a_hanging_folder_is_cut_off_alone),
        cmocka_unit_test(a_late_source_that_is_sampled_seldom),
    };
    return cmocka_run_group_tests_name("agent/sampler", tests, NULL, NULL);
}
