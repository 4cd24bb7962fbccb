#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/codec.h"

static void columns_come_back(void **state)
{
    (void)state;
    static double values[CODEC_VALUES_MAX], back[CODEC_VALUES_MAX];
    uint8_t *bytes = malloc(codec_bound(CODEC_VALUES_MAX));
    const size_t sizes[] = {1, 2, 1000, CODEC_VALUES_MAX};
    for (int constant = 0; constant < 2; constant++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            size_t n = sizes[s];
            for (size_t i = 0; i < n; i++)
                values[i] = constant ? -0.0 : (double)i * 0.37;
            struct codec_summary made, read;
            size_t size = codec_encode(values, n, CODEC_HOT, bytes, &made);
            assert_true(size <= codec_bound(n));
            assert_int_equal(codec_decode(bytes, size, n, back), 0);
            assert_memory_equal(values, back, n * sizeof values[0]);
            assert_int_equal(codec_summarise(bytes, size, n, &read), 0);
            assert_memory_equal(&made, &read, sizeof made);
            assert_true(codec_decode(bytes, size - 1, n, back) < 0);
        }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
