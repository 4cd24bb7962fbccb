// emitter.c - the programs for the tests of the ingest: `emitter MODE ARGUMENTS…`. Each writes its
// results to standard output, and reads a line from standard input at points where the test
// intervenes.
#include "emit/segment.h"

#include "../seed.h"
#include "sonde.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char **arguments;
static int argument_count;

static long number(int i)
{
    return i < argument_count ? strtol(arguments[i], NULL, 10) : 0;
}

static void say(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

static void wait_for_line(void)
{
    char c;
    while (read(0, &c, 1) == 1 && c != '\n')
        ;
}

static uint64_t random_state;

static uint64_t random_u64(void)
{
    return test_random(&random_state);
}

static sonde_handle tagged(const char *name, const char *key, long value, enum sonde_kind kind)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    struct sonde_tag tag = {key, text};
    struct sonde_metric m = {.name = name, .kind = kind, .tags = &tag, .tag_count = 1};
    return sonde_define(&m);
}

static void *thread_emits(void *index)
{
    sonde_handle h = tagged("value", "thread", (long)(intptr_t)index, SONDE_GAUGE);
    for (long i = 0; i < number(1); i++)
        sonde_emit(h, (double)i);
    return NULL;
}

// threads COUNT POINTS
static int mode_threads(void)
{
    pthread_t threads[64];
    long count = number(0);
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, thread_emits, (void *)(intptr_t)i) != 0)
            return 1;
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("dropped=%llu\n", (unsigned long long)sonde_dropped());
    return 0;
}

// waves WAVES THREADS POINTS: threads that start and end take over each other's rings
static int mode_waves(void)
{
    long waves = number(0), count = number(1);
    arguments++;
    argument_count--;
    for (long w = 0; w < waves; w++) {
        pthread_t threads[512];
        for (long i = 0; i < count; i++)
            if (pthread_create(&threads[i], NULL, thread_emits, (void *)(intptr_t)i) != 0)
                return 1;
        for (long i = 0; i < count; i++)
            pthread_join(threads[i], NULL);
    }
    printf("dropped=%llu\n", (unsigned long long)sonde_dropped());
    return 0;
}

static pthread_barrier_t crowd;

static void *thread_stays(void *index)
{
    thread_emits(index);
    pthread_barrier_wait(&crowd);
    return NULL;
}

// crowd THREADS POINTS: all at the same time
static int mode_crowd(void)
{
    pthread_t threads[1024];
    long count = number(0);
    pthread_barrier_init(&crowd, NULL, (unsigned)count);
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, thread_stays, (void *)(intptr_t)i) != 0)
            return 1;
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("dropped=%llu\n", (unsigned long long)sonde_dropped());
    return 0;
}

// points COUNT HOW: emits, then ends by "exit", "_exit", "kill", "abort"
static int mode_points(void)
{
    sonde_handle h = sonde_gauge("value", "");
    for (long i = 0; i < number(0); i++)
        sonde_emit(h, (double)i);
    if (strcmp(arguments[1], "kill") == 0)
        raise(SIGKILL);
    if (strcmp(arguments[1], "abort") == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        abort();
    }
    if (strcmp(arguments[1], "_exit") == 0)
        _exit(0);
    exit(0);
}

// waits COUNT MORE: emits COUNT, reports it, waits for a line, emits MORE, reports it, waits for
// another line
static int mode_waits(void)
{
    sonde_handle h = sonde_gauge("value", "");
    long i = 0;
    for (; i < number(0); i++)
        sonde_emit(h, (double)i);
    say("first");
    wait_for_line();
    for (; i < number(0) + number(1); i++)
        sonde_emit(h, (double)i);
    say("second");
    wait_for_line();
    printf("dropped=%llu\n", (unsigned long long)sonde_dropped());
    return 0;
}

// late COUNT COUNT: like waits, but connects and waits for a line before it defines anything
static int mode_late(void)
{
    sonde_level();
    say("connected");
    wait_for_line();
    return mode_waits();
}

// moves COUNT PATH: emits COUNT, and moves to the agent at that path in the middle of the next
// COUNT
static int mode_moves(void)
{
    sonde_handle h = sonde_gauge("value", ""), total = sonde_counter("work_total", "");
    for (long i = 0; i < 2 * number(0); i++) {
        if (i == number(0)) {
            say("first");
            wait_for_line();
        }
        if (i == number(0) + number(0) / 2)
            sonde_connect(arguments[1], 1);
        sonde_emit(h, (double)i);
        sonde_add(total, 1);
    }
    say("second");
    wait_for_line();
    printf("dropped=%llu\n", (unsigned long long)sonde_dropped());
    return 0;
}

static void say_dropped(const char *when)
{
    char why[512];
    int failed = sonde_check(why, sizeof why);
    printf("dropped_%s=%llu\nfailed_%s=%d\n", when, (unsigned long long)sonde_dropped(), when,
           -failed);
    say(when);
}

// comes_back ELSEWHERE HERE: moves to another agent, comes back, emits a value, and reports its
// result, twice; the second time after a request to connect once more
static int mode_comes_back(void)
{
    sonde_handle h = sonde_gauge("value", "");
    sonde_emit(h, 1);
    say("here");
    wait_for_line();
    sonde_connect(arguments[0], 1);
    sonde_connect(arguments[1], 1);
    sonde_emit(h, 2);
    say_dropped("back");
    wait_for_line();
    sonde_connect(arguments[1], 1);
    say_dropped("again");
    return 0;
}

