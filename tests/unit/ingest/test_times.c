// The times of points: with clocks that are set and machines that are suspended, from threads at
// the same moment, and ahead of now.
//
// The process is its own agent, and its clocks are modified ones: the linker redirects
// clock_gettime() to this file. The cycle counter is the real one; so a suspension, in which it
// stops, is simulated by boot time that jumps.
#include "base/clock.h"
#include "fake_store.h"
#include "ingest/hello.h"
#include "ingest/ingest.h"
#include "unit/seed.h"
#include "unit/test.h"

#include "sonde.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static _Atomic int64_t real_ahead_ns, boot_ahead_ns;

// Simulates the scheduler of a busy machine: called before each reading.
static void (*disturb)(clockid_t id);

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
    if (disturb)
        disturb(id);
    int failed = __real_clock_gettime(id, out);
    int64_t ahead = id == CLOCK_REALTIME   ? real_ahead_ns + boot_ahead_ns
                    : id == CLOCK_BOOTTIME ? boot_ahead_ns
                                           : 0;
    int64_t ns = (int64_t)out->tv_sec * NS_PER_S + out->tv_nsec + ahead;
    *out = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
    return failed;
}

static uint64_t seed, random_state;

static uint64_t random_u64(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 33;
}

static char folder[] = "/tmp/sonde-test-XXXXXX", socket_path[96];
static struct store *store;
static struct ingest *in;

// libsonde starts once in a process; each test has its own agent, which libsonde then finds.
static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(socket_path, sizeof socket_path, "%s/agent.sock", folder);
    setenv("SONDE_LEVEL", "1", 1);
    setenv("SONDE_SOCKET", socket_path, 1);
    setenv("SONDE_RING_BYTES", "8388608", 1);
    unsetenv("SONDE_TAGS");
    seed = test_seed(15);
    assert_int_equal(sonde_level(), 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rmdir(folder);
    return 0;
}

static void begin(void)
{
    random_state = seed;
    real_ahead_ns = 0; // boot time never decreases
    store = fake_store_open();
    store->keep = true;
    struct ingest_options options = {.socket_path = socket_path, .level = 4};
    assert_int_equal(ingest_create(store, &options, &in, NULL), 0);
    assert_int_equal(ingest_adopt(in), 1);
    ingest_drain(in, NULL);
    store->kept_count = 0;
}

static void end(void)
{
    ingest_destroy(in);
    fake_store_close(store);
}

static void spin(int64_t ns)
{
    for (int64_t until = clock_monotonic_ns() + ns; clock_monotonic_ns() < until;)
        ;
}

enum {
    POINTS = 600,
    SLACK_NS = 2 * NS_PER_MS
}; // the process may lose the processor between a point and the readings of the clocks

struct emitted {
    int64_t before_ns, after_ns; // the wall clock before and after
    int64_t boot_ns;             // and the boot time
    // How far the wall clock was set, or how long the machine slept, before the rings are read
    // next.
    int64_t late_by_ns;
};

// Whatever happens to the clocks, a point has the time that the wall clock showed when it was
// emitted, or would have shown if it had been set already at the agent's last reading. Points
// between two such events keep their distances.
static void the_wall_clock_is_set(void **state)
{
    (void)state;
    static struct emitted emitted[POINTS];
    for (long round = 0; round < 3 * (long)test_rounds(); round++) {
        begin();
        random_state += (uint64_t)round;
        sonde_handle h = sonde_gauge("value", "");
        size_t drained = 0;
        for (size_t i = 0; i < POINTS; i++) {
            struct emitted *e = &emitted[i];
            e->before_ns = clock_realtime_ns();
            e->boot_ns = clock_read_ns(CLOCK_BOOTTIME);
            sonde_emit(h, (double)i);
            e->after_ns = clock_realtime_ns();
            e->late_by_ns = 0;
            spin((int64_t)(random_u64() % (100 * NS_PER_US)));
            int64_t by = 0;
            switch (random_u64() % 50) {
            case 0: // an hour or less, back or forth; or a small step
                by = ((int64_t)(random_u64() % 7200) - 3600) *
                     (random_u64() % 2 ? NS_PER_S : NS_PER_MS);
                real_ahead_ns += by;
                break;
            case 1:
                by = (int64_t)(random_u64() % 3600) * NS_PER_S;
                boot_ahead_ns += by;
                break;
            default:;
            }
            for (size_t k = drained; k <= i; k++)
                emitted[k].late_by_ns += by;
            // Only one such event between two readings, because two could not be distinguished.
            if (by || random_u64() % 20 == 0) {
                ingest_drain(in, NULL);
                drained = i + 1;
            }
        }
        ingest_drain(in, NULL);
        assert_int_equal(store->kept_count, POINTS);
        for (size_t i = 0; i < POINTS; i++) {
            const struct emitted *e = &emitted[i];
            int64_t t = store->kept[i].t_ns;
            assert_true(store->kept[i].value == (double)i);
            bool then = t >= e->before_ns - SLACK_NS && t <= e->after_ns + SLACK_NS;
            bool later = t >= e->before_ns + e->late_by_ns - SLACK_NS &&
                         t <= e->after_ns + e->late_by_ns + SLACK_NS;
            if (!then && !later)
                fail_msg("seed %llu, round %ld: point %zu is %lld ns off (the clocks moved by %lld "
                         "ns behind it)",
                         (unsigned long long)seed, round, i, (long long)(t - e->before_ns),
                         (long long)e->late_by_ns);
        }
        struct ingest_stats s;
        ingest_get_stats(in, &s);
        assert_int_equal(s.clamped + s.dropped_full + s.dropped_limit + s.dropped_corrupt, 0);
        end();
    }
}

