#include "base/hash.h"
#include "unit/test.h"

#include <string.h>

static void crc32c_known_answers(void **state)
{
    (void)state;
    // RFC 3720, B.4
    uint8_t bytes[32] = {0};
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    assert_int_equal(crc32c(0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(crc32c(0, bytes, 32), 0x46dd794e);
    assert_int_equal(crc32c(0, "", 0), 0);
}

static void crc32c_goes_on_over_pieces(void **state)
{
    (void)state;
    char text[257];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 31);
    uint32_t whole = crc32c(0, text, sizeof text);
    for (size_t cut = 0; cut <= sizeof text; cut++)
        assert_int_equal(crc32c(crc32c(0, text, cut), text + cut, sizeof text - cut), whole);
}

// Long data are computed in lanes, short pieces of them are not.
static void crc32c_of_long_data_is_that_of_its_pieces(void **state)
{
    enum { BYTES = 20000, PIECE = 100 };
    static unsigned char data[BYTES];
    uint32_t random = 1;
    (void)state;
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (unsigned char)((random = random * 1664525 + 1013904223) >> 24);
    for (size_t size = 0; size <= BYTES; size += 37) {
        uint32_t crc = 0;
        for (size_t at = 0; at < size; at += PIECE)
            crc = crc32c(crc, data + at, size - at < PIECE ? size - at : PIECE);
        assert_int_equal(crc32c(0, data, size), crc);
    }
}

static void hashes_differ(void **state)
{
    (void)state;
    // Every prefix, and every string with one flipped bit, has a different hash.
    char text[64];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < sizeof text; i++)
        assert_true(hash_bytes(text, i, 0) != hash_bytes(text, i + 1, 0));
    uint64_t plain = hash_bytes(text, sizeof text, 0);
    for (size_t i = 0; i < sizeof text * 8; i++) {
        text[i / 8] = (char)(text[i / 8] ^ 1 << i % 8);
        assert_true(hash_bytes(text, sizeof text, 0) != plain);
        text[i / 8] = (char)(text[i / 8] ^ 1 << i % 8);
    }
    assert_true(hash_bytes(text, sizeof text, 1) != plain);
}

static void a_hash_of_a_number_has_an_inverse(void **state)
{
    (void)state;
    uint64_t x = 0;
    for (unsigned i = 0; i < 10000; i++, x = hash_u64(x + i))
        assert_true(hash_u64_inverse(hash_u64(x)) == x && hash_u64(hash_u64_inverse(x)) == x);
    for (unsigned bit = 0; bit < 64; bit++)
        assert_true(hash_u64_inverse(hash_u64(UINT64_C(1) << bit)) == UINT64_C(1) << bit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32c_known_answers),
        cmocka_unit_test(crc32c_goes_on_over_pieces),
        cmocka_unit_test(crc32c_of_long_data_is_that_of_its_pieces),
        cmocka_unit_test(hashes_differ),
        cmocka_unit_test(a_hash_of_a_number_has_an_inverse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
