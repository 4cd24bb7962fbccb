// The engine's guarantees beyond the facts on OpenTSDB: groups and their tags, filters, fills,
// calendars, initial values of rates, several stores as one, summaries instead of points.
#include "base/clock.h"
#include "unit/query/ask.h"

static const double t = 1356998400; // T

static struct world *make_hosts(void)
{
    static const char *const tags[] = {"host=web01,dc=lga,cpu=0", "host=web01,dc=lga,cpu=1",
                                       "host=web02,dc=lga,cpu=0", "host=db01,dc=ord", "host=db02"};
    struct world *w = world_new();
    for (int i = 0; i < 5; i++) {
        uint32_t id = world_series(w, 0, "m", tags[i]);
        world_add(w, 0, id, T * S, (double)(1 << i));
        world_series(w, 0, "other", tags[i]);
    }
    return w;
}

// Checks all results as "tags|aggregateTags=value", joined by blanks.
static void assert_groups(struct world *w, const char *m, const char *want)
{
    char got[2048] = "", tags[512];
    struct asked a = ask(w, m, T, T + 10);
    for (size_t i = 0; i < a.result.count; i++) {
        const struct query_series *s = &a.result.series[i];
        assert_int_equal(s->count, 1);
        size_t n = strlen(got);
        snprintf(got + n, sizeof got - n, "%s%s=%g", i ? " " : "", tags_text(s, tags, sizeof tags),
                 s->values[0]);
    }
    if (strcmp(got, want))
        fail_msg("%s\n got %s\nwant %s", m, got, want);
    asked_free(&a);
}

static void groups_and_their_tags(void **state)
{
    (void)state;
    struct world *w = make_hosts();
    // A key that some series lack stays among the tags as long as its values are equal.
    assert_groups(w, "sum:m", "|cpu,dc,host=31");
    assert_groups(
        w, "sum:m{host=*}",
        "cpu=0,dc=lga,host=web02=4 dc=lga,host=web01|cpu=3 dc=ord,host=db01=8 host=db02=16");
    assert_groups(w, "sum:m{}{dc=lga}", "dc=lga|cpu,host=7");
    assert_groups(w, "sum:m{dc=*}", "dc=lga|cpu,host=7 dc=ord,host=db01=8");
    assert_groups(w, "sum:m{}{host=web02|db01}", "cpu=0|dc,host=12");
    assert_groups(w, "none:m{}{dc=lga}",
                  "cpu=0,dc=lga,host=web01=1 cpu=0,dc=lga,host=web02=4 cpu=1,dc=lga,host=web01=2");
    world_free(w);
}

static void filters(void **state)
{
    (void)state;
    struct world *w = make_hosts();
    assert_groups(w, "sum:m{}{host=web01}", "dc=lga,host=web01|cpu=3");
    assert_groups(w, "sum:m{}{host=web01|web01}", "dc=lga,host=web01|cpu=3");
    assert_groups(w, "sum:m{}{host=web*,cpu=0}", "cpu=0,dc=lga|host=5");
    assert_groups(w, "sum:m{}{host=iliteral_or(WEB02|DB01)}", "cpu=0|dc,host=12");
    assert_groups(w, "sum:m{}{host=regexp(b0[13])}", "|cpu,dc,host=11");
    // Negative filters accept series without the key.
    assert_groups(w, "sum:m{}{dc=not_literal_or(lga)}", "dc=ord|host=24");
    assert_groups(w, "sum:m{}{dc=not_iliteral_or(ORD)}", "dc=lga|cpu,host=23");
    assert_groups(w, "sum:m{}{dc=not_key()}", "host=db02=16");
    assert_groups(w, "sum:m{}{dc=wildcard(*)}", "|cpu,dc,host=15");
    // The same key twice means AND; group_by on either of them groups.
    assert_groups(w, "sum:m{host=*}{host=regexp(^web),host=not_literal_or(web01)}",
                  "cpu=0,dc=lga,host=web02=4");
    // Series without a grouping key (which a negative filter accepts) form a group of their own.
    assert_groups(w, "sum:m{dc=not_literal_or(lga)}", "dc=ord,host=db01=8 host=db02=16");
    world_free(w);
}

