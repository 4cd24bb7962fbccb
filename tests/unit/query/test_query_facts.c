// Section 4 of the facts on OpenTSDB, row by row, as far as they need no HTTP. The same program
// runs on a world in memory, on live files and on closed ones.
//
// OpenTSDB truncates answers for integers; sonde keeps doubles. If a row shows a truncated number
// (dev, percentiles), the test asserts the exact one, and that its whole part equals the row's.
#include "unit/query/ask.h"

enum { POINTS = 300 };

// L: web01 = 1..300, one per 30 s from T+30; web02 = 300..1, `shift` seconds later.
static struct world *make_l(int64_t shift)
{
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "sys.cpu.user", "host=web01"),
             b = world_series(w, 0, "sys.cpu.user", "host=web02");
    for (int64_t i = 1; i <= POINTS; i++) {
        world_add(w, 0, a, (T + 30 * i) * S, (double)i);
        world_add(w, 0, b, (T + 30 * i + shift) * S, (double)(POINTS + 1 - i));
    }
    return w;
}

static struct world *make_one(const double *points, size_t numbers)
{
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=web01");
    for (size_t i = 0; i < numbers; i += 2)
        world_add(w, 0, a, (int64_t)points[i] * S, points[i + 1]);
    return w;
}

#define MAKE_ONE(...) \
    make_one((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static const int64_t END = 1357041600;

static void sum_of_l(void **state)
{
    (void)state;
    struct world *w = make_l(0);
    struct asked a = ask(w, "sum:sys.cpu.user", T, END);
    assert_int_equal(a.result.count, 1);
    const struct query_series *s = &a.result.series[0];
    assert_int_equal(s->count, 300);
    for (size_t i = 0; i < s->count; i++) {
        assert_int_equal(s->t_ns[i], (T + 30 * ((int64_t)i + 1)) * S);
        assert_close(s->values[i], 301);
    }
    assert_str_equal(s->metric, "sys.cpu.user");
    assert_tags(s, "|host");
    asked_free(&a);
    world_free(w);
}

static void rate_of_l(void **state)
{
    (void)state;
    struct world *w = make_l(0);
    struct asked a = ask(w, "sum:rate:sys.cpu.user{host=web01}", T, END);
    const struct query_series *s = &a.result.series[0];
    assert_int_equal(s->count, 299);
    assert_int_equal(s->t_ns[0], (T + 60) * S);
    for (size_t i = 0; i < s->count; i++)
        assert_close(s->values[i], 1.0 / 30);
    assert_tags(s, "host=web01");
    asked_free(&a);
    world_free(w);
}

static void counters(void **state)
{
    (void)state;
    struct world *w = MAKE_ONE(1356998430, 45, 1356998460, 75, 1356998490, 5);
    ASSERT_ANSWER(w, "sum:rate{counter,100}:m", T, END, 1356998460, 1, 1356998490, 1);
    ASSERT_ANSWER(w, "sum:rate{dropcounter}:m", T, END, 1356998460, 1);
    ASSERT_ANSWER(w, "sum:rate:m", T, END, 1356998460, 1, 1356998490, -70.0 / 30);
    world_free(w);
    w = MAKE_ONE(1356998430, 45, 1356998460, 75, 1356998490, 25);
    ASSERT_ANSWER(w, "sum:rate{counter,10000,35}:m", T, END, 1356998460, 1, 1356998490, 0);
    ASSERT_ANSWER(w, "sum:rate{counter,10000}:m", T, END, 1356998460, 1, 1356998490, 9950.0 / 30);
    world_free(w);
}

static void buckets_are_multiples_of_the_interval(void **state)
{
    (void)state;
    double t = (double)T;
    struct world *w = MAKE_ONE(1356998400, 40, 1357000400, 50, 1357002000, 40, 1357002005, 50,
                               1357005600, 40, 1357007600, 50);
    ASSERT_ANSWER(w, "none:1000s-avg:m", T - 400, END, t - 400, 40, t + 1600, 50, t + 3600, 45,
                  t + 6600, 40, t + 8600, 50);
    // The first begins before start.
    ASSERT_ANSWER(w, "none:1000s-avg:m", T, END, t + 1600, 50, t + 3600, 45, t + 6600, 40, t + 8600,
                  50);
    world_free(w);
}

static void extremes_are_never_minus_zero(void **state)
{
    (void)state;
    struct world *w = MAKE_ONE(1356998400, -0.0, 1356998401, -1, 1356998402, 1, 1356998403, -0.0);
    static const char *const zeros[] = {"none:1s-max:m", "none:1s-min:m", "none:4s-last:m"};
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        struct asked a = ask(w, zeros[i], T, T + 3);
        double value = a.result.series[0].values[0];
        assert_true(value == 0 && (signbit(value) != 0) == (i == 2));
        asked_free(&a);
    }
    world_free(w);
}

static void sums_of_buckets(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a");
    for (int i = 0; i <= 10; i++)
        world_add(w, 0, a, (T + 5 * i) * S, (double)(1 << i));
    double t = (double)T;
    ASSERT_ANSWER(w, "sum:10s-sum:m", T, END, t, 3, t + 10, 12, t + 20, 48, t + 30, 192, t + 40,
                  768, t + 50, 1024);
    world_free(w);
    w = MAKE_ONE(5, 1, 15, 2, 25, 4, 35, 8, 45, 16, 55, 32);
    ASSERT_ANSWER(w, "sum:0all-sum:m", 15, 45, 15, 14);
    world_free(w);
}

static void downsamplings_of_l(void **state)
{
    (void)state;
    struct world *w = make_l(0);
    struct asked a = ask(w, "sum:1m-avg:sys.cpu.user{host=web01}", T, END);
    const struct query_series *s = &a.result.series[0];
    assert_int_equal(s->count, 151);
    for (size_t i = 0; i < s->count; i++) {
        assert_int_equal(s->t_ns[i], (T + 60 * (int64_t)i) * S);
        assert_close(s->values[i], i == 0 ? 1 : i == 150 ? 300 : 2 * (double)i + 0.5);
    }
    asked_free(&a);
    a = ask(w, "sum:1m-count:sys.cpu.user{host=web01}", T, END);
    s = &a.result.series[0];
    assert_int_equal(s->count, 151);
    for (size_t i = 0; i < s->count; i++)
        assert_close(s->values[i], i == 0 || i == 150 ? 1 : 2);
    asked_free(&a);
    ASSERT_ANSWER(w, "sum:0all-sum:sys.cpu.user{host=web01}", T, END, (double)T, 45150);
    world_free(w);
}

static void dev_of_l(void **state)
{
    (void)state;
    struct world *w = make_l(0);
    struct asked a = ask(w, "dev:sys.cpu.user", T, END);
    const struct query_series *s = &a.result.series[0];
    assert_int_equal(s->count, 300);
    for (size_t i = 0; i < s->count; i++) {
        double exact = fabs(149.5 - (double)i);
        assert_close(s->values[i], exact);
        assert_close(floor(s->values[i]), i < 150 ? 149 - (double)i : (double)i - 150);
    }
    asked_free(&a);
    world_free(w);
}

static void zimsum_of_shifted_l(void **state)
{
    (void)state;
    struct world *w = make_l(15);
    struct asked a = ask(w, "zimsum:sys.cpu.user", T, END);
    const struct query_series *s = &a.result.series[0];
    assert_int_equal(s->count, 600);
    for (size_t i = 0; i < s->count; i++) {
        assert_int_equal(s->t_ns[i], (T + 30 + 15 * (int64_t)i) * S);
        assert_close(s->values[i], i % 2 == 0 ? (double)(i / 2 + 1) : (double)(300 - i / 2));
    }
    asked_free(&a);
    world_free(w);
}

static void gaps_are_bridged(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a"), b = world_series(w, 0, "m", "host=b");
    uint32_t c = world_series(w, 0, "n", "host=a"), d = world_series(w, 0, "n", "host=b");
    world_add(w, 0, a, (T + 0) * S, 40);
    world_add(w, 0, a, (T + 10) * S, 50);
    world_add(w, 0, a, (T + 30) * S, 70);
    world_add(w, 0, b, (T + 10) * S, 37);
    world_add(w, 0, b, (T + 20) * S, 48);
    world_add(w, 0, c, (T + 0) * S, 40);
    world_add(w, 0, c, (T + 30) * S, 70);
    world_add(w, 0, d, (T + 10) * S, 37);
    world_add(w, 0, d, (T + 20) * S, 48);
    double t = (double)T;
    ASSERT_ANSWER(w, "sum:m", T, END, t, 40, t + 10, 87, t + 20, 108, t + 30, 70);
    ASSERT_ANSWER(w, "pfsum:n", T, END, t, 40, t + 10, 77, t + 20, 88, t + 30, 70);
    // The same on a grid.
    ASSERT_ANSWER(w, "sum:10s-avg:m", T, END, t, 40, t + 10, 87, t + 20, 108, t + 30, 70);
    ASSERT_ANSWER(w, "pfsum:10s-avg:n", T, END, t, 40, t + 10, 77, t + 20, 88, t + 30, 70);
    world_free(w);
}

static void percentiles_of_a_thousand(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double stored, computed; // computed values are not truncated to whole numbers
    } facts[] = {
        {"p25", 250, 250.25},          {"p50", 500, 500.5},      {"p75", 750, 750.75},
        {"p90", 900, 900.9},           {"p95", 950, 950.95},     {"p99", 990, 990.99},
        {"p999", 999, 999.999},        {"ep50r3", 500, 500},     {"ep95r3", 950, 950},
        {"ep999r3", 999, 999},         {"ep50r7", 500.5, 500.5}, {"ep95r7", 950.05, 950.05},
        {"ep999r7", 999.001, 999.001},
    };
    struct world *w = world_new();
    uint32_t in_time = world_series(w, 0, "in.time", "host=a");
    for (int i = 0; i < 1000; i++) {
        char tags[32];
        snprintf(tags, sizeof tags, "host=h%d", i);
        uint32_t id = world_series(w, 0, "across.series", tags);
        double v = (double)(i * 7 % 1000 + 1);
        world_add(w, 0, id, T * S, v);
        world_add(w, 0, in_time, (T + i) * S, v);
    }
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        char m[64];
        snprintf(m, sizeof m, "%s:across.series", facts[i].name);
        ASSERT_ANSWER(w, m, T, END, (double)T, facts[i].stored);
        snprintf(m, sizeof m, "%s:1s-sum:across.series", facts[i].name);
        ASSERT_ANSWER(w, m, T, END, (double)T, facts[i].computed);
        snprintf(m, sizeof m, "sum:0all-%s:in.time", facts[i].name);
        ASSERT_ANSWER(w, m, T, END, (double)T, facts[i].computed);
    }
    world_free(w);
}

