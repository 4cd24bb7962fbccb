// Programs that close libsonde's descriptors or have little address space; levels; tags of a
// process; dlopen; other agents.
#include "emit/segment.h"
#include "node.h"
#include "unit/seed.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static uint64_t count_of(const struct node *n, const char *name)
{
    return fake_count(n->store, name);
}

static void a_slow_program_connects_again(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    n.blind = true;
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "slow", NULL);
    node_until_said(&n, c, "1\n");
    node_agent_stop(&n);
    node_agent_start(&n);
    while (node_stats(&n).programs == 0) {
        node_say(c, "\n");
        node_round(&n);
        if (c->ended)
            fail_msg("it emitted until its end, and did not connect");
    }
    node_say(c, "end\n");
    node_until_all_gone(&n);
    assert_int_equal(fake_count(n.store, "value"), child_number(c, "sent"));
    node_close(&n);
}

static void descriptors_closed_under_us(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "closes", NULL);
    node_until_said(&n, c, "first");
    while (!count_of(&n, "value"))
        node_round(&n);
    node_say(c, "\n");
    node_until_said(&n, c, "sent=");
    // no data of libsonde is in the program's sockets
    assert_int_equal(child_number(c, "stray"), 0);
    assert_int_equal(child_number(c, "lost"), 0); // none of the program's sockets was closed
    node_round(&n);
    // its connection is closed, but its points still arrive
    assert_int_equal(node_stats(&n).programs, 1);
    node_say(c, "\n");
    node_until_all_gone(&n);
    struct ingest_stats s = node_stats(&n);
    assert_int_equal(s.points + s.dropped_full, child_number(c, "sent"));
    assert_true(s.points > 0);
    node_close(&n);
}

static void little_address_space(void **state)
{
    (void)state;
    static const struct {
        const char *mib, *file_size;
        int handle;
        bool works_sanitized;
    } cases[] = {
        {"120", "0", 1, false}, // the segment gets fewer slots
        {"40", "0", 0, false},  // sonde is off
        {"120", "1", 1, true},
        {"1", "1", 0, true}, // without SIGXFSZ
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        if (!cases[i].works_sanitized)
            continue;
#endif
        struct node n;
        node_open(&n);
        node_agent_start(&n);
        struct child *c = node_spawn(&n, NULL, "tight", cases[i].mib, cases[i].file_size, NULL);
        node_until_all_gone(&n);
        assert_int_equal(c->status, 0);
        if (child_number(c, "limited")) {
            assert_int_equal(child_number(c, "handle"), cases[i].handle);
            assert_int_equal(count_of(&n, "value"), cases[i].handle);
        }
        node_close(&n);
    }
}

static void locked_memory_is_not_filled(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "locked", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    assert_in_range(child_number(c, "shared"), 0, 4096); // KiB; the segment's size is over 100 MiB
    node_close(&n);
}

