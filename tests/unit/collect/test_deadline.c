// Calls that hang or are slow: cut off, left alone, used again when they return, and freed at any
// time.
#include "base/clock.h"
#include "collect/deadline.h"
#include "unit/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const int64_t LONG_NS = INT64_C(60) * NS_PER_S, SHORT_NS = NS_PER_MS;

// The linker finds this program's clock first, which can be ahead.
static atomic_int seconds_ahead;

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, t);
    t->tv_sec += atomic_load(&seconds_ahead);
    return failed;
}

// Reads one byte of a pipe: hangs until the test writes one. Reports its disposal on another pipe.
struct job {
    int in, disposed;
    int calls;
    char got;
};

static int in[2], disposed[2];

static void call(void *user)
{
    struct job *job = user;
    job->calls++;
    assert_int_equal(read(job->in, &job->got, 1), 1);
}

static void dispose(void *user)
{
    struct job *job = user;
    int fd = job->disposed;
    free(job);
    assert_int_equal(write(fd, "d", 1), 1);
}

static struct deadline *start(struct job **job)
{
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(disposed), 0);
    *job = calloc(1, sizeof **job);
    assert_non_null(*job);
    **job = (struct job){.in = in[0], .disposed = disposed[1]};
    struct deadline *d;
    assert_int_equal(deadline_create(call, dispose, *job, &d), 0);
    return d;
}

static void end(void)
{
    char c;
    // waits for the thread, which may dispose of it
    assert_int_equal(read(disposed[0], &c, 1), 1);
    for (int i = 0; i < 2; i++) {
        close(in[i]);
        close(disposed[i]);
    }
}

static void answers(const char *text)
{
    assert_int_equal(write(in[1], text, strlen(text)), strlen(text));
}

static void calls_that_answer(void **state)
{
    (void)state;
    struct job *job;
    int64_t hangs_ns;
    struct deadline *d = start(&job);
    answers("ab");
    assert_int_equal(deadline_run(d, LONG_NS, &hangs_ns), 0);
    assert_int_equal(job->got, 'a');
    assert_int_equal(deadline_run(d, LONG_NS, &hangs_ns), 0);
    assert_int_equal(job->got, 'b');
    assert_int_equal(hangs_ns, 0);
    assert_int_equal(job->calls, 2);
    assert_false(deadline_done(d, true));
    deadline_destroy(d);
    end();
}

static void a_hanging_call_is_left_alone(void **state)
{
    (void)state;
    struct job *job;
    int64_t first_ns, then_ns;
    struct deadline *d = start(&job);
    assert_int_equal(deadline_run(d, SHORT_NS, &first_ns), -ETIMEDOUT);
    assert_true(first_ns >= SHORT_NS);
    // Refused at once, without the long wait.
    int64_t begun = clock_monotonic_ns();
    assert_int_equal(deadline_run(d, LONG_NS, &then_ns), -ETIMEDOUT);
    assert_true(clock_monotonic_ns() - begun < LONG_NS);
    assert_true(then_ns >= first_ns);
    deadline_destroy(d);
    answers("a");
    end();
}

// Waits for the result of a call that has begun. Returns how late it was.
static int64_t result_of(struct deadline *d, int64_t wait_ns)
{
    int64_t late_ns;
    while (deadline_run(d, wait_ns, &late_ns) != 0)
        usleep(100);
    return late_ns;
}

