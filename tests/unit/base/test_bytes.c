#include "base/bytes.h"
#include "unit/test.h"

static void written_values_are_read_back(void **state)
{
    (void)state;
    static const uint64_t values[] = {
        0, 1, 127, 128, 300, 16383, 16384, UINT32_MAX, UINT64_MAX - 1, UINT64_MAX};
    struct buf b = {0};
    buf_u8(&b, 1);
    buf_u16(&b, 0x0203);
    buf_u32(&b, 0x04050607);
    buf_u64(&b, 0x08090a0b0c0d0e0f);
    buf_f64(&b, -0.5);
    buf_short(&b, STR("text"));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        buf_varint(&b, values[i]);
    assert_memory_equal(b.data, "\x01\x03\x02\x07\x06\x05\x04\x0f", 8);

    struct bytes r = bytes_of(b.data, b.size);
    assert_int_equal(bytes_u8(&r), 1);
    assert_int_equal(bytes_u16(&r), 0x0203);
    assert_int_equal(bytes_u32(&r), 0x04050607);
    assert_true(bytes_u64(&r) == 0x08090a0b0c0d0e0f);
    assert_float_equal(bytes_f64(&r), -0.5, 0);
    assert_str_equal(bytes_short(&r), "text");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_true(bytes_varint(&r) == values[i]);
    assert_false(r.failed);
    assert_int_equal(bytes_left(&r), 0);
    buf_free(&b);
}

static void nothing_is_read_beyond_the_end(void **state)
{
    (void)state;
    uint8_t *three = test_malloc(3); // the sanitizer checks the bytes behind it
    memset(three, 0xff, 3);
    struct bytes r = bytes_of(three, 3);
    assert_int_equal(bytes_u32(&r), 0);
    assert_true(r.failed);
    assert_int_equal(bytes_u8(&r), 0); // an error is permanent
    r = bytes_of(three, 3);
    assert_true(bytes_varint(&r) == 0);
    assert_true(r.failed);
    r = bytes_of(three, 3);
    assert_int_equal(bytes_take(&r, UINT64_MAX).size, 0);
    assert_true(r.failed);
    test_free(three);
}

static void a_varint_has_64_bits(void **state)
{
    (void)state;
    static const uint8_t most[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 1};
    static const uint8_t more[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 2};
    static const uint8_t longer[] = {128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1};
    struct bytes r = bytes_of(most, sizeof most);
    assert_true(bytes_varint(&r) == UINT64_MAX && !r.failed);
    r = bytes_of(more, sizeof more);
    assert_true(bytes_varint(&r) == 0 && r.failed);
    r = bytes_of(longer, sizeof longer);
    assert_true(bytes_varint(&r) == 0 && r.failed);
}

static void zigzag_is_its_own_inverse(void **state)
{
    (void)state;
    static const int64_t values[] = {0, -1, 1, -2, 2, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_true(unzigzag(zigzag(values[i])) == values[i]);
    assert_int_equal(zigzag(-1), 1);
    assert_int_equal(zigzag(1), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_values_are_read_back),
        cmocka_unit_test(nothing_is_read_beyond_the_end),
        cmocka_unit_test(a_varint_has_64_bits),
        cmocka_unit_test(zigzag_is_its_own_inverse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