static void silent_unless_asked(void **state)
{
    (void)state;
    static const struct {
        const char *log;
        bool speaks;
    } cases[] = {
        {"SONDE_LOG", false}, {"SONDE_LOG=", false}, {"SONDE_LOG=0", false}, {"SONDE_LOG=1", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct node n;
        node_open(&n);
        // no agent runs
        struct child *c = node_spawn(&n, (const char *[]){cases[i].log, NULL}, "loud", NULL);
        node_until_ended(&n, c);
        assert_int_equal(c->status, 0);
        if (!cases[i].speaks)
            assert_string_equal(c->text, "end\n");
        else
            assert_true(strstr(c->text, "metric \"not a name\" is off: ") &&
                        strstr(c->text, "no agent at "));
        node_close(&n);
    }
}

static void levels(void **state)
{
    (void)state;
    static const struct {
        const char *level, *metric;
        uint64_t handle, run, open;
    } cases[] = {
        {"SONDE_LEVEL", "1", 0, 0, 0},    {"SONDE_LEVEL=", "1", 0, 0, 0},
        {"SONDE_LEVEL=0", "1", 0, 0, 0},  {"SONDE_LEVEL=x", "1", 0, 0, 0},
        {"SONDE_LEVEL=-1", "1", 0, 0, 0}, {"SONDE_LEVEL=1", "1", 1, 1, 3},
        {"SONDE_LEVEL=1", "0", 1, 1, 3},  {"SONDE_LEVEL=1", "2", 0, 1, 3},
        {"SONDE_LEVEL=2", "2", 1, 2, 3},  {"SONDE_LEVEL=9", "4", 1, 4, 3},
        {"SONDE_LEVEL=4", "5", 0, 4, 3},  {"SONDE_SOCKET", "1", 0, 0, 0},
        {"SONDE_SOCKET=", "1", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct node n;
        node_open(&n);
        node_agent_start(&n);
        struct child *c =
            node_spawn(&n, (const char *[]){cases[i].level, NULL}, "level", cases[i].metric, NULL);
        node_until_all_gone(&n);
        assert_int_equal(c->status, 0);
        assert_int_equal(child_number(c, "handle"), cases[i].handle);
        assert_int_equal(child_number(c, "level"), cases[i].run);
        assert_int_equal(child_number(c, "open"), cases[i].open); // off: no descriptor
        assert_int_equal(node_stats(&n).programs_total, cases[i].run > 0);
        assert_int_equal(count_of(&n, "leveled") > 0, cases[i].handle);
        node_close(&n);
    }
}

static void agent_of_a_lower_level(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    n.level = 1;
    node_agent_start(&n);
    struct child *c = node_spawn(&n, (const char *[]){"SONDE_LEVEL=4", NULL}, "level", "3", NULL);
    node_until_all_gone(&n);
    assert_int_equal(child_number(c, "handle"), 1);
    assert_int_equal(count_of(&n, "leveled"), 0);
    struct ingest_stats s = node_stats(&n);
    // values above the level do not count as lost
    assert_int_equal(s.dropped_corrupt + s.dropped_limit, 0);
    node_close(&n);
}

static void tags_of_a_process(void **state)
{
    (void)state;
    static const struct {
        const char *environment[4];
        const char *labels;
        uint64_t refused;
    } cases[] = {
        {{NULL}, "host=here", 0},
        {{"SONDE_TAGS=run=7,phase=warm up", NULL}, "host=here,phase=warm up,run=7", 0},
        {{"SONDE_TAGS=", NULL}, "host=here", 0},
        {{"SONDE_TAGS=a=1,,b=2,", NULL}, "a=1,b=2,host=here", 0},
        {{"SONDE_TAGS=novalue,=x,a=,bad key=1,a=1,a=2", NULL}, "a=1,host=here", 5},
        {{"SONDE_TAGS=host=elsewhere", NULL}, "host=here", 0},
        {{"PMIX_RANK=3", NULL}, "host=here,rank=3", 0},
        {{"SLURM_PROCID=5", "OMPI_COMM_WORLD_RANK=4", NULL}, "host=here,rank=4", 0},
        {{"SLURM_PROCID=5", "SLURM_STEP_ID=0", NULL}, "host=here,rank=5", 0},
        {{"SLURM_PROCID=5", NULL}, "host=here", 0}, // of the batch script
        {{"PMI_RANK=many", NULL}, "host=here", 0},
        {{"PMIX_RANK=3", "SONDE_TAGS=rank=9", NULL}, "host=here,rank=9", 0},
        {{"SONDE_TAGS=a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1",
          "PMI_RANK=1", NULL},
         "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,host=here,i=1,j=1,k=1,l=1,m=1,n=1,rank=1",
         3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct node n;
        node_open(&n);
        node_agent_start(&n);
        node_spawn(&n, cases[i].environment, "points", "10", "exit", NULL);
        node_until_all_gone(&n);
        struct fake_series *f = fake_find(n.store, "value", NULL);
        assert_non_null(f);
        assert_string_equal(f->labels, cases[i].labels);
        assert_int_equal(f->count, 10);
        assert_int_equal(node_stats(&n).dropped_limit, cases[i].refused);
        node_close(&n);
    }
}

static void own_tags_come_before_those_of_the_process(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    node_spawn(&n, (const char *[]){"SONDE_TAGS=thread=all,run=1", NULL}, "threads", "1", "5",
               NULL);
    node_until_all_gone(&n);
    assert_string_equal(fake_find(n.store, "value", NULL)->labels, "host=here,run=1,thread=0");
    node_close(&n);
}

static void loaded_with_dlopen(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    const char *arguments[] = {getenv("SONDE_TEST_DLOPEN"), getenv("SONDE_TEST_LIBRARY"), NULL};
    struct child *c = node_spawn_program(&n, NULL, arguments);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    // three threads, two of which ended after the dlclose
    assert_int_equal(count_of(&n, "dlopened"), 3000);
    node_close(&n);
}

static void hello_in_ten_lines(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    const char *arguments[] = {getenv("SONDE_TEST_HELLO"), NULL};
    struct child *c = node_spawn_program(&n, NULL, arguments);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    assert_int_equal(count_of(&n, "loss"), 20);
    assert_non_null(fake_event(n.store, "done", 0));
    node_close(&n);
}

static void moves_to_another_agent(void **state)
{
    (void)state;
    enum { COUNT = 10000, TIMES = 8 };
    for (int i = 0; i < TIMES; i++) {
        struct node first, second;
        node_open(&first);
        node_agent_start(&first);
        node_open(&second);
        node_agent_start(&second);
        char count[16];
        snprintf(count, sizeof count, "%d", COUNT);
        struct child *c = node_spawn(&first, NULL, "moves", count, second.path, NULL);
        node_until_said(&first, c, "first");
        node_say(c, "\n");
        for (int64_t end = clock_monotonic_ns() + (int64_t)NODE_PATIENCE_S * NS_PER_S;
             count_of(&first, "value") + count_of(&second, "value") < 2 * COUNT ||
             node_stats(&second).programs == 0;) {
            node_round(&second); // the new agent runs before the old one has released the program
            node_round(&first);
            assert_true(clock_monotonic_ns() < end);
        }
        node_say(c, "\n");
        node_until_all_gone(&first);
        for (int k = 0; node_stats(&second).programs; k++)
            node_round(&second);
        assert_int_equal(c->status, 0);
        assert_int_equal(child_number(c, "dropped"), 0);
        // no value twice
        assert_int_equal(count_of(&first, "value") + count_of(&second, "value"), 2 * COUNT);
        assert_int_equal(node_stats(&second).programs_total, 1);
        assert_true(fake_find(second.store, "work_total", NULL)->last == 2 * COUNT);
        node_close(&second);
        node_close(&first);
    }
}

// After moving back, the program finds the agent's queue full. Points that it emits then are
// dropped, until it requests another connection.
static void comes_back_to_a_full_queue(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    char nobody[128];
    snprintf(nobody, sizeof nobody, "%s/nobody.sock", n.folder);
    struct child *c = node_spawn(&n, NULL, "comes_back", nobody, n.path, NULL);
    node_until_said(&n, c, "here");
    while (count_of(&n, "value") == 0)
        node_round(&n);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, n.path, strlen(n.path) + 1);
    assert_int_equal(listen(n.listener, 0), 0);
    int waiting = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(waiting, (struct sockaddr *)&address, sizeof address), 0);
    n.deaf = true;
    node_say(c, "\n");
    node_until_said(&n, c, "back");
    assert_int_equal(child_number(c, "dropped_back"), 1);
    assert_int_equal(child_number(c, "failed_back"), EAGAIN);
    assert_int_equal(listen(n.listener, 1024), 0);
    close(waiting);
    n.deaf = false;
    node_say(c, "\n");
    node_until_ended(&n, c);
    assert_int_equal(child_number(c, "dropped_again"), 0);
    assert_int_equal(child_number(c, "failed_again"), 0);
    node_until_all_gone(&n);
    assert_int_equal(count_of(&n, "value"), 2);
    node_close(&n);
}

// 10 points, 2 rows of 2, the two records of a span, a note, 2 cells.
enum { UNHEARD = 10 + 4 + 2 + 1 + 2 };

static void values_without_an_agent_count_as_dropped(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    struct child *c = node_spawn(&n, NULL, "undelivered", NULL);
    node_until_said(&n, c, "first");
    assert_int_equal(child_number(c, "dropped0"), UNHEARD);
    assert_int_equal(child_number(c, "failed0"), ENOENT);
    assert_non_null(strstr(c->text, "why0=nothing is recorded until an agent listens at "));
    node_agent_start(&n); // now the program finds an agent
    node_say(c, "\n");
    node_until_said(&n, c, "second");
    assert_int_equal(child_number(c, "dropped1"), 0);
    assert_int_equal(child_number(c, "failed1"), 0);
    node_say(c, "\n");
    node_until_all_gone(&n);
    assert_int_equal(count_of(&n, "value"), 12);
    node_close(&n);
}

static void a_missing_folder_is_reported(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(
        &n, (const char *[]){"SONDE_SOCKET=/tmp/sonde-test-nowhere/job/agent.sock", NULL},
        "undelivered", NULL);
    node_until_said(&n, c, "first");
    assert_int_equal(child_number(c, "dropped0"), UNHEARD);
    assert_int_equal(child_number(c, "failed0"), ENOENT);
    assert_non_null(strstr(c->text, "why0=nothing is recorded: the folder "
                                    "/tmp/sonde-test-nowhere/job of the job is not here. "));
    assert_non_null(strstr(c->text, "bind"));
    node_say(c, "\n\n");
    node_until_ended(&n, c);
    assert_int_equal(child_number(c, "dropped1"), UNHEARD);
    node_close(&n);
}

static void a_lack_of_memory_drops_values(void **state)
{
    (void)state;
    node_needs_seccomp();
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "no_memory", NULL);
    node_until_said(&n, c, "first");
    node_say(c, "\n");
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    // as many as fit into the remaining memory
    assert_in_range(child_number(c, "defined"), 1, 4999);
    assert_true(child_number(c, "dropped") > 0);
    assert_int_equal(count_of(&n, "before") + child_number(c, "dropped"), child_number(c, "sent"));
    assert_true(fake_find(n.store, "total", NULL)->last == 2);
    node_close(&n);
}

