// Parses m=, downsampling texts and JSON bodies to plans.
#include "query/filter.h"
#include "query/query.h"
#include "unit/test.h"

#include <errno.h>
#include <stdio.h>

static const int64_t NOW = INT64_C(1700000000000000000);

static void downsamplings(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct query_downsample want;
    } facts[] = {
        {"1s-avg", {.interval = 1000000000, .unit = 's', .function = QUERY_AVG}},
        {"500ms-sum-nan",
         {.interval = 500000000, .unit = 'a', .function = QUERY_SUM, .fill = QUERY_FILL_NAN}},
        {"2m-p99-null",
         {.interval = 120000000000, .unit = 'm', .function = QUERY_P99, .fill = QUERY_FILL_NULL}},
        {"1n-squareSum-zero",
         {.interval = INT64_C(2592000000000000),
          .unit = 'n',
          .function = QUERY_SQUARE_SUM,
          .fill = QUERY_FILL_ZERO}},
        {"1y-count-none",
         {.interval = INT64_C(31536000000000000), .unit = 'y', .function = QUERY_COUNT}},
        {"0all-sum", {.all = true, .function = QUERY_SUM}},
        {"3dc-max", {.calendar = true, .interval = 3, .unit = 'd', .function = QUERY_MAX}},
        {"10msc-min", {.calendar = true, .interval = 10, .unit = 'a', .function = QUERY_MIN}},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        struct query_downsample d;
        const struct query_downsample *want = &facts[i].want;
        assert_int_equal(query_parse_downsample(str_of(facts[i].text), &d, NULL), 0);
        assert_true(d.on && d.all == want->all && d.calendar == want->calendar &&
                    d.interval == want->interval);
        assert_true(d.unit == want->unit && d.function == want->function && d.fill == want->fill);
    }
    struct query_downsample d;
    assert_int_equal(query_parse_downsample(STR("6h-avg"), &d, NULL), 0);
    query_downsample_use_calendar(&d);
    assert_true(d.calendar && d.interval == 6 && d.unit == 'h');
    query_downsample_use_calendar(&d);
    assert_int_equal(d.interval, 6);
}

static void invalid_downsamplings_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"10m-avg-badbadbad", "Unrecognized fill policy: badbadbad"},
        {"10m-avg-nan-nan", "Unrecognized fill policy: nan-nan"},
        {"10m-avg-", "Unrecognized fill policy: "},
        {"10m-none", "'none' is no downsampling function: leave the downsampling out"},
        {"10m-mean", "No such downsampling function: 'mean'"},
        {"10m", NULL},
        {"", NULL},
        {"-avg", NULL},
        {"m-avg", NULL},
        {"0s-avg", NULL},
        {"-1s-avg", NULL},
        {"10-avg", NULL},
        {"10x-avg", NULL},
        {"9999999999999y-avg", NULL},
        {"99999999999999999999s-avg", NULL},
        {"1all-sum", NULL},
        {"0allc-sum", NULL},
        {"999999999dc-sum", NULL},
        {"1.5s-avg", NULL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct query_downsample d;
        struct error e = {0};
        if (query_parse_downsample(str_of(bad[i].text), &d, &e) != -EINVAL)
            fail_msg("'%s' was taken", bad[i].text);
        if (bad[i].why)
            assert_string_equal(e.text, bad[i].why);
        assert_true(e.text[0] != 0);
    }
}

static void aggregators_have_names(void **state)
{
    (void)state;
    for (unsigned a = 0; a < QUERY_AGGREGATOR_COUNT; a++)
        assert_int_equal(query_aggregator_of(query_aggregator_name((enum query_aggregator)a)), a);
    assert_int_equal(query_aggregator_of(STR("SUM")), QUERY_AGGREGATOR_COUNT);
    assert_int_equal(query_aggregator_of(STR("ep999r7")), QUERY_EP999R7);
    assert_int_equal(query_aggregator_name(QUERY_AGGREGATOR_COUNT).size, 0);
}