// If one value is a fraction, the percentile is not truncated to a whole number.
static void percentiles_of_numbers_that_are_not_whole(void **state)
{
    (void)state;
    struct world *w = MAKE_ONE(1356998400, 1, 1356998401, 2, 1356998402, 3.5, 1356998403, 4);
    ASSERT_ANSWER(w, "sum:0all-p50:m", T, END, (double)T, 2.75);
    world_free(w);
    w = MAKE_ONE(1356998400, -1, 1356998401, -2, 1356998402, -4, 1356998403, -5);
    ASSERT_ANSWER(w, "sum:0all-p75:m", T, END, (double)T, -1.25);
    world_free(w);
    w = world_new();
    static const double values[] = {-1, -2, -4, -5};
    for (int i = 0; i < 4; i++) {
        char tags[32];
        snprintf(tags, sizeof tags, "host=h%d", i);
        world_add(w, 0, world_series(w, 0, "m", tags), T * S, values[i]);
    }
    ASSERT_ANSWER(w, "p50:m", T, END, (double)T, -3);
    ASSERT_ANSWER(w, "p75:m", T, END, (double)T, -1); // -1.25 is truncated towards 0
    world_free(w);
}

static void median_of_five(void **state)
{
    (void)state;
    struct world *w =
        MAKE_ONE(1356998400, 5, 1356998401, 2, 1356998402, -1, 1356998403, 400, 1356998404, 3);
    ASSERT_ANSWER(w, "sum:0all-median:m", T, END, (double)T, 3);
    // For an even count, the upper middle value.
    ASSERT_ANSWER(w, "sum:0all-median:m", T, T + 4, (double)T, 5);
    world_free(w);
}

