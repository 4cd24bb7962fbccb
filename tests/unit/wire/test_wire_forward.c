// HTTP clients on other nodes: all bytes arrive at the first node's server, and the server's at
// them; refused clients; a bad network, a slow reader, or a bad peer.
#include "proxy.h"
#include "unit/seed.h"
#include "unit/wire/net.h"
#include "wire/forward.h"
#include "wire/forwarder.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { SERVED_MAX = 64, REFUSAL_MAX = WIRE_FORWARDER_TEXT_MAX + 16 };

// A hub whose server is the test, and the forwarder of a node.
struct way {
    char folder[64], path[128];
    struct wire_settings settings;
    struct wire_loop *hub_loop, *node_loop;
    struct hub *hub;
    struct proxy *proxy; // between the two, or NULL
    struct wire_forwarder *forwarder;
    pthread_mutex_t lock;
    int served[SERVED_MAX]; // the server's ends, in order of arrival
    int count;
};

static void serve(void *user, int fd)
{
    struct way *w = user;
    pthread_mutex_lock(&w->lock);
    assert_true(w->count < SERVED_MAX);
    w->served[w->count++] = fd;
    pthread_mutex_unlock(&w->lock);
}

static int served_count(struct way *w)
{
    pthread_mutex_lock(&w->lock);
    int count = w->count;
    pthread_mutex_unlock(&w->lock);
    return count;
}

static void write_refusal(const char *why, struct buf *out)
{
    buf_printf(out, "refused: %s\n", why);
}

static void start_forwarder(struct way *w, const struct wire_settings *settings, int port)
{
    struct error e;
    struct wire_forwarder_options o = {.settings = *settings,
                                       .path = w->path,
                                       .host = STR("n2"),
                                       .hub_host = "127.0.0.1",
                                       .hub_port = port,
                                       .refusal = write_refusal};
    if (wire_forwarder_create(w->node_loop, &o, &w->forwarder, &e))
        fail_msg("%s", e.text);
}

static struct way *way_begin(bool through_proxy)
{
    struct way *w = calloc(1, sizeof *w);
    strcpy(w->folder, "/tmp/sonde-wire-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->path, sizeof w->path, "%s/" WIRE_FORWARDER_SOCKET, w->folder);
    pthread_mutex_init(&w->lock, NULL);
    w->settings = net_settings();
    w->hub_loop = net_loop();
    w->node_loop = net_loop();
    w->hub = net_hub(w->hub_loop, &w->settings, "n1", false);
    hub_take_clients(w->hub, serve, w);
    w->proxy = through_proxy ? proxy_start(hub_port(w->hub)) : NULL;
    start_forwarder(w, &w->settings, w->proxy ? proxy_port(w->proxy) : hub_port(w->hub));
    return w;
}

static void way_end(struct way *w)
{
    wire_forwarder_destroy(w->forwarder);
    assert_int_equal(access(w->path, F_OK), -1);
    hub_destroy(w->hub);
    if (w->proxy)
        proxy_stop(w->proxy);
    wire_loop_stop(w->node_loop);
    wire_loop_stop(w->hub_loop);
    for (int i = 0; i < w->count; i++)
        close(w->served[i]);
    pthread_mutex_destroy(&w->lock);
    assert_int_equal(rmdir(w->folder), 0);
    free(w);
}

// ---- a client ----

static int try_connect(const struct way *w)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, w->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static void wait_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, (int)(NET_PATIENCE_NS / NS_PER_MS)) != 1)
        fail_msg("nothing comes");
}

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

// Connects a client; *server is its server's end. Neither blocks.
static int connect_in(struct way *w, int *server)
{
    int before = served_count(w), fd = try_connect(w);
    assert_true(fd >= 0);
    NET_AWAIT(served_count(w) == before + 1);
    *server = w->served[before];
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

// The test closes the server's end.
static void forget_server(struct way *w, int fd)
{
    for (int i = 0; i < w->count; i++)
        if (w->served[i] == fd)
            w->served[i] = -1;
    close(fd);
}

// ---- bytes ----

// One direction: the writer sends a sequence of random numbers, and the reader expects the same
// one.
struct direction {
    int from, to;
    uint64_t write_state, read_state;
    size_t left_to_write, left_to_read;
    bool reads; // false for a stopped reader
};

static uint8_t next_byte(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint8_t)(*state >> 56);
}