static void slow_calls_give_late_results(void **state)
{
    (void)state;
    struct job *job;
    int64_t late_ns;
    struct deadline *d = start(&job);
    assert_int_equal(deadline_run(d, SHORT_NS, &late_ns), -ETIMEDOUT);
    int64_t begun = clock_monotonic_ns();
    for (char c = 'a'; c < 'f'; c++) {
        while (clock_monotonic_ns() - begun < SHORT_NS)
            usleep(100); // this call is slow
        answers((char[]){c, 0});
        assert_true(result_of(d, SHORT_NS) >= SHORT_NS);
        assert_int_equal(job->got, c);
        assert_int_equal(job->calls, c - 'a' + 1);
        assert_true(deadline_done(d, true)); // it has started the next call, which hangs
        begun = clock_monotonic_ns();
        assert_int_equal(deadline_run(d, LONG_NS, &late_ns), -ETIMEDOUT);
        assert_true(clock_monotonic_ns() - begun < LONG_NS);
    }
    // This call is prompt again for somebody who waits longer, so the next result is new.
    answers("fg");
    assert_int_equal(result_of(d, LONG_NS), 0);
    assert_int_equal(job->got, 'g');
    assert_false(deadline_done(d, true));
    deadline_destroy(d);
    end();
}

// For a caller whose runs are far apart, no call begins ahead, and each run waits.
static void no_call_begins_ahead(void **state)
{
    (void)state;
    struct job *job;
    int64_t late_ns;
    struct deadline *d = start(&job);
    int64_t begun = clock_monotonic_ns();
    assert_int_equal(deadline_run(d, SHORT_NS, &late_ns), -ETIMEDOUT);
    while (clock_monotonic_ns() - begun < SHORT_NS)
        usleep(100); // this call is slow
    assert_int_equal(deadline_take(d, &late_ns), -ETIMEDOUT);
    assert_true(late_ns >= SHORT_NS);
    answers("a");
    while (deadline_take(d, &late_ns) != 0)
        usleep(100);
    assert_true(late_ns >= SHORT_NS);
    assert_int_equal(job->got, 'a');
    assert_false(deadline_done(d, false));
    assert_int_equal(deadline_take(d, &late_ns), -ENODATA);
    assert_int_equal(job->calls, 1);
    answers("b");
    assert_int_equal(result_of(d, LONG_NS), 0);
    assert_int_equal(job->got, 'b');
    assert_int_equal(job->calls, 2);
    assert_false(deadline_done(d, false));
    // An outdated result is not taken.
    assert_int_equal(deadline_run(d, SHORT_NS, &late_ns), -ETIMEDOUT);
    atomic_store(&seconds_ahead, (int)(DEADLINE_LATE_MAX_NS / NS_PER_S) + 1);
    answers("c");
    int taken;
    while ((taken = deadline_take(d, &late_ns)) == -ETIMEDOUT)
        usleep(100);
    assert_int_equal(taken, -ENODATA);
    atomic_store(&seconds_ahead, 0);
    deadline_destroy(d);
    end();
}

static void an_outdated_result_is_dropped(void **state)
{
    (void)state;
    struct job *job;
    int64_t late_ns;
    struct deadline *d = start(&job);
    assert_int_equal(deadline_run(d, SHORT_NS, &late_ns), -ETIMEDOUT);
    atomic_store(&seconds_ahead, (int)(DEADLINE_LATE_MAX_NS / NS_PER_S) + 1);
    answers("ab");
    assert_int_equal(result_of(d, LONG_NS), 0);
    assert_int_equal(job->got, 'b');
    atomic_store(&seconds_ahead, 0);
    deadline_destroy(d);
    end();
}

static void the_end_does_not_wait(void **state)
{
    (void)state;
    struct job *job;
    int64_t hangs_ns;
    struct deadline *d = start(&job);
    assert_int_equal(deadline_run(d, SHORT_NS, &hangs_ns), -ETIMEDOUT);
    deadline_destroy(d); // returns although the call still hangs
    answers("a");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_answer),
        cmocka_unit_test(a_hanging_call_is_left_alone),
        cmocka_unit_test(slow_calls_give_late_results),
        cmocka_unit_test(no_call_begins_ahead),
        cmocka_unit_test(an_outdated_result_is_dropped),
        cmocka_unit_test(the_end_does_not_wait),
    };
    return cmocka_run_group_tests_name("collect/deadline", tests, NULL, NULL);
}
