// On machines with pages of 64 KiB, the kernel refuses to map offsets that are not multiples of
// them. This program is linked with an mmap() that refuses such offsets, too. It is its own agent:
// its points must be recorded, before and after a restart of the agent.
#include "base/clock.h"
#include "ingest/hello.h"
#include "ingest/ingest.h"
#include "store/store.h"
#include "unit/ingest/listen.h"
#include "unit/test.h"

#include "sonde.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE_PAGE = 65536, POINTS = 1000 };

static unsigned maps, refused;

// The linker replaces mmap() under both of its names.
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    maps += fd >= 0;
    if (offset % LARGE_PAGE == 0)
        return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
    refused++;
    errno = EINVAL;
    return MAP_FAILED;
}

void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return __wrap_mmap(at, bytes, protection, flags, fd, offset);
}

static char folder[] = "/tmp/sonde-test-XXXXXX", socket_path[64], store_path[64];

static uint64_t points_of(struct ingest *in)
{
    struct ingest_stats stats;
    ingest_drain(in, NULL);
    ingest_get_stats(in, &stats);
    assert_int_equal(stats.programs, 1);
    return stats.points;
}

static void huge_pages_advise(void **state)
{
    (void)state;
    struct error e = {0};
    struct store *store;
    struct ingest *in = NULL;
    struct store_options store_options = {0};
    struct ingest_options options = {.socket_path = socket_path, .level = 4};
    if (store_open(store_path, &store_options, &store, &e) != 0 ||
        ingest_create(store, &options, &in, &e) != 0)
        fail_msg("%s", e.text);
    int listener = listen_at(socket_path);
    sonde_handle value = sonde_gauge("value", ""), total = sonde_counter("total", "");
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct ingest_descriptors fds;
    pid_t pid;
    assert_int_equal(ingest_receive_hello(fd, &fds, &pid), 0);
    assert_int_equal(ingest_attach(in, fds, pid), 0);
    for (int i = 0; i < POINTS; i++)
        sonde_emit(value, i);
    sonde_add(total, 1);
    assert_int_equal(points_of(in), POINTS);
    ingest_destroy(in);
    for (int i = 0; i < POINTS; i++)
        sonde_emit(value, i);
    assert_int_equal(ingest_create(store, &options, &in, &e), 0);
    assert_int_equal(ingest_adopt(in), 1); // the next agent
    assert_int_equal(points_of(in), POINTS);
    pid_t child = fork();
    if (child == 0) { // its segment replaces that of its parent
        sonde_emit(value, 1);
        _exit(refused > 0 || sonde_level() != 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(maps >= 4); // two maps of the program, two of the agent: the wrapper was called
    assert_int_equal(refused, 0);
    ingest_destroy(in);
    store_close(store, &e);
    close(fd);
    close(listener);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    snprintf(socket_path, sizeof socket_path, "%s/agent.sock", folder);
    snprintf(store_path, sizeof store_path, "%s/node.sonde", folder);
    setenv("SONDE_LEVEL", "1", 1);
    setenv("SONDE_SOCKET", socket_path, 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(huge_pages_advise)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(socket_path);
    unlink(store_path);
    rmdir(folder);
    return failed;
}
