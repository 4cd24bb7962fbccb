#include "formats/thrift.h"
#include "unit/test.h"

static void what_is_written_is_read_or_skipped(void **state)
{
    (void)state;
    struct buf b = {0};
    struct thrift_writer w = thrift_to(&b);
    thrift_i32(&w, 1, -3);
    thrift_i64(&w, 30, INT64_MIN); // far from the last id, so the whole id is written
    thrift_bool(&w, 31, true);
    thrift_begin(&w, 32);
    thrift_binary(&w, 2, STR("inside"));
    thrift_bool(&w, 3, false);
    thrift_end(&w);
    thrift_list(&w, 33, THRIFT_STRUCT, 20);
    for (int32_t i = 0; i < 20; i++) {
        thrift_element_begin(&w);
        thrift_i32(&w, 1, i);
        thrift_end(&w);
    }
    thrift_list(&w, 34, THRIFT_I32, 2);
    thrift_element_i32(&w, 7);
    thrift_element_i32(&w, -7);
    thrift_binary(&w, 35, STR("last"));
    thrift_end(&w);
    assert_false(b.failed);
    assert_memory_equal(b.data, "\x15\x05\x06\x3c", 4);

    for (int skipped = 0; skipped < 2; skipped++) {
        struct bytes in = bytes_of(b.data, b.size);
        struct thrift_field f = {0}, inner = {0};
        assert_true(thrift_next(&in, &f) && f.id == 1);
        assert_int_equal(thrift_read_int(&in, &f), -3);
        assert_true(thrift_next(&in, &f) && f.id == 30);
        assert_true(thrift_read_int(&in, &f) == INT64_MIN);
        assert_true(thrift_next(&in, &f) && f.id == 31 && f.type == THRIFT_TRUE);
        assert_true(thrift_next(&in, &f) && f.id == 32);
        if (skipped) {
            thrift_skip(&in, f.type);
        } else {
            assert_true(thrift_next(&in, &inner) && inner.id == 2);
            assert_str_equal(thrift_read_binary(&in, &inner), "inside");
            assert_true(thrift_next(&in, &inner) && inner.id == 3 && inner.type == THRIFT_FALSE);
            assert_false(thrift_next(&in, &inner));
        }
        assert_true(thrift_next(&in, &f) && f.id == 33);
        if (skipped) {
            thrift_skip(&in, f.type);
        } else {
            assert_int_equal(thrift_read_list(&in, &f, THRIFT_STRUCT), 20);
            for (int i = 0; i < 20; i++) {
                inner = (struct thrift_field){0};
                assert_true(thrift_next(&in, &inner));
                assert_int_equal(thrift_read_int(&in, &inner), i);
                assert_false(thrift_next(&in, &inner));
            }
        }
        assert_true(thrift_next(&in, &f) && f.id == 34);
        thrift_skip(&in, f.type);
        assert_true(thrift_next(&in, &f) && f.id == 35);
        assert_str_equal(thrift_read_binary(&in, &f), "last");
        assert_false(thrift_next(&in, &f));
        assert_false(in.failed);
        assert_int_equal(bytes_left(&in), 0);
    }
    for (size_t size = 0; size < b.size; size++) { // truncated anywhere
        struct bytes in = bytes_of(b.data, size);
        struct thrift_field f = {0};
        while (thrift_next(&in, &f))
            thrift_skip(&in, f.type);
        assert_true(in.failed);
    }
    buf_free(&b);
}

static void nesting_has_an_end(void **state)
{
    (void)state;
    char deep[4096];
    struct bytes in = bytes_of(deep, sizeof deep);
    memset(deep, 0x1c, sizeof deep); // a struct in a struct in a struct
    thrift_skip(&in, THRIFT_STRUCT);
    assert_true(in.failed);
    memset(deep, 0x19, sizeof deep); // a list of a list of a list
    in = bytes_of(deep, sizeof deep);
    thrift_skip(&in, THRIFT_LIST);
    assert_true(in.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_is_read_or_skipped),
                                       cmocka_unit_test(nesting_has_an_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