static bool write_some(struct direction *d, uint64_t *r)
{
    uint8_t piece[40000];
    size_t size = test_random(r) % sizeof piece + 1;
    uint64_t state = d->write_state;
    size = size < d->left_to_write ? size : d->left_to_write;
    for (size_t i = 0; i < size; i++)
        piece[i] = next_byte(&state);
    ssize_t n = size ? send(d->from, piece, size, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    for (ssize_t i = 0; i < n; i++)
        next_byte(&d->write_state);
    d->left_to_write -= n > 0 ? (size_t)n : 0;
    return n > 0;
}

static bool read_some(struct direction *d, uint64_t *r)
{
    uint8_t piece[40000];
    ssize_t n = d->reads ? recv(d->to, piece, test_random(r) % sizeof piece + 1, MSG_DONTWAIT) : -1;
    for (ssize_t i = 0; i < n; i++)
        assert_int_equal(piece[i], next_byte(&d->read_state));
    d->left_to_read -= n > 0 ? (size_t)n : 0;
    return n > 0;
}

static void carry(struct direction *all, size_t count, uint64_t *r)
{
    int64_t until_ns = clock_monotonic_ns() + NET_PATIENCE_NS;
    for (bool left = true; left;) {
        bool moved = false;
        left = false;
        for (size_t i = 0; i < count; i++) {
            moved |= write_some(&all[i], r);
            moved |= read_some(&all[i], r);
            left |= all[i].reads && all[i].left_to_read;
        }
        if (!moved && clock_monotonic_ns() > until_ns)
            fail_msg("bytes do not arrive");
        if (!moved)
            usleep(100);
    }
}

static struct direction direction_of(int from, int to, uint64_t seed, size_t bytes)
{
    return (struct direction){.from = from,
                              .to = to,
                              .write_state = seed,
                              .read_state = seed,
                              .left_to_write = bytes,
                              .left_to_read = bytes,
                              .reads = true};
}

static void bytes_arrive_both_ways(void **state)
{
    (void)state;
    enum { CLIENTS = 3, BYTES = 1 << 20 };
    uint64_t r = test_seed(18);
    struct way *w = way_begin(true);
    for (unsigned round = 0; round < 2 * test_rounds(); round++) {
        struct direction all[2 * CLIENTS];
        int fds[CLIENTS];
        // The network divides frames anywhere.
        proxy_slice(w->proxy, round % 2 ? (int)(test_random(&r) % 4000) + 1 : 0);
        for (int i = 0; i < CLIENTS; i++) {
            int server;
            fds[i] = connect_in(w, &server);
            all[2 * i] = direction_of(fds[i], server, test_random(&r), test_random(&r) % BYTES);
            all[2 * i + 1] = direction_of(server, fds[i], test_random(&r), test_random(&r) % BYTES);
        }
        carry(all, 2 * CLIENTS, &r);
        for (int i = 0; i < CLIENTS; i++) {
            close(fds[i]);
            wait_readable(all[2 * i].to);
            assert_int_equal(recv(all[2 * i].to, &(char){0}, 1, 0), 0);
            forget_server(w, all[2 * i].to);
        }
        w->count = 0;
        NET_AWAIT(net_stats(w->hub).clients == 0);
    }
    way_end(w);
}

// Data that a server writes before it closes its end arrives, and then the end.
static void the_end_comes_after_the_bytes(void **state)
{
    (void)state;
    enum { BYTES = 300000 };
    uint64_t r = test_seed(19);
    struct way *w = way_begin(false);
    int server, fd = connect_in(w, &server);
    struct direction d = direction_of(server, fd, 7, BYTES);
    int64_t until_ns = clock_monotonic_ns() + NET_PATIENCE_NS;
    while (d.left_to_write) {
        write_some(&d, &r);
        read_some(&d, &r);
        assert_true(clock_monotonic_ns() < until_ns);
    }
    forget_server(w, server);
    carry(&d, 1, &r);
    wait_readable(fd);
    assert_int_equal(recv(fd, &(char){0}, 1, 0), 0);
    close(fd);
    NET_AWAIT(net_stats(w->hub).clients == 0);
    way_end(w);
}

static void a_slow_reader_stops_only_its_own_server(void **state)
{
    (void)state;
    enum { BYTES = 4 << 20 };
    uint64_t r = test_seed(20);
    struct way *w = way_begin(false);
    int servers[2], fds[2] = {connect_in(w, &servers[0]), connect_in(w, &servers[1])};
    struct direction all[2] = {direction_of(servers[0], fds[0], 1, BYTES),
                               direction_of(servers[1], fds[1], 2, BYTES)};
    all[0].reads = false;
    carry(all, 2, &r);
    // Its server could write as much as the sockets' buffers and two windows hold, and no more.
    assert_true(all[0].left_to_write > BYTES / 4);
    all[0].reads = true;
    carry(all, 2, &r);
    close(fds[0]);
    close(fds[1]);
    way_end(w);
}

// ---- a leaving node ----

static void *leave(void *user)
{
    struct way *w = user;
    wire_forwarder_destroy(w->forwarder);
    return NULL;
}

// A request may end this very node: its client gets the answer nevertheless.
static void a_node_that_leaves_hands_over_the_last_answers(void **state)
{
    (void)state;
    enum { QUIET, ASKS, IS_ANSWERED, CLIENTS };
    char piece[8];
    pthread_t leaves;
    struct way *w = way_begin(false);
    int servers[CLIENTS], fds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = connect_in(w, &servers[i]);
        if (i != QUIET)
            assert_int_equal(send(fds[i], "ask", 3, 0), 3);
    }
    wait_readable(servers[ASKS]);
    wait_readable(servers[IS_ANSWERED]);
    assert_int_equal(send(servers[IS_ANSWERED], "yes", 3, 0), 3);
    wait_readable(fds[IS_ANSWERED]);
    assert_int_equal(pthread_create(&leaves, NULL, leave, w), 0);
    NET_AWAIT(access(w->path, F_OK) != 0);
    assert_int_equal(try_connect(w), -1);
    assert_int_equal(send(servers[ASKS], "yes", 3, MSG_NOSIGNAL), 3);
    for (int i = 0; i < CLIENTS; i++) {
        ssize_t answer = i == QUIET ? 0 : 3;
        wait_readable(fds[i]);
        assert_int_equal(recv(fds[i], piece, sizeof piece, 0), answer);
        wait_readable(fds[i]);
        assert_int_equal(recv(fds[i], piece, sizeof piece, 0), 0);
        close(fds[i]);
    }
    pthread_join(leaves, NULL);
    w->forwarder = NULL;
    way_end(w);
}

