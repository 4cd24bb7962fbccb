#include "base/error.h"
#include "base/str.h"
#include "unit/test.h"

#include <errno.h>
#include <math.h>

static void cutting_visits_every_part(void **state)
{
    (void)state;
    struct str rest = STR("a,,bc,");
    assert_str_equal(str_cut(&rest, ','), "a");
    assert_str_equal(str_cut(&rest, ','), "");
    assert_str_equal(str_cut(&rest, ','), "bc");
    assert_non_null(rest.data);
    assert_str_equal(str_cut(&rest, ','), "");
    assert_null(rest.data);
}

static void words_are_separated_by_blanks(void **state)
{
    (void)state;
    struct str rest = STR("  put\tm 1 ");
    assert_str_equal(str_word(&rest), "put");
    assert_str_equal(str_word(&rest), "m");
    assert_str_equal(str_word(&rest), "1");
    assert_int_equal(str_word(&rest).size, 0);
}

static void natural_order_counts(void **state)
{
    (void)state;
    static const char *const sorted[] = {"",   "10",  "a",    "n",   "n1",   "n01",
                                         "n2", "n2a", "n2b1", "n10", "n10a", "nb"};
    enum { COUNT = sizeof sorted / sizeof *sorted };
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < COUNT; k++) {
            int order = str_compare_natural(str_of(sorted[i]), str_of(sorted[k]));
            if (strcmp(sorted[i], "n1") == 0 && strcmp(sorted[k], "n01") == 0)
                assert_true(order > 0); // their numbers are equal, so the bytes decide
            else if (strcmp(sorted[i], "n01") == 0 && strcmp(sorted[k], "n1") == 0)
                assert_true(order < 0);
            else
                assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
}

static void searching(void **state)
{
    (void)state;
    assert_int_equal(str_find(STR("abcabd"), STR("abd")), 3);
    assert_int_equal(str_find(STR("abc"), STR("abcd")), -1);
    assert_int_equal(str_find(STR("abc"), STR("")), 0);
    assert_int_equal(str_find_char(STR("abc"), 'c'), 2);
    assert_int_equal(str_find_char((struct str){NULL, 0}, 'c'), -1);
    assert_true(str_starts(STR("abc"), STR("ab")));
    assert_false(str_starts(STR("a"), STR("ab")));
    assert_true(str_ends(STR("abc"), STR("bc")));
    assert_false(str_ends(STR("c"), STR("bc")));
    assert_true(str_eq_nocase(STR("HoSt"), STR("hOsT")));
    assert_false(str_eq_nocase(STR("a["), STR("A{")));
    assert_str_equal(str_trim(STR(" \t a b\r\n")), "a b");
    assert_int_equal(str_trim(STR("  ")).size, 0);
    assert_true(str_compare(STR("a"), STR("ab")) < 0);
    assert_true(str_compare(STR("b"), STR("ab")) > 0);
    assert_int_equal(str_compare(STR(""), STR("")), 0);
}

static void numbers_are_the_whole_string(void **state)
{
    (void)state;
    double d = -1;
    int64_t i = -1;
    uint64_t u = 9;
    static const char *const not_doubles[] = {"", " 1", "1 ", "1x", "0x10", "1e", "--1", "1.2.3"};
    for (size_t n = 0; n < sizeof not_doubles / sizeof *not_doubles; n++)
        assert_false(str_to_double(str_of(not_doubles[n]), &d));
    assert_float_equal(d, -1, 0);
    assert_true(str_to_double(STR("-1.5e3"), &d));
    assert_float_equal(d, -1500, 0);
    assert_true(str_to_double(STR("inf"), &d) && isinf(d));
    assert_true(str_to_double(STR("NaN"), &d) && isnan(d));

    assert_true(str_to_i64(STR("-9223372036854775808"), &i));
    assert_true(i == INT64_MIN);
    assert_true(str_to_i64(STR("9223372036854775807"), &i));
    assert_true(i == INT64_MAX);
    assert_false(str_to_i64(STR("9223372036854775808"), &i));
    assert_false(str_to_i64(STR("-"), &i));
    assert_false(str_to_i64(STR("+1"), &i));
    assert_true(str_to_u64(STR("18446744073709551615"), &u));
    assert_true(u == UINT64_MAX);
    assert_false(str_to_u64(STR("18446744073709551616"), &u));
    assert_false(str_to_u64(STR("-1"), &u));
}

