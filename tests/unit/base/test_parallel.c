#include "base/parallel.h"
#include "unit/test.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

enum { STARTS = 200, PIECES = 10000 };

static cpu_set_t allowed;
static int asked, refused; // calls of pthread_attr_setaffinity_np; how many of them fail

#ifdef __GLIBC__
// Stands in for libc's function.
int pthread_attr_setaffinity_np(pthread_attr_t *attributes, size_t size, const cpu_set_t *set)
{
    (void)attributes;
    cpu_set_t others = allowed;
    assert_int_equal(size, sizeof others);
    CPU_XOR(&others, &allowed, set);
    assert_int_equal(CPU_COUNT(&others), 1); // the caller's processor alone is missing
    assert_true(CPU_COUNT(set) > 0);
    return asked++ < refused ? ENOMEM : 0;
}
#endif

static void *look(void *user)
{
    *(bool *)user = true;
    return user;
}

static void start(bool elsewhere)
{
    asked = 0;
    for (int i = 0; i < STARTS; i++) {
        pthread_t thread;
        bool ran = false;
        void *result = NULL;
        assert_int_equal(parallel_start(&thread, look, &ran), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_true(result == &ran && ran);
    }
    assert_int_equal(asked, elsewhere ? STARTS : 0);
}

static void a_thread_starts_beside_its_creator(void **state)
{
    (void)state;
#ifndef __GLIBC__
    skip();
#endif
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    if (CPU_COUNT(&allowed) < 2)
        skip();
    for (refused = 0; refused <= STARTS; refused += STARTS)
        start(true);
}

static void *start_another(void *user)
{
    pthread_t thread;
    assert_int_equal(parallel_processors(), CPU_COUNT(&allowed));
    assert_int_equal(parallel_start(&thread, look, user), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return user;
}

// A thread that may use only some processors starts threads on the others.
static void threads_start_threads(void **state)
{
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    if (CPU_COUNT(&allowed) < 2)
        skip();
    asked = refused = 0;
    for (int i = 0; i < STARTS; i++) {
        pthread_t thread;
        bool ran = false;
        assert_int_equal(parallel_start(&thread, start_another, &ran), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(ran);
    }
#ifdef __GLIBC__
    assert_int_equal(asked, 2 * STARTS);
#endif
}

static void with_one_processor_it_starts_there(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(parallel_processors(), 1);
    allowed = one;
    start(false);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static _Atomic unsigned char done[PIECES];

static void count(void *user, size_t i)
{
    (void)user;
    done[i]++;
}

static void each_piece_is_done_once(void **state)
{
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    parallel_each(PIECES, count, NULL);
    for (int i = 0; i < PIECES; i++)
        assert_int_equal(done[i], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_starts_beside_its_creator),
        cmocka_unit_test(threads_start_threads),
        cmocka_unit_test(with_one_processor_it_starts_there),
        cmocka_unit_test(each_piece_is_done_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