// A server that never answers does not delay the node's end.
static void a_node_leaves_without_an_answer_that_does_not_come(void **state)
{
    (void)state;
    struct way *w = way_begin(false);
    int server, fd = connect_in(w, &server);
    assert_int_equal(send(fd, "ask", 3, 0), 3);
    wait_readable(server);
    wire_forwarder_destroy(w->forwarder);
    w->forwarder = NULL;
    wait_readable(fd);
    assert_int_equal(recv(fd, &(char){0}, 1, 0), 0);
    close(fd);
    way_end(w);
}

// ---- refused clients ----

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

static void a_hub_without_a_server_says_so(void **state)
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

static void too_many_clients_of_a_node_are_told(void **state)
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

// ---- the network ----

static void a_hub_that_is_gone_is_named_at_once(void **state)
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

// ---- a peer that knows the key but violates the protocol ----

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

static void rules_are_kept(void **state)
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
        cmocka_unit_test(bytes_arrive_both_ways),
        cmocka_unit_test(the_end_comes_after_the_bytes),
        cmocka_unit_test(a_slow_reader_stops_only_its_own_server),
        cmocka_unit_test(a_node_that_leaves_hands_over_the_last_answers),
        cmocka_unit_test(a_node_leaves_without_an_answer_that_does_not_come),
        cmocka_unit_test(another_key_is_refused),
        cmocka_unit_test(a_hub_without_a_server_says_so),
        cmocka_unit_test(too_many_clients_of_a_node_are_told),
        cmocka_unit_test(another_user_is_refused),
        cmocka_unit_test(a_hub_that_is_gone_is_named_at_once),
        cmocka_unit_test(a_partition_is_named_in_time),
        cmocka_unit_test(a_partition_ends_a_connection),
        cmocka_unit_test(a_changed_byte_ends_a_connection),
        cmocka_unit_test(rules_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
