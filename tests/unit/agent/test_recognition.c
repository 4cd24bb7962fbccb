// The agent recognises the kind of a connection by its first byte, at whatever moment that byte
// arrives. The linker redirects recv(), so that a request arrives between two checks of the agent.
#include "lab.h"

#include "wire/drain.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000 };

struct stage {
    _Atomic bool holding; // the agent's next check that finds nothing waits for data
    _Atomic bool empty;   // that check has found nothing
};

static struct stage *stage;

ssize_t __real_recv(int fd, void *to, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t size, int flags);

ssize_t __wrap_recv(int fd, void *to, size_t size, int flags)
{
    ssize_t n = __real_recv(fd, to, size, flags);
    if (n < 0 && errno == EAGAIN && flags & MSG_PEEK && stage &&
        atomic_exchange(&stage->holding, false)) {
        struct pollfd data = {.fd = fd, .events = POLLIN};
        stage->empty = true;
        assert_int_equal(poll(&data, 1, PATIENCE_MS), 1);
        errno = EAGAIN;
    }
    return n;
}

static void a_request_that_arrives_between_two_looks_is_answered(void **state)
{
    (void)state;
    struct lab lab;
    char file[LAB_PATH_MAX];
    lab_make(&lab);
    stage = lab_share(&lab, sizeof *stage, file);
    assert_true(lab_start(&lab));
    stage->holding = true;
    int fd = lab_connect(&lab);
    while (!stage->empty)
        usleep(1000);
    struct drain_request request = {DRAIN_MAGIC, 0, 3};
    uint64_t number = 0;
    assert_int_equal(send(fd, &request, sizeof request, 0), sizeof request);
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&answer, 1, PATIENCE_MS), 1);
    assert_int_equal(recv(fd, &number, sizeof number, MSG_WAITALL), sizeof number);
    assert_int_equal(number, 3);
    close(fd);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    stage = NULL;
    lab_free(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_that_arrives_between_two_looks_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