static void assert_filter(const struct query_filter *f, enum query_filter_kind kind,
                          const char *key, const char *text, bool group_by)
{
    assert_int_equal(f->kind, kind);
    assert_str_equal(f->key, key);
    assert_str_equal(f->text, text);
    assert_int_equal(f->group_by, group_by);
}

static void a_whole_m(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct query q = {.start_ns = 5, .end_ns = 6};
    static const char m[] = "avg:explicit_tags:rate{counter,100.5,5}:1s-max-zero:loss{host=*,dc=a|"
                            "b,rack=R1*}{job=not_literal_or(a|b),"
                            "gpu=regexp(^x(1,2){1,3}$)}";
    assert_int_equal(query_parse_m(str_of(m), &arena, &q, NULL), 0);
    assert_str_equal(q.metric, "loss");
    assert_int_equal(q.aggregator, QUERY_AVG);
    assert_true(q.explicit_tags && q.rate.on && q.rate.counter && !q.rate.drop_resets);
    assert_true(q.rate.counter_max == 100.5 && q.rate.reset_value == 5);
    assert_true(q.downsample.on && q.downsample.function == QUERY_MAX &&
                q.downsample.fill == QUERY_FILL_ZERO);
    assert_int_equal(q.filter_count, 5);
    assert_filter(&q.filters[0], QUERY_WILDCARD, "host", "*", true);
    assert_filter(&q.filters[1], QUERY_LITERAL_OR, "dc", "a|b", true);
    assert_filter(&q.filters[2], QUERY_IWILDCARD, "rack", "R1*", true);
    assert_filter(&q.filters[3], QUERY_NOT_LITERAL_OR, "job", "a|b", false);
    assert_filter(&q.filters[4], QUERY_REGEXP, "gpu", "^x(1,2){1,3}$", false);
    assert_true(q.start_ns == 5 && q.end_ns == 6);
    arena_free(&arena);
}

static void forms_of_m(void **state)
{
    (void)state;
    static const struct {
        const char *m, *metric;
        size_t filters;
        bool rate, downsample;
    } facts[] = {
        {"sum:m", "m", 0, false, false},
        {"sum:rate:m", "m", 0, true, false},
        {"sum:1m-avg:rate:m{}", "m", 0, true, true},
        {"sum:rate:1m-avg:m{}{}", "m", 0, true, true},
        {"none:m{}{host=a}", "m", 1, false, false},
        {"sum:app:train:loss{host=a}", "app:train:loss", 1, false, false}, // names may contain ':'
        {"sum:rate", "rate", 0, false, false},
        {"sum:1s-avg", "1s-avg", 0, false, false}, // the last part is the metric
        {"sum:m{ host = a , b = c }", "m", 2, false, false},
        {"sum:m{url=a:b/c}", "m", 1, false, false},
        {"sum:rate{dropcounter}:m", "m", 0, true, false},
        {"sum:rate{counter,,}:m", "m", 0, true, false},
        {"sum:m{k=not_key()}", "m", 1, false, false},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        struct query q = {0};
        struct error e = {0};
        if (query_parse_m(str_of(facts[i].m), &arena, &q, &e))
            fail_msg("%s: %s", facts[i].m, e.text);
        assert_str_equal(q.metric, facts[i].metric);
        assert_int_equal(q.filter_count, facts[i].filters);
        assert_int_equal(q.rate.on, facts[i].rate);
        assert_int_equal(q.downsample.on, facts[i].downsample);
    }
    arena_free(&arena);
}

// OpenTSDB ignores the case of these words.
static void words_without_case(void **state)
{
    (void)state;
    struct query_downsample d;
    assert_int_equal(query_parse_downsample(STR("1M-avg-NaN"), &d, NULL), 0);
    assert_true(d.unit == 'm' && d.interval == INT64_C(60000000000) && d.fill == QUERY_FILL_NAN);
    assert_int_equal(query_parse_downsample(STR("1MS-avg-Zero"), &d, NULL), 0);
    assert_true(d.unit == 'a' && d.interval == 1000000 && d.fill == QUERY_FILL_ZERO);
    int64_t ns;
    assert_int_equal(query_parse_time(STR("NOW"), NOW, STR(""), &ns, NULL), 0);
    assert_int_equal(ns, NOW);
    assert_int_equal(query_parse_time(STR("2H-AGO"), NOW, STR(""), &ns, NULL), 0);
    assert_int_equal(ns, NOW - INT64_C(7200000000000));
    struct arena arena = {0};
    struct query q = {0};
    assert_int_equal(query_parse_m(STR("sum:1M-avg:RATE{Counter,,}:Explicit_Tags:m{k=RegExp(x)}"),
                                   &arena, &q, NULL),
                     0);
    assert_true(q.rate.on && q.rate.counter && q.explicit_tags && q.downsample.on);
    assert_filter(&q.filters[0], QUERY_REGEXP, "k", "x", true);
    arena_free(&arena);
}

