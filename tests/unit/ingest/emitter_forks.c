// emitter_forks.c - modes of the program `emitter`: programs that fork, clone or execute another
// one.
#include "emitter.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// fork POINTS: parent and child emit to their own series, before and after
int mode_fork(void)
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
int mode_forks(void)
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
int mode_fork_tight(void)
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

// ---- forks without libsonde's handlers, as if there had been no memory to register them; the
// linker redirects pthread_atfork() to this ----

static bool no_fork_handlers;

int __real_pthread_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));
int __wrap_pthread_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

int __wrap_pthread_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    return no_fork_handlers ? ENOMEM : __real_pthread_atfork(before, in_parent, in_child);
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
int mode_first_calls(void)
{
    enum { ALARM_S = 20, SPINS = 1 << 14 };
    random_state = (uint64_t)number(1);
    for (long i = 0; i < number(0); i++) {
        uint64_t spins = random_u64() % SPINS;
#ifndef __SANITIZE_ADDRESS__ // a child inherits the locks of its allocator from other threads
        no_fork_handlers = i % 2;
#endif
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
int mode_clone(void)
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

static pthread_barrier_t all_here;

static void *thread_of_a_child(void *index)
{
    pthread_barrier_wait(&all_here);
    sonde_emit(tagged("value", "thread", (long)(intptr_t)index, SONDE_GAUGE), 1);
    return NULL;
}

// threads_of_forks TIMES COUNT: the threads of children that run no fork handlers emit at once
int mode_threads_of_forks(void)
{
    bool bad = false;
    no_fork_handlers = true;
    sonde_emit(sonde_gauge("parent", ""), 1);
    for (long i = 0; i < number(0) && !bad; i++) {
        pid_t pid = fork();
        int status;
        if (pid == 0) {
            pthread_barrier_init(&all_here, NULL, (unsigned)number(1));
            _exit(!run_threads(number(1), thread_of_a_child));
        }
        bad = waitpid(pid, &status, 0) != pid || status != 0;
    }
    return bad;
}

static _Atomic bool enough;

static void *takes_the_lock(void *unused)
{
    const char *socket = getenv("SONDE_SOCKET");
    (void)unused;
    while (!enough)
        sonde_connect(socket, 1);
    return NULL;
}

// forks_with_lock COUNT: forks children that run no fork handlers, while another thread of the
// process often holds the lock; each child finds its parent's handles, defines a metric and emits
int mode_forks_with_lock(void)
{
    enum { ALARM_S = 20 };
    no_fork_handlers = true;
    sonde_handle h = tagged("value", "of", 1, SONDE_GAUGE),
                 group = sonde_group((sonde_handle[]){h, sonde_gauge("other", "")}, 2);
    pthread_t holder;
    bool bad = !h || !group || pthread_create(&holder, NULL, takes_the_lock, NULL) != 0;
    for (long i = 0; i < number(0) && !bad; i++) {
        pid_t pid = fork();
        int status;
        if (pid == 0) {
            alarm(ALARM_S);
            bool same = tagged("value", "of", 1, SONDE_GAUGE) == h &&
                        sonde_group((sonde_handle[]){h, sonde_gauge("other", "")}, 2) == group;
            sonde_emit(tagged("child", "number", i, SONDE_GAUGE), 1);
            _exit(!same);
        }
        bad = waitpid(pid, &status, 0) != pid || status != 0;
    }
    enough = true;
    if (h && group)
        pthread_join(holder, NULL);
    return bad;
}

// exec POINTS: emits, then executes another emitter in its place
int mode_exec(void)
{
    sonde_handle h = sonde_gauge("before", "");
    sonde_add(sonde_counter("adds", ""), 1);
    for (long i = 0; i < number(0); i++)
        sonde_emit(h, (double)i);
    execl("/proc/self/exe", "emitter", "waits", "10", "0", NULL);
    return 1;
}
