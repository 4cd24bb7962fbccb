// Accepted and refused peers, and failures of the network.
#include "proxy.h"
#include "unit/wire/net.h"
#include "wire/tree.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { LINKS = 200 };

// ---- questions ----

struct asked_names {
    size_t records;
    const struct wire_missing *missing;
    size_t missing_count;
    struct arena arena;
    int code;
};

static int count_record(void *user, struct str host, struct str record)
{
    size_t *count = user;
    (void)host;
    (void)record;
    ++*count;
    return 0;
}

// Asks a question that every node answers with one record, because it does not know the metric.
static struct asked_names ask_with(struct hub *h, int64_t patience_ns, const struct str *hosts,
                                   size_t host_count, const atomic_bool *cancel)
{
    struct asked_names a = {0};
    struct buf request = {0};
    struct query q = {.metric = STR("unknown"), .aggregator = QUERY_SUM, .end_ns = 1};
    query_request_add(&request, &q, NULL);
    struct hub_ask ask = {.question = ASK_QUERY,
                          .request = buf_str(&request),
                          .hosts = hosts,
                          .host_count = host_count,
                          .deadline_ns = clock_monotonic_ns() + patience_ns,
                          .cancel = cancel,
                          .record = count_record,
                          .user = &a.records};
    a.code = hub_ask(h, &ask, &a.arena, &a.missing, &a.missing_count, NULL);
    buf_free(&request);
    return a;
}

static size_t answers(struct hub *h)
{
    struct asked_names a = ask_with(h, NET_PATIENCE_NS, NULL, 0, NULL);
    assert_int_equal(a.code, 0);
    arena_free(&a.arena);
    return a.records;
}

static void expect_missing(const struct asked_names *a, size_t i, const char *host,
                           enum wire_reason reason)
{
    assert_true(i < a->missing_count);
    assert_str_equal(a->missing[i].host, host);
    if (a->missing[i].reason != reason)
        fail_msg("%s is missing: %s, want %s", host, wire_reason_name(a->missing[i].reason),
                 wire_reason_name(reason));
}

// ---- many nodes ----

static void many_links_on_one_loop(void **state)
{
    (void)state;
    struct wire_settings s = net_settings();
    struct wire_loop *loop = net_loop(), *hub_loop = net_loop();
    struct hub *h = net_hub(hub_loop, &s, "head", false);
    struct wire_link *links[LINKS];
    char name[16];
    for (int i = 0; i < LINKS; i++) {
        snprintf(name, sizeof name, "n%03d", i);
        assert_int_equal(hub_expect(h, str_of(name), (struct str){0}), 0);
    }
    struct asked_names a = ask_with(h, NET_PATIENCE_NS, NULL, 0, NULL);
    assert_int_equal(a.records, 0);
    assert_int_equal(a.missing_count, LINKS);
    expect_missing(&a, 7, "n007", WIRE_NOT_CONNECTED);
    arena_free(&a.arena);
    for (int i = 0; i < LINKS; i++) {
        snprintf(name, sizeof name, "n%03d", i);
        links[i] = net_link(loop, &s, name, hub_port(h), NULL, NULL);
    }
    net_wait(h, 0);
    assert_int_equal(answers(h), LINKS);
    // Some of the nodes.
    struct str hosts[] = {STR("n003"), STR("n150"), STR("nobody")};
    a = ask_with(h, NET_PATIENCE_NS, hosts, 3, NULL);
    assert_int_equal(a.records, 2);
    assert_int_equal(a.missing_count, 1);
    expect_missing(&a, 0, "nobody", WIRE_NOT_CONNECTED);
    arena_free(&a.arena);
    // Their clocks are ours: each offset is within its error.
    struct arena arena = {0};
    const struct hub_node *nodes;
    size_t count, known;
    do {
        known = 0;
        assert_int_equal(hub_nodes(h, &arena, &nodes, &count), 0);
        for (size_t i = 0; i < count; i++) {
            known += nodes[i].offset_known;
            if (nodes[i].offset_known)
                assert_true(llabs(nodes[i].offset_ns) <= nodes[i].offset_error_ns);
        }
    } while (known < LINKS);
    assert_str_equal(nodes[199].host, "n199");
    arena_free(&arena);
    wire_link_destroy(links[5]);
    links[5] = NULL;
    NET_AWAIT(answers(h) == LINKS - 1);
    a = ask_with(h, NET_PATIENCE_NS, NULL, 0, NULL);
    assert_int_equal(a.missing_count, 1);
    expect_missing(&a, 0, "n005", WIRE_NOT_CONNECTED);
    arena_free(&a.arena);
    for (int i = 0; i < LINKS; i++)
        wire_link_destroy(links[i]);
    hub_destroy(h);
    wire_loop_stop(loop);
    wire_loop_stop(hub_loop);
}

