// libfabric's providers as a bulk uses them: reads that never end, and memory that nobody frees.
#include "unit/wire/net.h"
#include "wire/bulk.h"
#include "wire/fabric_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

// ---- reads that never end ----

enum {
    STUCK = 4,
    READS = WIRE_LANDING_SLOTS / STUCK,
    PIECE = WIRE_LAID_MIN,
    SHORT_MS = 300,
    LONG_MS = 3600000
};

struct node {
    struct wire_bulk *bulk;
    struct wire_bulk_peer *peer; // in the hub
    char first;                  // first byte of its window
};

struct read {
    struct wire_fetch fetch; // the first member, so that a fetch can be cast to its read
    struct wire_bulk *hub;
    atomic_int status; // 1: pending
    char first;
};

static struct wire_loop *hub_loop, *stuck_loop, *live_loop;
static struct wire_bulk *hub;

static void open_node(struct node *n, struct wire_loop *loop, char first)
{
    struct error e;
    if (wire_bulk_open(loop, "fabric:tcp", WIRE_LINK, "127.0.0.1", &n->bulk, &e))
        fail_msg("%s", e.text);
    n->first = first;
    memset(n->bulk->row->window(n->bulk), first, PIECE);
}

static void meet(void *user)
{
    struct node *n = user;
    struct buf description = {0};
    n->bulk->row->describe(n->bulk, &description);
    assert_int_equal(hub->row->meet(hub, buf_str(&description), &n->peer, NULL), 0);
    buf_free(&description);
}

static void part(void *user)
{
    hub->row->part(((struct node *)user)->peer);
}

static void on_done(struct wire_fetch *f, int status, const char *data)
{
    struct read *r = (struct read *)f;
    r->first = status == 0 ? data[PIECE - 1] : 0;
    atomic_store(&r->status, status);
}

static void begin(void *user)
{
    struct read *r = user;
    hub->row->fetch(&r->fetch);
}

static void read_begin(struct read *r, const struct node *n)
{
    *r = (struct read){.fetch = {.peer = n->peer, .size = PIECE, .done = on_done}, .status = 1};
    wire_loop_call(hub_loop, begin, r);
}

static void give_up(void *user)
{
    hub->row->give_up(&((struct read *)user)->fetch);
}

static int read_end(struct read *r)
{
    NET_AWAIT(atomic_load(&r->status) != 1);
    return atomic_load(&r->status);
}