static int boot_readings;

static void wait_ns(int64_t ns)
{
    struct timespec now;
    __real_clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t until = (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec + ns;
    do
        __real_clock_gettime(CLOCK_MONOTONIC, &now);
    while ((int64_t)now.tv_sec * NS_PER_S + now.tv_nsec < until);
}

// The first attempt loses 10 ms between the counter and boot time, without a change of boot time;
// each later one 20 us, with a change.
static void lose_time(clockid_t id)
{
    if (id == CLOCK_BOOTTIME)
        wait_ns(++boot_readings == 1                          ? 10 * NS_PER_MS
                : boot_readings % 2 == 0 && boot_readings > 2 ? 20 * NS_PER_US
                                                              : 0);
}

// Counter and boot time of a reading belong to the same moment, whatever an attempt has lost.
static void a_reading_that_is_disturbed(void **state)
{
    (void)state;
    struct clock_reading first, disturbed, last;
    clock_read_together(&first);
    wait_ns(20 * NS_PER_MS);
    disturb = lose_time;
    boot_readings = 0;
    clock_read_together(&disturbed);
    disturb = NULL;
    wait_ns(20 * NS_PER_MS);
    clock_read_together(&last);
    struct clock_line line = {first.ticks, first.boot_ns,
                              (double)(last.boot_ns - first.boot_ns) /
                                  (double)(last.ticks - first.ticks)};
    int64_t off = clock_line_ns(&line, disturbed.ticks) - disturbed.boot_ns;
    if (llabs(off) > NS_PER_MS)
        fail_msg("the counter stands for a moment that is %lld ns off", (long long)off);
}

// five rings take turns: a faster burst gets ahead
enum { THREADS = 4, EACH = 150000, TURN_NS = 16 };

static pthread_barrier_t start;
static _Atomic int threads_left;

static void *thread_emits(void *unused)
{
    (void)unused;
    sonde_handle h = sonde_gauge("shared", ""),
                 row[2] = {sonde_gauge("shared_a", ""), sonde_gauge("shared_b", "")};
    sonde_handle group = sonde_group(row, 2);
    double values[2] = {1, 2};
    pthread_barrier_wait(&start);
    for (int i = 0; i < EACH; i++) {
        sonde_emit(h, i);
        if (i % 16 == 0)
            sonde_emit_group(group, values);
    }
    threads_left--;
    return NULL;
}

static int by_series_and_time(const void *a, const void *b)
{
    const struct store_point *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

static size_t same_twice(void)
{
    size_t same = 0;
    qsort(store->kept, store->kept_count, sizeof *store->kept, by_series_and_time);
    for (size_t i = 1; i < store->kept_count; i++)
        same += store->kept[i].series == store->kept[i - 1].series &&
                store->kept[i].t_ns == store->kept[i - 1].t_ns;
    return same;
}

// The store keeps one value of a series for each time: every value has a time of its own, or is
// counted as dropped.
static void threads_at_one_moment(void **state)
{
    (void)state;
    for (long round = 0; round < 2 * (long)test_rounds(); round++) {
        pthread_t threads[THREADS];
        begin();
        uint64_t dropped_before = sonde_dropped();
        assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
        threads_left = THREADS;
        int64_t from = clock_realtime_ns();
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, thread_emits, NULL), 0);
        while (threads_left)
            ingest_drain(in, NULL);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        ingest_drain(in, NULL);
        int64_t to = clock_realtime_ns();
        uint64_t dropped = sonde_dropped() - dropped_before;
        assert_int_equal(store->kept_count + dropped, THREADS * (EACH + 2 * ((EACH + 15) / 16)));
        size_t same = same_twice();
        if (same)
            fail_msg("%zu of %zu points share their time with another one of their series", same,
                     store->kept_count);
        for (size_t i = 0; i < store->kept_count; i++)
            assert_in_range(store->kept[i].t_ns, from - SLACK_NS,
                            to + SLACK_NS + 2 * EACH * TURN_NS);
        pthread_barrier_destroy(&start);
        end();
    }
}