// ---- accepted nodes ----

static void a_wrong_key_is_refused(void **state)
{
    (void)state;
    struct wire_settings s = net_settings(), wrong = net_settings(), other = net_settings();
    wrong.key[31] ^= 1;
    other.job = STR("job-2");
    struct wire_loop *loop = net_loop();
    struct hub *h = net_hub(loop, &s, "head", false);
    struct wire_link *l = net_link(loop, &wrong, "n1", hub_port(h), NULL, NULL);
    struct wire_link *foreign = net_link(loop, &other, "n2", hub_port(h), NULL, NULL);
    NET_AWAIT(net_stats(h).refused_key >= 3 && net_stats(h).refused_garbage >= 3);
    assert_non_null(strstr(net_link_stats(l).problem, "key"));
    assert_int_equal(net_link_stats(l).opened, 0);
    assert_int_equal(net_link_stats(foreign).opened, 0);
    assert_int_equal(answers(h), 0);
    wire_link_destroy(l);
    wire_link_destroy(foreign);
    hub_destroy(h);
    wire_loop_stop(loop);
}

static void a_newer_connection_replaces_the_older(void **state)
{
    (void)state;
    struct wire_settings s = net_settings();
    struct wire_loop *loop = net_loop();
    struct hub *h = net_hub(loop, &s, "head", false);
    struct wire_link *old = net_link(loop, &s, "n1", hub_port(h), NULL, NULL), *new;
    net_wait(h, 1);
    struct wire_link_options o = {.settings = s,
                                  .parent_host = "127.0.0.1",
                                  .parent_port = hub_port(h),
                                  .host = STR("n1"),
                                  .session = 2,
                                  .source = {net_no_view, net_close_view, NULL}};
    assert_int_equal(wire_link_create(loop, &o, &new, NULL), 0);
    NET_AWAIT(net_link_stats(new).state == WIRE_LINK_OPEN);
    // the old one tries in vain
    NET_AWAIT(net_stats(h).replaced == 1 && net_stats(h).refused_old >= 2);
    assert_int_equal(answers(h), 1);
    assert_int_equal(net_link_stats(new).opened, 1);
    assert_int_equal(net_link_stats(new).questions, 1);
    hub_exclude(h, STR("n1"));
    NET_AWAIT(net_stats(h).refused_excluded >= 1);
    assert_int_equal(answers(h), 0);
    wire_link_destroy(old);
    wire_link_destroy(new);
    hub_destroy(h);
    wire_loop_stop(loop);
}

// ---- strangers ----