static void series_without_tags(void **state)
{
    (void)state;
    struct world *w = world_new();
    world_add(w, 0, world_series(w, 0, "m", ""), T * S, 5);
    world_add(w, 1, world_series(w, 1, "m", ""), (T + 20) * S, 6);
    assert_groups(w, "sum:m", "=5");
    assert_groups(w, "none:m", "=5");
    assert_groups(w, "sum:m{host=not_key()}", "=5");
    world_free(w);
    w = world_new();
    world_add(w, 0, world_series(w, 0, "m", ""), T * S, 5);
    world_add(w, 0, world_series(w, 0, "m", "host=a"), T * S, 7);
    assert_groups(w, "sum:m", "host=a=12");
    assert_groups(w, "none:m", "=5 host=a=7");
    world_free(w);
}

static void explicit_tags(void **state)
{
    (void)state;
    struct world *w = make_hosts();
    assert_groups(w, "sum:explicit_tags:m{host=*}", "host=db02=16");
    assert_groups(w, "sum:explicit_tags:m{host=*}{dc=*}", "dc=ord,host=db01=8");
    assert_groups(w, "sum:explicit_tags:m{}{host=*,dc=*,cpu=not_key()}", "dc=ord,host=db01=8");
    assert_groups(w, "sum:explicit_tags:m", "");
    world_free(w);
}

static void fills(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a");
    world_series(w, 0, "m", "host=empty"); // a series without points in the range is not filled
    world_add(w, 0, a, (T + 12) * S, 1);
    world_add(w, 0, a, (T + 31) * S, 3);
    ASSERT_ANSWER(w, "none:10s-avg:m", T, T + 50, t + 10, 1, t + 30, 3);
    ASSERT_ANSWER(w, "none:10s-avg-none:m", T, T + 50, t + 10, 1, t + 30, 3);
    ASSERT_ANSWER(w, "none:10s-avg-nan:m", T, T + 49, t, NAN, t + 10, 1, t + 20, NAN, t + 30, 3,
                  t + 40, NAN);
    ASSERT_ANSWER(w, "sum:10s-avg-null:m", T, T + 50, t, NAN, t + 10, 1, t + 20, NAN, t + 30, 3,
                  t + 40, NAN, t + 50, NAN);
    // The newest bucket, which contains the end, is included; so is the only one of a short range.
    ASSERT_ANSWER(w, "sum:10s-avg-zero:m", T + 5, T + 39, t + 10, 1, t + 20, 0, t + 30, 3);
    ASSERT_ANSWER(w, "sum:10s-avg-zero:m", T + 5, T + 40, t + 10, 1, t + 20, 0, t + 30, 3, t + 40,
                  0);
    ASSERT_ANSWER(w, "sum:10s-avg-zero:m", T + 30, T + 33, t + 30, 3);
    ASSERT_ANSWER(w, "sum:0all-avg-zero:m", T, T + 50, t, 2);
    // A filled gap stays a gap; the next rate spans it.
    ASSERT_ANSWER(w, "none:10s-avg-nan:rate:m", T, T + 49, t, NAN, t + 20, NAN, t + 30, 0.1, t + 40,
                  NAN);
    ASSERT_ANSWER(w, "none:10s-avg-zero:rate:m", T, T + 40, t + 10, 0.1, t + 20, -0.1, t + 30, 0.3,
                  t + 40, -0.3);
    world_free(w);
}

