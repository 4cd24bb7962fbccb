// Peers that a hub accepts, refuses and replaces.
#include "named_answers.h"
#include "proxy.h"
#include "unit/wire/net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { LINKS = 200 };

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
    // The nodes use our clock, so each offset is within its error.
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
    // the old node tries in vain
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

static void strangers_are_disconnected(void **state)
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

static void ten_thousand_strangers_take_little_memory(void **state)
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
    // The test keeps its ends of the connections open, because it checks the hub's limit.
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
        cmocka_unit_test(strangers_are_disconnected),
        cmocka_unit_test(ten_thousand_strangers_take_little_memory),
        cmocka_unit_test(a_new_hub_finds_its_nodes),
        cmocka_unit_test(the_key_is_for_one_user_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
