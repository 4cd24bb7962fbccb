// Requests for a restart: from the aggregator's line to the nodes of the next attempt.
#include "base/clock.h"
#include "launch/child.h"
#include "launch/nodes.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct job job;

static int set_up(void **state)
{
    (void)state;
    snprintf(job.folder, sizeof job.folder, "/tmp/sonde-nodes-XXXXXX");
    snprintf(job.host, sizeof job.host, "here");
    setenv("SLURM_JOB_NODELIST", "n[1-4]", 1);
    return mkdtemp(job.folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return folder_remove(job.folder, NULL);
}

static void expect_hostfile(const char *text)
{
    char path[FOLDER_PATH_MAX + 16];
    struct buf file;
    snprintf(path, sizeof path, "%s/hostfile", job.folder);
    assert_int_equal(folder_read(path, 1000, &file, NULL), 0);
    assert_string_equal(buf_cstr(&file), text);
    buf_free(&file);
}

static const struct nodes_options resilient = {
    .node_timeout_s = 1,
    .stop_timeout_s = 1,
    .rules = {.nodes = 2, .resilient = true, .max_restarts = -1, .exit_code = -1}};

static void reboot_requests(void **state)
{
    (void)state;
    struct nodes *n;
    assert_int_equal(nodes_find(&resilient, &job, &n, NULL), 0);
    assert_int_equal(nodes_begin(n, NULL), 0);
    assert_string_equal(nodes_list(n), "n1,n2");
    expect_hostfile("n1\nn2\n");
    assert_int_equal(nodes_pending(n), RESTART_GO_ON);

    nodes_reboot(n, "n2, n1,nobody"); // the first one stays, the last one does not exist
    assert_int_equal(nodes_pending(n), RESTART_AGAIN);
    assert_true(nodes_command_ended(n, 143, 0));
    assert_int_equal(nodes_verdict(n), RESTART_AGAIN);
    assert_int_equal(nodes_begin(n, NULL), 0);
    assert_string_equal(nodes_words(n), "n1 n3");
    assert_int_equal(nodes_restarts(n), 1);
    expect_hostfile("n1\nn3\n");

    nodes_reboot(n, ""); // again with the same nodes
    assert_int_equal(nodes_pending(n), RESTART_AGAIN);
    assert_int_equal(nodes_begin(n, NULL), 0);
    assert_string_equal(nodes_list(n), "n1,n3");

    nodes_reboot(n, "n3,n4");
    assert_int_equal(nodes_pending(n), RESTART_GIVE_UP);
    nodes_reboot(n, ""); // a run that was given up stays given up
    assert_int_equal(nodes_pending(n), RESTART_GIVE_UP);
    assert_true(nodes_command_ended(n, 143, 0));
    assert_int_equal(nodes_verdict(n), RESTART_GIVE_UP);
    nodes_close(n);
}

static void refused(void **state)
{
    (void)state;
    struct nodes_options options = resilient;
    options.rules.resilient = false;
    struct nodes *n;
    assert_int_equal(nodes_find(&options, &job, &n, NULL), 0);
    assert_int_equal(nodes_begin(n, NULL), 0);
    nodes_reboot(n, "n2");
    assert_int_equal(nodes_pending(n), RESTART_GO_ON);
    assert_true(nodes_command_ended(n, 1, 0));
    assert_int_equal(nodes_verdict(n), RESTART_OVER);
    nodes_close(n);
}

static void take(void *user, const char *line)
{
    buf_printf(user, "<%s>", line);
}

static void requested_collectors_are_kept(void **state)
{
    (void)state;
    struct collector_requests w = {0};
    struct buf heard = {0};
    struct error e;
    assert_int_equal(collector_requests_take(&w, STR("a x"), &e), 0);
    assert_int_equal(collector_requests_take(&w, STR("b per_gpu y z"), &e), 0);
    // replaces the earlier line of that name
    assert_int_equal(collector_requests_take(&w, STR("a other"), &e), 0);
    // no collector has this name
    assert_int_equal(collector_requests_take(&w, STR("unknown"), &e), 0);
    collector_requests_tell(&w, take, &heard);
    assert_string_equal(buf_cstr(&heard), "<a other><b per_gpu y z>");
    assert_int_equal(collector_requests_take(&w, STR("a"), &e), 0);
    heard.size = 0;
    collector_requests_tell(&w, take, &heard);
    assert_string_equal(buf_cstr(&heard), "<b per_gpu y z>");
    assert_int_equal(collector_requests_take(&w, STR(" "), &e), -EINVAL);
    for (int i = 1; i < COLLECTORS_MAX; i++) {
        char line[16];
        snprintf(line, sizeof line, "n%d x", i);
        assert_int_equal(collector_requests_take(&w, str_of(line), &e), 0);
    }
    assert_int_equal(collector_requests_take(&w, STR("more x"), &e), -E2BIG);
    assert_non_null(strstr(e.text, "more is left out"));
    assert_int_equal(collector_requests_take(&w, STR("b again"), &e), 0); // takes no more room
    collector_requests_free(&w);
    buf_free(&heard);
}

static void lines_of_a_ready_child(void **state)
{
    (void)state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    struct buf heard = {0};
    struct child c = {.state = CHILD_STARTING, .control = pair[0], .take = take, .user = &heard};
    static const char said[] = "ready 4242\nreboot n2,n3\nreboot \nreb";
    assert_int_equal(write(pair[1], said, strlen(said)), strlen(said));
    child_read(&c);
    assert_int_equal(c.state, CHILD_READY);
    assert_string_equal(c.line, "4242");
    assert_string_equal(buf_cstr(&heard), "<reboot n2,n3><reboot >");
    assert_int_equal(write(pair[1], "oot n4\n", 7), 7);
    child_read(&c);
    assert_string_equal(buf_cstr(&heard), "<reboot n2,n3><reboot ><reboot n4>");

    // A line that is too long is ignored, and the next one is handled.
    for (size_t over = 0; over < 2; over++) {
        char piece[512];
        memset(piece, 'x', sizeof piece);
        for (size_t left = CHILD_LATER_MAX + over; left;) {
            size_t part = left < sizeof piece ? left : sizeof piece;
            assert_int_equal(write(pair[1], piece, part), part);
            child_read(&c);
            left -= part;
        }
        heard.size = 0;
        assert_int_equal(write(pair[1], "\nreboot n5\n", 11), 11);
        child_read(&c);
        assert_int_equal(heard.size, strlen("<reboot n5>") + (over ? 0 : CHILD_LATER_MAX + 2));
    }
    close(pair[1]);
    child_read(&c);
    assert_int_equal(c.control, -1);
    buf_free(&c.later);
    buf_free(&heard);
}

// Starts a child, which ends at once, as if it had lived this long.
static void live_once(struct child *c, int64_t lived_ns)
{
    int status;
    struct error e;
    struct child_command command = {0};
    child_command_add(&command, "test");
    child_command_add(&command, "end");
    assert_int_equal(child_start(c, "child", &command, &e), 0);
    child_command_free(&command);
    c->started_ns -= lived_ns;
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    child_reaped(c, status);
    assert_int_equal(WEXITSTATUS(c->status), 3);
}

// A job of weeks may lose its agent a hundred times. An agent that never starts working is given
// up.
static void ends_one_after_another(void **state)
{
    (void)state;
    struct child c = {0};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CHILD_EARLY_ENDS_MAX; i++) {
            live_once(&c, 0);
            assert_true(child_is_worth_it(&c));
        }
        live_once(&c, CHILD_STEADY_S * (int64_t)NS_PER_S);
        assert_true(child_is_worth_it(&c));
    }
    for (int i = 0; i <= CHILD_EARLY_ENDS_MAX; i++)
        live_once(&c, 0);
    assert_false(child_is_worth_it(&c));
    live_once(&c, CHILD_STEADY_S * (int64_t)NS_PER_S);
    assert_true(child_is_worth_it(&c));

    // A failed start counts, too.
    struct error e;
    struct child_command none = {.failed = true};
    for (int i = 0; i <= CHILD_EARLY_ENDS_MAX; i++)
        assert_int_equal(child_start(&c, "child", &none, &e), -ENOMEM);
    assert_false(child_is_worth_it(&c));
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "end") == 0)
        return 3;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reboot_requests),
        cmocka_unit_test(refused),
        cmocka_unit_test(lines_of_a_ready_child),
        cmocka_unit_test(ends_one_after_another),
        cmocka_unit_test(requested_collectors_are_kept),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