// unheard: emits 10 points, two rows of two, a span, a note, and two cells; reports their results,
// twice
static int mode_unheard(void)
{
    sonde_handle m[] = {sonde_gauge("value", ""), sonde_gauge("other", "")};
    sonde_handle group = sonde_group(m, 2), total = sonde_counter("total", ""),
                 level = sonde_gauge("level", "");
    for (int i = 0; i < 10; i++)
        sonde_emit(m[0], i);
    for (int i = 0; i < 2; i++)
        sonde_emit_group(group, (double[]){1, 2});
    sonde_span_begin("span");
    sonde_span_end();
    sonde_annotate("note");
    sonde_add(total, 1);
    sonde_set(level, 0);
    for (int i = 0; i < 2; i++) {
        char why[512];
        int failed = sonde_check(why, sizeof why);
        printf("dropped%d=%llu\nfailed%d=%d\nwhy%d=%s\n", i, (unsigned long long)sonde_dropped(), i,
               -failed, i, why);
        say(i ? "second" : "first");
        wait_for_line();
    }
    return 0;
}

// stream: emits 0, 1, 2 … until a byte arrives on standard input; reports their number
static int mode_stream(void)
{
    sonde_handle h = sonde_gauge("value", "");
    fcntl(0, F_SETFL, O_NONBLOCK);
    char c;
    long i = 0;
    do {
        for (int k = 0; k < 100; k++)
            sonde_emit(h, (double)i++);
        if (i == 100)
            say("going");
        sched_yield();
    } while (read(0, &c, 1) != 1);
    printf("sent=%ld\ndropped=%llu\n", i, (unsigned long long)sonde_dropped());
    return 0;
}

// fork POINTS: parent and child emit to their own series, before and after
static int mode_fork(void)
{
    sonde_handle both = sonde_gauge("both", ""), parent = sonde_gauge("parent", ""),
                 child = sonde_gauge("child", "");
    sonde_handle adds = sonde_counter("adds", ""), level = sonde_gauge("level", "");
    sonde_span_begin("outer");
    sonde_add(adds, 1);
    sonde_set(level, 5);
    long half = number(0) / 2;
    for (long i = 0; i < half; i++)
        sonde_emit(parent, (double)i);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        sonde_handle late = sonde_gauge("late", "");
        for (long i = 0; i < number(0); i++)
            sonde_emit(child, (double)i);
        sonde_emit(both, 2);
        sonde_emit(late, 7);
        sonde_add(adds, 10);
        sonde_span_end(); // opened by the parent, so this child cannot close it
        sonde_span_begin("inner");
        sonde_span_end();
        pid_t grandchild = fork();
        if (grandchild == 0) {
            sonde_emit(both, 3);
            sonde_add(adds, 100);
            _exit(0);
        }
        waitpid(grandchild, NULL, 0);
        _exit(0);
    }
    for (long i = half; i < number(0); i++)
        sonde_emit(parent, (double)i);
    sonde_emit(both, 1);
    waitpid(pid, NULL, 0);
    sonde_span_end();
    return 0;
}

static void *emits_for_ever(void *unused)
{
    (void)unused;
    sonde_handle h = sonde_gauge("busy", "");
    for (double i = 0;; i++)
        sonde_emit(h, i);
    return NULL;
}

// forks COUNT: while a thread emits, children are forked, emit one point each, and end
static int mode_forks(void)
{
    pthread_t t;
    sonde_handle h = sonde_gauge("child", "");
    if (pthread_create(&t, NULL, emits_for_ever, NULL) != 0)
        return 1;
    for (long i = 0; i < number(0); i++) {
        pid_t pid = fork();
        if (pid == 0) {
            char name[32];
            snprintf(name, sizeof name, "child_%ld", i);
            sonde_emit(h, (double)i);
            sonde_emit(sonde_gauge(name, ""), 1);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    _exit(0);
}

// fork_tight: a child that cannot make a segment must not write into its parent's
static int mode_fork_tight(void)
{
    sonde_handle h = sonde_gauge("value", ""), level = sonde_gauge("level", ""),
                 adds = sonde_counter("adds", "");
    sonde_emit(h, 1);
    sonde_set(level, 1);
    sonde_add(adds, 1);
    pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){1, 1});
        sonde_set(level, 100);
        sonde_add(adds, 100);
        sonde_emit(h, 100);
        sonde_span_begin("child");
        sonde_annotate("child");
        sonde_set(level, 100);
        sonde_handle late = sonde_gauge("late", "");
        _exit(late != 0 || sonde_level() != 0);
    }
    int status;
    waitpid(pid, &status, 0);
    sonde_emit(h, 2);
    return status != 0;
}

enum { FIRST_CALLERS = 4 };

static _Atomic int first_callers;
static _Atomic bool first_now;

static void *calls_first(void *unused)
{
    (void)unused;
    first_callers++;
    while (!first_now)
        ;
    sonde_emit(sonde_gauge("first", ""), 1);
    return NULL;
}