// The same second twice, with points in nearly each of its nanoseconds: none replaces another one.
static void a_repeated_moment_has_two_sets_of_times(void **state)
{
    (void)state;
    enum { BURST = 20000, TIMES = 20 };
    for (int k = 0; k < TIMES; k++) {
        begin();
        sonde_handle h = sonde_gauge("again", "");
        int64_t from = clock_realtime_ns();
        for (int i = 0; i < BURST; i++)
            sonde_emit(h, i);
        ingest_drain(in, NULL);
        real_ahead_ns -= clock_realtime_ns() - from;
        for (int i = 0; i < BURST; i++)
            sonde_emit(h, i);
        ingest_drain(in, NULL);
        assert_int_equal(store->kept_count, 2 * BURST);
        assert_int_equal(same_twice(), 0);
        end();
    }
}

// ---- the next agent ----

static _Atomic bool enough;

static void *emit_without_pause(void *unused)
{
    (void)unused;
    sonde_handle h = sonde_gauge("handed_over", "");
    for (int i = 0; !enough; i++)
        sonde_emit(h, i);
    return NULL;
}

// An agent that takes over reads the clocks anew, and its offset between boot time and wall clock
// is some nanoseconds off the previous agent's. The first points that it reads were emitted right
// after those that the previous agent stored, and do not replace them.
static void the_next_agent_reads_the_clocks_a_little_earlier(void **state)
{
    (void)state;
    enum { TIMES = 10, EARLIER_NS = 2000, POINTS_FIRST = 1000, POINTS_LAST = 20000 };
    for (int k = 0; k < TIMES; k++) {
        pthread_t thread;
        struct ingest_options options = {.socket_path = socket_path, .level = 4};
        begin();
        enough = false;
        assert_int_equal(pthread_create(&thread, NULL, emit_without_pause, NULL), 0);
        while (store->kept_count < POINTS_FIRST)
            ingest_drain(in, NULL);
        ingest_destroy(in);
        // Only points near the change can share a time, and sorting all takes a while.
        if (store->kept_count > POINTS_LAST) {
            memmove(store->kept, store->kept + store->kept_count - POINTS_LAST,
                    POINTS_LAST * sizeof *store->kept);
            store->kept_count = POINTS_LAST;
        }
        size_t before = store->kept_count;
        real_ahead_ns -= EARLIER_NS;
        assert_int_equal(ingest_create(store, &options, &in, NULL), 0);
        assert_int_equal(ingest_adopt(in), 1);
        while (store->kept_count == before)
            ingest_drain(in, NULL);
        enough = true;
        pthread_join(thread, NULL);
        if (store->kept_count > before + POINTS_LAST)
            store->kept_count = before + POINTS_LAST;
        size_t kept = store->kept_count, same = same_twice();
        if (same)
            fail_msg("%zu of %zu points share their time with another one of their series", same,
                     kept);
        end();
    }
}

// An explicit time in the future becomes now, in text and in rings, because the newest time in the
// recording decides which points are too old.
static void times_ahead_of_now(void **state)
{
    (void)state;
    begin();
    struct ingest_lines *lines;
    struct buf reply = {0};
    char text[256];
    int64_t now = clock_realtime_ns(), hour = INT64_C(3600) * NS_PER_S;
    sonde_handle h = sonde_gauge("ahead", ""), members[2] = {h, sonde_gauge("ahead_b", "")};
    sonde_handle group = sonde_group(members, 2);
    for (int i = 1; i <= 5; i++)
        sonde_emit_at(h, i, now + i * hour);
    sonde_emit_at(h, 6, INT64_MAX);
    sonde_emit_group_at(group, (double[]){7, 8}, now + hour);
    sonde_emit_at(h, 9, now - hour); // a time in the past stays
    ingest_drain(in, NULL);
    assert_int_equal(ingest_lines_create(in, &lines), 0);
    snprintf(text, sizeof text,
             "put ahead %lld 10\nahead,x=y v=11 %lld\nahead 12 %lld\nannotate %lld -- later\n",
             (long long)((now + hour / 2) / NS_PER_MS), (long long)(now + hour / 2),
             (long long)((now + hour / 2) / NS_PER_S), (long long)((now + hour / 2) / NS_PER_S));
    ingest_lines_feed(lines, str_of(text), &reply);
    assert_int_equal(reply.size, 0);
    int64_t after = clock_realtime_ns();
    assert_int_equal(store->kept_count, 9 + 3);
    for (size_t i = 0; i < store->kept_count; i++) {
        int64_t t = store->kept[i].t_ns;
        assert_true(store->kept[i].value == 9 ? t == now - hour
                                              : t >= now - SLACK_NS && t <= after + SLACK_NS);
    }
    assert_int_equal(same_twice(), 0);
    struct ingest_stats s;
    ingest_get_stats(in, &s);
    assert_int_equal(s.clamped, 7 + 4);
    assert_int_equal(s.dropped_store + s.dropped_limit, 0);
    ingest_lines_destroy(lines);
    buf_free(&reply);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wall_clock_is_set),
        cmocka_unit_test(a_reading_that_is_disturbed),
        cmocka_unit_test(threads_at_one_moment),
        cmocka_unit_test(a_repeated_moment_has_two_sets_of_times),
        cmocka_unit_test(the_next_agent_reads_the_clocks_a_little_earlier),
        cmocka_unit_test(times_ahead_of_now),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
