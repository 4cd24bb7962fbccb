// The queue between the sampling thread and the store's: order, a full queue, and both threads at once.
#include "agent/sampler.h"
#include "base/clock.h"
#include "unit/test.h"

#include <pthread.h>
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

static struct collect *collect_here(double rate_s)
{
    static const struct store_label host = {{"host", 4}, {"lab", 3}};
    struct collect_options options = {
        .root = "", .labels = &host, .label_count = 1, .level = 2, .rate_s = rate_s, .folder = "/tmp", .uid = getuid()};
    struct collect *c;
    assert_int_equal(collect_create(&options, &c, NULL), 0);
    return c;
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
        for (struct sampler_row *row; (row = sampler_next(s)) && row->set; sampler_done(s), rows++) {
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
    // Nobody takes rows out: far more than there are places.
    for (int i = 0; i < SAMPLER_PLACES; i++)
        sampler_take(s, t_ns += 50 * INT64_C(1000000000));
    size_t rows = 0;
    while (sampler_next(s)) {
        sampler_done(s);
        rows++;
    }
    assert_int_equal(rows, SAMPLER_PLACES);
    // There is room again: what comes now comes whole, and says what was lost.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_in_order_and_end_with_the_instant),
        cmocka_unit_test(a_full_queue_drops_and_counts),
        cmocka_unit_test(two_threads),
    };
    return cmocka_run_group_tests_name("agent/sampler", tests, NULL, NULL);
}