static void queries_that_ask_the_same(void **state)
{
    (void)state;
    static const char *const different[] = {"sum:m",
                                            "avg:m",
                                            "sum:n",
                                            "sum:1s-avg:m",
                                            "sum:2s-avg:m",
                                            "sum:1s-max:m",
                                            "sum:1s-avg-nan:m",
                                            "sum:1sc-avg:m",
                                            "sum:0all-avg:m",
                                            "sum:rate:m",
                                            "sum:rate{counter}:m",
                                            "sum:rate{counter,9}:m",
                                            "sum:rate{counter,9,8}:m",
                                            "sum:rate{dropcounter}:m",
                                            "sum:explicit_tags:m",
                                            "sum:m{a=b}",
                                            "sum:m{a=c}",
                                            "sum:m{b=b}",
                                            "sum:m{}{a=b}",
                                            "sum:m{a=b,c=d}",
                                            "sum:m{a=wildcard(b*)}"};
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof different / sizeof *different; i++)
        for (size_t k = 0; k < sizeof different / sizeof *different; k++) {
            struct query a = {.end_ns = 5}, b = {.end_ns = 5};
            assert_int_equal(query_parse_m(str_of(different[i]), &arena, &a, NULL), 0);
            assert_int_equal(query_parse_m(str_of(different[k]), &arena, &b, NULL), 0);
            assert_int_equal(query_equal(&a, &b), i == k);
            b.end_ns = 6;
            assert_false(query_equal(&a, &b));
        }
    arena_free(&arena);
}

static void no_m(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "sum",
                                      "sum:",
                                      ":m",
                                      "mean:m",
                                      "sum:m{",
                                      "sum:m{host}",
                                      "sum:m{=a}",
                                      "sum:m{host=}",
                                      "sum:m{host=a",
                                      "sum:m}x{",
                                      "sum:m{a=b}{c=d}{e=f}",
                                      "sum:m{a=b}x",
                                      "sum:{a=b}",
                                      "sum:rate:rate:m",
                                      "sum:1m-avg:1m-avg:m",
                                      "sum:1m-avg-bad:m",
                                      "sum:explicit_tags:explicit_tags:m",
                                      "sum:rate{}:m",
                                      "sum:rate{gauge}:m",
                                      "sum:rate{counter,x}:m",
                                      "sum:rate{counter,1,2,3}:m",
                                      "sum:rate{counter,-1}:m",
                                      "sum:m{a=nope(b)}",
                                      "sum:m{a=wildcard(b)}",
                                      "sum:m{a=not_key(b)}",
                                      "sum:m{a=literal_or()}",
                                      "sum:1m-none:m",
                                      "sum:m{a=regexp((x)\\1)}",
                                      "sum:m{a=regexp(((x{100}){100}))}"};
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct query q = {0};
        struct error e = {0};
        if (query_parse_m(str_of(bad[i]), &arena, &q, &e) != -EINVAL || !e.text[0])
            fail_msg("'%s' was taken", bad[i]);
    }
    // One filter above the limit.
    char long_m[2048] = "sum:m{k=v";
    for (int i = 0; i < QUERY_FILTERS_MAX; i++)
        strcat(long_m, ",k=v");
    strcat(long_m, "}");
    struct query q = {0};
    struct error e = {0};
    assert_int_equal(query_parse_m(str_of(long_m), &arena, &q, &e), -EINVAL);
    assert_non_null(strstr(e.text, "64 filters"));
    arena_free(&arena);
}

