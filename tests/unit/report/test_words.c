// Numbers for people: four digits, and no exponent where people expect none.
#include "report/words.h"
#include "unit/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void numbers_have_four_digits(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } facts[] = {
        {0, "0"},          {0.3125, "0.3125"},        {1.0 / 3, "0.3333"},   {9999.4, "9999"},
        {9999.5, "10000"}, {12345.678, "12346"},      {-2e9, "-2000000000"}, {4e-5, "4e-05"},
        {1e300, "1e+300"}, {(double)INFINITY, "inf"}, {(double)NAN, "-"},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        assert_string_equal(words_number(facts[i].value).text, facts[i].text);
}

static void numbers_are_near_and_have_no_exponent(void **state)
{
    (void)state;
    unsigned seed = 1;
    for (int i = 0; i < 100000; i++) {
        double value = exp((rand_r(&seed) / (double)RAND_MAX - 0.2) * 43) * (i % 2 ? 1 : -1);
        struct words_number number = words_number(value);
        assert_true(fabs(atof(number.text) - value) <= fabs(value) * 0.0005001);
        if (fabs(value) >= 1e-4 && fabs(value) < 1e15)
            assert_null(strchr(number.text, 'e'));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_have_four_digits),
                                       cmocka_unit_test(numbers_are_near_and_have_no_exponent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
