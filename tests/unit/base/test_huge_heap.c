// The heap in huge pages: blocks keep their contents, free blocks join, empty chunks return.
#include "base/huge_heap.h"
#include "base/huge_pages.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <stdlib.h>

enum { CHUNKS = 4, BLOCKS = 3000, STEPS = 30000 };

struct model {
    struct huge_heap *heap;
    unsigned char *at[BLOCKS];
    size_t size[BLOCKS];
};

static void give(struct model *m, size_t i)
{
    unsigned char *p = m->at[i];
    for (size_t k = 0; p && k < m->size[i]; k++)
        assert_int_equal(p[k], i & 255);
    huge_heap_give(m->heap, p);
    m->at[i] = NULL;
}

static void random_blocks_keep_their_contents(void **state)
{
    (void)state;
    uint64_t seed = test_seed(1);
    struct model *m = calloc(1, sizeof *m);
    m->heap = huge_heap_create(CHUNKS);
    size_t full = 0;
    for (unsigned step = 0; step < STEPS * test_rounds(); step++) {
        size_t i = test_random(&seed) % BLOCKS;
        give(m, i);
        if (test_random(&seed) % 8 == 0)
            continue;
        m->size[i] = test_random(&seed) % 64 ? test_random(&seed) % 5000
                                             : test_random(&seed) % (HUGE_HEAP_BLOCK_MAX / 4);
        m->at[i] = huge_heap_take(m->heap, m->size[i]);
        full += !m->at[i];
        assert_int_equal((uintptr_t)m->at[i] % 16, 0);
        if (m->at[i])
            memset(m->at[i], (int)(i & 255), m->size[i]);
        assert_in_range(huge_heap_chunks(m->heap), 1, CHUNKS);
    }
    assert_true(full > 0); // the limit was reached
    for (size_t i = 0; i < BLOCKS; i++)
        give(m, i);
    // Everything has joined: one chunk stays, and has room for the largest blocks.
    assert_int_equal(huge_heap_chunks(m->heap), 1);
    void *large = huge_heap_take(m->heap, HUGE_HEAP_BLOCK_MAX),
         *rest = huge_heap_take(m->heap, HUGE_PAGE_BYTES - HUGE_HEAP_BLOCK_MAX - 1024);
    assert_true(large && rest);
    assert_int_equal(huge_heap_chunks(m->heap), 1);
    huge_heap_give(m->heap, large);
    huge_heap_give(m->heap, rest);
    huge_heap_destroy(m->heap);
    free(m);
}

static void the_limit_holds(void **state)
{
    (void)state;
    struct huge_heap *heap = huge_heap_create(2);
    void *p[2] = {huge_heap_take(heap, HUGE_HEAP_BLOCK_MAX),
                  huge_heap_take(heap, HUGE_HEAP_BLOCK_MAX)};
    assert_true(p[0] && p[1]);
    assert_null(huge_heap_take(heap, HUGE_HEAP_BLOCK_MAX));
    assert_null(huge_heap_take(heap, HUGE_HEAP_BLOCK_MAX + 1));
    void *small = huge_heap_take(heap, 100); // the chunks still have room for it
    assert_non_null(small);
    huge_heap_give(heap, p[0]);
    assert_non_null(p[0] = huge_heap_take(heap, HUGE_HEAP_BLOCK_MAX / 2));
    huge_heap_give(heap, p[0]);
    huge_heap_give(heap, p[1]);
    huge_heap_give(heap, small);
    huge_heap_give(heap, NULL);
    huge_heap_destroy(heap);
    huge_heap_destroy(NULL);
}

static void empty_chunks_return(void **state)
{
    (void)state;
    struct huge_heap *heap = huge_heap_create(CHUNKS);
    void *p[CHUNKS];
    for (size_t i = 0; i < CHUNKS; i++)
        assert_non_null(p[i] = huge_heap_take(heap, HUGE_HEAP_BLOCK_MAX));
    assert_int_equal(huge_heap_chunks(heap), CHUNKS);
    huge_heap_give(heap, p[3]);
    assert_int_equal(huge_heap_chunks(heap), CHUNKS); // it stays for the next block
    huge_heap_give(heap, p[0]);
    assert_int_equal(huge_heap_chunks(heap), CHUNKS - 1);
    huge_heap_trim(heap);
    assert_int_equal(huge_heap_chunks(heap), CHUNKS - 2);
    memset(p[1], 1, HUGE_HEAP_BLOCK_MAX);
    memset(p[2], 2, HUGE_HEAP_BLOCK_MAX);
    huge_heap_give(heap, p[1]);
    huge_heap_give(heap, p[2]);
    huge_heap_trim(heap);
    assert_int_equal(huge_heap_chunks(heap), 0);
    assert_non_null(huge_heap_take(heap, 1));
    huge_heap_destroy(heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_blocks_keep_their_contents),
        cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(empty_chunks_return),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
