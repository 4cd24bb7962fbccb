// Scripts: their specifications, and commands that hang, crash, print garbage, print without end,
// or work. A whole agent runs them.
#include "agent/scripts.h"
#include "lab.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void script_lines_are_parsed(void **state)
{
    (void)state;
    static const char *const right[] = {"",
                                        "\n \n",
                                        "echo a 1",
                                        "rate=5 echo a 1",
                                        "name=x timeout=1 rate=0.05 echo",
                                        "a\nb\nc",
                                        "RATE=1 env",
                                        "env rate=1 sh",
                                        "rate=1 -- timeout=x env",
                                        "--  a"};
    static const char *const wrong[] = {
        "rate=5",
        "rate=0 echo",
        "rate=x echo",
        "rate=1e9 echo",
        "timeout=nan echo",
        "rate=inf echo",
        "name= echo",
        "a\nrate=1",
        "rate=1 --",
        "name=0123456789012345678901234567890123456789012345678901234567890123 a",
        "timeout=-1 echo x"};
    struct error e;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_int_equal(scripts_check(right[i], &e), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(scripts_check(wrong[i], &e), -EINVAL);
    struct script_spec spec; // after "--" no word is an option
    assert_int_equal(script_parse(STR("rate=2 -- timeout=3 env"), &spec, &e), 0);
    assert_str_equal(spec.command, "timeout=3 env");
    assert_true(spec.rate_s == 2 && spec.timeout_s == 10);
    char many[4 * (SCRIPTS_MAX + 1) + 1] = "";
    for (size_t i = 0; i <= SCRIPTS_MAX; i++)
        strcat(many, "a b\n");
    assert_int_equal(scripts_check(many, &e), -E2BIG);
}

static void lab_with(struct lab *lab, const char *scripts)
{
    lab_make(lab);
    lab->options.scripts = scripts;
    lab->options.script_folder = lab->folder;
    assert_true(lab_start(lab));
}

static void points_come_once_a_run_or_as_they_are_printed(void **state)
{
    (void)state;
    struct lab lab;
    lab_with(&lab,
             "rate=0.05 echo each $(pwd | wc -l) k=v\n"
             "for i in 1 2 3 4 5; do echo on $i who=me; done; printf 'unended 7'; sleep 1000");
    lab_await_points(&lab, "each{host=lab,k=v}", 3);
    lab_await_distinct(&lab, "on{host=lab,who=me}", 5);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    double last;
    assert_int_equal(lab_points(&lab, "unended{host=lab}", &last), 1);
    assert_true(last == 7);
    assert_int_equal(lab_points(&lab, "sonde_script_exit_code{host=lab,script=for}", NULL), 0);
    lab_free(&lab);
}

static void a_hanging_script_is_killed_and_started_again(void **state)
{
    (void)state;
    struct lab lab;
    lab_with(&lab, "name=stuck rate=0.2 timeout=0.1 echo before 1; sleep 1000\n"
                   "name=mute timeout=0.1 echo once 1; sleep 1000\n"
                   "rate=0.05 echo other 1");
    lab_await_points(&lab, "sonde_script_exit_code{host=lab,script=stuck}", 2);
    lab_await_points(&lab, "sonde_script_exit_code{host=lab,script=mute}", 1);
    lab_await_points(&lab, "before{host=lab}", 2);
    lab_await_points(&lab, "other{host=lab}", 3);
    double code;
    lab_points(&lab, "sonde_script_exit_code{host=lab,script=stuck}", &code);
    assert_true(code == SCRIPT_TIMED_OUT);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    lab_free(&lab);
}

static void a_failing_script_is_reported_and_started_again(void **state)
{
    (void)state;
    struct lab lab;
    lab_with(&lab, "name=code rate=0.05 echo a 1; echo why >&2; exit 3\n"
                   "name=signal kill -SEGV $$\n"
                   "name=none /no/such/command\n"
                   "name=again echo again 1; exit 1");
    lab_await_points(&lab, "sonde_script_exit_code{host=lab,script=code}", 3);
    lab_await_points(&lab, "sonde_script_exit_code{host=lab,script=signal}", 1);
    lab_await_points(&lab, "sonde_script_exit_code{host=lab,script=none}", 1);
    lab_await_points(&lab, "again{host=lab}", 2);
    double code;
    lab_points(&lab, "sonde_script_exit_code{host=lab,script=code}", &code);
    assert_true(code == 3);
    lab_points(&lab, "sonde_script_exit_code{host=lab,script=signal}", &code);
    assert_true(code == 128 + SIGSEGV);
    lab_points(&lab, "sonde_script_exit_code{host=lab,script=none}", &code);
    assert_true(code == 127);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    lab_free(&lab);
}

static void bad_output_is_counted_and_good_output_stored(void **state)
{
    (void)state;
    struct lab lab;
    lab_with(&lab, "name=garbage echo what is this; head -c 300000 /dev/urandom; echo; echo well "
                   "1; sleep 1000\n"
                   "rate=0.05 echo other 1");
    lab_await_points(&lab, "well{host=lab}", 1);
    lab_await_points(&lab, "other{host=lab}", 3);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    double bad;
    assert_true(lab_points(&lab, "sonde_dropped_total{cause=bad_line,host=lab}", &bad) > 0);
    assert_true(bad >= 1);
    lab_free(&lab);
}

// A script prints megabytes a second: the agent does not read all of it, and delays neither the
// other scripts nor its own end.
static void a_script_that_prints_too_fast_blocks(void **state)
{
    (void)state;
    struct lab lab;
    lab_with(&lab, "yes flood 1\nrate=0.05 echo other 1");
    lab_await_points(&lab, "other{host=lab}", 5);
    lab_await_points(&lab, "flood{host=lab}", 5);
    assert_string_equal(lab_put(&lab, "put_by_hand 1\n"), "");
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    assert_int_equal(lab_points(&lab, "put_by_hand{host=lab}", NULL), 1);
    lab_free(&lab);
}

static void scripts_end_with_the_agent(void **state)
{
    (void)state;
    struct lab lab;
    lab_with(&lab, "sleep 1000 & echo child $!; echo self $$; trap '' TERM; wait");
    lab_await_points(&lab, "self{host=lab}", 1);
    double self, child;
    lab_points(&lab, "self{host=lab}", &self);
    lab_points(&lab, "child{host=lab}", &child);
    assert_int_equal(kill((pid_t)self, 0), 0);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    assert_int_equal(kill((pid_t)self, 0), -1);
    // The agent was the last process that could reap the group, so init reaps it.
    for (int i = 0; i < 2000 && kill((pid_t)child, 0) == 0; i++) {
        char path[64], stat[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
        FILE *f = fopen(path, "re");
        if (f && fgets(stat, sizeof stat, f) && strstr(stat, ") Z "))
            i = 2000; // dead, but the process that adopts orphans here has not reaped it
        if (f)
            fclose(f);
        usleep(5000);
        assert_true(i != 1999);
    }
    lab_free(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(script_lines_are_parsed),
        cmocka_unit_test(points_come_once_a_run_or_as_they_are_printed),
        cmocka_unit_test(a_hanging_script_is_killed_and_started_again),
        cmocka_unit_test(a_failing_script_is_reported_and_started_again),
        cmocka_unit_test(bad_output_is_counted_and_good_output_stored),
        cmocka_unit_test(a_script_that_prints_too_fast_blocks),
        cmocka_unit_test(scripts_end_with_the_agent),
    };
    return cmocka_run_group_tests_name("agent/scripts", tests, NULL, NULL);
}