static int parse(const char *body, struct arena *arena, struct query_request *out, struct error *e)
{
    return query_parse_json(str_of(body), NOW, arena, out, e);
}

// Bodies from Grafana's clients.
static void what_grafana_sends(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct query_request r = {0};
    struct error e;
    static const char browser[] =
        "{\"start\":1666166118430,\"queries\":[{\"metric\":\"cpu\",\"aggregator\":\"sum\","
        "\"rate\":true,\"rateOptions\":"
        "{\"counter\":true,\"counterMax\":100,\"resetValue\":5,\"dropResets\":false},"
        "\"downsample\":\"20s-avg-nan\",\"filters\":"
        "[{\"type\":\"literal_or\",\"tagk\":\"host\",\"filter\":\"a|b\",\"groupBy\":true}],"
        "\"explicitTags\":true}],\"msResolution\":false,"
        "\"globalAnnotations\":true,\"showQuery\":true,\"end\":1666187718431}";
    if (parse(browser, &arena, &r, &e))
        fail_msg("%s", e.text);
    assert_int_equal(r.count, 1);
    const struct query *q = &r.queries[0];
    assert_int_equal(q->start_ns, INT64_C(1666166118430000000));
    assert_int_equal(q->end_ns, INT64_C(1666187718431000000));
    assert_true(r.global_annotations && r.show_query && !r.ms_resolution && !r.show_tsuids &&
                !r.delete_requested);
    assert_str_equal(q->metric, "cpu");
    assert_true(q->rate.on && q->rate.counter && q->rate.counter_max == 100 &&
                q->rate.reset_value == 5 && !q->rate.drop_resets);
    assert_true(q->downsample.on && q->downsample.interval == INT64_C(20000000000) &&
                q->downsample.fill == QUERY_FILL_NAN);
    assert_true(q->explicit_tags);
    assert_int_equal(q->filter_count, 1);
    assert_filter(&q->filters[0], QUERY_LITERAL_OR, "host", "a|b", true);

    static const char go[] =
        "{\"start\":1666166118,\"end\":1666187718,\"queries\":[{\"aggregator\":\"sum\","
        "\"downsample\":\"20s-avg\",\"explicitTags\":true,"
        "\"filters\":[],\"metric\":\"cpu\",\"rate\":true,\"rateOptions\":{\"counter\":false,"
        "\"counterMax\":1.8446744073709552e19,"
        "\"dropResets\":true},\"tags\":{\"host\":\"*\"}}]}";
    if (parse(go, &arena, &r, &e))
        fail_msg("%s", e.text);
    q = &r.queries[0];
    assert_int_equal(q->start_ns, INT64_C(1666166118000000000));
    assert_int_equal(q->end_ns, INT64_C(1666187718000000000));
    assert_true(!q->rate.counter && q->rate.drop_resets &&
                q->rate.counter_max == 18446744073709551616.0);
    assert_filter(&q->filters[0], QUERY_WILDCARD, "host", "*", true);

    static const char others[] =
        "{\"start\":\"1h-ago\",\"end\":null,\"useCalendar\":true,\"timezone\":\"Europe/"
        "Berlin\",\"unknown\":{\"x\":[1,2]},\"queries\":["
        "{\"aggregator\":\"none\",\"metric\":\"a\",\"tags\":[],\"filters\":null,"
        "\"downsample\":\"1d-sum\",\"rateOptions\":null},"
        "{\"aggregator\":\"p99\",\"metric\":\"b\",\"tags\":{\"h\":\"web*\",\"i\":\"regexp(x)"
        "\"},\"rateOptions\":{\"counterMax\":18446744073709552000},"
        "\"downsample\":null,\"rate\":false}]}";
    if (parse(others, &arena, &r, &e))
        fail_msg("%s", e.text);
    assert_int_equal(r.count, 2);
    q = r.queries;
    assert_int_equal(q[0].start_ns, NOW - INT64_C(3600000000000));
    assert_int_equal(q[0].end_ns, NOW);
    assert_true(q[0].downsample.calendar && q[0].downsample.interval == 1 &&
                q[0].downsample.unit == 'd');
    assert_str_equal(q[0].downsample.time_zone, "Europe/Berlin");
    assert_int_equal(q[0].filter_count, 0);
    assert_int_equal(q[1].filter_count, 2);
    assert_filter(&q[1].filters[0], QUERY_IWILDCARD, "h", "web*", true);
    assert_filter(&q[1].filters[1], QUERY_REGEXP, "i", "x", true);
    assert_false(q[1].downsample.on);

    // Of "tags" and "filters", the last one counts unless it is empty; an empty "end" means now.
    static const char both[] =
        "{\"start\":1,\"end\":\"\",\"queries\":[{\"aggregator\":\"sum\",\"metric\":\"m\","
        "\"tags\":{\"dc\":\"x\"},\"filters\":[{\"type\":\"Literal_OR\",\"tagk\":\"host\","
        "\"filter\":\"a\",\"group_by\":true}]}]}";
    if (parse(both, &arena, &r, &e))
        fail_msg("%s", e.text);
    assert_int_equal(r.queries[0].end_ns, NOW);
    assert_int_equal(r.queries[0].filter_count, 1);
    // "group_by" is accepted, too
    assert_filter(&r.queries[0].filters[0], QUERY_LITERAL_OR, "host", "a", true);
    static const char turned[] =
        "{\"start\":1,\"queries\":[{\"aggregator\":\"sum\",\"metric\":\"m\",\"filters\":[{\"type\":"
        "\"literal_or\","
        "\"tagk\":\"host\",\"filter\":\"a\"}],\"tags\":{\"dc\":\"x\"}},{\"aggregator\":\"sum\","
        "\"metric\":\"m\","
        "\"filters\":[{\"type\":\"literal_or\",\"tagk\":\"host\",\"filter\":\"a\"}],\"tags\":{}}]}";
    if (parse(turned, &arena, &r, &e))
        fail_msg("%s", e.text);
    assert_int_equal(r.queries[0].filter_count, 1);
    assert_filter(&r.queries[0].filters[0], QUERY_LITERAL_OR, "dc", "x", true);
    assert_int_equal(r.queries[1].filter_count, 1);
    assert_filter(&r.queries[1].filters[0], QUERY_LITERAL_OR, "host", "a", false);
    arena_free(&arena);
}