// M: a 10 s grid from T; web01 i+1 unless i%3==0, web02 300-i on odd i only.
static void holes_of_m(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=web01"), b = world_series(w, 0, "m", "host=web02");
    for (int i = 0; i < 300; i++) {
        if (i % 3)
            world_add(w, 0, a, (T + 10 * i) * S, i + 1);
        if (i % 2)
            world_add(w, 0, b, (T + 10 * i) * S, 300 - i);
    }
    // web01, interpolated, is i+1 everywhere from 1 to 299, web02 300-i: the sum is constant while
    // both exist.
    static const char *const ways[] = {"sum:m", "sum:10s-avg:m", "zimsum:10s-sum-zero:m"};
    for (size_t k = 0; k < 2; k++) {
        struct asked q = ask(w, ways[k], T, END);
        const struct query_series *s = &q.result.series[0];
        size_t n = 0;
        for (int i = 0; i < 300; i++)
            if (i % 3 || i % 2) {
                assert_int_equal(s->t_ns[n], (T + 10 * i) * S);
                assert_close(s->values[n], 301);
                n++;
            }
        assert_int_equal(s->count, n);
        asked_free(&q);
    }
    struct asked q = ask(w, ways[2], T, T + 2990);
    const struct query_series *s = &q.result.series[0];
    assert_int_equal(s->count, 300); // all buckets with stamps in [start, end]
    for (int i = 0; i < 300; i++)
        assert_close(s->values[i], (i % 3 ? i + 1 : 0) + (i % 2 ? 300 - i : 0));
    asked_free(&q);
    world_free(w);
}