static void nan_is_skipped(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a"), b = world_series(w, 0, "m", "host=b");
    static const double av[] = {1, NAN, 3, NAN, NAN, NAN}, bv[] = {10, 20, NAN, NAN, NAN, 60};
    for (int i = 0; i < 6; i++) {
        world_add(w, 0, a, (T + i) * S, av[i]);
        world_add(w, 0, b, (T + i) * S, bv[i]);
    }
    ASSERT_ANSWER(w, "sum:m", T, T + 9, t, 11, t + 1, 20, t + 2, 3, t + 3, NAN, t + 4, NAN, t + 5,
                  60);
    ASSERT_ANSWER(w, "count:m", T, T + 9, t, 2, t + 1, 1, t + 2, 1, t + 3, 0, t + 4, 0, t + 5, 1);
    ASSERT_ANSWER(w, "min:m", T, T + 9, t, 1, t + 1, 20, t + 2, 3, t + 3, NAN, t + 4, NAN, t + 5,
                  60);
    static const struct {
        const char *m;
        double first, second;
    } facts[] = {{"none:2s-sum:m{host=a}", 1, 3},      {"none:2s-avg:m{host=a}", 1, 3},
                 {"none:2s-count:m{host=a}", 1, 1},    {"none:2s-min:m{host=a}", 1, 3},
                 {"none:2s-max:m{host=a}", 1, 3},      {"none:2s-dev:m{host=a}", 0, 0},
                 {"none:2s-first:m{host=a}", 1, 3},    {"none:2s-last:m{host=a}", 1, 3},
                 {"none:2s-diff:m{host=a}", 0, 0},     {"none:2s-mult:m{host=a}", 1, 3},
                 {"none:2s-p99:m{host=a}", 1, 3},      {"none:2s-median:m{host=a}", 1, 3},
                 {"none:2s-squareSum:m{host=a}", 1, 9}};
    for (size_t length = 1; length <= 3; length++)
        for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
            world_run_length(w, length);
            bool counts = strstr(facts[i].m, "count") != NULL;
            ASSERT_ANSWER(w, facts[i].m, T, T + 9, t, facts[i].first, t + 2, facts[i].second, t + 4,
                          counts ? 0 : NAN);
        }
    world_free(w);
}

static void one_series_through_each_aggregator(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a");
    world_add(w, 0, a, T * S, 3);
    world_add(w, 0, a, (T + 10) * S, -4);
    for (unsigned k = 0; k < QUERY_AGGREGATOR_COUNT; k++) {
        char m[64];
        double first = 3, second = -4;
        if (k == QUERY_COUNT)
            first = second = 1;
        else if (k == QUERY_DEV || k == QUERY_DIFF)
            first = second = 0;
        else if (k == QUERY_SQUARE_SUM)
            first = 9, second = 16;
        snprintf(m, sizeof m, "%.*s:m", STR_ARG(query_aggregator_name((enum query_aggregator)k)));
        ASSERT_ANSWER(w, m, T, T + 20, t, first, t + 10, second);
        snprintf(m, sizeof m, "%.*s:5s-avg:m",
                 STR_ARG(query_aggregator_name((enum query_aggregator)k)));
        ASSERT_ANSWER(w, m, T, T + 20, t, first, t + 10, second);
    }
    world_free(w);
}

static void aggregators_across_series(void **state)
{
    (void)state;
    // a b c at T; at T+10 only b has a point: a is interpolated to 4, c has ended.
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a"), b = world_series(w, 0, "m", "host=b"),
             c = world_series(w, 0, "m", "host=c");
    world_add(w, 0, a, T * S, 2);
    world_add(w, 0, a, (T + 20) * S, 6);
    world_add(w, 0, b, T * S, 7);
    world_add(w, 0, b, (T + 10) * S, 5);
    world_add(w, 0, c, T * S, 3);
    static const struct {
        const char *name;
        double at0, at10, at20;
    } facts[] = {
        {"sum", 12, 9, 6},         {"min", 2, 4, 6},
        {"max", 7, 5, 6},          {"avg", 4, 4.5, 6},
        {"median", 3, 5, 6},       {"mult", 42, 20, 6},
        {"diff", 1, 1, 0},         {"count", 3, 2, 1},
        {"first", 2, 0, 6},        {"last", 3, 5, 6},
        {"squareSum", 62, 25, 36}, {"zimsum", 12, 5, 6},
        {"mimmin", 2, 5, 6},       {"mimmax", 7, 5, 6},
        {"pfsum", 12, 7, 6},       {"dev", 2.1602468994692869, 0.5, 0},
        {"p50", 3, 4, 6},          {"p99", 7, 5, 6},
        {"ep50r3", 3, 4, 6},       {"ep50r7", 3, 4.5, 6},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        char m[64];
        snprintf(m, sizeof m, "%s:m", facts[i].name);
        ASSERT_ANSWER(w, m, T, T + 20, t, facts[i].at0, t + 10, facts[i].at10, t + 20,
                      facts[i].at20);
        snprintf(m, sizeof m, "%s:10s-sum:m", facts[i].name);
        // For downsampled values, the quantile is not truncated to a whole number.
        double at10 = strcmp(facts[i].name, "p50") == 0 ? 4.5 : facts[i].at10;
        ASSERT_ANSWER(w, m, T, T + 20, t, facts[i].at0, t + 10, at10, t + 20, facts[i].at20);
    }
    world_free(w);
}

