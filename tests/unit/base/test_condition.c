#include "base/condition.h"

#include "base/clock.h"
#include "unit/test.h"

// The wall clock is far ahead of the monotonic clock: with the wall clock, the wait would end at
// once.
static void waits_until_the_monotonic_clock_says_so(void **state)
{
    (void)state;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed;
    condition_init(&changed);
    pthread_mutex_lock(&lock);
    int64_t until_ns = clock_monotonic_ns() + 20 * NS_PER_MS;
    while (condition_wait_until(&changed, &lock, until_ns))
        continue;
    assert_true(clock_monotonic_ns() >= until_ns);
    assert_false(condition_wait_until(&changed, &lock, until_ns)); // in the past
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&changed);
}

struct shared {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool waiting, said;
};

static void *say(void *user)
{
    struct shared *s = user;
    pthread_mutex_lock(&s->lock);
    while (!s->waiting) {
        pthread_mutex_unlock(&s->lock);
        pthread_mutex_lock(&s->lock);
    }
    s->said = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void a_signal_ends_it_earlier(void **state)
{
    (void)state;
    struct shared s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t other;
    condition_init(&s.changed);
    assert_int_equal(pthread_create(&other, NULL, say, &s), 0);
    int64_t until_ns = clock_monotonic_ns() + 600 * (int64_t)NS_PER_S;
    bool in_time = true;
    pthread_mutex_lock(&s.lock);
    s.waiting = true;
    while (!s.said && in_time)
        in_time = condition_wait_until(&s.changed, &s.lock, until_ns);
    pthread_mutex_unlock(&s.lock);
    assert_true(in_time);
    pthread_join(other, NULL);
    pthread_cond_destroy(&s.changed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_until_the_monotonic_clock_says_so),
        cmocka_unit_test(a_signal_ends_it_earlier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