static void threads_are_cancelled(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); // with that sanitizer, a thread that is cancelled inside it keeps its locks
#endif
    uint64_t seed = test_seed(1), rounds = test_rounds();
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        struct node n;
        node_open(&n);
        node_agent_start(&n);
        char nobody[128], threads[24], seed_text[24];
        snprintf(nobody, sizeof nobody, "%s/nobody.sock", n.folder);
        snprintf(threads, sizeof threads, "%llu", 400 * (unsigned long long)rounds);
        snprintf(seed_text, sizeof seed_text, "%llu", (unsigned long long)seed);
        struct child *c = node_spawn(&n, NULL, "cancels", threads, asynchronous ? "1" : "0",
                                     seed_text, n.path, nobody, NULL);
        node_until_said(&n, c, "cancelled");
        // If more connections wait for the agent than fit its queue, a program can end before it
        // gets a place.
        for (struct pollfd waiting = {n.listener, POLLIN, 0}; poll(&waiting, 1, 0) > 0;)
            node_round(&n);
        node_say(c, "\n");
        node_until_ended(&n, c);
        if (c->status != 0)
            fail_msg("the program ended with status 0x%x (seed %llu)", (unsigned)c->status,
                     (unsigned long long)seed);
        node_until_all_gone(&n);
        assert_int_equal(count_of(&n, "after"), 2);
        assert_int_equal(count_of(&n, "child"), 1);
        node_close(&n);
    }
}

