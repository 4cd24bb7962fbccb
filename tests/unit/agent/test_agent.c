// The agent from outside: its start and end, its folder, socket and file.
#include "lab.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sonde.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// As soon as the agent's socket exists, a signal ends the agent orderly: it closes the file. A
// killed agent would leave the file open.
static void a_signal_during_the_start_ends_the_agent_orderly(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct lab lab;
        lab_make(&lab);
        char path[sizeof lab.folder + 16];
        snprintf(path, sizeof path, "%s/agent.sock", lab.folder);
        lab_fork(&lab);
        while (access(path, F_OK) != 0)
            sched_yield();
        assert_int_equal(lab_end(&lab, SIGTERM), 0);
        lab_free(&lab);
    }
}

// The launcher sends a signal, then a scheduler sends another one that ends the job. The agent is
// already closing its file, and finishes that.
static void a_second_signal_does_not_disturb_the_end(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct lab lab;
        lab_make(&lab);
        assert_true(lab_start(&lab));
        int status, number = (int[]){SIGTERM, SIGINT, SIGHUP}[round % 3];
        while (waitpid(lab.pid, &status, WNOHANG) == 0) {
            assert_int_equal(kill(lab.pid, number), 0);
            sched_yield();
        }
        lab.pid = 0;
        close(lab.control);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        lab_free(&lab);
    }
}

static void node_metrics_are_sampled_until_the_end(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    lab.options.level = 2;
    assert_true(lab_start(&lab));
    lab_await_points(&lab, "cpu_percent{host=lab}", 2);
    lab_await_points(&lab, "memory_used_percent{host=lab}", 3);
    assert_true(lab_points(&lab, "own_processes{host=lab}", NULL) >= 1);
    assert_int_equal(lab_points(&lab, "sonde_points_total{host=lab}", NULL), 0); // level 4
    // The end of the control descriptor ends the agent, after one more sample.
    size_t before = lab_points(&lab, "load_1m{host=lab}", NULL);
    assert_int_equal(lab_end(&lab, 0), 0);
    assert_true(lab_points(&lab, "load_1m{host=lab}", NULL) > before);
    lab_free(&lab);
}

static void expect_error(struct lab *lab, const char *words)
{
    if (lab_start(lab))
        fail_msg("started, but should have said: %s", words);
    assert_int_equal(strncmp(lab->said, "error ", 6), 0);
    if (!strstr(lab->said, words))
        fail_msg("said: %s not: %s", lab->said, words);
    assert_int_equal(lab->said[strlen(lab->said) - 1], '\n');
    assert_int_equal(lab_end(lab, 0), 1);
}

