// Tunnels to the server from another machine.
#include "launch/tunnel.h"
#include "unit/test.h"

#include <stdlib.h>

static void the_tunnel_line_needs_loopback(void **state)
{
    (void)state;
    static const struct {
        const char *url, *line;
    } cases[] = {
        {"http://127.0.0.1:4242", "ssh -NL 4242:127.0.0.1:4242 n1"},
        {"https://127.0.0.2:80", "ssh -NL 80:127.0.0.2:80 n1"},
        {"http://localhost:5000", "ssh -NL 5000:localhost:5000 n1"},
        {"http://[::1]:4243", "ssh -NL 4243:[::1]:4243 n1"},
        {"http://n1:4242", ""},
        {"http://[2001:db8::1]:4242", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job job = {.host = "n1"};
        char line[TUNNEL_LINE_MAX];
        strcpy(job.url, cases[i].url);
        assert_int_equal(tunnel_line(&job, line), cases[i].line[0] != 0);
        assert_string_equal(line, cases[i].line);
    }
}

static void the_tunnel_line_appears_for_remote_users(void **state)
{
    (void)state;
    static const char *const signs[] = {"SSH_CONNECTION", "SLURM_JOB_ID", "PBS_JOBID"};
    for (size_t i = 0; i < 3; i++)
        unsetenv(signs[i]);
    assert_false(tunnel_needed());
    for (size_t i = 0; i < 3; i++) {
        setenv(signs[i], "1", 1);
        assert_true(tunnel_needed());
        setenv(signs[i], "", 1);
        assert_false(tunnel_needed());
    }
}

// Without a node, no tunnel is ever opened.
static void no_node_no_tunnel(void **state)
{
    (void)state;
    struct tunnel t;
    tunnel_init(&t, NULL, 0);
    tunnel_target(&t, "127.0.0.1", 4242);
    tunnel_turn(&t);
    assert_int_equal(tunnel_fd(&t), -1);
    assert_int_equal(tunnel_due_ns(&t), 0);
    assert_int_equal(tunnel_pid(&t), 0);
    assert_false(tunnel_reaped(&t, 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tunnel_line_needs_loopback),
        cmocka_unit_test(the_tunnel_line_appears_for_remote_users),
        cmocka_unit_test(no_node_no_tunnel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
