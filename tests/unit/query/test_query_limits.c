// Limits, hostile ranges and plans; suggestions.
#include "unit/query/ask.h"

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

static void limits_are_named(void **state)
{
    (void)state;
    struct world *w = world_new();
    for (int i = 0; i < 50; i++) {
        char tags[32];
        snprintf(tags, sizeof tags, "host=h%02d", i);
        uint32_t id = world_series(w, 0, "m", tags);
        for (int k = 0; k < 5000; k++)
            world_add(w, 0, id, (T + k) * S, k);
    }
    static const struct {
        struct query_limits limits;
        const char *m, *named;
        int code;
    } facts[] = {
        {{.series_max = 49}, "sum:m", "series limit", -E2BIG},
        {{.series_max = 50}, "sum:m", NULL, 0},
        {{.points_max = 249999}, "sum:m", "points limit", -E2BIG},
        {{.points_max = 250000}, "sum:m", NULL, 0},
        {{.memory_bytes = 1 << 20}, "sum:m", "memory limit", -E2BIG},
        {{.memory_bytes = 1 << 20}, "none:m", "memory limit", -E2BIG},
        {{.memory_bytes = 1 << 20}, "p99:m", "memory limit", -E2BIG},
        {{.memory_bytes = 1 << 20}, "sum:1ms-avg-nan:m", "memory limit", -E2BIG},
        {{.memory_bytes = 1}, "sum:m", "memory limit", -E2BIG},
        {{.memory_bytes = 1 << 20}, "sum:100s-avg:m", NULL, 0},
        {{.deadline_ns = 1}, "sum:m", "time limit", -ETIMEDOUT},
        {{.deadline_ns = 1}, "sum:1s-avg:m", "time limit", -ETIMEDOUT},
        {{.deadline_ns = INT64_MAX}, "sum:m", NULL, 0},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        struct asked a = ask_with(w, facts[i].m, T, T + 5000, &facts[i].limits);
        if (a.code != facts[i].code || (a.code && !strstr(a.error.text, facts[i].named)))
            fail_msg("%zu %s: %d %s", i, facts[i].m, a.code, a.error.text);
        if (a.code)
            assert_int_equal(a.result.count, 0);
        if (facts[i].limits.memory_bytes)
            // including the memory of the parser
            assert_true(a.arena.used_bytes <= facts[i].limits.memory_bytes + 8192);
        asked_free(&a);
    }
    world_free(w);
}

struct watching {
    unsigned looks, looks_left;
    size_t held, peak, most;
};

static int look(void *user, struct error *e)
{
    struct watching *w = user;
    return ++w->looks > w->looks_left ? error_set(e, -ECANCELED, "the client has hung up") : 0;
}

static int hold(void *user, size_t bytes, struct error *e)
{
    struct watching *w = user;
    assert_true(bytes > 0);
    if (w->held + bytes > w->most)
        return error_set(e, -EBUSY, "all together");
    w->held += bytes;
    w->peak = w->held > w->peak ? w->held : w->peak;
    return 0;
}

static void release(void *user, size_t bytes)
{
    struct watching *w = user;
    assert_true(bytes > 0 && bytes <= w->held);
    w->held -= bytes;
}

static struct asked ask_watched(struct world *w, const char *m, struct watching *watching)
{
    struct work_watch watch = {look, hold, release, watching};
    return ask_with(w, m, T, T + 20000, &(struct query_limits){.watch = &watch});
}

// A watch can end a query between blocks, and learns its memory.
static void a_watch_is_called_between_pieces(void **state)
{
    (void)state;
    struct world *w = world_new();
    for (int i = 0; i < 10; i++) {
        char tags[32];
        snprintf(tags, sizeof tags, "host=h%02d", i);
        uint32_t id = world_series(w, 0, "m", tags);
        for (int k = 0; k < 20000; k++)
            world_add(w, 0, id, (T + k) * S, k);
    }
    static const char *const m[] = {"none:m", "sum:1s-avg:m", "p99:1s-avg:m", "sum:rate:m"};
    for (size_t i = 0; i < sizeof m / sizeof *m; i++) {
        struct watching free_hand = {.looks_left = UINT32_MAX, .most = SIZE_MAX};
        struct asked a = ask_watched(w, m[i], &free_hand);
        assert_int_equal(a.code, 0);
        assert_true(free_hand.looks >= 10); // at least once per block, however long blocks are
        // The memory of the results, until the caller frees them; the rest is the parsed query.
        assert_true(free_hand.held <= a.arena.used_bytes &&
                    free_hand.held + 8192 >= a.arena.used_bytes);
        assert_true(free_hand.peak > free_hand.held);
        asked_free(&a);
        uint64_t before = world_decoded(w);
        struct watching hung_up = {.looks_left = 3, .most = SIZE_MAX};
        a = ask_watched(w, m[i], &hung_up);
        assert_int_equal(a.code, -ECANCELED);
        assert_string_equal(a.error.text, "the client has hung up");
        assert_int_equal(hung_up.looks, 4); // no calls after that
        assert_true(world_decoded(w) - before < 100000);
        asked_free(&a);
        struct watching poor = {.looks_left = UINT32_MAX, .most = free_hand.peak - 1};
        a = ask_watched(w, m[i], &poor);
        assert_int_equal(a.code, -EBUSY);
        assert_string_equal(a.error.text, "all together");
        assert_true(poor.held <= a.arena.used_bytes);
        asked_free(&a);
    }
    world_free(w);
}

