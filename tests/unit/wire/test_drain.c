// Requests for a drain, with an agent that the test simulates: it answers when the test wants it.
#include "wire/drain.h"

#include "base/clock.h"
#include "unit/test.h"
#include "wire/refresh.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ASKERS = 8, PATIENCE_S = 60 };

static char folder[] = "/tmp/sonde-drain-XXXXXX", path[sizeof folder + 16];

static int listen_here(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, ASKERS), 0);
    return fd;
}

static struct drain_request take_request(int fd)
{
    struct drain_request request;
    assert_int_equal(recv(fd, &request, sizeof request, MSG_WAITALL), sizeof request);
    assert_int_equal(request.magic, DRAIN_MAGIC);
    return request;
}

static void answer(int fd, uint64_t number)
{
    assert_int_equal(send(fd, &number, sizeof number, MSG_NOSIGNAL), sizeof number);
}

// ---- one connection ----

struct asking {
    struct drain_line *line;
    pthread_t thread;
    int result;
};

static void *ask(void *user)
{
    struct asking *a = user;
    a->result = drain_line_ask(a->line);
    return NULL;
}

static void begin(struct asking *a, struct drain_line *line)
{
    *a = (struct asking){.line = line};
    assert_int_equal(pthread_create(&a->thread, NULL, ask, a), 0);
}

static int end(struct asking *a)
{
    pthread_join(a->thread, NULL);
    return a->result;
}

static void a_connection_is_kept(void **state)
{
    (void)state;
    struct drain_line *line;
    struct asking a;
    int listening = listen_here(), fd = -1;
    assert_int_equal(drain_line_create(path, DRAIN_CELLS, &line), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        begin(&a, line);
        if (fd < 0)
            fd = accept(listening, NULL, NULL);
        struct drain_request request = take_request(fd);
        assert_int_equal(request.flags, DRAIN_CELLS);
        assert_int_equal(request.number, i);
        answer(fd, request.number);
        assert_int_equal(end(&a), 0);
    }
    drain_line_destroy(line);
    close(fd);
    close(listening);
}

static void no_agent(void **state)
{
    (void)state;
    char too_long[200];
    struct drain_line *line;
    unlink(path);
    assert_int_equal(drain_line_create(path, 0, &line), 0);
    assert_int_equal(drain_line_ask(line), -ENOENT);
    drain_line_destroy(line);
    memset(too_long, 'x', sizeof too_long);
    too_long[sizeof too_long - 1] = 0;
    assert_int_equal(drain_line_create(too_long, 0, &line), 0);
    assert_int_equal(drain_line_ask(line), -ENAMETOOLONG);
    drain_line_destroy(line);
    assert_int_equal(drainer_wait(NULL), 0);
}

// The first request to a stopped agent waits; later ones do not, until it has answered.
static void a_stalled_agent_delays_one_question(void **state)
{
    (void)state;
    struct drain_line *line;
    struct asking a;
    int listening = listen_here();
    assert_int_equal(drain_line_create(path, 0, &line), 0);
    int64_t began_ns = clock_monotonic_ns();
    // the kernel has accepted the connection and the request
    assert_int_equal(drain_line_ask(line), -ETIMEDOUT);
    assert_true(clock_monotonic_ns() - began_ns >= DRAIN_WAIT_MS * (int64_t)NS_PER_MS);
    int fd = accept(listening, NULL, NULL);
    struct drain_request request = take_request(fd);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(drain_line_ask(line), -ETIMEDOUT);
    struct pollfd more = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&more, 1, 0), 0); // and no further request
    answer(fd, request.number);
    begin(&a, line);
    request = take_request(fd);
    assert_int_equal(request.number, 2);
    answer(fd, request.number);
    assert_int_equal(end(&a), 0);
    drain_line_destroy(line);
    close(fd);
    close(listening);
}

static void a_replaced_agent_is_found(void **state)
{
    (void)state;
    struct drain_line *line;
    struct asking a;
    int listening = listen_here();
    assert_int_equal(drain_line_create(path, 0, &line), 0);
    for (int i = 0; i < 3; i++) {
        begin(&a, line);
        int fd = accept(listening, NULL, NULL);
        if (i == 1) { // killed during a request
            take_request(fd);
            close(fd);
            fd = accept(listening, NULL, NULL);
        }
        answer(fd, take_request(fd).number);
        assert_int_equal(end(&a), 0);
        close(fd); // killed between two requests
    }
    drain_line_destroy(line);
    close(listening);
}