static void no_call_is_a_cancellation_point(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); // its wrappers of functions are cancellation points
#endif
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "pending", n.path, NULL);
    node_until_ended(&n, c);
    assert_int_equal(c->status, 0);
    node_close(&n);
}

// Some runtimes give their tasks a stack of 16 KiB. A function that needs more ends the program, or
// overwrites other memory.
static void little_stack_is_needed(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
    skip(); // functions are larger then
#endif
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "little_stack", n.path, NULL);
    node_until_ended(&n, c);
    assert_int_equal(c->status, 0);
    static const char *const all[] = {"start", "metrics", "events", "fork", "child"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_in_range(child_number(c, all[i]), 1, 8192);
    node_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_program_connects_again),
        cmocka_unit_test(descriptors_closed_under_us),
        cmocka_unit_test(little_address_space),
        cmocka_unit_test(locked_memory_is_not_filled),
        cmocka_unit_test(silent_unless_asked),
        cmocka_unit_test(levels),
        cmocka_unit_test(agent_of_a_lower_level),
        cmocka_unit_test(tags_of_a_process),
        cmocka_unit_test(own_tags_come_before_those_of_the_process),
        cmocka_unit_test(loaded_with_dlopen),
        cmocka_unit_test(hello_in_ten_lines),
        cmocka_unit_test(values_without_an_agent_count_as_dropped),
        cmocka_unit_test(a_missing_folder_is_reported),
        cmocka_unit_test(a_lack_of_memory_drops_values),
        cmocka_unit_test(moves_to_another_agent),
        cmocka_unit_test(comes_back_to_a_full_queue),
        cmocka_unit_test(threads_are_cancelled),
        cmocka_unit_test(no_call_is_a_cancellation_point),
        cmocka_unit_test(little_stack_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
