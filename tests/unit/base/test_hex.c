#include "base/hex.h"

#include "unit/test.h"

#include <stdio.h>

static void every_byte(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 256; i++) {
        char expected[3], out[3];
        unsigned char byte = (unsigned char)i;
        snprintf(expected, sizeof expected, "%02x", i);
        hex_write(&byte, 1, out);
        assert_string_equal(out, expected);
    }
}

static void nothing_is_written_behind_the_nul(void **state)
{
    (void)state;
    char out[] = "########";
    hex_write("\x00\x7f\xff", 3, out);
    assert_memory_equal(out, "007fff\0#", 8);
    hex_write("", 0, out);
    assert_int_equal(out[0], 0);
    assert_int_equal(out[1], '0'); // unchanged
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte),
        cmocka_unit_test(nothing_is_written_behind_the_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
