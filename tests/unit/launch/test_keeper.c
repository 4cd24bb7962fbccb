// The launcher's keeper, with the agent's side: what it keeps, and when it closes the descriptors.
#include "launch/keeper.h"

#include "unit/test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FIRST_FD = 16 };

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 3; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

// An agent that attaches a program and closes its own descriptors.
static void attach(struct keeper *agent, uint64_t program)
{
    struct ingest_descriptors fds = {memfd_create("one", MFD_CLOEXEC),
                                     memfd_create("two", MFD_CLOEXEC), 0};
    assert_true(fds.segment >= 0 && fds.agent_area >= 0);
    keeper_keep(agent, program, &fds);
    close(fds.segment);
    close(fds.agent_area);
}

static void kept_until_forgotten(void **state)
{
    (void)state;
    int before = open_descriptors();
    struct keeper_home home;
    keeper_home_init(&home);
    struct keeper agent = {.fd = keeper_home_open(&home)};
    assert_true(agent.fd >= FIRST_FD);
    for (uint64_t program = 1; program <= 3; program++)
        attach(&agent, program);
    attach(&agent, 3); // the program has connected again
    keeper_forget(&agent, 2);
    keeper_forget(&agent, 9); // unknown to the keeper
    keeper_home_read(&home);
    assert_int_equal(home.count, 2);
    assert_int_equal(open_descriptors(), before + 2 + 2 * 2);
    // The agent is killed after its last message. The next one knows only program 3.
    attach(&agent, 4);
    close(agent.fd);
    agent.fd = keeper_home_open(&home);
    assert_int_equal(home.count, 3);
    attach(&agent, 3);
    keeper_home_settle(&home);
    assert_int_equal(home.count, 1);
    assert_int_equal(home.kept[0].program, 3);
    close(agent.fd);
    keeper_home_read(&home);
    assert_int_equal(home.fd, -1); // the agent has ended; the memory of its programs stays
    assert_int_equal(home.count, 1);
    keeper_home_close(&home);
    keeper_home_close(&home);
    assert_int_equal(open_descriptors(), before);
}

static void the_limit_of_descriptors(void **state)
{
    (void)state;
    enum { LIMIT = KEEPER_SPARE + 20 };
    struct rlimit limit, before;
    struct keeper_home home;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = LIMIT;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    keeper_home_init(&home);
    struct keeper agent = {.fd = keeper_home_open(&home)};
    for (uint64_t program = 0; program < 50; program++) {
        attach(&agent, program);
        keeper_home_read(&home);
    }
    assert_int_equal(home.count, (LIMIT - KEEPER_SPARE) / 2);
    keeper_forget(&agent, 0);
    attach(&agent, 100);
    keeper_home_read(&home);
    assert_int_equal(home.count, (LIMIT - KEEPER_SPARE) / 2);
    close(agent.fd);
    keeper_home_close(&home);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// A stopped launcher does not read: the agent waits once, and continues.
static void a_peer_that_does_not_read_times_out(void **state)
{
    (void)state;
    struct keeper_home home;
    keeper_home_init(&home);
    struct keeper agent = {.fd = keeper_home_open(&home)};
    for (uint64_t program = 0; program < 2000; program++)
        attach(&agent, program);
    assert_true(agent.refuses);
    keeper_home_read(&home);
    assert_true(home.count > 10);
    attach(&agent, 5000);
    assert_false(agent.refuses);
    close(agent.fd);
    keeper_home_close(&home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_until_forgotten),
        cmocka_unit_test(the_limit_of_descriptors),
        cmocka_unit_test(a_peer_that_does_not_read_times_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