// first_calls TIMES SEED: forks while other threads make the very first calls, each time in a
// process of its own. An alarm ends a child that waits for a lock without an owner.
static int mode_first_calls(void)
{
    enum { ALARM_S = 20, SPINS = 1 << 14 };
    random_state = (uint64_t)number(1);
    for (long i = 0; i < number(0); i++) {
        uint64_t spins = random_u64() % SPINS;
        int status;
        pid_t program = fork(), child;
        if (program == 0) {
            pthread_t threads[FIRST_CALLERS];
            alarm(ALARM_S);
            for (int t = 0; t < FIRST_CALLERS; t++)
                if (pthread_create(&threads[t], NULL, calls_first, NULL) != 0)
                    _exit(1);
            while (first_callers < FIRST_CALLERS)
                ;
            first_now = true;
            for (volatile uint64_t spin = spins; spin; spin--)
                ;
            if ((child = fork()) == 0) {
                alarm(ALARM_S);
                sonde_emit(sonde_gauge("forked", ""), 1);
                _exit(0);
            }
            bool bad = waitpid(child, &status, 0) != child || status != 0;
            for (int t = 0; t < FIRST_CALLERS; t++)
                pthread_join(threads[t], NULL);
            _exit(bad);
        }
        if (waitpid(program, &status, 0) != program || status != 0)
            return 1;
    }
    return 0;
}

// clone: a child that does not run fork handlers
static int mode_clone(void)
{
    sonde_handle h = sonde_gauge("value", "");
    sonde_emit(h, 1);
    fflush(stdout);
    long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        sonde_handle child = sonde_gauge("child", ""); // the slow path notices it
        sonde_emit(child, 2);
        syscall(SYS_exit_group, 0);
    }
    waitpid((pid_t)pid, NULL, 0);
    sonde_emit(h, 3);
    return 0;
}

// exec POINTS: emits, then executes another emitter
static int mode_exec(void)
{
    sonde_handle h = sonde_gauge("before", "");
    sonde_add(sonde_counter("adds", ""), 1);
    for (long i = 0; i < number(0); i++)
        sonde_emit(h, (double)i);
    execl("/proc/self/exe", "emitter", "waits", "10", "0", NULL);
    return 1;
}

static void *thread_adds(void *unused)
{
    (void)unused;
    sonde_handle h = sonde_counter("work_total", "");
    for (long i = 0; i < number(1); i++)
        sonde_add(h, 1);
    return NULL;
}

// cells THREADS ADDS: all threads add to a counter, gauges are set; writes "ready" and waits, sets
// once more, waits
static int mode_cells(void)
{
    pthread_t threads[64];
    sonde_handle unused = sonde_gauge("never_set", ""), level = sonde_gauge("level", "percent"),
                 both = sonde_gauge("in_flight", "");
    (void)unused;
    sonde_set(level, 12.5);
    sonde_add(both, 3);
    sonde_add(both, -1);
    for (long i = 0; i < number(0); i++)
        if (pthread_create(&threads[i], NULL, thread_adds, NULL) != 0)
            return 1;
    for (long i = 0; i < number(0); i++)
        pthread_join(threads[i], NULL);
    say("ready");
    wait_for_line();
    sonde_set(level, sonde_missing());
    sonde_set(both, 10); // beside the additions
    sonde_add(sonde_counter("work_total", ""), 1);
    say("again");
    wait_for_line();
    return 0;
}

static void *thread_adds_and_stays(void *unused)
{
    sonde_handle h = sonde_counter("work_total", "");
    for (long i = 0; i < number(1); i++)
        sonde_add(h, 1);
    sonde_emit(sonde_gauge("value", ""), 1);
    pthread_barrier_wait(&crowd);
    return unused;
}

// add_crowd THREADS ADDS: all at the same time
static int mode_add_crowd(void)
{
    pthread_t threads[1024];
    long count = number(0);
    pthread_barrier_init(&crowd, NULL, (unsigned)count);
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, thread_adds_and_stays, NULL) != 0)
            return 1;
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("dropped=%llu\n", (unsigned long long)sonde_dropped());
    return 0;
}

// bad_amounts: amounts that would make a counter invalid; reports the number of refused ones
static int mode_bad_amounts(void)
{
    sonde_handle total = sonde_counter("total", ""), large = sonde_counter("large", ""),
                 set = sonde_counter("set", "");
    sonde_add(total, 2);
    sonde_add(total, NAN);
    sonde_add(total, INFINITY);
    sonde_add(total, -INFINITY);
    sonde_add(total, sonde_missing());
    sonde_add(total, 3);
    sonde_add(large, DBL_MAX);
    sonde_add(large, DBL_MAX); // the sum, not the amount, is infinite
    sonde_set(set, 7);
    printf("dropped=%llu\n", (unsigned long long)sonde_dropped());
    say("ready");
    wait_for_line();
    sonde_set(set, NAN);
    say("set");
    wait_for_line();
    return 0;
}

// count AMOUNT: adds to one counter and ends at once
static int mode_count(void)
{
    sonde_add(sonde_counter("work_total", ""), (double)number(0));
    if (number(1)) {
        say("ready");
        wait_for_line();
    }
    return 0;
}

// count_into NAME AMOUNT: the same for any counter
static int mode_count_into(void)
{
    sonde_add(sonde_counter(arguments[0], ""), (double)number(1));
    return 0;
}

