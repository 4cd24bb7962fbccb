// A call of libfabric that does not return ends the process; calls that return do not.
#include "unit/test.h"
#include "wire/fabric_watch.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_MS = 20 };

static void hang(void)
{
    struct fabric_watch *w = fabric_watch_open(LOOK_MS);
    fabric_watch_enter(w);
    fabric_watch_leave(w);
    fabric_watch_enter(w);
    for (;;)
        pause();
}

static void call_often(void)
{
    struct fabric_watch *w = fabric_watch_open(LOOK_MS);
    while (fabric_watch_looks(w) < 3 * FABRIC_LOOKS_MAX) {
        fabric_watch_enter(w);
        usleep(100); // unlike a thread that yields, one that has slept soon runs again
        fabric_watch_leave(w);
    }
    fabric_watch_close(w);
    _exit(0);
}

static void do_nothing(void)
{
    struct fabric_watch *w = fabric_watch_open(LOOK_MS);
    fabric_watch_enter(w);
    fabric_watch_leave(w);
    while (fabric_watch_looks(w) < 3 * FABRIC_LOOKS_MAX)
        sched_yield();
    fabric_watch_close(w);
    _exit(0);
}

// Returns the exit code of a process that does this, and what it prints.
static int run(void (*what)(void), char said[1024])
{
    int out[2];
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(out[1], STDERR_FILENO);
        what();
    }
    close(out[1]);
    size_t size = 0;
    for (ssize_t n; size < 1023 && (n = read(out[0], said + size, 1023 - size)) > 0;)
        size += (size_t)n;
    said[size] = 0;
    close(out[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_call_that_does_not_return_ends_the_process(void **state)
{
    (void)state;
    char said[1024];
    assert_int_equal(run(hang, said), EXIT_FAILURE);
    assert_non_null(strstr(said, "shm waits for a process that was killed"));
}

static void other_calls_do_not(void **state)
{
    (void)state;
    char said[1024];
    assert_int_equal(run(call_often, said), 0);
    assert_string_equal(said, "");
    assert_int_equal(run(do_nothing, said), 0);
    assert_string_equal(said, "");
}

static void without_memory_nothing_is_watched(void **state)
{
    (void)state;
    fabric_watch_enter(NULL);
    fabric_watch_leave(NULL);
    fabric_watch_close(NULL);
    assert_int_equal(fabric_watch_looks(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_does_not_return_ends_the_process),
        cmocka_unit_test(other_calls_do_not),
        cmocka_unit_test(without_memory_nothing_is_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