// A child has a connection of its own, and does not touch its parent's.
static void a_forked_child(void **state)
{
    (void)state;
    struct drain_line *line;
    struct asking a;
    int listening = listen_here();
    assert_int_equal(drain_line_create(path, 0, &line), 0);
    begin(&a, line);
    int fd = accept(listening, NULL, NULL);
    answer(fd, take_request(fd).number);
    assert_int_equal(end(&a), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(drain_line_ask(line) == 0 ? 0 : 1);
    int own = accept(listening, NULL, NULL);
    answer(own, take_request(own).number);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    begin(&a, line);
    answer(fd, take_request(fd).number);
    assert_int_equal(end(&a), 0);
    drain_line_destroy(line);
    close(own);
    close(fd);
    close(listening);
}

// ---- several threads ----

static struct drainer *drainer;

static void *wait_for_drain(void *unused)
{
    (void)unused;
    return drainer_wait(drainer) ? drainer : NULL;
}

static struct drainer_stats stats(void)
{
    struct drainer_stats s;
    drainer_get_stats(drainer, &s);
    return s;
}

static void questions_share_requests(void **state)
{
    (void)state;
    pthread_t threads[ASKERS];
    int listening = listen_here();
    assert_int_equal(drainer_create(path, 0, &drainer, NULL), 0);
    assert_int_equal(pthread_create(&threads[0], NULL, wait_for_drain, NULL), 0);
    int fd = accept(listening, NULL, NULL);
    struct drain_request first = take_request(fd);
    // These requests arrive during a drain. The agent may have read the rings already, so they need
    // another drain.
    for (int i = 1; i < ASKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_drain, NULL), 0);
    while (stats().waiting < ASKERS)
        usleep(100);
    answer(fd, first.number);
    answer(fd, take_request(fd).number);
    for (int i = 0; i < ASKERS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(stats().requests, 2);
    assert_int_equal(stats().questions, ASKERS);
    assert_int_equal(stats().waiting, 0);
    assert_int_equal(stats().late, 0);
    drainer_destroy(drainer);
    close(fd);
    close(listening);
}

// ---- beside an event loop ----

struct refreshed {
    struct wire_refresh refresh; // first
    int ready;
};

static struct wire_refresher *refresher;
static struct wire_loop *loop;
static struct refreshed refreshes[ASKERS];
static pthread_t loop_thread;

static void on_ready(struct wire_refresh *refresh)
{
    ((struct refreshed *)refresh)->ready++;
    assert_true(pthread_equal(pthread_self(), loop_thread));
}

static void begin_first(void *unused)
{
    (void)unused;
    loop_thread = pthread_self();
    refreshes[0].refresh.ready = on_ready;
    wire_refresh_begin(refresher, &refreshes[0].refresh);
}

static void begin_others(void *unused)
{
    (void)unused;
    for (int i = 1; i < ASKERS; i++) {
        refreshes[i].refresh.ready = on_ready;
        wire_refresh_begin(refresher, &refreshes[i].refresh);
    }
}

static void cancel_odd(void *unused)
{
    (void)unused;
    for (int i = 1; i < ASKERS; i += 2)
        wire_refresh_cancel(refresher, &refreshes[i].refresh);
}

static void count_ready(void *user)
{
    int *count = user;
    *count = 0;
    for (int i = 0; i < ASKERS; i++)
        *count += refreshes[i].ready;
}

static void until_ready(int wanted)
{
    int count = 0;
    while (count != wanted)
        wire_loop_call(loop, count_ready, &count);
}

static void questions_in_an_event_loop_share_requests(void **state)
{
    (void)state;
    int listening = listen_here();
    assert_int_equal(wire_loop_start(&loop, NULL), 0);
    assert_int_equal(wire_refresher_create(loop, path, &refresher, NULL), 0);
    wire_loop_call(loop, begin_first, NULL);
    int fd = accept(listening, NULL, NULL);
    struct drain_request request = take_request(fd);
    wire_loop_call(loop, begin_others, NULL);
    wire_loop_call(loop, cancel_odd, NULL); // every odd one of the waiting requests
    answer(fd, request.number);
    until_ready(1);
    request = take_request(fd);
    assert_int_equal(request.number, 2);
    answer(fd, request.number);
    until_ready(1 + (ASKERS - 1) / 2);
    // One request is cancelled during its drain; the agent of another one has ended.
    wire_loop_call(loop, begin_others, NULL);
    take_request(fd);
    wire_loop_call(loop, cancel_odd, NULL);
    close(listening);
    unlink(path);
    close(fd);
    until_ready(1 + 2 * ((ASKERS - 1) / 2));
    for (int i = 1; i < ASKERS; i += 2)
        assert_int_equal(refreshes[i].ready, 0);
    wire_refresher_destroy(refresher);
    wire_loop_stop(loop);
}

static void the_past(void **state)
{
    (void)state;
    int64_t now_ns = clock_realtime_ns();
    assert_true(drain_reaches(INT64_MAX));
    assert_true(drain_reaches(now_ns));
    assert_false(drain_reaches(now_ns - 2 * DRAIN_PAST_MS * (int64_t)NS_PER_MS));
    assert_false(drain_reaches(INT64_MIN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_is_kept),
        cmocka_unit_test(no_agent),
        cmocka_unit_test(a_stalled_agent_delays_one_question),
        cmocka_unit_test(a_replaced_agent_is_found),
        cmocka_unit_test(a_forked_child),
        cmocka_unit_test(questions_share_requests),
        cmocka_unit_test(questions_in_an_event_loop_share_requests),
        cmocka_unit_test(the_past),
    };
    alarm(PATIENCE_S);
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/s", folder);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(folder);
    return failed;
}
