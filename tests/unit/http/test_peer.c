// The client of a connection, from the kernel's data about real connections.
#include "http/peer.h"
#include "unit/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OTHER_UID = 65534 };

typedef void look_fn(int fd, const struct sockaddr *client, struct peer *out);

struct ends {
    int listening, client, server;
    struct sockaddr_storage from;
};

static bool open_ends(struct ends *e, int listen_family, const char *listen_on, int family,
                      const char *connect_to)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)listen_family},
                            to = {.ss_family = (sa_family_t)family};
    struct sockaddr_in *v4 = (void *)&address, *to4 = (void *)&to;
    struct sockaddr_in6 *v6 = (void *)&address, *to6 = (void *)&to;
    socklen_t size = listen_family == AF_INET ? sizeof *v4 : sizeof *v6, from_size = sizeof e->from;
    int off = 0;
    inet_pton(listen_family, listen_on,
              listen_family == AF_INET ? (void *)&v4->sin_addr : (void *)&v6->sin6_addr);
    e->listening = socket(listen_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (e->listening < 0)
        return false;
    if (listen_family == AF_INET6)
        setsockopt(e->listening, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(e->listening, (struct sockaddr *)&address, size) != 0 ||
        listen(e->listening, 1) != 0 ||
        getsockname(e->listening, (struct sockaddr *)&address, &size) != 0) {
        close(e->listening);
        return false;
    }
    in_port_t port = listen_family == AF_INET ? v4->sin_port : v6->sin6_port;
    inet_pton(family, connect_to,
              family == AF_INET ? (void *)&to4->sin_addr : (void *)&to6->sin6_addr);
    *(family == AF_INET ? &to4->sin_port : &to6->sin6_port) = port;
    e->client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        connect(e->client, (struct sockaddr *)&to, family == AF_INET ? sizeof *to4 : sizeof *to6),
        0);
    e->server = accept(e->listening, (struct sockaddr *)&e->from, &from_size);
    assert_true(e->server >= 0);
    return true;
}

static void close_ends(struct ends *e)
{
    close(e->listening);
    close(e->client);
    close(e->server);
}

// Looks as on a kernel without sock_diag.
static void look_without_diag(int fd, const struct sockaddr *client, struct peer *out)
{
    peer_look(fd, client, out);
    out->known = false;
    out->uid = 0;
    out->inode = 0;
    peer_look_in_proc(out);
}

