// HTTP clients on other nodes: refused clients, a bad network, a peer that violates the protocol.
#include "forwarding.h"
#include "proxy.h"
#include "unit/wire/net.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

// Reads the line that refuses a client.
static void read_line(int fd, char line[REFUSAL_MAX])
{
    size_t size = 0;
    while (size == 0 || line[size - 1] != '\n') {
        wait_readable(fd);
        assert_true(size < REFUSAL_MAX - 1);
        assert_int_equal(recv(fd, line + size, 1, 0), 1);
        size++;
    }
    line[size - 1] = 0;
}

static int expect_refusal(const struct way *w, const char *words)
{
    char line[REFUSAL_MAX];
    int fd = try_connect(w);
    assert_true(fd >= 0);
    read_line(fd, line);
    if (strncmp(line, "refused: ", 9) != 0 || !strstr(line, words))
        fail_msg("'%s' does not say '%s'", line, words);
    assert_int_equal(recv(fd, line, 1, 0), 0);
    return close(fd);
}

static void another_key_is_refused(void **state)
{
    (void)state;
    struct way *w = way_begin(false);
    wire_forwarder_destroy(w->forwarder);
    struct wire_settings other = w->settings;
    other.key[3] ^= 1;
    start_forwarder(w, &other, hub_port(w->hub));
    expect_refusal(w, "does not know the job's key");
    NET_AWAIT(net_stats(w->hub).refused_key == 1);
    assert_int_equal(served_count(w), 0);
    way_end(w);
}

static void a_hub_without_a_server_gives_the_reason(void **state)
{
    (void)state;
    struct way *w = way_begin(false);
    hub_take_clients(w->hub, NULL, NULL);
    expect_refusal(w, "no HTTP server runs here");
    struct hub_stats s = net_stats(w->hub);
    assert_int_equal(s.clients_refused, 1);
    assert_int_equal(s.clients_taken, 0);
    // A client does not count as a node.
    struct arena arena = {0};
    const struct hub_node *nodes;
    size_t count;
    assert_int_equal(hub_nodes(w->hub, &arena, &nodes, &count), 0);
    assert_int_equal(count, 0);
    arena_free(&arena);
    way_end(w);
}

static void surplus_clients_of_a_node_get_the_reason(void **state)
{
    (void)state;
    struct way *w = way_begin(false);
    int fds[WIRE_FORWARDER_CLIENTS_MAX], server;
    for (int i = 0; i < WIRE_FORWARDER_CLIENTS_MAX; i++)
        fds[i] = connect_in(w, &server);
    expect_refusal(w, "have as many connections");
    close(fds[5]);
    NET_AWAIT(net_stats(w->hub).clients == WIRE_FORWARDER_CLIENTS_MAX - 1);
    fds[5] = connect_in(w, &server);
    for (int i = 0; i < WIRE_FORWARDER_CLIENTS_MAX; i++)
        close(fds[i]);
    way_end(w);
}

