#include "base/decimal.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The C library is the oracle. Returns whether the parser needed no strtod.
static bool judge(const char *text)
{
    double got, want = strtod(text, NULL);
    const char *end = decimal_scan(text, text + strlen(text), &got);
    if (end && (*end || memcmp(&got, &want, sizeof got) != 0))
        fail_msg("%s became %a, not %a", text, got, want);
    return end;
}

static void forms(void **state)
{
    static const char *const good[] = {"0",       "-0",     "+1",
                                       "1.",      ".5",     "0.1",
                                       "1e22",    "1e-22",  "1.7976931348623157e308",
                                       "8.5e-17", "123E+4", "1234567890123456789"};
    static const char *const others[] = {"",
                                         "-",
                                         ".",
                                         "e5",
                                         "1e",
                                         "1e+",
                                         "nan",
                                         "inf",
                                         "5e-324",
                                         "1e23",
                                         "9007199254740993",
                                         "2.2250738585072014e-308",
                                         "1e999",
                                         "0.00000000000000000001",
                                         "1e00005"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!judge(good[i]))
            fail_msg("%s takes strtod", good[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(judge(others[i]));
    double v;
    const char *text = "1.5,2";
    assert_ptr_equal(decimal_scan(text, text + 5, &v), text + 3);
    assert_ptr_equal(decimal_scan(text, text + 2, &v), text + 2);
}

// Random bits, and numbers halfway between two doubles, or next to that.
static void any_number(void **state)
{
    (void)state;
    uint64_t r = test_seed(1);
    long rounds = 100000 * (long)test_rounds(), fast = 0;
    for (long i = 0; i < rounds; i++) {
        uint64_t bits = test_random(&r);
        double v;
        char text[64];
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v))
            continue;
        snprintf(text, sizeof text, "%.*e", (int)(test_random(&r) % 18), v);
        fast += judge(text);
        double near = (double)(bits >> 40) * exp2((double)(bits % 64));
        snprintf(text, sizeof text, "%.17g", near);
        judge(text);
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)(bits >> (bits % 60)),
                 (int)(test_random(&r) % 640) - 330);
        judge(text);
    }
    assert_true(fast > rounds * 9 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms), cmocka_unit_test(any_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