static void what_dragon_sends(void **state)
{
    (void)state;
    static const char body[] = "{\"start\":1,\"queries\":[{\"aggregator\":\"sum\","
                               "\"downsampleAggregator\":\"avg\",\"downsampleFillPolicy\":"
                               "\"none\",\"filters\":"
                               "[{\"filter\":\"*\",\"groupBy\":false,\"tagk\":\"host\",\"type\":"
                               "\"wildcard\"}],\"metric\":\"load_average\"}]}";
    struct arena arena = {0};
    struct query_request r = {0};
    assert_int_equal(parse(body, &arena, &r, NULL), 0);
    assert_filter(&r.queries[0].filters[0], QUERY_WILDCARD, "host", "*", false);
    r = (struct query_request){.dragon_compatible = true};
    assert_int_equal(parse(body, &arena, &r, NULL), 0);
    assert_true(r.dragon_compatible);
    assert_filter(&r.queries[0].filters[0], QUERY_WILDCARD, "host", "*", true);
    arena_free(&arena);
}

static void invalid_bodies_are_refused(void **state)
{
    (void)state;
#define Q "\"queries\":[{\"aggregator\":\"sum\",\"metric\":\"m\""
    static const struct {
        const char *body, *why;
    } bad[] = {
        {"", "not valid JSON"},
        {"{", "not valid JSON"},
        {"[]", "must be a JSON object"},
        {"{}", "Missing start time"},
        {"{\"start\":null," Q "}]}", "Missing start time"},
        {"{\"start\":1}", "Missing queries"},
        {"{\"start\":1,\"queries\":[]}", "Missing queries"},
        {"{\"start\":1,\"queries\":{}}", "Missing queries"},
        {"{\"start\":1,\"queries\":[5]}", "must be an object"},
        {"{\"start\":1,\"queries\":[{\"metric\":\"m\"}]}", "Missing the aggregation function"},
        {"{\"start\":1,\"queries\":[{\"aggregator\":\"mean\",\"metric\":\"m\"}]}",
         "No such aggregation function: mean"},
        {"{\"start\":1,\"queries\":[{\"aggregator\":\"sum\"}]}", "Missing the metric"},
        {"{\"start\":1,\"queries\":[{\"aggregator\":5,\"metric\":\"m\"}]}",
         "'aggregator' must be a string"},
        {"{\"start\":5,\"end\":4," Q "}]}", "lies before its start"},
        {"{\"start\":-1," Q "}]}", "'start' must be a time"},
        {"{\"start\":[]," Q "}]}", "'start' must be a time"},
        {"{\"start\":9223372036854775808," Q "}]}", "'start' must be a time"},
        {"{\"start\":999999999999999," Q "}]}", "beyond the year 2262"},
        {"{\"start\":\"x\"," Q "}]}", "Invalid time: 'x'"},
        {"{\"start\":NaN," Q "}]}", "not valid JSON"},
        {"{\"start\":1e400," Q "}]}", "not valid JSON"},
        {"{\"start\":1," Q ",\"downsample\":\"10m-avg-badbadbad\"}]}",
         "Unrecognized fill policy: badbadbad"},
        {"{\"start\":1," Q ",\"tags\":[1]}]}", "'tags' must be an object"},
        {"{\"start\":1," Q ",\"tags\":{\"host\":null}}]}",
         "Filter cannot be null or empty: the tag 'host'"},
        {"{\"start\":1," Q ",\"tags\":{\"a\":5}}]}", "The tag 'a' must be a string"},
        {"{\"start\":1," Q ",\"filters\":{}}]}", "'filters' must be an array"},
        {"{\"start\":1," Q ",\"filters\":[5]}]}", "A filter must be an object"},
        {"{\"start\":1," Q ",\"filters\":[{\"type\":\"x\",\"tagk\":\"a\",\"filter\":\"b\"}]}]}",
         "No such filter: 'x'"},
        {"{\"start\":1," Q
         ",\"filters\":[{\"type\":\"wildcard\",\"tagk\":\"a\",\"filter\":\"b\"}]}]}",
         "asterisk"},
        {"{\"start\":1," Q ",\"filters\":[{\"type\":\"wildcard\",\"filter\":\"*\"}]}]}",
         "Missing tag key"},
        {"{\"start\":1," Q ",\"rateOptions\":{\"counterMax\":-1}}]}",
         "'counterMax' must be a number"},
        {"{\"start\":1," Q ",\"rateOptions\":{\"resetValue\":\"x\"}}]}",
         "'resetValue' must be a number"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "nested 32 deep"},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct query_request r = {0};
        struct error e = {0};
        if (parse(bad[i].body, &arena, &r, &e) != -EINVAL || !strstr(e.text, bad[i].why))
            fail_msg("%s: %s", bad[i].body, e.text);
    }
    arena_free(&arena);
}

static void memory_is_bounded_by_the_arena(void **state)
{
    (void)state;
    struct arena arena = arena_limited(200);
    struct query_request r = {0};
    struct query q = {0};
    struct error e = {0};
    assert_int_equal(parse("{\"start\":1,\"queries\":[{\"aggregator\":\"sum\",\"metric\":\"m\"}]}",
                           &arena, &r, &e),
                     -ENOMEM);
    assert_int_equal(query_parse_m(STR("sum:m{a=b}"), &arena, &q, &e), -ENOMEM);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(downsamplings),
        cmocka_unit_test(invalid_downsamplings_are_refused),
        cmocka_unit_test(aggregators_have_names),
        cmocka_unit_test(a_whole_m),
        cmocka_unit_test(forms_of_m),
        cmocka_unit_test(words_without_case),
        cmocka_unit_test(queries_that_ask_the_same),
        cmocka_unit_test(no_m),
        cmocka_unit_test(what_grafana_sends),
        cmocka_unit_test(what_dragon_sends),
        cmocka_unit_test(invalid_bodies_are_refused),
        cmocka_unit_test(memory_is_bounded_by_the_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
