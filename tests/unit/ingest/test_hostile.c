// A program may write anything into its segment, and pass anything as one. Only its own data suffer.
#include "emit/segment.h"
#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void scribblers_harm_only_themselves(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *good = node_spawn(&n, NULL, "waits", "1000", "30000", NULL);
    node_until_said(&n, good, "first");
    for (int i = 0; i < 24; i++) {
        char seed[16];
        snprintf(seed, sizeof seed, "%d", i);
        struct child *bad = node_spawn(&n, NULL, "scribble", seed, "20000", NULL);
        node_until_said(&n, bad, "ready");
        node_round(&n);
        node_say(bad, "\n");
        for (int64_t end = clock_monotonic_ns() + (int64_t)NODE_PATIENCE_S * NS_PER_S; !strstr(bad->text, "done");) {
            node_round(&n);
            ingest_sample_cells(n.in, clock_realtime_ns());
            assert_true(clock_monotonic_ns() < end && !bad->ended);
        }
        if (i % 8 == 0) { // the next agent finds the mess as it is
            node_agent_stop(&n);
            node_agent_start(&n);
        }
        node_say(bad, "\n");
        node_until_ended(&n, bad);
        assert_int_equal(bad->status, 0);
    }
    node_say(good, "\n");
    node_until_said(&n, good, "second");
    node_say(good, "\n");
    node_until_all_gone(&n);
    struct fake_series *f = fake_find(n.store, "value", NULL);
    assert_int_equal(f->count, 31000);
    assert_int_equal(f->falls, 0);
    assert_true(node_stats(&n).dropped_corrupt > 0);
    node_close(&n);
}

// A segment of our own, as a program would make it.
static int make_segment(uint32_t slots, uint64_t ring_bytes, size_t bytes, int seals)
{
    int fd = memfd_create(SEGMENT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct segment_layout at = segment_layout(slots ? slots : 1, ring_bytes ? ring_bytes : 8);
    struct segment_header h = {.magic = SEGMENT_MAGIC,
                               .version = SEGMENT_VERSION,
                               .pid = (uint32_t)getpid(),
                               .bytes = at.bytes,
                               .ring_bytes = ring_bytes,
                               .slots = slots,
                               .level = 1,
                               .clock = SEGMENT_CLOCK_REALTIME};
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)(bytes ? bytes : at.bytes)), 0);
    assert_int_equal(pwrite(fd, &h, offsetof(struct segment_header, definitions_bytes), 0),
                     (int)offsetof(struct segment_header, definitions_bytes));
    if (seals)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void what_is_no_segment(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(ingest_attach(n.in, pipes[0], getpid()), -EPROTO);
    assert_int_equal(ingest_attach(n.in, pipes[1], getpid()), -EPROTO);
    assert_int_equal(ingest_attach(n.in, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), getpid()), -EPROTO);
    assert_int_equal(ingest_attach(n.in, make_segment(4, 1 << 20, 0, 0), getpid()),
                     -EPROTO); // could be shrunk under us
    assert_int_equal(ingest_attach(n.in, make_segment(4, 1 << 20, 0, F_SEAL_GROW), getpid()), -EPROTO);
    assert_int_equal(ingest_attach(n.in, make_segment(4, 1 << 20, 1 << 20, SEALS), getpid()), -EPROTO);
    assert_int_equal(ingest_attach(n.in, make_segment(0, 1 << 20, 0, SEALS), getpid()), -EPROTO);
    assert_int_equal(ingest_attach(n.in, make_segment(1 << 20, 1 << 20, 1 << 20, SEALS), getpid()), -EPROTO);
    assert_int_equal(ingest_attach(n.in, make_segment(4, 3 << 19, 0, SEALS), getpid()), -EPROTO); // no power of two
    assert_int_equal(ingest_attach(n.in, make_segment(4, 4096, 0, SEALS), getpid()), -EPROTO);
    assert_int_equal(node_stats(&n).programs, 0);
    int fd = make_segment(4, 1 << 20, 0, SEALS), again = dup(fd);
    assert_int_equal(ingest_attach(n.in, fd, getpid()), 0);
    assert_int_equal(ingest_attach(n.in, again, getpid()), -EBUSY);
    assert_int_equal(node_stats(&n).programs, 1);
    assert_int_equal(fcntl(fd, F_GETFD), -1); // both were closed
    assert_int_equal(fcntl(again, F_GETFD), -1);
    node_close(&n);
}

static void as_many_programs_as_there_may_be(void **state)
{
    (void)state;
    struct store *store = fake_store_open();
    struct ingest_options options = {.level = 1, .programs_max = 2};
    struct ingest *in;
    enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
    assert_int_equal(ingest_create(store, &options, &in, NULL), 0);
    assert_int_equal(ingest_attach(in, make_segment(4, 1 << 20, 0, SEALS), getpid()), 0);
    assert_int_equal(ingest_attach(in, make_segment(4, 1 << 20, 0, SEALS), getpid()), 0);
    assert_int_equal(ingest_attach(in, make_segment(4, 1 << 20, 0, SEALS), getpid()), -ENFILE);
    ingest_destroy(in);
    fake_store_close(store);
}

