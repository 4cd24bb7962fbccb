// The layout that programs and agents of one version share, byte by byte: a change here needs a new
// SEGMENT_VERSION.
#include "emit/segment.h"
#include "unit/test.h"

static void offsets_are_fixed(void **state)
{
    (void)state;
    assert_int_equal(SEGMENT_VERSION, 3);
    assert_int_equal(offsetof(struct segment_header, version), 8);
    assert_int_equal(offsetof(struct segment_header, pid), 12);
    assert_int_equal(offsetof(struct segment_header, start_ticks), 16);
    assert_int_equal(offsetof(struct segment_header, bytes), 24);
    assert_int_equal(offsetof(struct segment_header, ring_bytes), 32);
    assert_int_equal(offsetof(struct segment_header, slots), 40);
    assert_int_equal(offsetof(struct segment_header, level), 44);
    assert_int_equal(offsetof(struct segment_header, clock), 48);
    assert_int_equal(offsetof(struct segment_header, socket_path),
                     // as in version 1, because agents read it even in segments that they refuse
                     56);
    assert_int_equal(offsetof(struct segment_header, agent_inode), 168);
    assert_int_equal(offsetof(struct segment_header, definitions_bytes), 192);
    assert_int_equal(offsetof(struct segment_header, slots_used), 200);
    assert_int_equal(offsetof(struct segment_header, refused), 208);
    assert_int_equal(offsetof(struct segment_header, dropped), 216);
    assert_int_equal(offsetof(struct segment_header, common_end), 224);
    assert_int_equal(offsetof(struct segment_agent, attached), 4);
    assert_int_equal(offsetof(struct segment_agent, dropped), 8);
    assert_int_equal(offsetof(struct segment_agent, conversion), 64);
    assert_int_equal(offsetof(struct segment_agent, tails), 192);
    assert_int_equal(offsetof(struct ring, head), 0);
    assert_int_equal(offsetof(struct ring, cells_end), 24);
    assert_int_equal(offsetof(struct ring, dropped), 32);
    assert_int_equal(sizeof(struct segment_hello), 16);
}

static void areas_do_not_overlap(void **state)
{
    (void)state;
    static const uint32_t slots[] = {SEGMENT_SLOTS_MIN, 63, 64, 65, SEGMENT_SLOTS_MAX};
    static const uint64_t rings[] = {SEGMENT_RING_MIN, SEGMENT_RING_DEFAULT, SEGMENT_RING_MAX};
    for (size_t s = 0; s < 5; s++) {
        for (size_t r = 0; r < 3; r++) {
            struct segment_layout l = segment_layout(slots[s], rings[r]);
            assert_true(l.definitions >= sizeof(struct segment_header));
            assert_int_equal(l.gauges, l.definitions + SEGMENT_DEFINITIONS_BYTES);
            assert_int_equal(l.common, l.gauges + SEGMENT_DEFINITIONS_MAX * 8);
            assert_int_equal(l.slots, l.common + SEGMENT_DEFINITIONS_MAX * 8);
            assert_int_equal(l.slot_bytes, SLOT_DATA + rings[r]);
            assert_int_equal(l.bytes, l.slots + slots[s] * l.slot_bytes);
            assert_int_equal(l.definitions % SEGMENT_PAGE, 0);
            assert_int_equal(l.slots % SEGMENT_PAGE, 0);
            assert_int_equal(l.slot_bytes % SEGMENT_PAGE, 0);
        }
    }
}

static void a_word_holds_all_its_parts(void **state)
{
    (void)state;
    uint64_t w = segment_word(SEGMENT_ROW, SEGMENT_TIME_NS, SEGMENT_RECORD_WORDS_MAX, 0xfffffffe);
    assert_int_equal(w & 0xff, SEGMENT_ROW);
    assert_int_equal(w >> 8 & 0xff, SEGMENT_TIME_NS);
    assert_int_equal(w >> 16 & 0xffff, SEGMENT_RECORD_WORDS_MAX);
    assert_int_equal(w >> 32, 0xfffffffe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_are_fixed),
        cmocka_unit_test(areas_do_not_overlap),
        cmocka_unit_test(a_word_holds_all_its_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
