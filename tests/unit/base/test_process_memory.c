// Memory that malloc keeps between live blocks is returned while the process works.
#include "base/process_memory.h"

#include "base/clock.h"
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BLOCKS = 65536, BLOCK_BYTES = 1000, PAGES_BETWEEN = 16, SLACK_BYTES = 8 << 20 };

static void *blocks[BLOCKS];

// One block in so many stays. Malloc returns whole pages, and a live block keeps its page: one page
// in 16 of the 64 MiB, 4 MiB, whatever the size of pages is.
static size_t live_every(void)
{
    return PAGES_BETWEEN * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

static void memory_freed_between_live_blocks_is_returned(void **state)
{
    (void)state;
    struct process_memory_keeper keeper = {0};
    const int64_t look_ns = PROCESS_MEMORY_LOOK_MS * (int64_t)NS_PER_MS;
    int64_t now_ns = look_ns;
    size_t begin = process_memory_bytes(), live = live_every();
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < BLOCKS; i++)
            if (!blocks[i])
                assert_non_null(memset(blocks[i] = malloc(BLOCK_BYTES), 1, BLOCK_BYTES));
        for (size_t i = 0; i < BLOCKS; i++)
            if (i % live) {
                free(blocks[i]);
                blocks[i] = NULL;
            }
        assert_true(process_memory_bytes() > begin + 5 * (size_t)SLACK_BYTES);
        if (round) { // not repeated so soon
            process_memory_keep(&keeper, SLACK_BYTES, now_ns - 1);
            assert_true(process_memory_bytes() > begin + 5 * (size_t)SLACK_BYTES);
        }
        process_memory_keep(&keeper, SLACK_BYTES, now_ns);
        assert_true(process_memory_bytes() < begin + 2 * (size_t)SLACK_BYTES);
        now_ns += look_ns;
    }
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

// A peak of memory in use must not raise, for good, the amount that malloc may keep.
static void a_peak_of_use_does_not_raise_the_bound_for_good(void **state)
{
    (void)state;
    struct process_memory_keeper keeper = {0};
    const int64_t look_ns = PROCESS_MEMORY_LOOK_MS * (int64_t)NS_PER_MS;
    int64_t now_ns = look_ns;
    size_t begin = process_memory_bytes(), live = live_every();
    for (size_t i = 0; i < BLOCKS; i++)
        assert_non_null(memset(blocks[i] = malloc(BLOCK_BYTES), 1, BLOCK_BYTES));
    process_memory_keep(&keeper, SLACK_BYTES, now_ns);
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % live)
            free(blocks[i]);
    for (int look = 0; look <= PROCESS_MEMORY_LOOKS_MAX; look++)
        process_memory_keep(&keeper, SLACK_BYTES, now_ns += look_ns);
    assert_true(process_memory_bytes() < begin + SLACK_BYTES);
    for (size_t i = 0; i < BLOCKS; i += live)
        free(blocks[i]);
}

// Above a limit, memory is returned at once; below it, it is not.
static void memory_above_the_bound_is_returned_at_once(void **state)
{
    (void)state;
    struct process_memory_keeper keeper = {0};
    const int64_t every_ns = PROCESS_MEMORY_EASE_MS * (int64_t)NS_PER_MS;
    int64_t now_ns = every_ns;
    size_t live = live_every();
    size_t begin = process_memory_bytes(), above = begin + SLACK_BYTES,
           bound = begin + 2 * (size_t)SLACK_BYTES;
    for (size_t i = 0; i < BLOCKS; i++)
        assert_non_null(memset(blocks[i] = malloc(BLOCK_BYTES), 1, BLOCK_BYTES));
    size_t full = process_memory_bytes();
    // in use: the caller has to free some memory
    assert_true(process_memory_ease(&keeper, above, bound, now_ns));
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % live)
            free(blocks[i]);
    // not repeated so soon
    assert_false(process_memory_ease(&keeper, above, bound, now_ns + every_ns - 1));
    assert_false(process_memory_ease(&keeper, 2 * full, bound, now_ns += every_ns));
    assert_true(process_memory_bytes() > begin + 5 * (size_t)SLACK_BYTES);
    assert_false(process_memory_ease(&keeper, above, bound, now_ns += every_ns));
    assert_true(process_memory_bytes() < bound);
    for (size_t i = 0; i < BLOCKS; i += live)
        free(blocks[i]);
}

static long page_faults(void)
{
    struct rusage use;
    assert_int_equal(getrusage(RUSAGE_SELF, &use), 0);
    return use.ru_minflt;
}

static void prepared_memory_costs_no_page_faults(void **state)
{
    (void)state;
    enum { HALF = 2 << 20 };
    process_memory_give_back();
    process_memory_prepare(2 * HALF);
    long before = page_faults();
    void *blocks_of_two_sizes[] = {malloc(HALF), malloc(HALF / 2)};
    assert_non_null(memset(blocks_of_two_sizes[0], 1, HALF));
    assert_non_null(memset(blocks_of_two_sizes[1], 1, HALF / 2));
    assert_true(page_faults() - before < 16);
    free(blocks_of_two_sizes[0]);
    free(blocks_of_two_sizes[1]);
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 77; // skipped: their allocators replace that of the C library
#endif
    process_memory_set_up(PROCESS_MEMORY_MAPPED_SERVER);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_freed_between_live_blocks_is_returned),
        cmocka_unit_test(a_peak_of_use_does_not_raise_the_bound_for_good),
        cmocka_unit_test(memory_above_the_bound_is_returned_at_once),
        cmocka_unit_test(prepared_memory_costs_no_page_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
