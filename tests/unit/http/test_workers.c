#include "base/clock.h"
#include "http/workers.h"
#include "unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

// A request of the test: it holds memory, then works until it is cancelled.
struct request {
    struct job job;
    size_t query_bytes, released_bytes, answer_bytes;
    bool is_long;
    _Atomic bool release, running, ended;
    int rc;
    struct error error;
};

static void run(void *user)
{
    struct request *r = user;
    const struct work_watch *watch = workers_watch();
    r->running = true;
    if (r->query_bytes)
        r->rc = watch->hold(watch->user, r->query_bytes, &r->error);
    if (!r->rc && r->released_bytes)
        watch->release(watch->user, r->released_bytes);
    if (!r->rc && r->answer_bytes)
        r->rc = workers_hold_answer(r->answer_bytes, &r->error);
    while (r->is_long && !r->rc && !r->release) {
        r->rc = watch->look(watch->user, &r->error);
        sched_yield();
    }
}

static void ended(void *user)
{
    struct request *r = user;
    r->ended = true;
}

static void wait_for(_Atomic bool *flag)
{
    while (!*flag)
        sched_yield();
}

static struct memory_account account;

static struct workers *start(unsigned threads, unsigned at_once, unsigned slow_max,
                             int64_t slow_after_ns, size_t memory_bytes)
{
    account = (struct memory_account){.limit_bytes = memory_bytes};
    struct workers_options options = {.threads_max = threads,
                                      .at_once = at_once,
                                      .slow_max = slow_max,
                                      .slow_after_ns = slow_after_ns,
                                      .memory = &account};
    struct workers *w;
    assert_int_equal(workers_create(&options, &w, NULL), 0);
    return w;
}

static void put(struct workers *w, struct request *r)
{
    r->job.run = run;
    r->job.ended = ended;
    r->job.user = r;
    if (!r->job.fd)
        r->job.fd = -1;
    assert_true(workers_put(w, &r->job));
}

static struct workers_counts counts_of(struct workers *w)
{
    struct workers_counts counts;
    workers_counts(w, &counts);
    return counts;
}

static void short_requests_overtake_long_ones(void **state)
{
    (void)state;
    struct workers *w = start(4, 1, 2, NS_PER_MS, 1 << 20);
    struct request slow[2] = {{.is_long = true}, {.is_long = true}}, quick[50] = {0};
    put(w, &slow[0]);
    put(w, &slow[1]);
    for (size_t i = 0; i < 50; i++)
        put(w, &quick[i]);
    for (size_t i = 0; i < 50; i++)
        wait_for(&quick[i].ended);
    assert_false(slow[0].ended);
    assert_false(slow[1].ended);
    assert_int_equal(counts_of(w).slow, 2);
    // The next one exceeds the limit, and is ended.
    struct request third = {.is_long = true};
    put(w, &third);
    wait_for(&third.ended);
    assert_int_equal(third.rc, -EBUSY);
    assert_non_null(strstr(third.error.text, "slow_queries"));
    // a fast request that did not get the processor for a millisecond counts, too
    assert_true(counts_of(w).refused_slow >= 1);
    slow[0].release = slow[1].release = true;
    wait_for(&slow[0].ended);
    wait_for(&slow[1].ended);
    assert_int_equal(slow[0].rc, 0);
    // Room for another one.
    struct request fourth = {.is_long = true};
    put(w, &fourth);
    while (counts_of(w).slow != 1)
        sched_yield();
    fourth.release = true;
    wait_for(&fourth.ended);
    assert_int_equal(fourth.rc, 0);
    assert_true(counts_of(w).threads <= 4);
    workers_destroy(w);
}