static void check_each_family(look_fn *look)
{
    static const struct {
        int listen_family;
        const char *listen;
        int family;
        const char *connect;
    } rows[] = {
        {AF_INET, "127.0.0.1", AF_INET, "127.0.0.1"},
        {AF_INET, "0.0.0.0", AF_INET, "127.9.8.7"},
        {AF_INET6, "::1", AF_INET6, "::1"},
        {AF_INET6, "::", AF_INET, "127.0.0.1"},
        {AF_INET6, "::", AF_INET6, "::ffff:127.0.0.1"},
        {AF_INET, "127.0.0.1", AF_INET6, "::ffff:127.0.0.1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ends e;
        struct peer p;
        struct stat st;
        if (!open_ends(&e, rows[i].listen_family, rows[i].listen, rows[i].family,
                       rows[i].connect)) {
            assert_int_equal(rows[i].listen_family, AF_INET6); // this machine has none
            continue;
        }
        look(e.server, (struct sockaddr *)&e.from, &p);
        assert_int_equal(fstat(e.client, &st), 0);
        assert_true(p.local);
        assert_true(p.known);
        assert_int_equal(p.uid, geteuid());
        assert_int_equal(p.inode, st.st_ino);
        assert_true(peer_is_own(&p));
        assert_true(peer_is_program_here(&p));
        close(e.client); // no client is connected any more, so nothing is known
        e.client = -1;
        look(e.server, (struct sockaddr *)&e.from, &p);
        assert_false(p.known);
        assert_false(peer_is_own(&p));
        close_ends(&e);
    }
}

static void test_each_family(void **state)
{
    (void)state;
    check_each_family(peer_look);
    check_each_family(look_without_diag);
}

// What a peer_lookup has found stays, although a new look would find nothing.
static void test_looked_up_once(void **state)
{
    (void)state;
    struct ends e;
    struct peer again;
    assert_true(open_ends(&e, AF_INET, "127.0.0.1", AF_INET, "127.0.0.1"));
    struct peer_lookup lookup = {.fd = e.server, .client = (struct sockaddr *)&e.from};
    struct peer first = *peer_lookup_get(&lookup);
    assert_true(peer_is_own(&first));
    close(e.client);
    e.client = -1;
    peer_look(e.server, (struct sockaddr *)&e.from, &again);
    assert_false(again.known);
    assert_true(peer_is_own(peer_lookup_get(&lookup)));
    assert_int_equal(peer_lookup_get(&lookup)->inode, first.inode);
    close_ends(&e);
}

static void test_not_local(void **state)
{
    (void)state;
    struct ends e;
    struct peer p;
    struct sockaddr_in elsewhere = {
        .sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(0xc0000201)};
    assert_true(open_ends(&e, AF_INET, "127.0.0.1", AF_INET, "127.0.0.1"));
    peer_look(e.server, (struct sockaddr *)&elsewhere, &p);
    assert_false(p.local || p.known || peer_is_own(&p) || peer_is_program_here(&p));
    peer_look(e.server, NULL, &p);
    assert_false(p.local || p.known || peer_is_own(&p));
    // The same port, but of another connection.
    struct sockaddr_in other = *(struct sockaddr_in *)(void *)&e.from;
    other.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    peer_look(e.server, (struct sockaddr *)&other, &p);
    assert_true(p.local);
    assert_false(p.known);
    // A listening socket on the peer's port is not the peer.
    struct sockaddr_in listening;
    socklen_t size = sizeof listening;
    assert_int_equal(getsockname(e.listening, (struct sockaddr *)&listening, &size), 0);
    peer_look(e.client, (struct sockaddr *)&listening, &p);
    assert_true(p.known); // the accepted end
    close(e.server);
    e.server = -1;
    peer_look(e.client, (struct sockaddr *)&listening, &p);
    assert_false(p.known);
    close_ends(&e);
}

static void test_equal(void **state)
{
    (void)state;
    struct peer a = {.known = true, .uid = 1}, b = a;
    assert_true(peer_equal(&a, &b));
    b.other.address[15] = 2; // 127.0.0.1 and 127.0.0.2
    assert_true(peer_equal(&a, &b));
    b.uid = 2;
    assert_false(peer_equal(&a, &b));
    b = a;
    a.known = b.known = false; // a remote client: only the address counts
    assert_true(peer_equal(&a, &b));
    b.other.address[15] = 1;
    assert_false(peer_equal(&a, &b));
}

// One end of a pair of Unix sockets, which the hub passes on. It is not a program of this machine,
// even though both of its ends are here, and it equals only another such client.
static void test_holder_of_the_key(void **state)
{
    (void)state;
    static const struct sockaddr nameless = {.sa_family = AF_UNIX};
    struct ends e;
    int pair[2];
    struct peer p, q, local;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    peer_look(pair[0], &nameless, &p);
    peer_look(pair[1], &nameless, &q);
    assert_true(p.holds_key);
    assert_true(q.holds_key);
    peer_look_in_proc(&p);
    assert_false(p.local);
    assert_false(p.known);
    assert_false(peer_is_own(&p));
    assert_false(peer_is_program_here(&p));
    assert_true(peer_equal(&p, &q));
    assert_true(open_ends(&e, AF_INET, "127.0.0.1", AF_INET, "127.0.0.1"));
    peer_look(e.server, (struct sockaddr *)&e.from, &local);
    assert_false(local.holds_key);
    assert_false(peer_equal(&p, &local));
    // Neither the socket alone nor the address alone suffices.
    peer_look(pair[1], (struct sockaddr *)&e.from, &local);
    assert_false(local.holds_key);
    peer_look(e.server, &nameless, &local);
    assert_false(local.holds_key);
    struct peer unknown = {0};
    assert_false(peer_equal(&p, &unknown));
    close_ends(&e);
    close(pair[0]);
    close(pair[1]);
}

// A child with another uid connects.
static void test_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                       from;
    socklen_t size = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), pipes[2];
    assert_int_equal(bind(listening, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(pipes[1]);
        if (setresuid(OTHER_UID, OTHER_UID, OTHER_UID) != 0)
            _exit(1);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        _exit(connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
              read(pipes[0], &byte, 1) != 0);
    }
    int server = accept(listening, (struct sockaddr *)&from, &size);
    struct peer p;
    peer_look(server, (struct sockaddr *)&from, &p);
    assert_true(p.known);
    assert_int_equal(p.uid, OTHER_UID);
    assert_false(peer_is_own(&p));
    assert_false(peer_is_program_here(&p));
    close(pipes[0]);
    close(pipes[1]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(server);
    close(listening);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_family),  cmocka_unit_test(test_not_local),
        cmocka_unit_test(test_equal),        cmocka_unit_test(test_holder_of_the_key),
        cmocka_unit_test(test_another_user), cmocka_unit_test(test_looked_up_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