// With any memory limit, the query either fails with an error or returns the complete answer.
static void any_limit_of_memory(void **state)
{
    (void)state;
    struct world *w = world_new();
    for (int i = 0; i < 6; i++) {
        char tags[32];
        snprintf(tags, sizeof tags, "host=h%02d", i);
        uint32_t id = world_series(w, (unsigned)(i % 2), "m", tags);
        for (int k = 0; k < 300; k++)
            world_add(w, (unsigned)(i % 2), id, (T + k) * S + i % 3, k);
    }
    static const char *const m[] = {"sum:m", "p90:m{}{host=h*}",
                                    "avg:10s-p50-nan:rate:m{host=regexp(h)}", "none:7sc-sum:m"};
    for (size_t i = 0; i < sizeof m / sizeof *m; i++) {
        bool fitted = false;
        for (size_t bytes = 256; bytes < 1 << 20 && !fitted; bytes += bytes / 16) {
            struct asked a =
                ask_with(w, m[i], T, T + 300, &(struct query_limits){.memory_bytes = bytes});
            assert_true(a.code == 0 || a.code == -E2BIG);
            fitted = a.code == 0;
            asked_free(&a);
        }
        assert_true(fitted);
    }
    world_free(w);
}

static void ranges_at_the_ends_of_time(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint32_t a = world_series(w, 0, "m", "host=a");
    world_add(w, 0, a, 0, 1);
    world_add(w, 0, a, T * S, 2);
    static const char *const m[] = {"sum:m",
                                    "sum:rate:m",
                                    "sum:10s-avg:m",
                                    "sum:365d-avg:m",
                                    "sum:292y-avg:rate:m",
                                    "sum:1yc-sum:m",
                                    "sum:99999yc-sum:m",
                                    "sum:0all-sum:m",
                                    "sum:1ms-avg:rate:m",
                                    "sum:30d-sum-zero:m"};
    static const int64_t ranges[][2] = {
        {INT64_MIN, INT64_MAX},    {0, INT64_MAX},         {INT64_MIN, 0},
        {INT64_MAX, INT64_MAX},    {INT64_MIN, INT64_MIN}, {-1, 1},
        {INT64_MAX - 1, INT64_MAX}};
    size_t n;
    struct store_snapshot *const *stores = world_stores(w, &n);
    for (size_t i = 0; i < sizeof m / sizeof *m; i++)
        for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
            struct arena arena = {0};
            struct query q = {.start_ns = ranges[k][0], .end_ns = ranges[k][1]};
            struct query_result r;
            struct error e = {0};
            assert_int_equal(query_parse_m(str_of(m[i]), &arena, &q, &e), 0);
            int code = query_run(&q, stores, n, NULL, &arena, &r, &e);
            assert_true(code == 0 || code == -E2BIG);
            for (size_t s = 0; s < r.count; s++)
                for (size_t p = 0; p < r.series[s].count; p++) {
                    if (r.series[s].t_ns[p] < q.start_ns || r.series[s].t_ns[p] > q.end_ns)
                        fail_msg("%s: %lld is not in [%lld, %lld]", m[i],
                                 (long long)r.series[s].t_ns[p], (long long)q.start_ns,
                                 (long long)q.end_ns);
                    assert_true(p == 0 || r.series[s].t_ns[p] > r.series[s].t_ns[p - 1]);
                }
            arena_free(&arena);
        }
    world_free(w);
}