// count_each AMOUNT…: adds each to work_total, writes "added" and waits for a line; then emits a
// point, which makes it search for an agent
static int mode_count_each(void)
{
    sonde_handle total = sonde_counter("work_total", ""), point = sonde_gauge("point", "");
    for (int i = 0; i < argument_count; i++) {
        sonde_add(total, (double)number(i));
        printf("added_%d\n", i);
        fflush(stdout);
        wait_for_line();
        sonde_emit(point, i);
    }
    return 0;
}

// many_cells COUNT: sets COUNT cells, then COUNT more, and adds to the first ones
static int mode_many_cells(void)
{
    long count = number(0);
    for (long i = 0; i < 2 * count; i++) {
        if (i == count) {
            say("half");
            wait_for_line();
        }
        char name[32];
        snprintf(name, sizeof name, "cell_%ld", i);
        sonde_set(sonde_gauge(name, ""), (double)(i + 1));
    }
    for (long i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "cell_%ld", i);
        sonde_add(sonde_gauge(name, ""), (double)(i + 1));
    }
    say("all");
    wait_for_line();
    return 0;
}

// groups
static int mode_groups(void)
{
    struct sonde_metric high = {.name = "too_high", .level = 4};
    sonde_handle m[4] = {sonde_gauge("a", ""), sonde_define(&high), sonde_gauge("b", ""),
                         sonde_gauge("a", "")};
    sonde_handle g = sonde_group(m, 4), same = sonde_group(m, 4), none = sonde_group(&m[1], 1);
    printf("same=%d\nnone=%u\nhigh=%u\n", g == same, none, m[1]);
    double row[4] = {1, 2, 3, 4};
    sonde_emit_group(g, row);
    row[0] = sonde_missing();
    sonde_emit_group(g, row);
    sonde_emit_group_at(g, (double[]){5, 6, 7, 8}, INT64_C(1700000000123456789));
    sonde_emit_at(m[0], 9, INT64_C(1700000000123456790));
    sonde_emit_group(m[0], row); // not a group: nothing happens
    sonde_emit(g, 1);            // not a metric: counted by the agent
    sonde_emit(4711, 1);         // no effect
    sonde_add(4711, 1);
    sonde_set(4711, 1);
    sonde_emit_group(4711, row);
    return 0;
}

// spans
static int mode_spans(void)
{
    sonde_span_end(); // no span is open
    sonde_span_begin("job", "job", "42");
    sonde_span_begin("epoch", "number", "1", "phase", "train");
    sonde_span_end();
    sonde_span_begin("epoch", "number", "2", "odd");
    sonde_annotate("half time", "file", "ck-1");
    sonde_span_end();
    sonde_span_end();
    sonde_span_end(); // one more than was opened
    struct sonde_tag tag = {"k", "v"};
    sonde_span_at("past", 1000, 2000, &tag, 1);
    for (int i = 0; i < 100; i++)
        sonde_span_begin("deep");
    for (int i = 0; i < 100; i++)
        sonde_span_end();
    sonde_span_begin("after");
    sonde_span_end();
    sonde_span_begin("open");
    return 0;
}

static void *opens(void *span)
{
    *(struct sonde_span *)span = sonde_span_open("of a later slot", NULL, 0, NULL);
    return NULL;
}

static void *closes(void *span)
{
    sonde_span_close(span, "moved", NULL, 0);
    return NULL;
}

// free_spans: spans that overlap, move between threads, and that a forked child may not close
static int mode_free_spans(void)
{
    struct sonde_tag tag = {"k", "v"};
    struct sonde_span a = sonde_span_open("a", &tag, 1, NULL),
                      b = sonde_span_open("b", NULL, 0, &a);
    struct sonde_span moved = sonde_span_open("moved", NULL, 0, &b), none = {0};
    sonde_span_close(&a, "a", &tag, 1);
    sonde_span_close(&none, "none", NULL, 0);
    pthread_t t;
    if (pthread_create(&t, NULL, closes, &moved) != 0 || pthread_join(t, NULL) != 0)
        return 1;
    struct sonde_span begun = sonde_span_open_at("begun", 1000, &tag, 1, &b);
    sonde_span_close_at(&begun, "begun", 2000, &tag, 1);
    sonde_span_open_at("begun and open", 3000, NULL, 0, NULL);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        sonde_span_close(&b, "b", NULL, 0);
        struct sonde_span own = sonde_span_open("child", NULL, 0, &b);
        sonde_span_close(&own, "child", NULL, 0);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    return 0;
}

// span_of_later_slot: a span that a second thread opens and the first one closes, before the agent
// reads
static int mode_span_of_later_slot(void)
{
    struct sonde_span span, first = sonde_span_open("first", NULL, 0, NULL);
    pthread_t t;
    if (pthread_create(&t, NULL, opens, &span) != 0 || pthread_join(t, NULL) != 0)
        return 1;
    sonde_span_close(&span, "of a later slot", NULL, 0);
    sonde_span_close(&first, "first", NULL, 0);
    say("written");
    wait_for_line();
    return 0;
}

