// The process that listens at the agent's path may be hostile: it takes the descriptors of a
// program, tries to open and map all of them for writing, and writes garbage there. The program
// must survive. Another user gets nothing.
#include "base/descriptors.h"
#include "emit/segment.h"
#include "node.h"
#include "unit/seed.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOMEBODY = 65534, SOMEBODY_ELSE = 65533, MAPPINGS_MAX = 8 };

static uint64_t random_state;

static uint64_t random_u64(void)
{
    return test_random(&random_state);
}

static bool become(uid_t uid)
{
    return uid == geteuid() ||
           (setgid(uid) == 0 && setuid(uid) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
}

struct mapping {
    uint64_t *words;
    size_t count;
};

static bool map_writable(int fd, struct mapping *m)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return false;
    void *base =
        mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    *m = (struct mapping){base, (size_t)st.st_size / 8};
    return base != MAP_FAILED;
}

// Tries everything that a receiver can do with a descriptor, except changing the file's mode as its
// owner.
static size_t attack(int fd, struct mapping mappings[2])
{
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR | O_CLOEXEC);
    count += map_writable(fd, &mappings[count]);
    count += map_writable(again, &mappings[count]);
    for (int i = 0; i < 2; i++) {
        int f = i ? again : fd;
        (void)!ftruncate(f, 0);
        (void)!fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 30);
        (void)!pwrite(f, path, sizeof path, 0);
        fcntl(f, F_ADD_SEALS, F_SEAL_WRITE);
    }
    return count;
}

static uint64_t garbage(void)
{
    static const uint64_t values[] = {0, 1, 8, 1 << 20, INT64_MAX, UINT64_MAX, UINT64_MAX - 7};
    uint64_t r = random_u64();
    return r % 4 ? values[r / 4 % (sizeof values / sizeof *values)] : r;
}

// Writes as long as the program keeps its connection, mostly to the beginning of a file, where the
// heads and sizes are.
static void scribble(const struct mapping *mappings, size_t count, int connection)
{
    char byte;
    while (recv(connection, &byte, 1, MSG_DONTWAIT) != 0) {
        for (int i = 0; count && i < 10000; i++) {
            const struct mapping *m = &mappings[random_u64() % count];
            size_t range = random_u64() % 2 && m->count > 1024 ? 1024 : m->count;
            ((volatile uint64_t *)m->words)[random_u64() % range] = garbage();
        }
    }
}

// Another user who gets a read-only descriptor cannot open it for writing.
static bool other_user_can_write(int segment)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct mapping m[2];
        _exit(!become(SOMEBODY_ELSE) || attack(segment, m) > 0 || fchmod(segment, 0666) == 0);
    }
    int status;
    return waitpid(pid, &status, 0) != pid || status != 0;
}

enum { RECEIVED_NOTHING = 10, RECEIVED = 11, WRITABLE_BY_OTHERS = 12 };

// Listens at the path as `uid`, writes a byte to `ready`, and attacks the first program that
// connects.
static int hostile_agent(const struct node *n, uid_t uid, int ready)
{
    bool root = geteuid() == 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, n->path, strlen(n->path) + 1);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // A failed test must not leave a process that holds its output open.
    if (seteuid(uid) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 4) != 0 || write(ready, "", 1) != 1)
        return 1;
    struct segment_hello hello;
    int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC), fds[DESCRIPTORS_MAX];
    size_t count;
    descriptors_receive(connection, &hello, sizeof hello, fds, &count, 0);
    if (count == 0)
        return RECEIVED_NOTHING;
    if (root && (seteuid(0) != 0 || other_user_can_write(fds[0])))
        return WRITABLE_BY_OTHERS;
    if (!become(uid))
        return 1;
    struct mapping mappings[MAPPINGS_MAX];
    size_t writable = 0;
    for (size_t i = 0; i < count; i++)
        writable += attack(fds[i], &mappings[writable]);
    scribble(mappings, writable, connection);
    return RECEIVED;
}

static pid_t start_hostile_agent(const struct node *n, uid_t uid)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    if (geteuid() == 0)
        assert_int_equal(chown(n->folder, uid, (gid_t)-1), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(hostile_agent(n, uid, ready[1]));
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static int exit_code(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void survives(bool sealed)
{
    // not root, because root ignores a file's mode
    uid_t uid = geteuid() == 0 ? SOMEBODY : geteuid();
    char uid_text[16];
    snprintf(uid_text, sizeof uid_text, "%u", (unsigned)uid);
    struct node n;
    node_open(&n);
    uint64_t seed = random_state = test_seed(1);
    pid_t agent = start_hostile_agent(&n, uid);
    struct child *c =
        sealed ? node_spawn(&n, NULL, "as", uid_text, "everything", "20000", NULL)
               : node_spawn(&n, NULL, "as", uid_text, "unsealed", "everything", "20000", NULL);
    node_until_said(&n, c, "ready");
    node_say(c, "\n");
    node_until_ended(&n, c);
    if (c->status != 0)
        fail_msg("the program ended with status 0x%x (seed %llu)", (unsigned)c->status,
                 (unsigned long long)seed);
    assert_non_null(strstr(c->text, "end\n"));
    assert_int_equal(exit_code(agent), RECEIVED);
    node_close(&n);
}

static void agent_of_the_same_user(void **state)
{
    (void)state;
    survives(true);
}

static void agent_of_the_same_user_without_the_seal(void **state)
{
    (void)state;
    node_needs_seccomp();
    survives(false);
}

static void unsealed_segments_are_recorded(void **state)
{
    (void)state;
    node_needs_seccomp();
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "unsealed", "waits", "1000", "500", NULL);
    node_until_said(&n, c, "first");
    while (fake_count(n.store, "value") < 1000)
        node_round(&n);
    node_agent_stop(&n);
    node_agent_start(&n); // adopts the program
    assert_int_equal(node_stats(&n).programs, 1);
    node_say(c, "\n\n");
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    assert_int_equal(fake_count(n.store, "value"), 1500);
    node_close(&n);
}

static void another_user_gets_nothing(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); // only root can change its uid
    struct node n;
    node_open(&n);
    pid_t agent = start_hostile_agent(&n, SOMEBODY);
    struct child *c = node_spawn(&n, (const char *[]){"SONDE_LOG=1", NULL}, "loud", NULL);
    node_until_ended(&n, c);
    assert_int_equal(c->status, 0);
    assert_int_equal(exit_code(agent), RECEIVED_NOTHING);
    assert_non_null(strstr(c->text, "another user listens at "));
    node_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agent_of_the_same_user),
        cmocka_unit_test(agent_of_the_same_user_without_the_seal),
        cmocka_unit_test(unsealed_segments_are_recorded),
        cmocka_unit_test(another_user_gets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