static void plans_filled_in_by_hand_are_checked(void **state)
{
    (void)state;
    struct world *w = make_hosts();
    size_t n;
    struct store_snapshot *const *stores = world_stores(w, &n);
    const struct query_filter bad_filter = {QUERY_WILDCARD, STR("host"), STR("x"), false};
    const struct query bad[] = {
        {.metric = STR("m"), .aggregator = QUERY_AGGREGATOR_COUNT},
        {.metric = STR("m"), .aggregator = QUERY_SUM, .start_ns = 1},
        {.metric = STR("m"), .aggregator = QUERY_SUM, .filters = &bad_filter, .filter_count = 1},
        {.metric = STR("m"), .aggregator = QUERY_SUM, .filters = &bad_filter, .filter_count = 65},
        {.metric = STR("m"),
         .aggregator = QUERY_SUM,
         .downsample = {.on = true, .function = QUERY_AVG}},
        {.metric = STR("m"), .aggregator = QUERY_SUM, .downsample = {.on = true, .interval = 5}},
        {.metric = STR("m"),
         .aggregator = QUERY_SUM,
         .downsample = {.on = true, .calendar = true, .interval = 5, .function = QUERY_AVG}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena arena = {0};
        struct query_result r;
        struct error e = {0};
        assert_int_equal(query_run(&bad[i], stores, n, NULL, &arena, &r, &e), -EINVAL);
        assert_true(e.text[0] && r.count == 0);
        arena_free(&arena);
    }
    world_free(w);
}

static void suggestions(void **state)
{
    (void)state;
    struct world *w = make_hosts();
    world_series(w, 1, "mem.free", "host=web01,rank=7");
    world_series(w, 1, "net", "host=zz");
    size_t n, count;
    struct store_snapshot *const *stores = world_stores(w, &n);
    static const struct {
        const char *kind, *text;
        bool anywhere;
        size_t max;
        const char *want;
    } facts[] = {
        {"metrics", "", false, 25, "m mem.free net other"},
        {"metrics", "m", false, 25, "m mem.free"},
        {"metrics", "m", false, 1, "m"},
        {"metrics", "e", false, 25, ""},
        {"metrics", "e", true, 25, "mem.free net other"},
        {"tagk", "", false, 25, "cpu dc host rank"},
        {"tagk", "h", false, 25, "host"},
        {"tagv", "", false, 25, "0 1 7 db01 db02 lga ord web01 web02 zz"},
        {"tagv", "web", false, 25, "web01 web02"},
        {"tagv", "", false, 0, ""},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        struct arena arena = {0};
        const struct str *names;
        char got[256] = "";
        assert_int_equal(query_suggest(stores, n, str_of(facts[i].kind), str_of(facts[i].text),
                                       facts[i].anywhere, facts[i].max, &arena, &names, &count,
                                       NULL),
                         0);
        for (size_t k = 0; k < count; k++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.*s", k ? " " : "",
                     STR_ARG(names[k]));
        assert_string_equal(got, facts[i].want);
        arena_free(&arena);
    }
    struct arena arena = {0};
    const struct str *names;
    struct error e = {0};
    assert_int_equal(
        query_suggest(stores, n, STR("rates"), STR(""), false, 5, &arena, &names, &count, &e),
        -EINVAL);
    assert_string_equal(e.text, "Invalid 'type' parameter: 'rates' (want metrics, tagk or tagv)");
    arena_free(&arena);
    world_free(w);
}

static void suggestions_among_many(void **state)
{
    (void)state;
    struct world *w = world_new();
    for (int i = 3999; i >= 0; i--) {
        char tags[32];
        snprintf(tags, sizeof tags, "host=h%04d", i);
        world_series(w, 0, "m", tags);
    }
    size_t n, count;
    struct store_snapshot *const *stores = world_stores(w, &n);
    struct arena arena = {0};
    const struct str *names;
    assert_int_equal(
        query_suggest(stores, n, STR("tagv"), STR("h"), false, 3, &arena, &names, &count, NULL), 0);
    assert_int_equal(count, 3);
    assert_str_equal(names[0], "h0000");
    assert_str_equal(names[2], "h0002");
    arena_free(&arena);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_named),
        cmocka_unit_test(a_watch_is_called_between_pieces),
        cmocka_unit_test(any_limit_of_memory),
        cmocka_unit_test(ranges_at_the_ends_of_time),
        cmocka_unit_test(plans_filled_in_by_hand_are_checked),
        cmocka_unit_test(suggestions),
        cmocka_unit_test(suggestions_among_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