static void at_most_the_limit_runs_at_once(void **state)
{
    (void)state;
    struct workers *w = start(8, 2, 4, INT64_C(3600) * NS_PER_S, 1 << 20);
    struct request r[6] = {0};
    for (size_t i = 0; i < 6; i++) {
        r[i].is_long = true;
        put(w, &r[i]);
    }
    wait_for(&r[0].running);
    wait_for(&r[1].running);
    assert_int_equal(counts_of(w).running, 2);
    assert_int_equal(counts_of(w).queued, 4);
    assert_false(r[2].running);
    r[1].release = true;
    wait_for(&r[2].running);
    assert_false(r[3].running);
    for (size_t i = 0; i < 6; i++)
        r[i].release = true;
    for (size_t i = 0; i < 6; i++)
        wait_for(&r[i].ended);
    workers_destroy(w);
}

static void a_client_that_hangs_up_ends_its_request(void **state)
{
    (void)state;
    struct workers *w = start(4, 2, 2, NS_PER_S, 1 << 20);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    struct request left = {.is_long = true, .job = {.fd = pair[0]}};
    put(w, &left);
    wait_for(&left.running);
    assert_int_equal(write(pair[1], "x", 1), 1); // workers also notice it with unread data
    close(pair[1]);
    wait_for(&left.ended);
    assert_int_equal(left.rc, -ECANCELED);
    assert_int_equal(counts_of(w).hung_up, 1);
    close(pair[0]);
    workers_destroy(w);
}

static void memory_of_all_is_bounded(void **state)
{
    (void)state;
    struct workers *w = start(4, 2, 2, NS_PER_S, 1000);
    struct request first = {.query_bytes = 500, .released_bytes = 100, .answer_bytes = 300},
                   more = {.query_bytes = 301}, fits = {.query_bytes = 100, .answer_bytes = 200},
                   beyond = {.answer_bytes = 1};
    put(w, &first);
    wait_for(&first.ended);
    assert_int_equal(first.rc, 0);
    assert_int_equal(counts_of(w).held_bytes, 700);
    put(w, &more);
    wait_for(&more.ended);
    assert_int_equal(more.rc, -EBUSY);
    assert_non_null(strstr(more.error.text, "total_memory_bytes"));
    put(w, &fits);
    wait_for(&fits.ended);
    assert_int_equal(fits.rc, 0);
    put(w, &beyond);
    wait_for(&beyond.ended);
    assert_int_equal(beyond.rc, -EBUSY);
    assert_int_equal(counts_of(w).refused_memory, 2);
    workers_release_queries(&first.job, 250); // the answer is still to be sent
    assert_int_equal(counts_of(w).held_bytes, 550);
    workers_release_queries(&first.job, 0);
    workers_release_queries(&fits.job, 0);
    assert_int_equal(counts_of(w).held_bytes, 0);
    struct error e = {0};
    assert_int_equal(workers_hold_answer(1 << 20, &e), 0); // not called in a worker
    assert_null(workers_watch());
    workers_destroy(w);
}

// Caches make room for a request that needs memory, before the request is refused.
static size_t kept;

static void reclaim(void *user, size_t bytes)
{
    struct memory_account *a = user;
    size_t some = bytes < kept ? bytes : kept;
    kept -= some;
    memory_account_give(a, some);
}

static void the_cache_makes_room_for_requests(void **state)
{
    (void)state;
    struct workers *w = start(4, 2, 2, NS_PER_S, 1000);
    account.reclaim = reclaim;
    account.user = &account;
    kept = 900;
    memory_account_add(&account, kept);
    struct request first = {.query_bytes = 300}, second = {.query_bytes = 800};
    put(w, &first);
    wait_for(&first.ended);
    assert_int_equal(first.rc, 0);
    assert_int_equal(kept, 700);
    put(w, &second);
    wait_for(&second.ended);
    assert_int_equal(second.rc, -EBUSY);
    workers_release_all(&first.job);
    // Bodies count as they arrive; all memory of a request is returned at its end.
    struct request third = {.query_bytes = 800};
    struct error e = {0};
    third.job.fd = -1;
    assert_int_equal(workers_hold_body(w, &third.job, 100, &e), 0);
    assert_int_equal(workers_hold_body(w, &third.job, 200, &e), 0);
    put(w, &third);
    wait_for(&third.ended);
    assert_int_equal(third.rc, 0);
    assert_int_equal(kept, 0);
    assert_int_equal(workers_hold_body(w, &second.job, 1, &e), -EBUSY);
    workers_release_queries(&third.job, 50);
    assert_int_equal(counts_of(w).held_bytes, 250);
    workers_release_all(&third.job);
    assert_int_equal(counts_of(w).held_bytes, 0);
    assert_int_equal(account.peak_bytes, 1000);
    workers_destroy(w);
}

