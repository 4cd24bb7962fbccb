// Signals from a descriptor: those that are passed on, and those without an effect.
#include "launch/signals.h"
#include "unit/test.h"

#include <errno.h>
#include <unistd.h>

static void a_pipe_without_a_reader_ends_no_process(void **state)
{
    (void)state;
    struct signals s;
    struct error e;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(signals_open(&s, &e), 0);
    assert_int_equal(write(ends[1], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    signals_close(&s);
    close(ends[1]);
}

static void signals_are_read_from_the_descriptor(void **state)
{
    (void)state;
    struct signals s;
    struct error e;
    bool from_terminal = true;
    assert_int_equal(signals_open(&s, &e), 0);
    assert_int_equal(signals_next(&s, &from_terminal), 0);
    kill(getpid(), SIGTERM);
    assert_int_equal(signals_next(&s, &from_terminal), SIGTERM);
    assert_false(from_terminal);
    assert_int_equal(signals_next(&s, &from_terminal), 0);
    assert_true(signals_ends(SIGTERM));
    signals_close(&s);
}

// A launcher and a scheduler send signals one after the other.
static void a_child_that_ends_on_request_is_not_killed(void **state)
{
    (void)state;
    struct signals s;
    struct error e;
    assert_int_equal(signals_open(&s, &e), 0);
    kill(getpid(), SIGTERM);
    signals_close(&s);
    kill(getpid(), SIGINT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_without_a_reader_ends_no_process),
        cmocka_unit_test(signals_are_read_from_the_descriptor),
        cmocka_unit_test(a_child_that_ends_on_request_is_not_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