static void rates_hold_between_points(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a"), b = world_series(w, 0, "m", "host=b");
    for (int i = 0; i <= 4; i++)
        world_add(w, 0, a, (T + 10 * i) * S, 10.0 * i * i);
    world_add(w, 0, b, T * S, 0);
    world_add(w, 0, b, (T + 10) * S, 100);
    world_add(w, 0, b, (T + 40) * S, 700);
    // a: 1 3 5 7; b: 10 (held, not interpolated, at 20 and 30), then 20.
    ASSERT_ANSWER(w, "sum:rate:m", T, T + 40, t + 10, 11, t + 20, 13, t + 30, 15, t + 40, 27);
    ASSERT_ANSWER(w, "zimsum:rate:m", T, T + 40, t + 10, 11, t + 20, 13, t + 30, 15, t + 40, 27);
    ASSERT_ANSWER(w, "sum:10s-avg:rate:m", T, T + 40, t + 10, 11, t + 20, 13, t + 30, 15, t + 40,
                  27);
    world_free(w);
}

static void the_point_before_the_range_seeds_the_rate(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a");
    for (int i = 0; i < 40; i++)
        world_add(w, 0, a, (T + i) * S, (double)(i * i));
    ASSERT_ANSWER(w, "sum:rate:m", T + 10, T + 11, t + 10, 19, t + 11, 21);
    ASSERT_ANSWER(w, "sum:rate:m", T, T + 1, t + 1, 1);
    // Buckets of 10 s have the last values 9², 19², 29², 39²: the bucket before the range is
    // complete, although start excludes it.
    ASSERT_ANSWER(w, "sum:10s-last:rate:m", T + 20, T + 39, t + 20, 48, t + 30, 68);
    ASSERT_ANSWER(w, "sum:10s-last:rate:m", T + 15, T + 39, t + 20, 48, t + 30, 68);
    ASSERT_ANSWER(w, "sum:10s-last:rate:m", T, T + 39, t + 10, 28, t + 20, 48, t + 30, 68);
    world_free(w);
    // Long before the range: the rate covers the whole gap; with zeros filled in, it begins at
    // zero.
    w = world_new();
    a = world_series(w, 0, "m", "host=a");
    world_add(w, 0, a, T * S, 100);
    world_add(w, 0, a, (T + 50) * S, 200);
    ASSERT_ANSWER(w, "sum:rate:m", T + 40, T + 60, t + 50, 2);
    ASSERT_ANSWER(w, "sum:10s-sum:rate:m", T + 40, T + 60, t + 50, 2);
    ASSERT_ANSWER(w, "sum:10s-sum-zero:rate:m", T + 40, T + 60, t + 40, 0, t + 50, 20, t + 60, -20);
    world_free(w);
}

static void the_last_bucket_is_whole(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a");
    for (int i = 0; i < 30; i++)
        world_add(w, 0, a, (T + i) * S, 1);
    ASSERT_ANSWER(w, "sum:10s-sum:m", T, T + 13, t, 10, t + 10, 10);
    // Raw points are in [start, end], both inclusive.
    ASSERT_ANSWER(w, "sum:m", T + 3, T + 4, t + 3, 1, t + 4, 1);
    world_free(w);
}