// The folder would refuse other users; this one is open, and so is the socket.
static void another_user_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct way *w = way_begin(false);
    chmod(w->folder, 0755);
    chmod(w->path, 0777);
    pid_t child = fork();
    if (child == 0) {
        char line[REFUSAL_MAX];
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(2);
        int fd = try_connect(w);
        read_line(fd, line);
        _exit(strcmp(line, "refused: only the job's own user may use this socket") == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(net_stats(w->hub).accepted, 0);
    way_end(w);
}

static void a_missing_hub_is_named_at_once(void **state)
{
    (void)state;
    struct way *w = way_begin(false);
    wire_forwarder_destroy(w->forwarder);
    struct wire_settings patient = w->settings;
    patient.handshake_ms = 10 * 60 * 1000; // the error does not wait for it
    int port = hub_port(w->hub);
    hub_destroy(w->hub);
    w->hub = NULL;
    start_forwarder(w, &patient, port);
    expect_refusal(w, "Connection refused");
    // The hub runs again, on another port.
    w->hub = net_hub(w->hub_loop, &w->settings, "n1", false);
    hub_take_clients(w->hub, serve, w);
    assert_int_equal(wire_forwarder_set_hub(w->forwarder, "127.0.0.1", hub_port(w->hub)), 0);
    int server, fd = connect_in(w, &server);
    close(fd);
    way_end(w);
}

static void a_partition_is_named_in_time(void **state)
{
    (void)state;
    struct way *w = way_begin(true);
    wire_forwarder_destroy(w->forwarder);
    struct wire_settings hurried = w->settings;
    hurried.handshake_ms = 200;
    proxy_stall(w->proxy, true);
    start_forwarder(w, &hurried, proxy_port(w->proxy));
    expect_refusal(w, "does not answer in time");
    proxy_stall(w->proxy, false);
    way_end(w);
}

// Both ends close a connection without any data, and free it.
static void a_partition_ends_a_connection(void **state)
{
    (void)state;
    struct way *w = way_begin(true);
    hub_destroy(w->hub);
    w->settings.heartbeat_ms = 20;
    w->settings.dead_ms = 500;
    proxy_stop(w->proxy);
    w->hub = net_hub(w->hub_loop, &w->settings, "n1", false);
    hub_take_clients(w->hub, serve, w);
    w->proxy = proxy_start(hub_port(w->hub));
    assert_int_equal(wire_forwarder_set_hub(w->forwarder, "127.0.0.1", proxy_port(w->proxy)), 0);
    int server, fd = connect_in(w, &server);
    // The hub has accepted the connection; the forwarder knows it once a byte has arrived.
    assert_int_equal(send(server, "x", 1, 0), 1);
    wait_readable(fd);
    assert_int_equal(recv(fd, &(char){0}, 1, 0), 1);
    proxy_stall(w->proxy, true);
    wait_readable(fd);
    assert_int_equal(recv(fd, &(char){0}, 1, 0), 0);
    wait_readable(server);
    assert_int_equal(recv(server, &(char){0}, 1, 0), 0);
    NET_AWAIT(net_stats(w->hub).clients == 0);
    close(fd);
    proxy_stall(w->proxy, false);
    way_end(w);
}

static void a_changed_byte_ends_a_connection(void **state)
{
    (void)state;
    struct way *w = way_begin(true);
    enum { IN_A_STREAM = 2000 }; // after the handshake
    proxy_flip(w->proxy, IN_A_STREAM);
    int server, fd = connect_in(w, &server);
    char text[8192] = {0}, seen[8192];
    assert_int_equal(send(fd, text, sizeof text, 0), sizeof text);
    size_t size = 0;
    ssize_t n = 1;
    while (n > 0) {
        wait_readable(server);
        n = recv(server, seen, sizeof seen, 0);
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(seen[i], 0);
        size += n > 0 ? (size_t)n : 0;
    }
    assert_true(size < sizeof text);
    close(fd);
    way_end(w);
}

struct rogue {
    struct wire_session *session;
    enum wire_role role;
    enum wire_type type;
    size_t size;
    unsigned times;
    uint32_t number;
    atomic_bool welcomed, closed;
    char why[WIRE_BYE_MAX + 1];
};

static void rogue_frame(void *user, const struct wire_header *h, struct str payload)
{
    static char bytes[WIRE_PART_MAX];
    struct rogue *g = user;
    (void)payload;
    if (h->type != WIRE_WELCOME)
        return;
    for (unsigned i = 0; i < g->times; i++)
        wire_session_send(g->session, g->type, 0,
                          g->type == WIRE_ROOM ? (struct str){(char *)&g->number, g->size}
                                               : (struct str){bytes, g->size});
    atomic_store(&g->welcomed, true);
}

static void rogue_closed(void *user, int why, const char *text)
{
    struct rogue *g = user;
    (void)why;
    snprintf(g->why, sizeof g->why, "%s", text);
    wire_session_close(g->session, NULL);
    atomic_store(&g->closed, true);
}

struct rogue_start {
    struct way *w;
    struct rogue *rogue;
};

static void start_rogue(void *user)
{
    struct rogue_start *s = user;
    struct error e;
    struct wire_session_options o = {
        .loop = s->w->node_loop,
        .settings = &s->w->settings,
        .transport = &wire_tcp,
        .side = WIRE_LINK,
        .self = {.role = s->rogue->role, .session = 1, .host = STR("n3"), .job = STR("job-1")},
        .events = {NULL, rogue_frame, NULL, rogue_closed},
        .user = s->rogue};
    if (wire_session_connect(&o, "127.0.0.1", hub_port(s->w->hub), &s->rogue->session, &e))
        fail_msg("%s", e.text);
}

static void a_peer_that_breaks_the_protocol_is_disconnected(void **state)
{
    (void)state;
    enum { NODE = WIRE_ROLE_NODE, CLIENT = WIRE_ROLE_CLIENT };
    static const struct {
        unsigned role;
        enum wire_type type;
        size_t size;
        unsigned times;
        uint32_t number;
        const char *why;
    } cases[] = {
        {CLIENT, WIRE_STREAM, WIRE_PART_MAX, 64, 0, "more bytes than there is room for"},
        {CLIENT, WIRE_ROOM, 4, 1, 1, "room for more bytes than a window has"},
        {CLIENT, WIRE_ROOM, 4, 1, UINT32_MAX, "room for more bytes than a window has"},
        {CLIENT, WIRE_ROOM, 3, 1, 0, "room for more bytes than a window has"},
        {CLIENT, WIRE_PONG, 32, 1, 0, "a frame that a client's connection does not have"},
        {NODE, WIRE_STREAM, 10, 1, 0, "a frame that only clients send"},
        {NODE, WIRE_ROOM, 4, 1, 0, "a frame that only clients send"},
        {CLIENT, WIRE_END, 5, 1, 0, "a frame that a client's connection does not have"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct way *w = way_begin(false);
        struct rogue g = {.role = (enum wire_role)cases[i].role,
                          .type = cases[i].type,
                          .size = cases[i].size,
                          .times = cases[i].times,
                          .number = cases[i].number};
        struct rogue_start s = {w, &g};
        wire_loop_call(w->node_loop, start_rogue, &s);
        NET_AWAIT(atomic_load(&g.closed));
        assert_true(atomic_load(&g.welcomed));
        assert_string_equal(g.why, cases[i].why);
        NET_AWAIT(net_stats(w->hub).clients == 0);
        way_end(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_key_is_refused),
        cmocka_unit_test(a_hub_without_a_server_gives_the_reason),
        cmocka_unit_test(surplus_clients_of_a_node_get_the_reason),
        cmocka_unit_test(another_user_is_refused),
        cmocka_unit_test(a_missing_hub_is_named_at_once),
        cmocka_unit_test(a_partition_is_named_in_time),
        cmocka_unit_test(a_partition_ends_a_connection),
        cmocka_unit_test(a_changed_byte_ends_a_connection),
        cmocka_unit_test(a_peer_that_breaks_the_protocol_is_disconnected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
