// What a reader requests from the disk: the blocks of a window, each once; of a long run only the
// beginning. After a query of a window, most of the file is still on the disk alone.
#include "fixture.h"

#include "../seed.h"
#include "store/prefetch.h"
#include "store/reader.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { REQUESTS_MAX = 4096, COLUMNS = 8, ROWS = 160000, WINDOW = 500 };
static const uint64_t run_max = 1 << 20;
static const uint64_t gap_max = 256 << 10;

static struct {
    uint64_t from, to;
} requests[REQUESTS_MAX];
static size_t request_count;
static uint64_t requested;

// Stands in for libc's function.
int posix_fadvise(int fd, off_t from, off_t size, int advice)
{
    if (advice == POSIX_FADV_WILLNEED && request_count < REQUESTS_MAX) {
        requests[request_count].from = (uint64_t)from;
        requests[request_count++].to = (uint64_t)(from + size);
        requested += (uint64_t)size;
    }
    return fd < 0 ? 0 : (int)syscall(SYS_fadvise64, fd, from, size, advice);
}

static bool was_requested(uint64_t from, uint64_t to)
{
    while (from < to) {
        uint64_t reached = from;
        for (size_t i = 0; i < request_count; i++)
            if (requests[i].from <= from && requests[i].to > reached)
                reached = requests[i].to;
        if (reached == from)
            return false;
        from = reached;
    }
    return true;
}

static void forget_requests(void)
{
    request_count = 0;
    requested = 0;
}

static void distant_blocks_are_requested_alone(void **state)
{
    (void)state;
    struct prefetch p = {0};
    uint64_t seed = test_seed(23), at = 0, read = 0;
    forget_requests();
    for (unsigned i = 0; i < 100 * test_rounds() && request_count < REQUESTS_MAX; i++) {
        uint64_t size = 1 + test_random(&seed) % (512 << 10);
        at += gap_max + size + 1 + test_random(&seed) % (1 << 30);
        prefetch_bytes(&p, -1, at, size);
        prefetch_bytes(&p, -1, at + size / 2, size - size / 2);
        assert_true(was_requested(at, at + size));
        read += size;
        at += size;
    }
    assert_true(requested == read);
}

static void the_beginning_of_a_run_is_requested(void **state)
{
    (void)state;
    uint64_t seed = test_seed(23);
    for (unsigned i = 0; i < 50 * test_rounds(); i++) {
        struct prefetch p = {0};
        uint64_t first = test_random(&seed) % (1 << 30), at = first;
        uint64_t largest = 4096 + test_random(&seed) % (300 << 10);
        forget_requests();
        while (at < first + 20 * run_max) {
            uint64_t size = 1 + test_random(&seed) % largest;
            prefetch_bytes(&p, -1, at, size);
            if (at + size <= first + run_max)
                assert_true(was_requested(at, at + size));
            at += size + test_random(&seed) % (gap_max / 2);
        }
        assert_true(requested < 2 * run_max + largest + gap_max);
        assert_in_range(request_count, 2, 60);
    }
}

static void write_noise(void)
{
    struct store *s = open_with(&(struct store_options){0});
    uint32_t set = wide_set(s, 0, COLUMNS);
    uint64_t seed = 1;
    double values[COLUMNS];
    for (int64_t row = 0; row < ROWS; row++) {
        for (int i = 0; i < COLUMNS; i++)
            values[i] = (double)(test_random(&seed) >> 12) / 3;
        assert_int_equal(store_append_row(s, set, 1000 * row, values), 0);
    }
    close_store(s);
}

// Returns the bytes of the file that are in the page cache.
static size_t cached_bytes(int fd, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (size + page - 1) / page, cached = 0;
    unsigned char *there = malloc(pages);
    void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(there && at != MAP_FAILED);
    assert_int_equal(mincore(at, size, there), 0);
    for (size_t i = 0; i < pages; i++)
        cached += there[i] & 1 ? page : 0;
    munmap(at, size);
    free(there);
    return cached;
}