static int knock(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    while (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        if (errno != EINTR && errno != EAGAIN) {
            close(fd);
            return -1;
        }
    return fd;
}

// Sends data, and waits until the hub closes the connection.
static void say_and_be_thrown_out(int port, const void *data, size_t size)
{
    int fd = knock(port);
    assert_true(fd >= 0);
    assert_true(send(fd, data, size, MSG_NOSIGNAL) >= 0);
    struct pollfd p = {fd, POLLIN, 0};
    char c;
    assert_int_equal(poll(&p, 1, (int)(NET_PATIENCE_NS / NS_PER_MS)), 1);
    assert_true(recv(fd, &c, 1, 0) <= 0);
    close(fd);
}

static void strangers_are_thrown_out(void **state)
{
    (void)state;
    struct wire_settings s = net_settings();
    s.handshake_ms = 300;
    struct wire_loop *loop = net_loop();
    struct hub *h = net_hub(loop, &s, "head", false);
    struct wire_link *l = net_link(loop, &s, "n1", hub_port(h), NULL, NULL);
    net_wait(h, 1);
    const char web[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    say_and_be_thrown_out(hub_port(h), web, sizeof web);
    // Valid except for its length; of another type; of another version; a frame that is not valid
    // yet.
    uint8_t header[WIRE_HEADER_BYTES];
    wire_header_write(&(struct wire_header){.size = 1u << 31, .type = WIRE_HELLO}, header);
    say_and_be_thrown_out(hub_port(h), header, sizeof header);
    wire_header_write(&(struct wire_header){.size = 0, .type = WIRE_PROOF}, header);
    say_and_be_thrown_out(hub_port(h), header, sizeof header);
    wire_header_write(&(struct wire_header){.size = 4, .type = WIRE_END}, header);
    say_and_be_thrown_out(hub_port(h), header, sizeof header);
    uint64_t garbage = net_stats(h).refused_garbage;
    assert_true(garbage >= 4);
    // One that connects and closes at once.
    close(knock(hub_port(h)));
    NET_AWAIT(net_stats(h).refused_garbage == garbage + 1);
    // One that begins and then is silent.
    wire_header_write(&(struct wire_header){.size = 100, .type = WIRE_HELLO}, header);
    say_and_be_thrown_out(hub_port(h), header, sizeof header);
    assert_int_equal(net_stats(h).refused_time, 1);
    assert_int_equal(net_stats(h).strangers, 0);
    assert_int_equal(answers(h), 1);
    assert_int_equal(net_link_stats(l).opened, 1);
    wire_link_destroy(l);
    hub_destroy(h);
    wire_loop_stop(loop);
}

static void ten_thousand_strangers_find_little_room(void **state)
{
    (void)state;
    enum { MOST = 10000, ROOM = 64, OTHERS = 400 };
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    size_t count = limit.rlim_cur > MOST + OTHERS ? MOST : (size_t)limit.rlim_cur - OTHERS;
    int *fds = calloc(count, sizeof *fds);
    struct wire_settings s = net_settings();
    struct wire_loop *loop = net_loop();
    struct hub_options o = {
        .settings = s, .address = "127.0.0.1", .host = STR("head"), .strangers_max = ROOM};
    struct hub *h;
    assert_int_equal(hub_create(loop, &o, &h, NULL), 0);
    // They keep their ends open, because the test limits what the hub keeps.
    for (size_t i = 0; i < count; i++) {
        fds[i] = knock(hub_port(h));
        assert_true(fds[i] >= 0);
    }
    NET_AWAIT(net_stats(h).accepted >= count);
    struct hub_stats stats = net_stats(h);
    assert_true(stats.strangers <= ROOM);
    assert_true(stats.refused_room + stats.refused_time >= count - ROOM);
    // A peer with the key is accepted nevertheless.
    struct wire_link *l = net_link(loop, &s, "n1", hub_port(h), NULL, NULL);
    net_wait(h, 1);
    assert_int_equal(answers(h), 1);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    free(fds);
    wire_link_destroy(l);
    hub_destroy(h);
    wire_loop_stop(loop);
}

// ---- the network ----

struct bad_network {
    struct wire_loop *loop;
    struct hub *hub;
    struct proxy *proxy;
    struct wire_link *near, *far; // far: connected through the proxy
};

static struct bad_network network(unsigned dead_ms)
{
    struct wire_settings s = net_settings();
    s.heartbeat_ms = dead_ms / 8;
    s.dead_ms = dead_ms;
    struct bad_network n = {.loop = net_loop()};
    n.hub = net_hub(n.loop, &s, "head", false);
    n.proxy = proxy_start(hub_port(n.hub));
    n.near = net_link(n.loop, &s, "near", hub_port(n.hub), NULL, NULL);
    n.far = net_link(n.loop, &s, "far", proxy_port(n.proxy), NULL, NULL);
    hub_expect(n.hub, STR("near"), (struct str){0});
    hub_expect(n.hub, STR("far"), (struct str){0});
    net_wait(n.hub, 0);
    // The nodes notice it a little later than the hub.
    NET_AWAIT(net_link_stats(n.near).opened == 1 && net_link_stats(n.far).opened == 1);
    return n;
}

static void network_free(struct bad_network *n)
{
    wire_link_destroy(n->near);
    wire_link_destroy(n->far);
    hub_destroy(n->hub);
    proxy_stop(n->proxy);
    wire_loop_stop(n->loop);
}

static void a_partition_is_named_and_heals(void **state)
{
    (void)state;
    struct bad_network n = network(4000);
    assert_int_equal(answers(n.hub), 2);
    proxy_stall(n.proxy, true);
    // Before the partition is detected: the node is late, and the others' answers arrive.
    struct asked_names a = ask_with(n.hub, 200 * NS_PER_MS, NULL, 0, NULL);
    assert_int_equal(a.code, 0);
    assert_int_equal(a.records, 1);
    assert_int_equal(a.missing_count, 1);
    expect_missing(&a, 0, "far", WIRE_LATE);
    arena_free(&a.arena);
    // Both ends detect it themselves.
    NET_AWAIT(net_stats(n.hub).dead == 1);
    a = ask_with(n.hub, NET_PATIENCE_NS, NULL, 0, NULL);
    assert_int_equal(a.missing_count, 1);
    expect_missing(&a, 0, "far", WIRE_NOT_CONNECTED);
    arena_free(&a.arena);
    NET_AWAIT(net_link_stats(n.far).state != WIRE_LINK_OPEN);
    proxy_stall(n.proxy, false);
    net_wait(n.hub, 0);
    assert_int_equal(answers(n.hub), 2);
    network_free(&n);
}

static void a_cut_connection_comes_back(void **state)
{
    (void)state;
    struct bad_network n = network(60000);
    for (uint64_t i = 1; i <= 3; i++) {
        proxy_cut(n.proxy);
        NET_AWAIT(net_link_stats(n.far).opened == 1 + i);
        net_wait(n.hub, 0);
    }
    assert_int_equal(answers(n.hub), 2);
    // During an answer that the network holds back.
    proxy_stall(n.proxy, true);
    atomic_bool cancel = false;
    struct asked_names a = ask_with(n.hub, 50 * NS_PER_MS, NULL, 0, &cancel);
    assert_int_equal(a.records, 1);
    arena_free(&a.arena);
    proxy_cut(n.proxy);
    proxy_stall(n.proxy, false);
    NET_AWAIT(net_link_stats(n.far).opened == 5);
    net_wait(n.hub, 0);
    assert_int_equal(answers(n.hub), 2);
    network_free(&n);
}

static void bytes_may_come_one_by_one(void **state)
{
    (void)state;
    struct bad_network n = network(60000);
    proxy_slice(n.proxy, 1);
    proxy_cut(n.proxy);
    NET_AWAIT(net_link_stats(n.far).opened == 2);
    net_wait(n.hub, 0);
    assert_int_equal(answers(n.hub), 2);
    network_free(&n);
}

// Wherever a byte is changed, in the handshake or after it, the data is refused.
static void a_changed_byte_ends_the_connection(void **state)
{
    (void)state;
    for (uint64_t at = 1; at <= 300; at += 13) {
        struct bad_network n = network(60000);
        proxy_flip(n.proxy, at);
        proxy_cut(n.proxy);
        for (int64_t until = clock_monotonic_ns() + NET_PATIENCE_NS;;) {
            struct hub_stats s = net_stats(n.hub);
            if (clock_monotonic_ns() > until)
                fail_msg("byte %d was changed, and nobody saw it", (int)at);
            // The cut counts as a loss; then the node is refused in the handshake, or lost after
            // it.
            if (s.refused_key + s.refused_garbage + s.refused_time > 0 || s.lost >= 2)
                break;
            usleep(1000);
            struct asked_names a = ask_with(n.hub, NS_PER_MS, NULL, 0, NULL); // more bytes
            arena_free(&a.arena);
        }
        proxy_flip(n.proxy, 0);
        NET_AWAIT(answers(n.hub) == 2);
        network_free(&n);
    }
}

static void *cancel_soon(void *user)
{
    usleep(20000);
    atomic_store((atomic_bool *)user, true);
    return NULL;
}

static void a_cancelled_question_ends(void **state)
{
    (void)state;
    struct bad_network n = network(60000);
    proxy_stall(n.proxy, true);
    atomic_bool cancel = false;
    pthread_t thread;
    pthread_create(&thread, NULL, cancel_soon, &cancel);
    struct asked_names a = ask_with(n.hub, NET_PATIENCE_NS, NULL, 0, &cancel);
    pthread_join(thread, NULL);
    assert_int_equal(a.code, -ECANCELED);
    arena_free(&a.arena);
    proxy_stall(n.proxy, false);
    // The CANCEL arrives after the question: the answer ends early, or was complete by then.
    NET_AWAIT(net_link_stats(n.far).questions == 1 && net_link_stats(n.far).running == 0);
    assert_int_equal(answers(n.hub), 2);
    network_free(&n);
}

static void a_new_hub_finds_its_nodes(void **state)
{
    (void)state;
    struct wire_settings s = net_settings();
    struct wire_loop *loop = net_loop();
    struct hub *h = net_hub(loop, &s, "head", false);
    struct wire_link *l = net_link(loop, &s, "n1", hub_port(h), NULL, NULL);
    net_wait(h, 1);
    struct hub_options o = {
        .settings = s, .address = "127.0.0.1", .port = hub_port(h), .host = STR("head")};
    hub_destroy(h);
    NET_AWAIT(net_link_stats(l).state != WIRE_LINK_OPEN);
    assert_int_equal(hub_create(loop, &o, &h, NULL), 0);
    net_wait(h, 1);
    assert_int_equal(answers(h), 1);
    // The table has no room for a second one.
    struct hub *second;
    struct error e;
    assert_int_equal(hub_create(loop, &o, &second, &e), -EADDRINUSE);
    assert_non_null(strstr(e.text, "cannot listen on 127.0.0.1 port"));
    wire_link_destroy(l);
    hub_destroy(h);
    wire_loop_stop(loop);
}

// ---- a tree ----

static void who_is_behind_a_missing_relay_is_named(void **state)
{
    (void)state;
    struct wire_settings s = net_settings();
    struct wire_loop *loop = net_loop();
    struct hub *root = net_hub(loop, &s, "head", false), *middle = net_hub(loop, &s, "r1", true);
    struct proxy *proxy = proxy_start(hub_port(middle));
    struct wire_link *relay = net_link(loop, &s, "r1", hub_port(root), NULL, middle);
    struct wire_link *a = net_link(loop, &s, "a", hub_port(middle), NULL, NULL);
    struct wire_link *b = net_link(loop, &s, "b", proxy_port(proxy), NULL, NULL);
    hub_expect(root, STR("r1"), (struct str){0});
    hub_expect(root, STR("a"), STR("r1"));
    hub_expect(root, STR("b"), STR("r1"));
    hub_expect(root, STR("c"), STR("r1"));
    hub_expect(middle, STR("a"), (struct str){0});
    hub_expect(middle, STR("b"), (struct str){0});
    net_wait(root, 0);
    net_wait(middle, 0);
    // All three, as one merged answer; only an expected c is known.
    hub_expect(middle, STR("c"), (struct str){0});
    struct asked_names x = ask_with(root, NET_PATIENCE_NS, NULL, 0, NULL);
    assert_int_equal(x.records, 1);
    assert_int_equal(x.missing_count, 1);
    expect_missing(&x, 0, "c", WIRE_NOT_CONNECTED);
    arena_free(&x.arena);
    // A child is late: the relay answers in time, without it.
    proxy_stall(proxy, true);
    x = ask_with(root, 2000 * (int64_t)NS_PER_MS, NULL, 0, NULL);
    assert_int_equal(x.records, 1);
    assert_int_equal(x.missing_count, 2);
    expect_missing(&x, 0, "b", WIRE_LATE);
    arena_free(&x.arena);
    struct str only_a = STR("a");
    x = ask_with(root, NET_PATIENCE_NS, &only_a, 1, NULL);
    assert_int_equal(x.records, 1);
    assert_int_equal(x.missing_count, 0);
    arena_free(&x.arena);
    wire_link_destroy(relay);
    NET_AWAIT((x = ask_with(root, NET_PATIENCE_NS, NULL, 0, NULL), arena_free(&x.arena),
               x.missing_count) == 4);
    x = ask_with(root, NET_PATIENCE_NS, NULL, 0, NULL);
    expect_missing(&x, 0, "a", WIRE_NOT_CONNECTED);
    expect_missing(&x, 3, "r1", WIRE_NOT_CONNECTED);
    arena_free(&x.arena);
    wire_link_destroy(a);
    wire_link_destroy(b);
    hub_destroy(middle);
    hub_destroy(root);
    proxy_stop(proxy);
    wire_loop_stop(loop);
}

// Answers come from a child that bypasses its relay; the relay still expects it, and it does not
// count as missing.
static void a_child_goes_past_its_relay(void **state)
{
    (void)state;
    struct wire_settings s = net_settings();
    s.heartbeat_ms = 50;
    s.dead_ms = 2000;
    s.handshake_ms = 1000;
    struct wire_loop *loop = net_loop();
    struct hub *root = net_hub(loop, &s, "head", false), *middle = net_hub(loop, &s, "r1", true);
    struct proxy *proxy = proxy_start(hub_port(middle));
    struct wire_link *relay = net_link(loop, &s, "r1", hub_port(root), NULL, middle);
    struct wire_link *a = net_link(loop, &s, "a", proxy_port(proxy), NULL, NULL);
    struct wire_parent parents[] = {{"127.0.0.1", proxy_port(proxy)},
                                    {"127.0.0.1", hub_port(root)}};
    hub_expect(root, STR("r1"), (struct str){0});
    hub_expect(root, STR("a"), STR("r1"));
    hub_expect(middle, STR("a"), (struct str){0});
    net_wait(root, 1);
    net_wait(middle, 1);
    NET_AWAIT(net_link_stats(a).state == WIRE_LINK_OPEN);
    assert_int_equal(wire_link_set_parents(a, parents, 0), -EINVAL);
    assert_int_equal(wire_link_set_parents(a, parents, 2), 0);
    assert_int_equal(net_link_stats(a).state, WIRE_LINK_OPEN); // it was not disturbed
    proxy_stall(proxy, true);
    net_wait(root, 2);
    NET_AWAIT(net_link_stats(a).state == WIRE_LINK_OPEN && net_link_stats(a).parent == 1);
    struct asked_names x;
    NET_AWAIT((x = ask_with(root, NET_PATIENCE_NS, NULL, 0, NULL), arena_free(&x.arena),
               x.missing_count == 0 && x.records == 2));
    // The relay has ended: only the relay is missing.
    wire_link_destroy(relay);
    NET_AWAIT(
        (x = ask_with(root, NET_PATIENCE_NS, NULL, 0, NULL), arena_free(&x.arena), x.records == 1));
    x = ask_with(root, NET_PATIENCE_NS, NULL, 0, NULL);
    assert_int_equal(x.missing_count, 1);
    expect_missing(&x, 0, "r1", WIRE_NOT_CONNECTED);
    arena_free(&x.arena);
    // A preferred parent is available again: the child returns to it.
    proxy_stall(proxy, false);
    assert_int_equal(wire_link_set_parents(a, parents, 2), 0);
    net_wait(middle, 1);
    NET_AWAIT(net_link_stats(a).state == WIRE_LINK_OPEN && net_link_stats(a).parent == 0);
    wire_link_destroy(a);
    hub_destroy(middle);
    hub_destroy(root);
    proxy_stop(proxy);
    wire_loop_stop(loop);
}

static void a_child_returns_to_its_relay(void **state)
{
    (void)state;
    struct wire_settings s = net_settings();
    s.handshake_ms = 500;
    s.dead_ms = 1000; // the interval at which it checks
    s.return_ms = 500;
    struct wire_loop *loop = net_loop();
    struct hub *root = net_hub(loop, &s, "head", false), *middle = net_hub(loop, &s, "r1", true);
    struct proxy *proxy = proxy_start(hub_port(middle));
    struct wire_parent parents[] = {{"127.0.0.1", proxy_port(proxy)},
                                    {"127.0.0.1", hub_port(root)}};
    proxy_stall(proxy, true);
    struct wire_link *a = net_link(loop, &s, "a", proxy_port(proxy), NULL, NULL);
    assert_int_equal(wire_link_set_parents(a, parents, 2), 0);
    net_wait(root, 1);
    proxy_stall(proxy, false);
    net_wait(middle, 1);
    NET_AWAIT(net_link_stats(a).state == WIRE_LINK_OPEN && net_link_stats(a).parent == 0);
    wire_link_destroy(a);
    hub_destroy(middle);
    hub_destroy(root);
    proxy_stop(proxy);
    wire_loop_stop(loop);
}

static void a_tree_is_flat_and_full(void **state)
{
    (void)state;
    static const struct {
        size_t count, fanout, relays, depth;
    } rows[] = {{1, 64, 0, 0},       {65, 64, 0, 1},       {66, 64, 1, 2}, {1000, 64, 15, 2},
                {10000, 64, 156, 3}, {16384, 2, 8191, 14}, {4, 2, 1, 2}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        size_t count = rows[r].count, fanout = rows[r].fanout, relays = 0, deepest = 0;
        size_t *children = calloc(count, sizeof *children);
        assert_non_null(children);
        for (size_t i = 1; i < count; i++) {
            size_t depth = 0;
            for (size_t at = i; at; at = wire_tree_parent(at, fanout))
                depth++;
            deepest = depth > deepest ? depth : deepest;
            children[wire_tree_parent(i, fanout)]++;
        }
        for (size_t i = 0; i < count; i++) {
            assert_true(children[i] <= fanout);
            assert_int_equal(wire_tree_is_relay(i, count, fanout), i > 0 && children[i] > 0);
            relays += i > 0 && children[i] > 0;
        }
        assert_int_equal(relays, rows[r].relays);
        assert_int_equal(deepest, rows[r].depth);
        assert_true(deepest <= HUB_DEPTH_MAX);
        free(children);
    }
}

// ---- the key's file ----

static void the_key_is_for_one_user_only(void **state)
{
    (void)state;
    char folder[] = "/tmp/sonde-wire-XXXXXX", path[64];
    uint8_t key[WIRE_KEY_BYTES], again[WIRE_KEY_BYTES];
    struct error e;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/key", folder);
    assert_int_equal(wire_key_read(path, key, &e), -ENOENT);
    assert_int_equal(wire_key_make(path, key, &e), 0);
    assert_int_equal(wire_key_make(path, again, &e), -EEXIST);
    assert_int_equal(wire_key_read(path, again, &e), 0);
    assert_memory_equal(key, again, sizeof key);
    chmod(path, 0640);
    assert_int_equal(wire_key_read(path, key, &e), -EPERM);
    assert_non_null(strstr(e.text, "chmod 600"));
    chmod(path, 0600);
    assert_int_equal(truncate(path, 31), 0);
    assert_int_equal(wire_key_read(path, key, &e), -EINVAL);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_links_on_one_loop),
        cmocka_unit_test(a_wrong_key_is_refused),
        cmocka_unit_test(a_newer_connection_replaces_the_older),
        cmocka_unit_test(strangers_are_thrown_out),
        cmocka_unit_test(ten_thousand_strangers_find_little_room),
        cmocka_unit_test(a_partition_is_named_and_heals),
        cmocka_unit_test(a_cut_connection_comes_back),
        cmocka_unit_test(bytes_may_come_one_by_one),
        cmocka_unit_test(a_changed_byte_ends_the_connection),
        cmocka_unit_test(a_cancelled_question_ends),
        cmocka_unit_test(a_new_hub_finds_its_nodes),
        cmocka_unit_test(who_is_behind_a_missing_relay_is_named),
        cmocka_unit_test(a_child_goes_past_its_relay),
        cmocka_unit_test(a_child_returns_to_its_relay),
        cmocka_unit_test(a_tree_is_flat_and_full),
        cmocka_unit_test(the_key_is_for_one_user_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