// span_crowd SEED: threads that open spans and close those of all threads, at random; then prints
// which are open
enum { CROWD_SPANS = 300, CROWD_THREADS = 4 };
static struct {
    pthread_mutex_t mutex;
    struct sonde_span spans[CROWD_SPANS];
    char state[CROWD_SPANS + 1]; // by span: 'o' open, 'c' closed
    unsigned count;
} crowd_of_spans = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// One random step; false when all spans are used.
static bool crowd_of_spans_step(void)
{
    char name[16];
    unsigned known = crowd_of_spans.count, which = known ? (unsigned)(random_u64() % known) : 0;
    if (known == CROWD_SPANS)
        return false;
    if (known == 0 || random_u64() % 2) {
        snprintf(name, sizeof name, "s%u", known);
        crowd_of_spans.spans[known] = sonde_span_open(name, NULL, 0, NULL);
        crowd_of_spans.state[known] = 'o';
        crowd_of_spans.count++;
    } else if (crowd_of_spans.state[which] == 'o') {
        snprintf(name, sizeof name, "s%u", which);
        sonde_span_close(&crowd_of_spans.spans[which], name, NULL, 0);
        crowd_of_spans.state[which] = 'c';
    }
    return true;
}

static void *crowd_of_spans_member(void *unused)
{
    (void)unused;
    for (bool more = true; more;) {
        pthread_mutex_lock(&crowd_of_spans.mutex);
        more = crowd_of_spans_step();
        useconds_t pause = random_u64() % 8 ? 0 : 1000;
        pthread_mutex_unlock(&crowd_of_spans.mutex);
        usleep(pause);
    }
    return NULL;
}

static int mode_span_crowd(void)
{
    pthread_t threads[CROWD_THREADS];
    random_state = (uint64_t)number(0);
    for (unsigned i = 0; i < CROWD_THREADS; i++)
        if (pthread_create(&threads[i], NULL, crowd_of_spans_member, NULL) != 0)
            return 1;
    for (unsigned i = 0; i < CROWD_THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("state=%s\n", crowd_of_spans.state);
    say("written");
    wait_for_line();
    return 0;
}

// span_waits: a span that stays open across agents
static int mode_span_waits(void)
{
    sonde_span_begin("long", "k", "v");
    say("first");
    wait_for_line();
    sonde_span_end();
    return 0;
}

// span_pairs: before the agent reads, ten spans at once, one whose end is 40 records after its
// begin, and an open one
static int mode_span_pairs(void)
{
    enum { AT_ONCE = 10, BETWEEN = 40 };
    struct sonde_span spans[AT_ONCE];
    for (unsigned i = 0; i < AT_ONCE; i++)
        spans[i] = sonde_span_open("short", NULL, 0, NULL);
    for (unsigned i = 0; i < AT_ONCE; i++)
        sonde_span_close(&spans[(i + 3) % AT_ONCE], "short", NULL, 0);
    struct sonde_span wide = sonde_span_open("wide", NULL, 0, NULL);
    sonde_handle h = sonde_gauge("between", "");
    for (unsigned i = 0; i < BETWEEN; i++)
        sonde_emit(h, i);
    sonde_span_close(&wide, "wide", NULL, 0);
    sonde_span_open("open", NULL, 0, NULL);
    say("first");
    wait_for_line();
    return 0;
}

// limits: names, tags and texts at and above their limits; prints handles as 0 or 1
static int mode_limits(void)
{
    static char name[300], key[200], value[2000], text[6000];
    struct sonde_tag tags[20];
    struct sonde_metric m = {.name = name, .tags = tags};
    memset(name, 'n', 255);
    memset(text, 't', 4096);
    m.help = text;
    printf("name255=%d\n", sonde_define(&m) != 0);
    text[4096] = 't';
    name[254] = 'm';
    printf("help4097=%d\n", sonde_define(&m) != 0); // cut
    name[255] = 'n';
    m.help = NULL;
    printf("name256=%d\n", sonde_define(&m) != 0);
    printf("empty=%d\nblank=%d\nnull=%d\nletters=%d\n", sonde_gauge("", "") != 0,
           sonde_gauge("a b", "") != 0, sonde_gauge(NULL, "") != 0,
           sonde_gauge("größe/µ.a_b:c-d", NULL) != 0);
    printf("unit32=%d\nunit33=%d\n", sonde_gauge("u32", "12345678901234567890123456789012") != 0,
           sonde_gauge("u33", "123456789012345678901234567890123") != 0);
    memset(key, 'k', 128);
    memset(value, 'v', 1024);
    m.name = "tagged";
    m.tag_count = 1;
    tags[0] = (struct sonde_tag){key, value};
    printf("tag=%d\n", sonde_define(&m) != 0);
    value[1024] = 'v';
    printf("value1025=%d\n", sonde_define(&m) != 0);
    value[1024] = 0;
    key[128] = 'k';
    printf("key129=%d\n", sonde_define(&m) != 0);
    key[128] = 0;
    static char keys[20][8];
    for (int i = 0; i < 20; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        tags[i] = (struct sonde_tag){keys[i], "v"};
    }
    m.tag_count = 15;
    printf("tags15=%d\n", sonde_define(&m) != 0);
    m.tag_count = 16; // host is one more
    printf("tags16=%d\n", sonde_define(&m) != 0);
    m.tag_count = 2;
    m.name = "ordered";
    sonde_handle ordered = sonde_define(&m);
    m.tags = (struct sonde_tag[]){{"k1", "v"}, {"empty", ""}, {"k0", "v"}};
    m.tag_count = 3;
    printf("order=%d\n", ordered && sonde_define(&m) == ordered);
    m.tags = tags;
    m.tag_count = 2;
    tags[1].key = "k0";
    printf("twice=%d\n", sonde_define(&m) != 0);
    m.kind = (enum sonde_kind)7;
    m.tag_count = 0;
    printf("kind=%d\n", sonde_define(&m) != 0);
    static sonde_handle many[4097];
    for (int i = 0; i < 4097; i++)
        many[i] = tagged("member", "i", i, SONDE_GAUGE);
    static double row[4097];
    sonde_handle full = sonde_group(many, 4096);
    printf("group4096=%d\ngroup4097=%d\n", full != 0, sonde_group(many, 4097) != 0);
    sonde_emit_group(full, row);
    memset(name, 's', 299);
    name[299] = 0;
    memset(text, 'x', 5000);
    sonde_span_begin(name, key, value, "bad key", "v");
    sonde_span_end();
    sonde_annotate(text);
    sonde_annotate("sixteen", "1", "v", "2", "v", "3", "v", "4", "v", "5", "v", "6", "v", "7", "v",
                   "8", "v", "9", "v", "10", "v", "11", "v", "12", "v", "13", "v", "14", "v", "15",
                   "v", "16", "v", "17", "v");
    return 0;
}

// config
static int mode_config(void)
{
    static char long_value[1026];
    struct sonde_tag many[5];
    memset(long_value, ' ', 1025);
    sonde_config("lr", "0.01", "text", "a b\nc\\", "bad key", "v", "long", long_value, "odd");
    long_value[1024] = 0;
    for (int i = 0; i < 5; i++)
        many[i] = (struct sonde_tag){(const char *const[]){"a", "b", "c", "d", "e"}[i], long_value};
    many[4].value = "last";
    sonde_config_tags(many, 5);
    sonde_config_tags(NULL, 0);
    return 0;
}

// define COUNT: defines this many metrics, with a point each
static int mode_define(void)
{
    long on = 0;
    for (long i = 0; i < number(0); i++) {
        char name[32];
        snprintf(name, sizeof name, "m%ld", i);
        sonde_handle h = sonde_gauge(name, "");
        on += h != 0;
        sonde_emit(h, (double)i);
    }
    printf("on=%ld\ndropped=%llu\n", on, (unsigned long long)sonde_dropped());
    return 0;
}

static int open_descriptors(void)
{
    struct stat st;
    int open = 0;
    for (int fd = 0; fd < 256; fd++)
        open += fstat(fd, &st) == 0;
    return open;
}

// level LEVEL-OF-METRIC: prints handle and level, and the number of descriptors in use
static int mode_level(void)
{
    int open = open_descriptors();
    struct sonde_metric m = {.name = "leveled", .level = (int)number(0)};
    sonde_handle h = sonde_define(&m);
    sonde_emit(h, 1);
    sonde_set(h, 1);
    sonde_add(h, 1);
    sonde_span_begin("span");
    sonde_span_end();
    sonde_annotate("note");
    sonde_emit_group(sonde_group(&h, 1), (double[]){1});
    printf("handle=%d\nlevel=%d\n", h != 0, sonde_level());
    printf("open=%d\n", open_descriptors() - open);
    return 0;
}

// closes: closes all descriptors, reuses their numbers for its own socket pair, and continues to
// emit: no data of libsonde may appear there
static int mode_closes(void)
{
    sonde_handle h = sonde_gauge("value", "");
    sonde_emit(h, 1);
    say("first");
    wait_for_line();
    int mine[2];
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, mine) != 0)
        return 1;
    mine[0] = fcntl(mine[0], F_DUPFD, 64); // to another number
    mine[1] = fcntl(mine[1], F_DUPFD, 64);
    for (int fd = 3; fd < 64; fd++)
        dup2(mine[0], fd);
    say("closed");
    for (long i = 0; i < 1000000; i++)
        sonde_emit(h, (double)i);
    char c;
    int lost = 0;
    for (int fd = 3; fd < 64; fd++)
        lost += fcntl(fd, F_GETFD) < 0;
    printf("stray=%d\nlost=%d\nsent=1000001\n", read(mine[1], &c, 1) == 1, lost);
    fflush(stdout);
    wait_for_line();
    return 0;
}