struct asked {
    int64_t from, to, bucket_ns;
    size_t most;
};

// Requests the blocks of the window for all series, and returns how many bytes of the limit are
// left.
static size_t request_window(struct store_snapshot *s, struct asked a)
{
    struct store_request q = {
        .from_ns = a.from, .to_ns = a.to, .bucket_ns = a.bucket_ns, .bytes_left = a.most};
    forget_requests();
    for (uint32_t id = 0; id < COLUMNS; id++)
        assert_true(store_request_series(&q, s, id) == (q.bytes_left > 0));
    return q.bytes_left;
}

// What a query reads is requested before it reads, if it decodes the blocks; otherwise only their
// directories are.
static void the_blocks_of_a_window_are_requested_at_once(void **state)
{
    (void)state;
    write_noise();
    uint64_t seed = test_seed(29);
    for (unsigned i = 0; i < 20 * test_rounds(); i++) {
        struct store_reader *r = open_reader();
        struct store_snapshot *s = store_snapshot_open(r);
        int64_t from = 1000 * (int64_t)(test_random(&seed) % (ROWS - WINDOW)),
                to = from + 1000 * WINDOW;
        size_t most = 16 << 20, left = request_window(s, (struct asked){from, to, 0, most});
        uint64_t all = requested;
        assert_in_range(all, COLUMNS * WINDOW * sizeof(double), 2 << 20);
        assert_in_range(most - left, COLUMNS * WINDOW * sizeof(double), all);
        for (uint32_t id = 0; id < COLUMNS; id++) {
            struct points p = points_of(s, id, from, to);
            points_free(&p);
        }
        // One byte more is the end of the file, which shows whether it was truncated.
        assert_in_range(requested, all, all + 1);
        assert_true(request_window(s, (struct asked){from, to, 0, most}) == most);
        assert_int_equal(requested, 0); // they have been read
        store_snapshot_close(s);
        store_reader_close(r);
    }
    struct store_reader *r = open_reader();
    struct store_snapshot *s = store_snapshot_open(r);
    size_t most = 64 << 20;
    assert_true(most - request_window(s, (struct asked){0, 1000 * ROWS, INT64_MAX, most}) <
                64 << 10);
    assert_true(request_window(s, (struct asked){-100, -1, 0, most}) == most);
    assert_true(request_window(s, (struct asked){1000 * ROWS, 2000 * ROWS, 0, most}) == most);
    assert_int_equal(requested, 0);
    assert_int_equal(request_window(s, (struct asked){0, 1000 * ROWS, 0, 1000}), 0);
    assert_true(requested > 1000 && requested < 1 << 20);
    store_snapshot_close(s);
    store_reader_close(r);
}

static void a_window_reads_only_its_blocks(void **state)
{
    (void)state;
    write_noise();
    int fd = open(fixture_path, O_RDWR | O_CLOEXEC);
    struct stat info;
    assert_int_equal(fstat(fd, &info), 0);
    size_t size = (size_t)info.st_size;
    assert_int_equal(fsync(fd), 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    bool can_leave = cached_bytes(fd, size) < size / 10; // a file in memory cannot
    forget_requests();
    struct store_reader *r = open_reader();
    struct store_snapshot *s = store_snapshot_open(r);
    for (uint32_t id = 0; id < COLUMNS; id++) {
        struct points p = points_of(s, id, 1000 * (ROWS / 2), 1000 * (ROWS / 2 + WINDOW - 1));
        assert_int_equal(p.count, WINDOW);
        points_free(&p);
    }
    assert_true(requested > COLUMNS * WINDOW * sizeof(double));
    assert_true(requested < size / 4);
    if (can_leave)
        assert_in_range(cached_bytes(fd, size), requested, size / 3);
    store_snapshot_close(s);
    store_reader_close(r);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distant_blocks_are_requested_alone),
        cmocka_unit_test(the_beginning_of_a_run_is_requested),
        cmocka_unit_test_setup_teardown(the_blocks_of_a_window_are_requested_at_once, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_window_reads_only_its_blocks, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
