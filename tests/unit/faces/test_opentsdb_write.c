#include "ask/tsuid.h"
#include "faces/opentsdb/write.h"
#include "unit/test.h"

#include <math.h>
#include <stdio.h>

enum { MS = 1000000 };
#define S INT64_C(1000000000)

struct row {
    int64_t t_ns;
    double value;
};

static const char *points(struct buf *out, const struct row *rows, size_t count,
                          enum query_fill fill, bool arrays, bool ms)
{
    int64_t t_ns[16];
    double values[16];
    for (size_t i = 0; i < count; i++) {
        t_ns[i] = rows[i].t_ns;
        values[i] = rows[i].value;
    }
    struct query_series s = {.t_ns = t_ns, .values = values, .count = count};
    struct opentsdb_style style = {.arrays = arrays, .ms = ms};
    out->size = 0;
    struct json_writer w = json_to(out);
    opentsdb_write_points(&w, &s, fill, &style);
    return buf_cstr(out);
}

#define POINTS(fill, arrays, ms, ...)         \
    points(&out, (struct row[]){__VA_ARGS__}, \
           sizeof((struct row[]){__VA_ARGS__}) / sizeof(struct row), fill, arrays, ms)

static void test_forms(void **state)
{
    (void)state;
    struct buf out = {0};
    assert_string_equal(POINTS(QUERY_FILL_NONE, false, false, {1 * S, 1}, {2 * S, 2.5}),
                        "{\"1\":1,\"2\":2.5}");
    assert_string_equal(POINTS(QUERY_FILL_NONE, true, false, {1 * S, 1}, {2 * S, 2.5}),
                        "[[1,1],[2,2.5]]");
    assert_string_equal(POINTS(QUERY_FILL_NONE, true, true, {1 * S, 1}, {2 * S + 1, -0.0}),
                        "[[1000,1],[2000,-0]]");
    assert_string_equal(points(&out, NULL, 0, QUERY_FILL_NONE, false, false), "{}");
    assert_string_equal(points(&out, NULL, 0, QUERY_FILL_NAN, true, false), "[]");
    buf_free(&out);
}

// A stamp writes only its last digits if the others have not changed.
static void test_stamps_count_on(void **state)
{
    (void)state;
    struct buf out = {0};
    assert_string_equal(POINTS(QUERY_FILL_NONE, true, false, {9998 * S, 1}, {9999 * S, 2},
                               {10000 * S, 3}, {10001 * S, 4}),
                        "[[9998,1],[9999,2],[10000,3],[10001,4]]");
    assert_string_equal(
        POINTS(QUERY_FILL_NONE, true, false, {1699999999 * S, 1}, {1700000000 * S, 2},
               {1700000007 * S, 3}, {1700010007 * S, 4}, {1700030000 * S, 5}),
        "[[1699999999,1],[1700000000,2],[1700000007,3],[1700010007,4],[1700030000,5]]");
    assert_string_equal(
        POINTS(QUERY_FILL_NONE, true, true, {1700000000 * S, 1},
               {1700000000 * S + INT64_C(9999) * MS, 2}, {1700000010 * S, 3}, {INT64_MAX, 4}),
        "[[1700000000000,1],[1700000009999,2],[1700000010000,3],[9223372036854,4]]");
    assert_string_equal(
        POINTS(QUERY_FILL_NONE, true, false, {INT64_MIN, 1}, {-20000 * S, 2}, {0, 3}),
        "[[-9223372037,1],[-20000,2],[0,3]]");
    buf_free(&out);
}

static void test_last_of_a_stamp_counts(void **state)
{
    (void)state;
    struct buf out = {0};
    assert_string_equal(
        POINTS(QUERY_FILL_NONE, false, false, {0, 1}, {S / 2, 2}, {S - 1, 3}, {S, 4}),
        "{\"0\":3,\"1\":4}");
    assert_string_equal(POINTS(QUERY_FILL_NONE, true, true, {5, 1}, {MS - 1, 2}, {MS, 3}),
                        "[[0,2],[1,3]]");
    // Rounded down, also before 1970, so that the points on both sides of 0 stay apart.
    assert_string_equal(POINTS(QUERY_FILL_NONE, true, false, {-S - 1, 0}, {-S, 1}, {-1, 2}, {0, 3}),
                        "[[-2,0],[-1,2],[0,3]]");
    // A gap in the same second does not replace a value.
    assert_string_equal(POINTS(QUERY_FILL_NONE, true, false, {0, 1}, {1, NAN}), "[[0,1]]");
    assert_string_equal(POINTS(QUERY_FILL_NAN, true, false, {0, 1}, {1, NAN}, {S, 2}),
                        "[[0,1],[1,2]]");
    assert_string_equal(POINTS(QUERY_FILL_NAN, true, false, {0, NAN}, {1, 7}), "[[0,7]]");
    buf_free(&out);
}

