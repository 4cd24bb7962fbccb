// Collectors that are started and stopped through an agent's control descriptor: one per name, one
// per GPU, and invalid lines.
#include "lab.h"
#include "wire/collector_line.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void tell(const struct lab *lab, const char *text)
{
    for (size_t left = strlen(text); left;) {
        ssize_t n = write(lab->control, text + strlen(text) - left, left);
        assert_true(n > 0);
        left -= (size_t)n;
    }
}

static void start(struct lab *lab)
{
    lab_make(lab);
    assert_true(lab_start(lab));
}

static void end(struct lab *lab)
{
    assert_int_equal(lab_end(lab, 0), 0);
    lab_free(lab);
}

static void await_end(double pid)
{
    for (int i = 0; kill((pid_t)pid, 0) == 0; i++) {
        usleep(5000);
        assert_true(i < 2000);
    }
}

static void a_collector_replaces_the_one_of_its_name(void **state)
{
    (void)state;
    struct lab lab;
    start(&lab);
    tell(&lab, "collector a echo first $$ word=$(cat); sleep 1000\ncollector b input=abc= exec sh "
               "-c 'echo other $$ word=$(c");
    tell(&lab, "at); exec sleep 1000'\n");
    lab_await_points(&lab, "first{host=lab}", 1); // its standard input is empty
    lab_await_points(&lab, "other{host=lab,word=abc=}", 1);
    double first, other;
    lab_points(&lab, "first{host=lab}", &first);
    lab_points(&lab, "other{host=lab,word=abc=}", &other);
    tell(&lab, "collector a rate=0.05 echo second 1\n");
    lab_await_points(&lab, "second{host=lab}", 3);
    await_end(first);
    assert_int_equal(kill((pid_t)other, 0), 0);
    tell(&lab, "collector b\ncollector unknown\n");
    await_end(other);
    end(&lab);
}

static void malformed_lines_are_refused(void **state)
{
    (void)state;
    struct lab lab;
    start(&lab);
    char *long_line = malloc(COLLECTOR_LINE_MAX + 64);
    memset(long_line, 'x', COLLECTOR_LINE_MAX + 63);
    memcpy(long_line, "collector c echo bad 1 #", 24);
    long_line[COLLECTOR_LINE_MAX + 62] = '\n';
    long_line[COLLECTOR_LINE_MAX + 63] = 0;
    tell(&lab, long_line);
    tell(&lab, "\n \ncollector\nsomething else\ncollector d rate=x echo bad 1\ncollector e per_gpu "
               "input=a\n"
               "collector well timeout=5 echo well 1; sleep 1000\n");
    lab_await_points(&lab, "well{host=lab}", 1);
    for (int i = 0; i < COLLECTORS_MAX + 2; i++) {
        char line[64];
        snprintf(line, sizeof line, "collector n%d echo many 1 n=%d; sleep 1000\n", i, i);
        tell(&lab, line);
    }
    tell(&lab, "collector n0 echo again 1; sleep 1000\n"); // uses no further slot
    lab_await_points(&lab, "again{host=lab}", 1);
    assert_int_equal(lab_points(&lab, "bad{host=lab}", NULL), 0);
    free(long_line);
    end(&lab);
}

// A collector that is requested and stopped before the list of GPUs is known does not run; the
// others run for each GPU.
static void each_gpu_gets_a_process(void **state)
{
    (void)state;
    struct lab lab;
    setenv("SONDE_NVML", FAKE_NVML, 1);
    setenv("SONDE_FAKE_NVML", FAKE_GPUS, 1);
    setenv("CUDA_VISIBLE_DEVICES", "3", 1);
    start(&lab);
    tell(&lab, "collector g per_gpu timeout=5 echo gone 1\ncollector g\n"
               "collector g per_gpu echo uuid ${#CUDA_VISIBLE_DEVICES} gpu=$SONDE_GPU "
               "id=$CUDA_VISIBLE_DEVICES; sleep 1000\n"
               "collector f per_gpu echo words 1; exit $((SONDE_GPU + 1))\n");
    lab_await_points(&lab, "sonde_script_exit_code{gpu=0,host=lab,script=f}", 2);
    lab_await_points(&lab, "sonde_script_exit_code{gpu=1,host=lab,script=f}", 2);
    double code;
    lab_points(&lab, "sonde_script_exit_code{gpu=1,host=lab,script=f}", &code);
    assert_true(code == 2);
    lab_await_points(&lab, "uuid{gpu=0,host=lab,id=GPU-00000000-0000-0000-0000-000000000000}", 1);
    lab_await_points(&lab, "uuid{gpu=1,host=lab,id=GPU-00000001-0000-0000-0000-000000000000}", 1);
    assert_int_equal(lab_points(&lab, "gone{host=lab}", NULL), 0);
    tell(&lab, "collector f\n");
    end(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_collector_replaces_the_one_of_its_name),
        cmocka_unit_test(malformed_lines_are_refused),
        cmocka_unit_test(each_gpu_gets_a_process),
    };
    return cmocka_run_group_tests_name("agent/collectors", tests, NULL, NULL);
}