// loud: makes calls that are refused, with standard error redirected to standard output
static int mode_loud(void)
{
    dup2(1, 2);
    sonde_emit(sonde_gauge("not a name", ""), 1);
    say("end");
    return 0;
}

// locked: in a program with locked memory; prints how much shared memory it takes
static int mode_locked(void)
{
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        say("cannot lock");
    sonde_emit(sonde_gauge("value", ""), 1);
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "RssShmem: %ld", &kib);
    if (f)
        fclose(f);
    printf("shared=%ld\n", kib);
    return 0;
}

// small limits: address space and file size are too small for a segment of the default size
static int mode_tight(void)
{
    struct rlimit limit = {(rlim_t)number(0) << 20, (rlim_t)number(0) << 20};
    setrlimit((int)number(1) ? RLIMIT_FSIZE : RLIMIT_AS, &limit);
    sonde_handle h = sonde_gauge("value", "");
    sonde_emit(h, 1);
    printf("handle=%d\n", h != 0);
    return 0;
}

// Finds the mapping of the library's segment, or of the agent's area.
static char *find_mapping(const char *name, size_t *bytes)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[512], *found = NULL;
    while (f && fgets(line, sizeof line, f)) {
        unsigned long from, to;
        if (strstr(line, name) && sscanf(line, "%lx-%lx", &from, &to) == 2) {
            found = (char *)from;
            *bytes = to - from;
        }
    }
    if (f)
        fclose(f);
    return found;
}