static int read_one(const struct node *n)
{
    struct read r;
    read_begin(&r, n);
    int status = read_end(&r);
    assert_true(status != 0 || r.first == n->first);
    return status;
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void hold(struct wire_task *task)
{
    (void)task;
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
}

// Nodes that do not progress any more, as if disconnected: reads of their memory never end. The
// provider tcp needs the node's help for a read.
static void reads_that_never_end_keep_no_slots(void **state)
{
    (void)state;
    struct node stuck[STUCK], live;
    struct read reads[STUCK][READS];
    struct wire_task holding = {.run = hold};
    struct error e;
    hub_loop = net_loop(), stuck_loop = net_loop(), live_loop = net_loop();
    if (wire_bulk_open(hub_loop, "fabric:tcp", WIRE_HUB, "127.0.0.1", &hub, &e))
        fail_msg("%s", e.text);
    hub->fetch_timeout_ms = LONG_MS;
    for (size_t i = 0; i < STUCK; i++)
        open_node(&stuck[i], stuck_loop, (char)('a' + i));
    open_node(&live, live_loop, 'l');
    for (size_t i = 0; i < STUCK; i++) {
        wire_loop_call(hub_loop, meet, &stuck[i]);
        assert_int_equal(read_one(&stuck[i]), 0);
    }
    wire_loop_call(hub_loop, meet, &live);
    assert_int_equal(read_one(&live), 0);
    pthread_mutex_lock(&held);
    wire_loop_post(stuck_loop, &holding);
    // As many reads of one node as there are slots: others are read nevertheless.
    for (size_t i = 0; i < STUCK * READS; i++)
        read_begin(&reads[i / READS][i % READS], &stuck[0]);
    assert_int_equal(read_one(&live), 0);
    for (size_t i = 0; i < STUCK * READS; i++)
        wire_loop_call(hub_loop, give_up, &reads[i / READS][i % READS]);
    // Enough stuck nodes to use all slots together: the slots become free again without them.
    hub->fetch_timeout_ms = SHORT_MS;
    for (size_t i = 0; i < STUCK; i++)
        for (size_t k = 0; k < READS; k++)
            read_begin(&reads[i][k], &stuck[i]);
    for (size_t i = 0; i < STUCK; i++)
        for (size_t k = 0; k < READS; k++)
            assert_int_equal(read_end(&reads[i][k]), -ETIMEDOUT);
    hub->fetch_timeout_ms = LONG_MS;
    assert_int_equal(read_one(&live), 0);
    // The same for the nodes themselves.
    pthread_mutex_unlock(&held);
    for (size_t i = 0; i < STUCK; i++)
        assert_int_equal(read_one(&stuck[i]), 0);
    for (size_t i = 0; i < STUCK; i++)
        wire_loop_call(hub_loop, part, &stuck[i]);
    wire_loop_call(hub_loop, part, &live);
    wire_bulk_close(hub);
    for (size_t i = 0; i < STUCK; i++)
        wire_bulk_close(stuck[i].bulk);
    wire_bulk_close(live.bulk);
    wire_loop_stop(hub_loop);
    wire_loop_stop(stuck_loop);
    wire_loop_stop(live_loop);
}

// ---- memory ----

static char folder[] = FABRIC_MEMORY_FOLDER "/test-XXXXXX";

static char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void *make(const char *name)
{
    int fd = open(path_of(name), O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, PIECE), 0);
    void *mapped = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(mapped != MAP_FAILED);
    close(fd);
    return mapped;
}

static bool is_there(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

static void files_of_killed_processes_are_removed(void **state)
{
    (void)state;
    static const char *const nobodys = "sonde-0123456789abcdef",
                             *const somebodys = "sonde-00000000000000ff",
                             *const others[] = {"sonde-0123456789abcde", "sonde-0123456789abcdeg",
                                                "4711:0:0", "sonde-x"};
    assert_non_null(mkdtemp(folder));
    munmap(make(nobodys), PIECE);
    void *mapped = make(somebodys);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        munmap(make(others[i]), PIECE);
    fabric_memory_sweep(folder);
    assert_false(is_there(nobodys));
    assert_true(is_there(somebodys));
    munmap(mapped, PIECE);
    fabric_memory_sweep(folder);
    assert_false(is_there(somebodys));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_true(is_there(others[i]));
        unlink(path_of(others[i]));
    }
    assert_int_equal(rmdir(folder), 0);
    fabric_memory_sweep(folder); // nothing to remove
}

static size_t count_memory(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    size_t count = 0;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        count += strstr(line, FABRIC_MEMORY_FOLDER "/sonde-") != NULL;
    fclose(maps);
    return count;
}

static void shared_memory_has_our_name(void **state)
{
    (void)state;
    struct wire_loop *loop = net_loop();
    struct wire_bulk *bulks[2];
    struct error e;
    for (size_t i = 0; i < 2; i++)
        if (wire_bulk_open(loop, "fabric:shm", i ? WIRE_LINK : WIRE_HUB, NULL, &bulks[i], &e))
            fail_msg("%s", e.text);
    assert_int_equal(count_memory(), 2);
    for (size_t i = 0; i < 2; i++)
        wire_bulk_close(bulks[i]);
    assert_int_equal(count_memory(), 0);
    wire_loop_stop(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_that_never_end_keep_no_slots),
        cmocka_unit_test(files_of_killed_processes_are_removed),
        cmocka_unit_test(shared_memory_has_our_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
