// The size of the index of events depends on the open spans, not on all past ones.
#include "../test.h"
#include "store/event_index.h"

enum { BLOCKS = 300, SPANS = 1000, BYTES_MAX = 1 << 20 };

static struct store_event span(uint64_t id, int64_t start_ns, int64_t end_ns)
{
    return (struct store_event){
        .kind = STORE_SPAN, .id = id, .start_ns = start_ns, .end_ns = end_ns};
}

static void add(struct event_index *x, uint32_t place, struct store_event event)
{
    assert_int_equal(event_index_add(x, place, &event), 0);
}

static void spans_that_have_ended_take_no_memory(void **state)
{
    (void)state;
    struct event_index x = {0};
    for (uint32_t b = 0; b < BLOCKS; b++) {
        assert_int_equal(event_index_begin(&x, b + 1, 0), 0);
        uint64_t first = (uint64_t)b * SPANS + 1;
        for (uint32_t i = 0; i < SPANS; i++)
            // the first one of each block stays open
            add(&x, i, span(first + i, 10 * b, i ? 10 * b + 5 : INT64_MAX));
        // A killed agent's successor repeats the last event of the previous block.
        if (b)
            add(&x, SPANS, span(first - 1, 10 * (b - 1), 10 * (b - 1) + 5));
    }
    assert_false(x.full);
    assert_true(x.id_capacity * sizeof *x.ids <= BYTES_MAX);
    for (uint32_t b = 0; b + 1 < BLOCKS; b++) {
        const struct event_block *block = event_index_find(&x, b + 1, 0);
        assert_non_null(block);
        assert_int_equal(block->open, 1);
        assert_true(event_block_replaced(block, SPANS - 1));
        assert_false(event_block_replaced(block, 1));
    }
    // However long a span was open, its end replaces its beginning.
    assert_int_equal(event_index_begin(&x, BLOCKS + 1, 0), 0);
    add(&x, 0, span(1, 0, 10 * BLOCKS));
    const struct event_block *first = event_index_find(&x, 1, 0);
    assert_int_equal(first->open, 0);
    assert_true(event_block_replaced(first, 0));
    event_index_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(spans_that_have_ended_take_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