static void not_a_hello(void **state)
{
    (void)state;
    int pair[2], fd;
    pid_t pid;
    char rest[32];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(ingest_receive_hello(pair[0], &fd, &pid), -EAGAIN);
    assert_int_equal(write(pair[1], "put a 1 2\n", 10), 10);
    assert_int_equal(ingest_receive_hello(pair[0], &fd, &pid), -ENOMSG);
    assert_int_equal(read(pair[0], rest, sizeof rest), 10); // the text is still there
    struct segment_hello hello = {.magic = SEGMENT_HELLO_MAGIC, .version = SEGMENT_VERSION};
    assert_int_equal(write(pair[1], &hello, sizeof hello), (int)sizeof hello); // without a descriptor
    assert_int_equal(ingest_receive_hello(pair[0], &fd, &pid), -EPROTO);
    assert_int_equal(write(pair[1], &hello, 5), 5); // cut
    assert_int_equal(ingest_receive_hello(pair[0], &fd, &pid), -EPROTO);
    assert_int_equal(fd, -1);
    close(pair[1]);
    assert_int_equal(ingest_receive_hello(pair[0], &fd, &pid), -ENOTCONN);
    close(pair[0]);
}

static void send_with_descriptors(int socket, const struct segment_hello *hello, const int *fds, size_t count)
{
    struct iovec piece = {(void *)(uintptr_t)hello, sizeof *hello};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(4 * sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(c), fds, count * sizeof(int));
    assert_int_equal(sendmsg(socket, &message, 0), (int)sizeof *hello);
}

static void hello_of_another_version_or_with_more(void **state)
{
    (void)state;
    int pair[2], fd, fds[3];
    pid_t pid;
    for (int i = 0; i < 3; i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    struct segment_hello hello = {.magic = SEGMENT_HELLO_MAGIC, .version = SEGMENT_VERSION + 1};
    send_with_descriptors(pair[1], &hello, fds, 1);
    int lowest = dup(0);
    close(lowest);
    assert_int_equal(ingest_receive_hello(pair[0], &fd, &pid), -EPROTO);
    hello.version = SEGMENT_VERSION;
    send_with_descriptors(pair[1], &hello, fds, 3);
    assert_int_equal(ingest_receive_hello(pair[0], &fd, &pid), 0);
    assert_int_equal(pid, getpid());
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(fd);
    int now = dup(0);
    assert_int_equal(now, lowest); // nothing stayed open
    close(now);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    close(pair[0]);
    close(pair[1]);
}

static void impossible_times_are_put_right(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    int fd = make_segment(4, 1 << 20, 0, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    struct segment_layout at = segment_layout(4, 1 << 20);
    char *base = mmap(NULL, at.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(base != MAP_FAILED);
    static const char definitions[] = "\x10\0\0\0\0\0\1\0\1\0p\0\0\0\0\0" // the process "p"
                                      "\x10\0\0\0\0\1\2\0\1\0m\0\0\0\0";  // the gauge "m"
    memcpy(base + at.definitions, definitions, sizeof definitions);
    struct segment_header *h = (struct segment_header *)(void *)base;
    struct ring *r = (struct ring *)(void *)(base + at.slots);
    atomic_store(&h->definitions_bytes, 32);
    atomic_store(&h->slots_used, 1);
    int64_t now = clock_realtime_ns();
    const int64_t times[] = {0, INT64_MIN, now, now + 3600 * (int64_t)NS_PER_S, INT64_MAX};
    uint64_t *word = (uint64_t *)(void *)((char *)r + SLOT_DATA);
    for (size_t i = 0; i < 5; i++) {
        double value = (double)i;
        word[3 * i] = segment_word(SEGMENT_POINT, 0, 3, 1);
        word[3 * i + 1] = (uint64_t)times[i];
        memcpy(&word[3 * i + 2], &value, 8);
    }
    atomic_store(&r->head, 5 * 24);
    assert_int_equal(ingest_attach(n.in, fd, getpid()), 0);
    assert_int_equal(ingest_drain(n.in, NULL), 5);
    struct fake_series *f = fake_find(n.store, "m", NULL);
    assert_int_equal(f->count, 5);
    assert_int_equal(node_stats(&n).clamped, 4);
    assert_true(f->first_t_ns > 0 && f->first_t_ns <= now); // when the system started, at the earliest
    assert_in_range(f->last_t_ns, now, clock_realtime_ns());
    munmap(base, at.bytes);
    node_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scribblers_harm_only_themselves),       cmocka_unit_test(what_is_no_segment),
        cmocka_unit_test(as_many_programs_as_there_may_be),      cmocka_unit_test(not_a_hello),
        cmocka_unit_test(hello_of_another_version_or_with_more), cmocka_unit_test(impossible_times_are_put_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