static void unusable_folders_are_refused(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    assert_int_equal(chmod(lab.folder, 0750), 0);
    expect_error(&lab, "is open to others (mode 0750): chmod 700 it");
    assert_int_equal(chmod(lab.folder, 0700), 0);
    // A file in place of the folder; a folder that cannot be made.
    char path[256];
    snprintf(path, sizeof path, "%s/file", lab.folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    lab.options.folder = path;
    expect_error(&lab, "is not a folder");
    lab.options.folder = "/proc/no/such";
    expect_error(&lab, "cannot make the run folder /proc/no/such");
    // A link to a folder is refused.
    char link[256];
    snprintf(link, sizeof link, "%s/link", lab.folder);
    assert_int_equal(symlink(lab.folder, link), 0);
    lab.options.folder = link;
    expect_error(&lab, "is not a folder");
    // Missing parent folders are made, too, with private modes.
    char deep[256];
    struct stat about;
    snprintf(deep, sizeof deep, "%s/a/b", lab.folder);
    lab.options.folder = deep;
    assert_true(lab_start(&lab));
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    assert_int_equal(stat(deep, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0700);
    lab_free(&lab);
}

static void folders_of_other_users_are_refused(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct lab lab;
    lab_make(&lab);
    assert_int_equal(chown(lab.folder, 65534, 65534), 0);
    expect_error(&lab, "belongs to user 65534, not to user 0");
    // A child with another uid, which may not write there.
    assert_int_equal(chmod(lab.folder, 0500), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct error e;
        lab.options.control_fd = -1;
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(2);
        bool refused = agent_run(&lab.options, &e) == 1;
        _exit(refused && strstr(e.text, "cannot write to the run folder") ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    lab_free(&lab);
}

static void existing_sockets_are_replaced_or_refused(void **state)
{
    (void)state;
    struct lab lab, second;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    struct stat about;
    char path[256];
    snprintf(path, sizeof path, "%s/agent.sock", lab.folder);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    // A second agent replaces neither the file nor the socket of a running one.
    second = lab;
    second.pid = 0;
    expect_error(&second, "another agent is listening on");
    char elsewhere[256];
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere.sock", lab.folder);
    second.options.socket_path = elsewhere;
    expect_error(&second, "lab.sonde");
    assert_int_equal(access(elsewhere, F_OK), -1);
    assert_string_equal(lab_put(&lab, "alive 1\n"), "");
    // A killed agent leaves its socket, which the next one replaces.
    assert_int_equal(lab_end(&lab, SIGKILL), -SIGKILL);
    assert_int_equal(access(path, F_OK), 0);
    assert_true(lab_start(&lab));
    assert_string_equal(lab_put(&lab, "alive 2\n"), "");
    // An agent that ends orderly removes its socket.
    assert_int_equal(lab_end(&lab, SIGINT), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(lab_points(&lab, "alive{host=lab}", NULL), 2);
    // A file that is not a socket is not touched.
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    expect_error(&lab, "exists and is not a socket");
    assert_int_equal(access(path, F_OK), 0);
    lab_free(&lab);
}

static void invalid_options_are_refused(void **state)
{
    (void)state;
    struct lab lab;
    char path[256];
    lab_make(&lab);
    memset(path, 'p', 108);
    path[108] = 0;
    memcpy(path, "/tmp/", 5);
    lab.options.socket_path = path;
    expect_error(&lab, "the socket's path is 108 bytes long, and the system allows 107");
    lab.options.socket_path = NULL;
    lab.options.level = 0;
    expect_error(&lab, "level 0 is not between 1 and 4");
    lab.options.level = 1;
    lab.options.rate_s = 1e-9;
    expect_error(&lab, "a rate of 1e-09 s is not between");
    lab.options.rate_s = 0.05;
    lab.options.window_s = -1;
    expect_error(&lab, "a window of -1 s is not between");
    lab.options.window_s = 0;
    lab.options.udp_port = 70000;
    expect_error(&lab, "UDP port 70000 is not between 1 and 65535");
    lab.options.udp_port = 0;
    lab.options.host = "a/b";
    expect_error(&lab, "holds a slash");
    lab_free(&lab);
}

// A file that is not sonde's is not touched.
static void an_existing_file_that_is_no_recording_is_refused(void **state)
{
    (void)state;
    struct lab lab;
    char path[256];
    lab_make(&lab);
    snprintf(path, sizeof path, "%s/lab.sonde", lab.folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a diary, not a recording, and long enough to be looked at", 57),
                     57);
    close(fd);
    expect_error(&lab, "lab.sonde");
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_size, 57);
    lab_free(&lab);
}

// When the disk is full, the agent continues, reports it to its clients, and stored data stays.
static void a_full_disk_moves_the_recording(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    lab.options.level = 2;
    lab.file_limit_bytes = 3 << 20; // enough for the node's metrics at the start, and a reserve
    assert_true(lab_start(&lab));
    assert_string_equal(lab_put(&lab, "before 1\n"), "");
    struct buf text = {0};
    // Random values cannot be compressed, so these do not fit.
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 400000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        buf_printf(&text, "filler %llu\n", (unsigned long long)random);
    }
    lab_put(&lab, buf_cstr(&text));
    // The agent still runs, and stored data is kept.
    assert_string_equal(lab_put(&lab, "version\n"), "sonde " SONDE_VERSION "\n");
    lab_end(&lab, SIGTERM);
    assert_int_equal(lab_points(&lab, "before{host=lab}", NULL), 1);
    size_t kept = lab_points(&lab, "filler{host=lab}", NULL);
    assert_true(kept > 10000 && kept < 400000);
    buf_free(&text);
    lab_free(&lab);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        cmocka_set_test_filter(argv[1]); // "udp*": only these
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_during_the_start_ends_the_agent_orderly),
        cmocka_unit_test(a_second_signal_does_not_disturb_the_end),
        cmocka_unit_test(node_metrics_are_sampled_until_the_end),
        cmocka_unit_test(unusable_folders_are_refused),
        cmocka_unit_test(folders_of_other_users_are_refused),
        cmocka_unit_test(existing_sockets_are_replaced_or_refused),
        cmocka_unit_test(invalid_options_are_refused),
        cmocka_unit_test(an_existing_file_that_is_no_recording_is_refused),
        cmocka_unit_test(a_full_disk_moves_the_recording),
    };
    return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