static uint64_t nasty(void)
{
    static const uint64_t values[] = {0,         1,        7,          8,          0xff,
                                      0xffff,    0x10000,  0xffffffff, UINT64_MAX, UINT64_MAX - 7,
                                      INT64_MAX, 1u << 20, 1u << 17};
    uint64_t r = random_u64();
    return r % 3 ? values[r / 3 % (sizeof values / sizeof *values)] : random_u64();
}

// scribble SEED ROUNDS: writes garbage to sensitive places
static int mode_scribble(void)
{
    random_state = (uint64_t)number(0);
    size_t bytes = 0, agent_bytes = 0;
    sonde_handle h = sonde_gauge("scribbled", "");
    sonde_add(sonde_counter("scribbled_total", ""), 1);
    sonde_span_begin("scribbled span", "k", "v");
    sonde_span_end();
    for (int i = 0; i < 1000; i++)
        sonde_emit(h, i);
    char *base = find_mapping(SEGMENT_LINK, &bytes),
         *agent = find_mapping(SEGMENT_AGENT_LINK, &agent_bytes);
    if (!base || !agent)
        return 1;
    struct segment_header *header = (struct segment_header *)base;
    struct segment_layout at = segment_layout(header->slots, header->ring_bytes);
    say("ready");
    wait_for_line();
    for (long round = 0; round < number(1); round++) {
        uint64_t r = random_u64();
        char *where;
        switch (r % 8) {
        case 0:
            where =
                base + offsetof(struct segment_header, definitions_bytes) + random_u64() % 5 * 8;
            break;
        case 1:
            where = base + random_u64() % 256 * 8;
            break;
        case 2:
            where = agent + random_u64() % 32 * 8;
            break;
        case 3:
            where = base + at.definitions + random_u64() % 64 * 8;
            break;
        case 4:
            where = base + at.gauges + random_u64() % 64 * 8;
            break;
        case 5:
            where = base + at.slots + random_u64() % 8 * 8; // the ring's head
            break;
        default:
            where = base + at.slots + SLOT_DATA + random_u64() % 4096 * 8;
        }
        uint64_t value = nasty();
        if (r % 8 >= 6 && random_u64() % 2) // a plausible header
            value = segment_word((enum segment_type)(random_u64() % 8), random_u64() % 4,
                                 random_u64() % 64, (uint32_t)(random_u64() % 4));
        memcpy(where, &value, sizeof value);
        if (random_u64() % 16 == 0) // with a head that is too far ahead
            atomic_fetch_add(&((struct ring *)(void *)(base + at.slots))->head,
                             random_u64() % 64 * 8);
        if (random_u64() % 64 == 0)
            sched_yield();
    }
    if (fallocate(3, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) != 0 &&
        errno == EBADF)
        return 1;
    say("done");
    wait_for_line();
    return 0;
}

static void *thread_does_everything(void *index)
{
    sonde_handle value = tagged("value", "thread", (long)(intptr_t)index, SONDE_GAUGE);
    sonde_handle total = sonde_counter("work_total", ""), level = sonde_gauge("level", "");
    sonde_handle group = sonde_group((sonde_handle[]){value, level}, 2);
    for (long i = 0; i < number(0); i++) {
        sonde_emit(value, (double)i);
        sonde_emit_at(value, (double)i, i);
        sonde_emit_group(group, (double[]){1, 2});
        sonde_add(total, 1);
        sonde_set(level, (double)i);
        sonde_span_begin("step", "k", "v");
        sonde_annotate("note");
        sonde_span_end();
        if (i % 64 == 0)
            tagged("defined", "i", i, SONDE_GAUGE);
    }
    return NULL;
}

// everything ROUNDS: four threads, all functions
static int mode_everything(void)
{
    pthread_t threads[4];
    sonde_level();
    say("ready");
    wait_for_line();
    for (long i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, thread_does_everything, (void *)(intptr_t)i) != 0)
            return 1;
    for (long i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("dropped=%llu\nend\n", (unsigned long long)sonde_dropped());
    return 0;
}

static void *thread_is_cancelled(void *paths)
{
    int unused;
    pthread_setcanceltype(number(1) ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED,
                          &unused);
    for (long i = 0;; i++) {
        char name[32];
        snprintf(name, sizeof name, "cancelled_%ld", i % 1000);
        sonde_handle h = sonde_gauge(name, "");
        sonde_emit(h, 1);
        sonde_add(h, 1);
        sonde_set(h, 1);
        sonde_group(&h, 1);
        sonde_gauge("not a name", "");
        sonde_span_begin("span");
        sonde_annotate("note");
        sonde_span_end();
        if (i % 16 == 0)
            sonde_connect(((char **)paths)[i / 16 % 2], 1);
        pthread_testcancel(); // the calls above need not be cancellation points
    }
    return NULL;
}