// 2013 in New York: day by day across the end of winter time (March 10), and weeks, months, years,
// hours.
static void calendars(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a");
    int64_t march = 1362700800; // 2013-03-08 00:00 UTC
    for (int64_t hour = 0; hour < 24 * 5; hour++)
        world_add(w, 0, a, (march + 3600 * hour) * S, 1);
    struct query q;
    struct arena arena = {0};
    struct query_result r;
    struct error e;
    size_t n;
    struct store_snapshot *const *stores = world_stores(w, &n);
    static const struct {
        const char *m, *zone;
        int64_t from, to;
        double want[8];
        size_t count; // count of numbers
    } facts[] = {
        // Local midnights: 5:00 UTC before the change, 4:00 after; the day of the change has 23
        // hours.
        {"sum:1dc-sum:m",
         "America/New_York",
         1362718800,
         1363060799,
         {1362718800, 24, 1362805200, 24, 1362891600, 23, 1362974400, 24},
         8},
        {"sum:1dc-sum:m",
         "",
         1362700800,
         1362873600,
         {1362700800, 24, 1362787200, 24, 1362873600, 24},
         6},
        {"sum:1dc-sum-nan:m",
         "",
         1362700800,
         1362873600,
         {1362700800, 24, 1362787200, 24, 1362873600, 24},
         6},
        // The week begins on Sunday, March 10.
        {"sum:1wc-sum:m",
         "America/New_York",
         1362000000,
         1363060799,
         {1362286800, 53, 1362891600, 67},
         4},
        {"sum:1nc-sum:m", "America/New_York", 1362000000, 1363060799, {1362114000, 120}, 2},
        {"sum:1yc-sum:m", "America/New_York", 1357016400, 1363060799, {1357016400, 120}, 2},
        // Hours that divide a day restart at local midnight: 12 + 12 − the hour that March 10
        // lacks. Other hours count from March 1.
        {"sum:12hc-sum:m",
         "America/New_York",
         1362805200,
         1362974399,
         {1362805200, 12, 1362848400, 12, 1362891600, 12, 1362934800, 11},
         8},
        {"sum:16hc-sum:m",
         "America/New_York",
         1362805200,
         1362974399,
         {1362805200, 16, 1362862800, 16, 1362920400, 16},
         6},
        {"sum:36hc-sum:m", "America/New_York", 1362805200, 1362974399, {1362891600, 36}, 2},
        // From January 1, 2013; from Sunday, 1969-12-28; from January 1, 2012.
        {"sum:3dc-sum:m",
         "America/New_York",
         1362718800,
         1363060799,
         {1362718800, 71, 1362974400, 44},
         4},
        {"sum:2wc-sum:m", "America/New_York", 1362000000, 1363060799, {1362891600, 67}, 2},
        {"sum:5nc-sum:m", "America/New_York", 1351700000, 1363060799, {1351742400, 120}, 2},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        q = (struct query){.start_ns = facts[i].from * S, .end_ns = facts[i].to * S};
        assert_int_equal(query_parse_m(str_of(facts[i].m), &arena, &q, NULL), 0);
        q.downsample.time_zone = str_of(facts[i].zone);
        if (query_run(&q, stores, n, NULL, &arena, &r, &e))
            fail_msg("%s: %s", facts[i].m, e.text);
        assert_int_equal(r.count, 1);
        assert_points(&r.series[0], facts[i].want, facts[i].count);
    }
    q.downsample.time_zone = STR("Europe/Nowhere");
    assert_int_equal(query_run(&q, stores, n, NULL, &arena, &r, &e), -EINVAL);
    assert_non_null(strstr(e.text, "Europe/Nowhere"));
    arena_free(&arena);
    world_free(w);
}

