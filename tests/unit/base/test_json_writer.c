#include "base/json_writer.h"
#include "unit/test.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void commas_and_nesting(void **state)
{
    (void)state;
    struct buf b = {0};
    struct json_writer w = json_to(&b);
    json_begin_object(&w);
    json_key_string(&w, "a", STR("x"));
    json_key(&w, STR("b"));
    json_begin_array(&w);
    json_put_i64(&w, -1);
    json_put_double(&w, 0.5);
    json_put_null(&w);
    json_begin_array(&w);
    json_end_array(&w);
    json_begin_object(&w);
    json_end_object(&w);
    json_end_array(&w);
    json_key_bool(&w, "c", true);
    json_key_u64(&w, "d", UINT64_MAX);
    json_key_double(&w, "e", NAN);
    json_key_i64(&w, "f", INT64_MIN);
    json_end_object(&w);
    assert_string_equal(
        buf_cstr(&b),
        "{\"a\":\"x\",\"b\":[-1,0.5,null,[],{}],\"c\":true,\"d\":18446744073709551615,\"e\":null,"
        "\"f\":-9223372036854775808}");
    buf_free(&b);
}

static void assert_quoted(struct str in, const char *expected)
{
    struct buf b = {0};
    struct json_writer w = json_to(&b);
    json_put_string(&w, in);
    assert_string_equal(buf_cstr(&b), expected);
    buf_free(&b);
}

static void strings_are_escaped(void **state)
{
    (void)state;
    assert_quoted(STR("a\"b\\c\n\t\x01/"), "\"a\\\"b\\\\c\\n\\t\\u0001/\"");
    assert_quoted(STR("\0"), "\"\\u0000\"");
    assert_quoted(STR("\x7f"), "\"\\u007f\""); // a terminal may interpret DEL
    assert_quoted(STR("grün €\xf0\x9f\x98\x80"), "\"grün €\xf0\x9f\x98\x80\"");
    assert_quoted(STR(""), "\"\"");
}

static void bytes_that_are_not_utf8_are_replaced(void **state)
{
    (void)state;
    assert_quoted(STR("a\xff"
                      "b"),
                  "\"a\xef\xbf\xbd"
                  "b\"");
    // truncated
    assert_quoted(STR("\xc3"), "\"\xef\xbf\xbd\"");
    // overlong
    assert_quoted(STR("\xc0\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    // a surrogate
    assert_quoted(STR("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    // beyond U+10FFFF
    assert_quoted(STR("\xf4\x90\x80\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

// jansson is the oracle, in this file only: it reads the same values from the written JSON.
static void what_is_written_is_json_to_others(void **state)
{
    (void)state;
    struct buf b = {0};
    struct json_writer w = json_to(&b);
    json_begin_object(&w);
    json_key_string(&w, "text \"\n\xff", STR("a\\b\x01\xc3"));
    json_key(&w, STR("list"));
    json_begin_array(&w);
    json_put_bool(&w, false);
    json_put_null(&w);
    json_put_raw(&w, STR("{\"raw\":[]}"));
    json_put_double(&w, -1.5e-7);
    json_put_i64(&w, INT64_MIN);
    json_end_array(&w);
    json_end_object(&w);
    json_t *read = json_loadb(b.data, b.size, JSON_REJECT_DUPLICATES, NULL);
    json_t *same =
        json_pack("{s:s,s:[b,n,{s:[]},f,I]}", "text \"\n\xef\xbf\xbd", "a\\b\x01\xef\xbf\xbd",
                  "list", 0, "raw", -1.5e-7, (json_int_t)INT64_MIN);
    assert_non_null(read);
    assert_true(json_equal(read, same));
    json_decref(read);
    json_decref(same);
    buf_free(&b);
}

static void assert_number(double value, const char *expected)
{
    char text[NUMBER_TEXT_MAX + 1];
    text[number_format(text, value)] = 0;
    assert_string_equal(text, expected);
}

static void numbers_are_short(void **state)
{
    (void)state;
    assert_number(0, "0");
    assert_number(-0.0, "-0");
    assert_number(1, "1");
    assert_number(-42, "-42");
    assert_number(0.1, "0.1");
    assert_number(-0.05, "-0.05");
    assert_number(37.5, "37.5");
    assert_number(123456.789, "123456.789");
    assert_number(0.000001, "0.000001");
    assert_number(0.00000125, "0.00000125");
    assert_number(1.25e-7, "1.25e-07");
    assert_number(12345678901234567000.0, "1.2345678901234567e+19");
    assert_number(1e16, "10000000000000000");
    assert_number(-1.7976931348623157e308, "-1.7976931348623157e+308");
    assert_number(1e300, "1e+300");
    assert_number(5e-324, "5e-324");
    assert_number(1.0 / 3, "0.3333333333333333");
    assert_number(9007199254740993.0, "9007199254740992");
    assert_number(NAN, "NaN");
    assert_number(-INFINITY, "-inf");
}

static void numbers_read_back_as_the_same_bits(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        double v;
        switch (i % 4) {
        case 0:
            memcpy(&v, &seed, sizeof v);
            break; // random bits
        case 1:
            v = (double)(int64_t)(seed >> 20) / 1000;
            break; // decimals
        case 2:
            v = (double)(int32_t)seed;
            break; // integers
        default:
            v = (double)(seed >> 11) * 0x1p-53 * ((seed & 1) ? 1 : 1e-7); // fractions
        }
        if (isnan(v))
            continue;
        char text[NUMBER_TEXT_MAX + 1];
        size_t n = number_format(text, v);
        assert_true(n <= NUMBER_TEXT_MAX);
        text[n] = 0;
        double back = strtod(text, NULL);
        if (memcmp(&back, &v, sizeof v) != 0)
            fail_msg("%a became %s", v, text);
    }
}

// Numbers with few decimals have a fast path, whose result has to equal that of the general one.
static void numbers_with_few_decimals_are_the_shortest(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        int decimals = (int)(seed % 9), digits = 1 + (int)(seed / 16 % 16);
        double v = (double)(seed >> 8 & 0xffffffffffff) / pow(10, decimals) / pow(10, 15 - digits);
        char text[NUMBER_TEXT_MAX + 1], shortest[64];
        if (v < 1e-6 || v >= 1e16)
            continue;
        text[number_format(text, v)] = 0;
        int size = 1;
        do {
            snprintf(shortest, sizeof shortest, "%.*e", size - 1, v);
        } while (strtod(shortest, NULL) != v && ++size < 18);
        int shown = 0; // digits of the output, without leading and trailing zeros
        for (int at = 0, zeros = 0; text[at]; at++) {
            if (text[at] == '.')
                continue;
            zeros = text[at] == '0' ? zeros + 1 : 0;
            if (text[at] != '0' || shown)
                shown++;
            if (!text[at + 1])
                shown -= zeros;
        }
        if (strtod(text, NULL) != v || shown != size)
            fail_msg("%.17g became %s, the shortest is %s", v, text, shortest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_and_nesting),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
        cmocka_unit_test(what_is_written_is_json_to_others),
        cmocka_unit_test(numbers_are_short),
        cmocka_unit_test(numbers_read_back_as_the_same_bits),
        cmocka_unit_test(numbers_with_few_decimals_are_the_shortest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