// cancels THREADS ASYNCHRONOUS SEED PATH PATH: threads that are cancelled anywhere in the slow
// paths. After a line of input, everything still works: definitions, points, fork(). An alarm ends
// it if a lock has no owner any more.
static int mode_cancels(void)
{
    enum { ALARM_S = 60, SPINS = 1 << 19 };
    pthread_t t;
    random_state = (uint64_t)number(2);
    alarm(ALARM_S);
    sonde_emit(sonde_gauge("before", ""), 1); // gives this thread a ring of its own
    for (long i = 0; i < number(0); i++) {
        if (pthread_create(&t, NULL, thread_is_cancelled, &arguments[3]) != 0)
            return 1;
        for (volatile uint64_t spin = random_u64() % SPINS; spin; spin--)
            ;
        pthread_cancel(t);
        pthread_join(t, NULL);
    }
    alarm(0);
    say("cancelled");
    wait_for_line();
    alarm(ALARM_S);
    sonde_handle after = sonde_gauge("after", "");
    sonde_connect(arguments[3], 1);
    sonde_emit(after, 1);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        sonde_emit(after, 2);
        sonde_emit(sonde_gauge("child", ""), 1);
        _exit(0);
    }
    int status;
    return waitpid(pid, &status, 0) != pid || status != 0 || !after;
}

static int run_rest(void);

// as UID MODE …: drops privileges first
static int mode_as(void)
{
    uid_t uid = (uid_t)number(0);
    arguments++;
    argument_count--;
    if (uid != geteuid() &&
        (setgid(uid) != 0 || setuid(uid) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0))
        return 1;
    return run_rest();
}

// no_memory: after half of the work, no more memory can be reserved, as with vm.overcommit_memory=2
// at the limit. Values that do not fit into the existing memory count as dropped.
static int mode_no_memory(void)
{
    enum { POINTS = 20000 };
    sonde_handle before = sonde_gauge("before", ""), total = sonde_counter("total", "");
    sonde_emit(before, 1);
    sonde_add(total, 1);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 1;
    long defined = 0;
    for (int i = 0; i < POINTS; i++)
        sonde_emit(before, i);
    for (int i = 0; i < 5000; i++) {
        sonde_handle h = tagged("more", "i", i, SONDE_GAUGE);
        defined += h != 0;
        sonde_set(h, 1);
        sonde_add(h, 1);
    }
    sonde_add(total, 1);
    printf("sent=%d\ndropped=%llu\ndefined=%ld\n", POINTS + 1, (unsigned long long)sonde_dropped(),
           defined);
    say("first");
    wait_for_line();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) { // cannot get a segment
        sonde_emit(before, 1);
        _exit(sonde_level());
    }
    int status;
    return waitpid(pid, &status, 0) != pid || status != 0;
}

// unsealed MODE …: without F_SEAL_FUTURE_WRITE, as on Linux before 5.1
static int mode_unsealed(void)
{
    enum { SEAL_FUTURE_WRITE = 0x10 };
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_ADD_SEALS, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, SEAL_FUTURE_WRITE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 1;
    return run_rest();
}

// slow: emits a point for each empty line, until any other line
static int mode_slow(void)
{
    // less than half of a ring, because it checks for the agent then anyway
    enum { POINTS_MAX = 20000 };
    char line[64];
    int sent = 1;
    sonde_handle h = sonde_gauge("value", "");
    sonde_emit(h, 0);
    say("1");
    for (; sent < POINTS_MAX && fgets(line, sizeof line, stdin) && strcmp(line, "\n") == 0; sent++)
        sonde_emit(h, sent);
    printf("sent=%d\n", sent);
    return 0;
}

static const struct mode {
    const char *name;
    int (*run)(void);
} modes[] = {
    {"slow", mode_slow},
    {"everything", mode_everything},
    {"as", mode_as},
    {"no_memory", mode_no_memory},
    {"cancels", mode_cancels},
    {"unsealed", mode_unsealed},
    {"threads", mode_threads},
    {"waves", mode_waves},
    {"moves", mode_moves},
    {"comes_back", mode_comes_back},
    {"unheard", mode_unheard},
    {"crowd", mode_crowd},
    {"add_crowd", mode_add_crowd},
    {"count_into", mode_count_into},
    {"bad_amounts", mode_bad_amounts},
    {"points", mode_points},
    {"waits", mode_waits},
    {"late", mode_late},
    {"stream", mode_stream},
    {"fork", mode_fork},
    {"forks", mode_forks},
    {"fork_tight", mode_fork_tight},
    {"first_calls", mode_first_calls},
    {"clone", mode_clone},
    {"exec", mode_exec},
    {"cells", mode_cells},
    {"count", mode_count},
    {"count_each", mode_count_each},
    {"many_cells", mode_many_cells},
    {"groups", mode_groups},
    {"spans", mode_spans},
    {"span_waits", mode_span_waits},
    {"span_of_later_slot", mode_span_of_later_slot},
    {"span_crowd", mode_span_crowd},
    {"limits", mode_limits},
    {"config", mode_config},
    {"define", mode_define},
    {"level", mode_level},
    {"closes", mode_closes},
    {"tight", mode_tight},
    {"loud", mode_loud},
    {"locked", mode_locked},
    {"scribble", mode_scribble},
    {"free_spans", mode_free_spans},
    {"span_pairs", mode_span_pairs},
};

// Runs the mode at the beginning of the remaining arguments.
static int run_rest(void)
{
    const char *name = argument_count > 0 ? arguments[0] : "";
    arguments++;
    argument_count--;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(name, modes[i].name) == 0)
            return modes[i].run();
    return 2;
}

int main(int argc, char **argv)
{
    arguments = argv + 1;
    argument_count = argc - 1;
    return run_rest();
}
