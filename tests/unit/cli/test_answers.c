// The format of times.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/answers.h"

#include <stdlib.h>
#include <time.h>

static void assert_time(int64_t t_ns, int digits, const char *expected)
{
    char text[64];
    answers_local_time(t_ns, digits, text, sizeof text);
    assert_string_equal(text, expected);
}

// All times, from the first nanosecond that can be written to the last one.
static void each_time_has_its_own_row(void **state)
{
    (void)state;
    assert_time(INT64_MIN, 9, "1677-09-21 00:12:43.145224192");
    assert_time(INT64_MIN + 1, 9, "1677-09-21 00:12:43.145224193");
    assert_time(-1, 9, "1969-12-31 23:59:59.999999999");
    assert_time(0, 0, "1970-01-01 00:00:00");
    assert_time(INT64_MAX, 9, "2262-04-11 23:47:16.854775807");
}

int main(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_time_has_its_own_row)};
    return cmocka_run_group_tests_name("cli answers", tests, NULL, NULL);
}