// More buckets than are ever listed: places are then time stamps, and the group has an axis of its
// own.
static void grids_too_long_to_list(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a"), b = world_series(w, 0, "m", "host=b");
    world_add(w, 0, a, (T - 1) * S, 30);
    world_add(w, 0, a, T * S, 38);
    world_add(w, 0, a, T * S + 400000, 42); // the same millisecond
    world_add(w, 0, a, (T + 10) * S, 50);
    world_add(w, 0, a, (T + 30) * S, 70);
    world_add(w, 0, b, (T + 10) * S, 37);
    world_add(w, 0, b, (T + 20) * S, 48);
    int64_t end = T + 2000; // two million buckets
    ASSERT_ANSWER(w, "sum:1ms-avg:m", T, end, t, 40, t + 10, 87, t + 20, 108, t + 30, 70);
    ASSERT_ANSWER(w, "p50:1ms-avg:m", T, end, t, 40, t + 10, 43.5, t + 20, 54, t + 30, 70);
    ASSERT_ANSWER(w, "count:1ms-count:m", T, end, t, 1, t + 10, 2, t + 20, 2, t + 30, 1);
    ASSERT_ANSWER(w, "sum:1ms-avg:rate:m{}{host=a}", T, end, t, 10, t + 10, 1, t + 30, 1);
    struct asked q = ask(w, "sum:1ms-avg-zero:m", T, end);
    const struct query_series *s = &q.result.series[0];
    assert_int_equal(s->count, 2000001);
    assert_int_equal(s->t_ns[10001] - s->t_ns[10000], NS_PER_MS);
    assert_close(s->values[0], 40);
    assert_close(s->values[1], 0);
    assert_close(s->values[10000], 87);
    assert_close(s->values[30000], 70);
    asked_free(&q);
    world_free(w);
}

static void several_stores_are_one(void **state)
{
    (void)state;
    // Two consecutive runs of one job (stores 1 then 0), and a second host in store 2.
    struct world *w = world_new();
    uint32_t late = world_series(w, 0, "m", "host=a"), early = world_series(w, 1, "m", "host=a");
    uint32_t b = world_series(w, 2, "m", "host=b");
    world_series(w, 3, "unrelated", "host=a");
    for (int i = 0; i < 10; i++) {
        world_add(w, 1, early, (T + i) * S, i);
        world_add(w, 0, late, (T + 10 + i) * S, 10 + i);
        world_add(w, 2, b, (T + 2 * i) * S, 100);
    }
    ASSERT_ANSWER(w, "sum:5s-sum:m{}{host=a}", T, T + 19, t, 10, t + 5, 35, t + 10, 60, t + 15, 85);
    ASSERT_ANSWER(w, "sum:0all-count:m{}", T, T + 20, t, 30);
    ASSERT_ANSWER(w, "sum:10s-first:rate:m{}{host=a}", T, T + 19, t + 10, 1);
    struct asked a = ask(w, "sum:m{host=*}", T, T + 30);
    assert_int_equal(a.result.count, 2);
    assert_int_equal(a.result.series[0].count, 20);
    assert_int_equal(a.result.series[0].source_series, 1);
    asked_free(&a);
    world_free(w);
}

static void overlapping_stores_are_merged(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a"), b = world_series(w, 1, "m", "host=a"),
             c = world_series(w, 2, "m", "host=a");
    world_run_length(w, 3);
    for (int i = 0; i < 20; i += 2)
        world_add(w, 0, a, (T + i) * S, i);
    for (int i = 0; i < 20; i += 3)
        world_add(w, 1, b, (T + i) * S, 100 + i);
    world_add(w, 2, c, (T + 6) * S, 1000);
    world_add(w, 2, c, (T + 30) * S, 1030);
    struct asked q = ask(w, "none:m", T, T + 40);
    assert_int_equal(q.result.count, 1);
    const struct query_series *s = &q.result.series[0];
    size_t n = 0;
    for (int i = 0; i <= 30; i++) {
        double v = i == 6 ? 1000 : i == 30 ? 1030 : i % 3 == 0 ? 100.0 + i : i;
        if (i != 30 && (i >= 20 || (i % 3 && i % 2)))
            continue;
        assert_int_equal(s->t_ns[n], (T + i) * S);
        assert_close(s->values[n++], v);
    }
    assert_int_equal(s->count, n);
    asked_free(&q);
    ASSERT_ANSWER(w, "none:10s-count:m", T, T + 40, t, 7, t + 10, 6, t + 30, 1);
    world_free(w);
}