// Reads the digits one by one. Returns their number; 0 without digits, or if they are too many.
static size_t digits_one_by_one(const char *text, size_t size, uint64_t *out)
{
    unsigned __int128 value = 0;
    size_t n = 0;
    for (; n < size && text[n] >= '0' && text[n] <= '9'; n++) {
        value = value * 10 + (unsigned)(text[n] - '0');
        if (value > UINT64_MAX)
            return 0;
    }
    *out = (uint64_t)value;
    return n;
}

// Digits of each length up to 24, with each byte that is no digit at each place.
static void numbers_end_where_their_digits_end(void **state)
{
    (void)state;
    enum { LENGTH = 24 };
    static const char first[] = "123456789012345678901234", last[] = "000000000018446744073709";
    for (int leading = 0; leading < 2; leading++)
        for (size_t size = 0; size <= LENGTH; size++)
            for (size_t at = 0; at <= size; at++)
                for (unsigned byte = 0; byte < 256; byte++) {
                    char text[LENGTH];
                    uint64_t expected = 0, value = 7;
                    memcpy(text, leading ? last : first, size);
                    if (at < size)
                        text[at] = (char)byte;
                    size_t n = digits_one_by_one(text, size, &expected);
                    const char *end = str_scan_u64(text, text + size, &value);
                    assert_ptr_equal(end, n ? text + n : NULL);
                    assert_true(value == (n ? expected : 7));
                    bool whole = n == size && n;
                    value = 7;
                    assert_int_equal(str_to_u64((struct str){text, size}, &value), whole);
                    assert_true(value == (whole ? expected : 7));
                }
}

static void buffer_grows_and_ends_in_nul(void **state)
{
    (void)state;
    struct buf b = {0};
    assert_string_equal(buf_cstr(&b), "");
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%d,", i % 10);
    assert_int_equal(b.size, 2000);
    assert_false(b.failed);
    assert_int_equal(strlen(buf_cstr(&b)), 2000);
    assert_memory_equal(b.data + 1980, "0,1,2,3,4,5,6,7,8,9,", 20);
    buf_free(&b);
}

static void buffer_stops_at_its_limit(void **state)
{
    (void)state;
    struct buf b = {.limit = 10};
    buf_add_str(&b, STR("0123456789"));
    assert_false(b.failed);
    buf_add_char(&b, 'x');
    assert_true(b.failed);
    assert_string_equal(buf_cstr(&b), "0123456789");
    buf_add_str(&b, STR(""));
    assert_int_equal(b.size, 10);
    buf_free(&b);
}

static void error_text_is_prefixed_and_cut(void **state)
{
    (void)state;
    struct error e = {0};
    assert_int_equal(error_set(&e, -EINVAL, "bad %s", "thing"), -EINVAL);
    assert_int_equal(error_prefix(&e, "file %d", 7), -EINVAL);
    assert_string_equal(e.text, "file 7: bad thing");
    assert_int_equal(error_set(NULL, -EIO, "nobody reads this"), -EIO);
    char longer[2 * ERROR_TEXT_MAX];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    error_set(&e, -EIO, "%s", longer);
    assert_int_equal(strlen(e.text), ERROR_TEXT_MAX - 1);
    error_prefix(&e, "front");
    assert_memory_equal(e.text, "front: xxx", 10);
    assert_int_equal(strlen(e.text), ERROR_TEXT_MAX - 1);
    for (size_t room = 0; room < 4; room++) { // a prefix that leaves this many bytes
        error_set(&e, -EIO, "why");
        error_prefix(&e, "%s", longer + sizeof longer - ERROR_TEXT_MAX + room);
        assert_int_equal(strlen(e.text), ERROR_TEXT_MAX - 1);
        assert_string_equal(e.text + ERROR_TEXT_MAX - 1 - room, room == 0   ? ""
                                                                : room == 1 ? ":"
                                                                : room == 2 ? ": "
                                                                            : ": w");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cutting_visits_every_part),
        cmocka_unit_test(words_are_separated_by_blanks),
        cmocka_unit_test(natural_order_counts),
        cmocka_unit_test(searching),
        cmocka_unit_test(numbers_are_the_whole_string),
        cmocka_unit_test(numbers_end_where_their_digits_end),
        cmocka_unit_test(buffer_grows_and_ends_in_nul),
        cmocka_unit_test(buffer_stops_at_its_limit),
        cmocka_unit_test(error_text_is_prefixed_and_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