static void test_no_numbers(void **state)
{
    (void)state;
    struct buf out = {0};
#define ODD {0, NAN}, {S, INFINITY}, {2 * S, -INFINITY}, {3 * S, 1}, {4 * S, NAN}
    assert_string_equal(POINTS(QUERY_FILL_NONE, false, false, ODD), "{\"3\":1}");
    assert_string_equal(POINTS(QUERY_FILL_ZERO, false, false, ODD), "{\"3\":1}");
    assert_string_equal(POINTS(QUERY_FILL_NAN, false, false, ODD),
                        "{\"0\":\"NaN\",\"3\":1,\"4\":\"NaN\"}");
    assert_string_equal(POINTS(QUERY_FILL_NULL, true, false, ODD), "[[0,null],[3,1],[4,null]]");
#undef ODD
    buf_free(&out);
}

static void test_extremes(void **state)
{
    (void)state;
    struct buf out = {0};
    assert_string_equal(
        POINTS(QUERY_FILL_NONE, true, true, {INT64_MIN, -1.7976931348623157e308},
               {INT64_MAX, 2.2250738585072014e-308}),
        "[[-9223372036855,-1.7976931348623157e+308],[9223372036854,2.2250738585072014e-308]]");
    assert_string_equal(POINTS(QUERY_FILL_NONE, true, false, {INT64_MAX - 5, 1}, {INT64_MAX - 1, 2},
                               {INT64_MAX, 3}),
                        "[[9223372036,3]]");
    // A full buffer takes no further points, and reports that.
    struct buf small = {.limit = 20};
    struct row rows[] = {{0, 1}, {S, 2}, {2 * S, 3}};
    points(&small, rows, 3, QUERY_FILL_NONE, true, false);
    assert_true(small.failed);
    buf_free(&small);
    buf_free(&out);
}

static void test_downsample_text(void **state)
{
    (void)state;
    static const char *const texts[] = {"20s-avg",  "500ms-max-nan", "1dc-sum-zero",
                                        "0all-p99", "2w-count-null", "1n-min",
                                        "3y-last",  "90m-dev"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct query q = {.metric = STR("m")};
        struct buf out = {0};
        char want[64];
        assert_int_equal(query_parse_downsample(str_of(texts[i]), &q.downsample, NULL), 0);
        struct json_writer w = json_to(&out);
        opentsdb_write_query(&w, &q, STR("m"), 3);
        snprintf(want, sizeof want, "\"downsample\":\"%s\"", texts[i]);
        assert_non_null(strstr(buf_cstr(&out), want));
        assert_non_null(strstr(buf_cstr(&out), "\"index\":3}"));
        buf_free(&out);
    }
}

static void test_tsuid(void **state)
{
    (void)state;
    char a[TSUID_SIZE], b[TSUID_SIZE];
    struct store_label tags[] = {{STR("host"), STR("a")}, {STR("rank"), STR("0")}};
    struct store_label other[] = {{STR("host"), STR("a")}, {STR("rank"), STR("1")}};
    tsuid_of(a, STR("m"), tags, 2);
    for (size_t i = 0; i < sizeof a; i++)
        assert_non_null(memchr("0123456789abcdef", a[i], 16));
    tsuid_of(b, STR("m"), tags, 2);
    assert_memory_equal(a, b, sizeof a);
    tsuid_of(b, STR("m"), other, 2);
    assert_memory_not_equal(a, b, sizeof a);
    tsuid_of(b, STR("m"), tags, 1);
    assert_memory_not_equal(a, b, sizeof a);
    tsuid_of(b, STR("n"), tags, 2);
    assert_memory_not_equal(a, b, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_stamps_count_on),
        cmocka_unit_test(test_last_of_a_stamp_counts),
        cmocka_unit_test(test_no_numbers),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_downsample_text),
        cmocka_unit_test(test_tsuid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