static void runs_within_a_bucket_are_not_decoded(void **state)
{
    (void)state;
    if (!world_heeds_run_length())
        skip();
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a");
    for (int i = 0; i < 1000; i++)
        world_add(w, 0, a, (T + i) * S, (double)(i % 7));
    world_run_length(w, 10);
    static const char *const from_summaries[] = {"sum",    "avg",       "min",    "max",  "count",
                                                 "dev",    "squareSum", "first",  "last", "diff",
                                                 "zimsum", "mimmin",    "mimmax", "pfsum"};
    uint64_t before = world_decoded(w);
    for (size_t i = 0; i < sizeof from_summaries / sizeof *from_summaries; i++) {
        char m[64];
        snprintf(m, sizeof m, "sum:100s-%s:m", from_summaries[i]); // T is a multiple of 100
        struct asked q = ask(w, m, T, T + 999);
        assert_int_equal(q.result.series[0].count, 10);
        assert_int_equal(q.result.points_read, 0);
        assert_int_equal(q.result.points_from_summaries, 1000);
        assert_int_equal(q.result.series_read, 1);
        asked_free(&q);
    }
    assert_int_equal(world_decoded(w), before);
    // Runs of 15 points are not aligned to 100: those that cross a border are decoded, two hundred
    // of a thousand.
    world_run_length(w, 15);
    struct asked q = ask(w, "sum:100s-sum:m", T, T + 999);
    assert_int_equal(q.result.points_read + q.result.points_from_summaries, 1000);
    assert_in_range(q.result.points_read, 90, 110);
    for (size_t i = 0; i < 10; i++) {
        double sum = 0;
        for (size_t k = i * 100; k < i * 100 + 100; k++)
            sum += (double)(k % 7);
        assert_close(q.result.series[0].values[i], sum);
    }
    asked_free(&q);
    q = ask(w, "sum:100s-p50:m", T, T + 999);
    assert_int_equal(q.result.points_read, 1000);
    asked_free(&q);
    world_free(w);
}

// The same with the store's own blocks: for buckets longer than a block, only their edges are read,
// wherever the borders are.
static void wide_queries_read_only_edges(void **state)
{
    (void)state;
    enum { POINTS = 1000000, STEP_MS = 20 };
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a");
    for (int i = 0; i < POINTS; i++)
        world_add(w, 0, a, T * S + (int64_t)i * STEP_MS * NS_PER_MS, (double)(i % 97));
    static const struct {
        const char *m;
        int64_t from, to; // seconds after T
        size_t borders;   // of buckets, and the ends of the range: each may cut one run
    } facts[] = {
        {"none:0all-sum:m", 0, 20001, 2},     {"none:0all-max:m", 7, 19993, 2},
        {"none:3600s-avg:m", 0, 19999, 7},    {"none:7000s-count:m", 0, 19999, 4},
        {"sum:5000s-min:m", 3, 15007, 5},     {"none:4999s-last:m", 11, 19000, 6},
        {"none:10000s-first:m", 1, 19999, 4}, {"none:6000s-avg:rate:m", 0, 19999, 5},
    };
    size_t largest_run = 0;
    size_t stores;
    struct store_snapshot *const *open = world_stores(w, &stores);
    struct store_cursor *cursor = store_cursor_open(open[0], 0, INT64_MIN, INT64_MAX);
    struct store_run run;
    size_t tail = 0; // points outside of blocks have no summary
    while (store_cursor_next(cursor, &run) == 1) {
        if (run.has_summary)
            largest_run = run.count > largest_run ? run.count : largest_run;
        else
            tail += run.count;
    }
    store_cursor_close(cursor);
    assert_true(largest_run > 0 && tail < POINTS / 4);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        struct asked q = ask(w, facts[i].m, T + facts[i].from, T + facts[i].to);
        size_t most = facts[i].borders * largest_run + tail;
        if (q.result.points_read > most)
            fail_msg(
                "%s read %llu points; %zu borders, runs of up to %zu, %zu points without a summary",
                facts[i].m, (unsigned long long)q.result.points_read, facts[i].borders, largest_run,
                tail);
        if (q.result.points_from_summaries == 0)
            fail_msg("%s took no summary; runs of up to %zu", facts[i].m, largest_run);
        asked_free(&q);
    }
    world_free(w);
}