static void no_points_give_an_empty_answer(void **state)
{
    (void)state;
    struct world *w = make_l(0);
    struct asked a = ask(w, "sum:sys.cpu.user", T - 1000, T);
    assert_int_equal(a.result.count, 0);
    asked_free(&a);
    a = ask(w, "sum:sys.cpu.user{host=web09}", T, END);
    assert_int_equal(a.result.count, 0);
    asked_free(&a);
    a = ask_with(w, "sum:x", T, END, NULL);
    assert_int_equal(a.code, -ENOENT);
    assert_string_equal(a.error.text, "No such name for 'metrics': 'x'");
    asked_free(&a);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_of_l),
        cmocka_unit_test(extremes_are_never_minus_zero),
        cmocka_unit_test(rate_of_l),
        cmocka_unit_test(counters),
        cmocka_unit_test(buckets_are_multiples_of_the_interval),
        cmocka_unit_test(sums_of_buckets),
        cmocka_unit_test(downsamplings_of_l),
        cmocka_unit_test(dev_of_l),
        cmocka_unit_test(zimsum_of_shifted_l),
        cmocka_unit_test(gaps_are_bridged),
        cmocka_unit_test(percentiles_of_a_thousand),
        cmocka_unit_test(percentiles_of_numbers_that_are_not_whole),
        cmocka_unit_test(median_of_five),
        cmocka_unit_test(holes_of_m),
        cmocka_unit_test(no_points_give_an_empty_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
