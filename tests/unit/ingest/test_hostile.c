// A program may write anything into its segment, and pass any file as one. Only its own data may
// suffer.
#include "base/descriptors.h"
#include "emit/segment.h"
#include "node.h"
#include "unit/seed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void scribblers_harm_only_themselves(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *good = node_spawn(&n, NULL, "waits", "1000", "30000", NULL);
    node_until_said(&n, good, "first");
    uint64_t first = test_seed(0);
    for (unsigned i = 0; i < 24 * test_rounds(); i++) {
        char seed[16];
        snprintf(seed, sizeof seed, "%u", (unsigned)(first + i));
        struct child *bad = node_spawn(&n, NULL, "scribble", seed, "20000", NULL);
        node_until_said(&n, bad, "ready");
        node_round(&n);
        node_say(bad, "\n");
        for (int64_t end = clock_monotonic_ns() + (int64_t)NODE_PATIENCE_S * NS_PER_S;
             !strstr(bad->text, "done");) {
            node_round(&n);
            ingest_sample_cells(n.in, clock_realtime_ns());
            assert_true(clock_monotonic_ns() < end && !bad->ended);
        }
        if (i % 8 == 0) { // the next agent gets the damaged segment
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

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

// Makes a segment like that of a program.
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

static struct ingest_descriptors with_area(int segment, size_t bytes, int seals)
{
    struct ingest_descriptors fds = {
        segment, memfd_create(SEGMENT_AGENT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING), 0};
    struct stat st;
    assert_true(fds.agent_area >= 0);
    assert_int_equal(ftruncate(fds.agent_area, (off_t)bytes), 0);
    assert_int_equal(fcntl(fds.agent_area, F_ADD_SEALS, seals), 0);
    assert_int_equal(fstat(fds.agent_area, &st), 0);
    uint64_t inode = st.st_ino;
    ssize_t n = pwrite(segment, &inode, sizeof inode, offsetof(struct segment_header, agent_inode));
    assert_true(n == (ssize_t)sizeof inode || n < 0); // a file that is not a memfd cannot be sealed
    return fds;
}

// Offers the segment, with a valid area for the agent.
static struct ingest_descriptors offer(int segment)
{
    return with_area(segment, SEGMENT_AGENT_BYTES, SEALS);
}

static void files_that_are_no_segments(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(ingest_attach(n.in, offer(pipes[0]), getpid()), -EPROTO);
    assert_int_equal(ingest_attach(n.in, offer(pipes[1]), getpid()), -EPROTO);
    assert_int_equal(
        ingest_attach(n.in, offer(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), getpid()),
        -EPROTO);
    assert_int_equal(ingest_attach(n.in, offer(make_segment(4, 1 << 20, 0, 0)), getpid()),
                     -EPROTO); // the program could shrink it
    assert_int_equal(ingest_attach(n.in, offer(make_segment(4, 1 << 20, 0, F_SEAL_GROW)), getpid()),
                     -EPROTO);
    assert_int_equal(ingest_attach(n.in, offer(make_segment(4, 1 << 20, 1 << 20, SEALS)), getpid()),
                     -EPROTO);
    assert_int_equal(ingest_attach(n.in, offer(make_segment(0, 1 << 20, 0, SEALS)), getpid()),
                     -EPROTO);
    assert_int_equal(
        ingest_attach(n.in, offer(make_segment(1 << 20, 1 << 20, 1 << 20, SEALS)), getpid()),
        -EPROTO);
    assert_int_equal(ingest_attach(n.in, offer(make_segment(4, 3 << 19, 0, SEALS)), getpid()),
                     -EPROTO); // not a power of two
    assert_int_equal(ingest_attach(n.in, offer(make_segment(4, 4096, 0, SEALS)), getpid()),
                     -EPROTO);
    assert_int_equal(node_stats(&n).programs, 0);
    // An agent's area that the program could shrink, of a wrong size, or of another segment.
    assert_int_equal(ingest_attach(n.in,
                                   with_area(make_segment(4, 1 << 20, 0, SEALS),
                                             SEGMENT_AGENT_BYTES, F_SEAL_GROW),
                                   getpid()),
                     -EPROTO);
    assert_int_equal(
        ingest_attach(n.in, with_area(make_segment(4, 1 << 20, 0, SEALS), 4096, SEALS), getpid()),
        -EPROTO);
    struct ingest_descriptors one = offer(make_segment(4, 1 << 20, 0, SEALS)),
                              other = offer(make_segment(4, 1 << 20, 0, SEALS));
    assert_int_equal(ingest_attach(n.in,
                                   (struct ingest_descriptors){one.segment, other.agent_area, 0},
                                   getpid()),
                     -EPROTO);
    close(one.agent_area);
    close(other.segment);
    assert_int_equal(node_stats(&n).programs, 0);
    struct ingest_descriptors fds = offer(make_segment(4, 1 << 20, 0, SEALS)),
                              again = {dup(fds.segment), dup(fds.agent_area), 0};
    assert_int_equal(ingest_attach(n.in, fds, getpid()), 0);
    assert_int_equal(ingest_attach(n.in, again, getpid()), -EBUSY);
    assert_int_equal(node_stats(&n).programs, 1);
    assert_int_equal(fcntl(fds.segment, F_GETFD), -1); // all were closed
    assert_int_equal(fcntl(fds.agent_area, F_GETFD), -1);
    assert_int_equal(fcntl(again.segment, F_GETFD), -1);
    assert_int_equal(fcntl(again.agent_area, F_GETFD), -1);
    node_close(&n);
}

static void programs_up_to_the_limit_are_attached(void **state)
{
    (void)state;
    struct store *store = fake_store_open();
    struct ingest_options options = {.level = 1, .programs_max = 2};
    struct ingest *in;
    assert_int_equal(ingest_create(store, &options, &in, NULL), 0);
    assert_int_equal(ingest_attach(in, offer(make_segment(4, 1 << 20, 0, SEALS)), getpid()), 0);
    assert_int_equal(ingest_attach(in, offer(make_segment(4, 1 << 20, 0, SEALS)), getpid()), 0);
    assert_int_equal(ingest_attach(in, offer(make_segment(4, 1 << 20, 0, SEALS)), getpid()),
                     -ENFILE);
    ingest_destroy(in);
    fake_store_close(store);
}

static void unseen_process_goes_with_its_connection(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    assert_int_equal(ingest_attach(n.in, offer(make_segment(4, 1 << 20, 0, SEALS)), -1),
                     0); // the number from ingest_receive_hello
    assert_int_equal(ingest_attach(n.in, offer(make_segment(4, 1 << 20, 0, SEALS)), -2), 0);
    ingest_drain(n.in, NULL);
    assert_int_equal(node_stats(&n).programs, 2);
    ingest_hangup(n.in, -2);
    ingest_drain(n.in, NULL);
    assert_int_equal(node_stats(&n).programs, 1);
    node_close(&n);
}

static void not_a_hello(void **state)
{
    (void)state;
    int pair[2];
    struct ingest_descriptors fds;
    pid_t pid;
    char rest[32];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(ingest_receive_hello(pair[0], &fds, &pid), -EAGAIN);
    assert_int_equal(write(pair[1], "put a 1 2\n", 10), 10);
    assert_int_equal(ingest_receive_hello(pair[0], &fds, &pid), -ENOMSG);
    assert_int_equal(read(pair[0], rest, sizeof rest), 10); // the text is still there
    struct segment_hello hello = {.magic = SEGMENT_HELLO_MAGIC, .version = SEGMENT_VERSION};
    // without a descriptor
    assert_int_equal(write(pair[1], &hello, sizeof hello), (int)sizeof hello);
    assert_int_equal(ingest_receive_hello(pair[0], &fds, &pid), -EPROTO);
    assert_int_equal(write(pair[1], &hello, 5), 5); // cut
    assert_int_equal(ingest_receive_hello(pair[0], &fds, &pid), -EPROTO);
    assert_true(fds.segment == -1 && fds.agent_area == -1);
    close(pair[1]);
    assert_int_equal(ingest_receive_hello(pair[0], &fds, &pid), -ENOTCONN);
    close(pair[0]);
}

static void hello_of_another_version_or_with_more(void **state)
{
    (void)state;
    int pair[2], sent[4];
    struct ingest_descriptors fds;
    pid_t pid;
    for (int i = 0; i < 4; i++)
        sent[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    struct segment_hello hello = {.magic = SEGMENT_HELLO_MAGIC, .version = SEGMENT_VERSION + 1};
    assert_int_equal(descriptors_send(pair[1], &hello, sizeof hello, sent, 1, 0),
                     (int)sizeof hello);
    int lowest = dup(0);
    close(lowest);
    assert_int_equal(ingest_receive_hello(pair[0], &fds, &pid), -EPROTONOSUPPORT);
    hello.version = SEGMENT_VERSION;
    assert_int_equal(descriptors_send(pair[1], &hello, sizeof hello, sent, 1, 0),
                     (int)sizeof hello); // without an area for the agent
    assert_int_equal(ingest_receive_hello(pair[0], &fds, &pid), -EPROTO);
    assert_true(fds.segment == -1 && fds.agent_area == -1);
    assert_int_equal(descriptors_send(pair[1], &hello, sizeof hello, sent, 4, 0),
                     (int)sizeof hello);
    assert_int_equal(ingest_receive_hello(pair[0], &fds, &pid), 0);
    assert_int_equal(pid, getpid());
    assert_int_equal(fcntl(fds.segment, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fcntl(fds.agent_area, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ingest_descriptors_close(&fds);
    int now = dup(0);
    assert_int_equal(now, lowest); // no descriptor stays open
    close(now);
    for (int i = 0; i < 4; i++)
        close(sent[i]);
    close(pair[0]);
    close(pair[1]);
}

// A forged program: the process "p" with the gauges "m" (1), "n" (2), the group of both (3), and
// one ring.
struct forged {
    struct segment_layout at;
    struct segment_header *header;
    char *base, *definitions;
    struct ring *ring;
    uint64_t *words;
    int fd;
};

enum { FORGED_RING = 1 << 17 };

static struct forged forge(void)
{
    struct forged f = {.at = segment_layout(4, FORGED_RING)};
    f.fd = make_segment(4, FORGED_RING, 0, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    f.base = mmap(NULL, f.at.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
    assert_true(f.base != MAP_FAILED);
    static const char definitions[] = "\x10\0\0\0\0\0\1\0\1\0p\0\0\0\0\0"
                                      "\x10\0\0\0\0\1\2\0\1\0m\0\0\0\0\0"
                                      "\x10\0\0\0\0\1\2\0\1\0n\0\0\0\0\0"
                                      "\x18\0\0\0\0\0\3\0\2\0\0\0\1\0\0\0\2\0\0\0\0\0\0";
    f.definitions = f.base + f.at.definitions;
    memcpy(f.definitions, definitions, sizeof definitions);
    f.header = (struct segment_header *)(void *)f.base;
    f.ring = (struct ring *)(void *)(f.base + f.at.slots);
    f.words = (uint64_t *)(void *)((char *)f.ring + SLOT_DATA);
    atomic_store(&f.header->definitions_bytes, sizeof definitions);
    atomic_store(&f.header->slots_used, 1);
    return f;
}

static void put(struct forged *f, uint64_t words_of_it, enum segment_type type, uint32_t handle)
{
    uint64_t head = atomic_load(&f->ring->head);
    uint64_t *word = f->words + head % FORGED_RING / 8;
    word[0] = segment_word(type, SEGMENT_TIME_NS, words_of_it, handle);
    word[1] = 1;
    word[2] = 0;
    atomic_store(&f->ring->head, head + words_of_it * 8);
}

static void record_longer_than_what_is_there(struct forged *f)
{
    put(f, 20, SEGMENT_NOTE, 0);
    atomic_store(&f->ring->head, 64);
}

static void head_far_away(struct forged *f)
{
    put(f, 3, SEGMENT_POINT, 1);
    atomic_store(&f->ring->head, UINT64_C(1) << 40);
}

static void head_between_words(struct forged *f)
{
    put(f, 3, SEGMENT_POINT, 1);
    atomic_store(&f->ring->head, 29);
}

static void note_longer_than_a_record(struct forged *f)
{
    put(f, SEGMENT_RECORD_WORDS_MAX + 1, SEGMENT_NOTE, 0);
}

static void row_longer_than_a_group(struct forged *f)
{
    put(f, SEGMENT_GROUP_MAX + 3, SEGMENT_ROW, 3);
}

static void row_of_another_size(struct forged *f)
{
    put(f, 5, SEGMENT_ROW, 3);
}

static void row_of_no_group(struct forged *f)
{
    put(f, 4, SEGMENT_ROW, 1);
}

static void point_of_a_group(struct forged *f)
{
    put(f, 3, SEGMENT_POINT, 3);
}

static void point_of_the_process(struct forged *f)
{
    put(f, 3, SEGMENT_POINT, 0);
}

static void point_of_nothing(struct forged *f)
{
    put(f, 3, SEGMENT_POINT, UINT32_MAX);
}

static void point_of_two_words(struct forged *f)
{
    put(f, 2, SEGMENT_POINT, 1);
}

static void record_over_the_end(struct forged *f)
{
    put(f, 1000, SEGMENT_NOTE, 0);
}

static void record_of_no_words(struct forged *f)
{
    f->words[0] = 0;
    atomic_store(&f->ring->head, 80);
}

static void unknown_type(struct forged *f)
{
    put(f, 3, (enum segment_type)7, 1);
}

static void note_whose_text_is_longer(struct forged *f)
{
    put(f, 7, SEGMENT_NOTE, 0);
    f->words[5] = 0x0000ffff00001000; // 4096 bytes of text
}

static void note_with_too_many_tags(struct forged *f)
{
    put(f, 40, SEGMENT_NOTE, 0);
    f->words[5] = 17u << 16; // empty text, 17 tags
}

static void definition_longer_than_any(struct forged *f)
{
    uint32_t size = 40000;
    memcpy(f->definitions + atomic_load(&f->header->definitions_bytes), &size, 4);
    atomic_fetch_add(&f->header->definitions_bytes, 40000);
}

static void definition_of_no_size(struct forged *f)
{
    atomic_fetch_add(&f->header->definitions_bytes, 8);
}

static void definitions_over_their_end(struct forged *f)
{
    atomic_store(&f->header->definitions_bytes, UINT64_MAX & ~UINT64_C(7));
}

static void another_definition(struct forged *f, const char *bytes, size_t size)
{
    uint64_t at = atomic_load(&f->header->definitions_bytes);
    memcpy(f->definitions + at, bytes, size);
    atomic_store(&f->header->definitions_bytes, at + size);
}

static void group_of_undefined_metrics(struct forged *f)
{
    another_definition(f, "\x10\0\0\0\0\0\3\0\1\0\0\0\x09\0\0\0", 16);
}

static void group_with_more_members_than_bytes(struct forged *f)
{
    another_definition(f, "\x10\0\0\0\0\0\3\0\xff\0\0\0\1\0\0\0", 16);
}

static void metric_whose_name_is_longer(struct forged *f)
{
    another_definition(f, "\x10\0\0\0\0\1\2\0\xff\0m\0\0\0\0\0", 16);
}

static void metric_with_too_many_tags(struct forged *f)
{
    another_definition(f, "\x10\0\0\0\0\1\2\x7f\1\0m\0\0\0\0\0", 16);
}

static void process_twice(struct forged *f)
{
    another_definition(f, "\x10\0\0\0\0\0\1\0\1\0p\0\0\0\0\0", 16);
}

static void definition_of_an_unknown_thing(struct forged *f)
{
    another_definition(f, "\x10\0\0\0\0\0\x09\0\1\0p\0\0\0\0\0", 16);
}

static void more_slots_than_there_are(struct forged *f)
{
    atomic_store(&f->header->slots_used, UINT32_MAX);
    atomic_store(&f->ring->cells_end, UINT32_MAX);
}

static void impossible_counts_of_drops(struct forged *f)
{
    atomic_store(&f->ring->dropped, UINT64_MAX);
    atomic_store(&f->header->refused, UINT64_MAX);
}

static void forged_records_cost_only_themselves(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*forge)(struct forged *f);
        uint64_t corrupt;
    } cases[] = {
#define CASE(name, corrupt) {#name, name, corrupt}
        CASE(record_longer_than_what_is_there, 8),
        CASE(head_far_away, FORGED_RING / 8),
        CASE(head_between_words, 3),
        CASE(note_longer_than_a_record, SEGMENT_RECORD_WORDS_MAX + 1),
        CASE(row_longer_than_a_group, SEGMENT_GROUP_MAX + 3),
        CASE(row_of_another_size, 5),
        CASE(row_of_no_group, 4),
        CASE(point_of_a_group, 3),
        CASE(point_of_the_process, 3),
        CASE(point_of_nothing, 3),
        CASE(point_of_two_words, 2),
        CASE(record_over_the_end, 1000),
        CASE(record_of_no_words, 10),
        CASE(unknown_type, 3),
        CASE(note_whose_text_is_longer, 7),
        CASE(note_with_too_many_tags, 40),
        CASE(definition_longer_than_any, 1),
        CASE(definition_of_no_size, 1),
        CASE(definitions_over_their_end, 1),
        CASE(group_of_undefined_metrics, 1),
        CASE(group_with_more_members_than_bytes, 1),
        CASE(metric_whose_name_is_longer, 1),
        CASE(metric_with_too_many_tags, 1),
        CASE(process_twice, 1),
        CASE(definition_of_an_unknown_thing, 1),
        CASE(more_slots_than_there_are, 0),
        CASE(impossible_counts_of_drops, 0),
#undef CASE
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct node n;
        node_open(&n);
        node_agent_start(&n);
        struct forged f = forge();
        assert_int_equal(ingest_attach(n.in, offer(f.fd), getpid()), 0);
        put(&f, 3, SEGMENT_POINT, 1); // earlier records count, including definitions
        assert_int_equal(ingest_drain(n.in, NULL), 1);
        // Any head is accepted, and invalid records before it are skipped.
        atomic_store(&f.ring->head, cases[i].forge == record_over_the_end ? FORGED_RING - 3072 : 0);
        ingest_drain(n.in, NULL);
        struct ingest_stats before = node_stats(&n), after;
        cases[i].forge(&f);
        uint64_t head = atomic_load(&f.ring->head);
        ingest_drain(n.in, NULL);
        ingest_sample_cells(n.in, 1);
        after = node_stats(&n);
        if (after.dropped_corrupt - before.dropped_corrupt != cases[i].corrupt)
            fail_msg("%s: %d words dropped as corrupt", cases[i].name,
                     (int)(after.dropped_corrupt - before.dropped_corrupt));
        assert_int_equal(after.points, before.points);
        assert_int_equal(after.dropped_full + after.dropped_limit, 0);
        assert_int_equal(n.store->event_count, 0);
        assert_int_equal(n.store->series_count, 2);
        atomic_store(&f.ring->head, head & ~UINT64_C(7));
        put(&f, 3, SEGMENT_POINT, 2);
        ingest_drain(n.in, NULL);
        if (node_stats(&n).points != before.points + 1)
            fail_msg("%s: what comes after it is lost", cases[i].name);
        munmap(f.base, f.at.bytes);
        node_close(&n);
    }
}

static void impossible_times_are_corrected(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct forged f = forge();
    int64_t now = clock_realtime_ns();
    const int64_t times[] = {0, INT64_MIN, now, now + 3600 * (int64_t)NS_PER_S, INT64_MAX};
    for (size_t i = 0; i < 5; i++) {
        f.words[3 * i] = segment_word(SEGMENT_POINT, 0, 3, 1);
        f.words[3 * i + 1] = (uint64_t)times[i];
        f.words[3 * i + 2] = 0;
    }
    atomic_store(&f.ring->head, 5 * 24);
    assert_int_equal(ingest_attach(n.in, offer(f.fd), getpid()), 0);
    assert_int_equal(ingest_drain(n.in, NULL), 5);
    struct fake_series *s = fake_find(n.store, "m", NULL);
    assert_int_equal(s->count, 5);
    assert_int_equal(node_stats(&n).clamped, 4);
    // the start of the system, at the earliest
    assert_true(s->first_t_ns > 0 && s->first_t_ns <= now);
    assert_in_range(s->last_t_ns, now, clock_realtime_ns());
    munmap(f.base, f.at.bytes);
    node_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scribblers_harm_only_themselves),
        cmocka_unit_test(files_that_are_no_segments),
        cmocka_unit_test(programs_up_to_the_limit_are_attached),
        cmocka_unit_test(not_a_hello),
        cmocka_unit_test(unseen_process_goes_with_its_connection),
        cmocka_unit_test(hello_of_another_version_or_with_more),
        cmocka_unit_test(impossible_times_are_corrected),
        cmocka_unit_test(forged_records_cost_only_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