static void dev_far_from_zero(void **state)
{
    (void)state;
    // Squares of 1e9 leave no digits for a deviation of 1, so the summaries are not used.
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a");
    for (int i = 0; i < 100; i++)
        world_add(w, 0, a, (T + i) * S, 1e9 + (i % 2 ? 1 : -1));
    world_run_length(w, 10);
    ASSERT_ANSWER(w, "sum:0all-dev:m", T, T + 100, t, 1);
    ASSERT_ANSWER(w, "sum:50s-dev:m", T, T + 99, t, 1, t + 50, 1);
    world_free(w);
}

// Buckets of one point each, between them gaps, NaN, -0 and buckets of two points: the sum and the
// average of a bucket, to the last bit.
static void buckets_of_one_point(void **state)
{
    (void)state;
    enum { SECONDS = 400, ROUNDS = 40 };
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < ROUNDS; round++) {
        struct world *w = world_new();
        uint32_t id = world_series(w, 0, "m", "host=a");
        double sum[SECONDS];
        unsigned count[SECONDS];
        for (int k = 0; k < SECONDS; k++) {
            sum[k] = 0;
            count[k] = 0;
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            unsigned kind = (unsigned)(random % 64), points = kind == 0 ? 0 : kind == 1 ? 2 : 1;
            for (unsigned i = 0; i < points; i++) {
                double value = kind == 2   ? (double)NAN
                               : kind == 3 ? -0.0
                                           : (double)(random >> 32) / 7 - 3e8;
                world_add(w, 0, id, (T + k) * S + (int64_t)i * (S - 1), value);
                if (isnan(value))
                    continue;
                sum[k] += value;
                count[k]++;
            }
        }
        for (int average = 0; average < 2; average++) {
            struct asked a = ask(w, average ? "none:1s-avg:m" : "none:1s-sum:m", T, T + SECONDS);
            const struct query_series *s = &a.result.series[0];
            size_t at = 0;
            for (int k = 0; k < SECONDS; k++) {
                if (at == s->count || s->t_ns[at] != (T + k) * S) {
                    assert_int_equal(count[k], 0);
                    continue;
                }
                double want = count[k] ? average ? sum[k] / count[k] : sum[k] : (double)NAN;
                if (isnan(want))
                    assert_true(isnan(s->values[at]));
                else
                    assert_memory_equal(&s->values[at], &want, sizeof want);
                at++;
            }
            assert_int_equal(at, s->count);
            asked_free(&a);
        }
        world_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_and_their_tags),
        cmocka_unit_test(filters),
        cmocka_unit_test(series_without_tags),
        cmocka_unit_test(explicit_tags),
        cmocka_unit_test(buckets_of_one_point),
        cmocka_unit_test(fills),
        cmocka_unit_test(nan_is_skipped),
        cmocka_unit_test(one_series_through_each_aggregator),
        cmocka_unit_test(aggregators_across_series),
        cmocka_unit_test(rates_hold_between_points),
        cmocka_unit_test(the_point_before_the_range_seeds_the_rate),
        cmocka_unit_test(the_last_bucket_is_whole),
        cmocka_unit_test(calendars),
        cmocka_unit_test(grids_too_long_to_list),
        cmocka_unit_test(several_stores_are_one),
        cmocka_unit_test(overlapping_stores_are_merged),
        cmocka_unit_test(runs_within_a_bucket_are_not_decoded),
        cmocka_unit_test(wide_queries_read_only_edges),
        cmocka_unit_test(dev_far_from_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