static _Atomic unsigned told_rest, told_idle, told_eased;

static void note_rest(void *user)
{
    (void)user;
    told_rest++;
}

static void note_idle(void *user)
{
    (void)user;
    told_idle++;
}

static void note_eased(void *user)
{
    (void)user;
    told_eased++;
}

static void idle_workers_call_idle_once(void **state)
{
    (void)state;
    account = (struct memory_account){.limit_bytes = 1000};
    struct workers_options options = {.threads_max = 4,
                                      .at_once = 2,
                                      .slow_max = 2,
                                      .slow_after_ns = NS_PER_S,
                                      .memory = &account,
                                      .idle = {{NS_PER_MS, note_rest}, {2 * NS_PER_MS, note_idle}},
                                      .eased = note_eased};
    struct workers *w;
    assert_int_equal(workers_create(&options, &w, NULL), 0);
    for (unsigned round = 1; round <= 3; round++) {
        struct request r = {.is_long = true};
        put(w, &r);
        wait_for(&r.running);
        assert_int_equal(told_idle, round - 1); // not while a request runs
        r.release = true;
        wait_for(&r.ended);
        while (told_idle < round || told_eased < round) {
            assert_in_range(told_rest, told_idle, round);
            sched_yield();
        }
    }
    workers_destroy(w);
    assert_int_equal(told_rest, 3);
    assert_int_equal(told_idle, 3);
    assert_int_equal(told_eased, 3);
}

static _Atomic unsigned told_begin;

static void note_begin(void *user)
{
    (void)user;
    told_begin++;
}

// It is no request, and counts as the last use before the idle time.
static void workers_call_begin_once(void **state)
{
    (void)state;
    account = (struct memory_account){.limit_bytes = 1000};
    told_idle = 0;
    struct workers_options options = {.threads_max = 4,
                                      .at_once = 2,
                                      .slow_max = 2,
                                      .slow_after_ns = NS_PER_S,
                                      .memory = &account,
                                      .begin = note_begin,
                                      .idle = {{NS_PER_MS, note_idle}}};
    struct workers *w;
    struct workers_counts counts;
    assert_int_equal(workers_create(&options, &w, NULL), 0);
    while (!told_idle)
        sched_yield();
    workers_counts(w, &counts);
    assert_int_equal(counts.answered, 0);
    for (unsigned round = 1; round <= 3; round++) {
        struct request r = {.release = true};
        put(w, &r);
        wait_for(&r.ended);
    }
    workers_counts(w, &counts);
    assert_int_equal(counts.answered, 3);
    workers_destroy(w);
    assert_int_equal(told_begin, 1);
}

static void stopping_ends_all(void **state)
{
    (void)state;
    struct workers *w = start(2, 1, 1, INT64_C(3600) * NS_PER_S, 1 << 20);
    struct request r[3] = {{.is_long = true}, {.is_long = true}, {.is_long = true}}, late = {0};
    for (size_t i = 0; i < 3; i++)
        put(w, &r[i]);
    wait_for(&r[0].running);
    workers_stop(w);
    for (size_t i = 0; i < 3; i++) {
        assert_true(r[i].ended);
        assert_int_equal(r[i].rc, -ECANCELED);
    }
    assert_false(workers_put(w, &late.job));
    workers_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_requests_overtake_long_ones),
        cmocka_unit_test(at_most_the_limit_runs_at_once),
        cmocka_unit_test(a_client_that_hangs_up_ends_its_request),
        cmocka_unit_test(memory_of_all_is_bounded),
        cmocka_unit_test(the_cache_makes_room_for_requests),
        cmocka_unit_test(idle_workers_call_idle_once),
        cmocka_unit_test(workers_call_begin_once),
        cmocka_unit_test(stopping_ends_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
