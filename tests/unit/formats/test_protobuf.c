#include "formats/protobuf.h"
#include "unit/seed.h"
#include "unit/test.h"

static void bytes_are_those_of_the_format(void **state)
{
    (void)state;
    struct buf b = {0};
    protobuf_u64(&b, 1, 150);
    protobuf_text(&b, 2, STR("testing"));
    size_t inner = protobuf_begin(&b, 3);
    protobuf_u64(&b, 1, 150);
    protobuf_end(&b, inner);
    protobuf_float(&b, 4, 1);
    protobuf_double(&b, 16, 1);
    static const char wanted[] = "\x08\x96\x01"
                                 "\x12\x07testing"
                                 "\x1a\x03\x08\x96\x01"
                                 "\x25\0\0\x80\x3f"
                                 "\x81\x01\0\0\0\0\0\0\xf0\x3f";
    assert_int_equal(b.size, sizeof wanted - 1);
    assert_memory_equal(b.data, wanted, b.size);
    buf_free(&b);
}

// Writes a random message of nested ones, chosen by `state`, or reads and compares it.
static void put_random(struct buf *b, uint64_t *state, unsigned depth)
{
    for (uint64_t n = test_random(state) % 6; n; n--) {
        uint64_t r = test_random(state), v = test_random(state) >> test_random(state) % 64;
        uint32_t field = 1 + (uint32_t)(r >> 8) % ((1 << 29) - 1);
        if (r % 4 == 0) {
            protobuf_u64(b, field, v);
        } else if (r % 4 == 1) {
            protobuf_fixed64(b, field, v);
        } else if (r % 4 == 2 && depth < 4) {
            size_t begin = protobuf_begin(b, field);
            put_random(b, state, depth + 1);
            for (uint64_t more = r / 4 % 300; r % 16 == 2 && more; more--)
                protobuf_u64(b, 1, v);
            protobuf_end(b, begin);
        } else {
            protobuf_float(b, field, (float)v);
        }
    }
}

static void check_random(struct bytes m, uint64_t *state, unsigned depth)
{
    struct protobuf_field f;
    for (uint64_t n = test_random(state) % 6; n; n--) {
        uint64_t r = test_random(state), v = test_random(state) >> test_random(state) % 64;
        assert_true(protobuf_next(&m, &f));
        assert_int_equal(f.number, 1 + (uint32_t)(r >> 8) % ((1 << 29) - 1));
        if (r % 4 < 2) {
            assert_int_equal(f.wire, r % 4 ? PROTOBUF_FIXED64 : PROTOBUF_VARINT);
            assert_true(f.bits == v);
        } else if (r % 4 == 2 && depth < 4) {
            struct bytes inner = bytes_of(f.bytes.data, f.bytes.size);
            uint64_t before = *state;
            assert_int_equal(f.wire, PROTOBUF_SIZED);
            if (r % 16 == 2) { // the message ends in fields of the same number: skip the first ones
                struct buf again = {0};
                put_random(&again, state, depth + 1);
                inner = bytes_of(f.bytes.data, again.size);
                struct bytes rest = bytes_of(f.bytes.data + again.size, f.bytes.size - again.size);
                for (uint64_t more = r / 4 % 300; more; more--) {
                    struct protobuf_field same;
                    assert_true(protobuf_next(&rest, &same));
                    assert_true(same.number == 1 && same.bits == v);
                }
                assert_int_equal(bytes_left(&rest), 0);
                buf_free(&again);
                *state = before;
            }
            check_random(inner, state, depth + 1);
        } else {
            assert_int_equal(f.wire, PROTOBUF_FIXED32);
            assert_true(protobuf_as_float(&f) == (float)v);
        }
    }
    assert_false(protobuf_next(&m, &f));
    assert_false(m.failed);
}

static void written_values_are_read_back(void **state)
{
    (void)state;
    uint64_t seed = test_seed(1);
    for (unsigned i = 0; i < 2000 * test_rounds(); i++) {
        uint64_t begin = seed * 1000003 + i, writing = begin, reading = begin;
        struct buf b = {0};
        put_random(&b, &writing, 0);
        assert_false(b.failed);
        check_random(bytes_of(b.data, b.size), &reading, 0);
        buf_free(&b);
    }
}

static void damage_is_found(void **state)
{
    (void)state;
    static const struct str damaged[] = {STR("\x08"),
                                         STR("\x08\x80"),
                                         STR("\x12\x05"
                                             "abc"),
                                         STR("\x09\1\2\3"),
                                         STR("\x0b\x0c"),
                                         STR("\x00\x01"),
                                         STR("\x85\x80\x80\x80\x80\x01\0\0\0\0")};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct bytes m = bytes_of(damaged[i].data, damaged[i].size);
        struct protobuf_field f;
        while (protobuf_next(&m, &f))
            ;
        assert_true(m.failed);
    }
}

static void a_failed_buffer_stays_failed(void **state)
{
    (void)state;
    for (size_t limit = 1; limit < 400; limit++) {
        struct buf b = {.limit = limit};
        size_t begin = protobuf_begin(&b, 1);
        for (int i = 0; i < 100; i++)
            protobuf_u64(&b, 1, UINT32_MAX);
        protobuf_end(&b, begin);
        assert_true(b.failed);
        assert_true(b.size <= limit);
        buf_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_are_those_of_the_format),
                                       cmocka_unit_test(written_values_are_read_back),
                                       cmocka_unit_test(damage_is_found),
                                       cmocka_unit_test(a_failed_buffer_stays_failed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
