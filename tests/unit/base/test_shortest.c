#include "unit/test.h"
#include "base/shortest.h"
#include "unit/seed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// The C library is the oracle: printf rounds correctly, so the fewest digits that strtod reads back
// are the shortest form.
static void judge(double value)
{
    struct shortest got = shortest_decimal(value);
    char text[64], want[64] = "";
    snprintf(text, sizeof text, "%llue%d", (unsigned long long)got.digits, got.exponent);
    if (strtod(text, NULL) != value)
        fail_msg("%a became %s", value, text);
    if (got.digits % 10 == 0)
        fail_msg("%a became %s, with a zero at the end", value, text);
    int digits = snprintf(NULL, 0, "%llu", (unsigned long long)got.digits), fewest = 0;
    do
        snprintf(want, sizeof want, "%.*e", fewest++, value);
    while (strtod(want, NULL) != value);
    if (digits > fewest)
        fail_msg("%a became %s, not %s", value, text, want);
    // The text is as short as that, and as close to the number. (Just below a power of two, a
    // shorter text than the rounded number may read back, too.)
    char *point = strchr(want, '.'), *exponent = strchr(want, 'e');
    char plain[64];
    snprintf(plain, sizeof plain, "%.1s%.*s", want, point ? (int)(exponent - point - 1) : 0,
             point ? point + 1 : "");
    if (digits == fewest && strtoull(plain, NULL, 10) != got.digits)
        fail_msg("%a became %s, not %s", value, text, want);
}

static double of_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void all_powers_of_two_and_their_neighbours(void **state)
{
    (void)state;
    for (uint64_t biased = 0; biased < 0x7ff; biased++) {
        uint64_t bits = biased << 52;
        judge(of_bits(bits + 1));
        if (biased) {
            judge(of_bits(bits));
            judge(of_bits(bits - 1));
        }
    }
    judge(of_bits(UINT64_C(0x7fefffffffffffff)));
}

static void all_powers_of_ten_and_their_neighbours(void **state)
{
    (void)state;
    for (int e = -323; e <= 308; e++) {
        char text[16];
        snprintf(text, sizeof text, "1e%d", e);
        double v = strtod(text, NULL);
        assert_int_equal(shortest_decimal(v).digits, 1);
        assert_int_equal(shortest_decimal(v).exponent, e);
        judge(nextafter(v, INFINITY));
        if (e > -323)
            judge(nextafter(v, 0));
    }
}

static void any_bits(void **state)
{
    (void)state;
    uint64_t seed = test_random_state(1);
    for (unsigned i = 0; i < 20000 * test_rounds(); i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        uint64_t bits = seed & ~(UINT64_C(1) << 63);
        double v = of_bits(bits);
        if (isfinite(v) && v > 0)
            judge(v);
        judge((double)(seed >> 40 | 1) / 1000); // decimals, as in measurements
        judge((double)(seed >> 11 | 1));        // whole numbers
        judge((double)(seed >> 11 | 1) * 0x1p-53);
    }
}

static void known_ones(void **state)
{
    (void)state;
    static const struct {
        double value;
        uint64_t digits;
        int exponent;
    } rows[] = {
        {5e-324, 5, -324},
        {2.2250738585072014e-308, 22250738585072014u, -324},
        {1.7976931348623157e308, 17976931348623157u, 292},
        {0.3, 3, -1},
        {0.1 + 0.2, 30000000000000004u, -17},
        {9007199254740993.0, 9007199254740992u, 0},
        {2e-44, 2, -44},
        {1.5, 15, -1},
        {1e23, 1, 23},
        {9.5367431640625e-07, 95367431640625u, -20},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shortest got = shortest_decimal(rows[i].value);
        assert_int_equal(got.digits, rows[i].digits);
        assert_int_equal(got.exponent, rows[i].exponent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_ones),
        cmocka_unit_test(all_powers_of_two_and_their_neighbours),
        cmocka_unit_test(all_powers_of_ten_and_their_neighbours),
        cmocka_unit_test(any_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
