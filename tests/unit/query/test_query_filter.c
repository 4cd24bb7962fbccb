// One filter on one value; invalid filters.
#include "query/filter.h"
#include "unit/test.h"

#include <errno.h>
#include <stdlib.h>

static void values_that_match(void **state)
{
    (void)state;
    static const struct {
        enum query_filter_kind kind;
        const char *text, *value;
        bool match;
    } facts[] = {
        {QUERY_LITERAL_OR, "a|b", "a", true},
        {QUERY_LITERAL_OR, "a|b", "b", true},
        {QUERY_LITERAL_OR, "a|b", "A", false},
        {QUERY_LITERAL_OR, "a|b", "a|b", false},
        {QUERY_LITERAL_OR, "a||b", "", false},
        {QUERY_ILITERAL_OR, "a|B", "b", true},
        {QUERY_ILITERAL_OR, "a|B", "c", false},
        {QUERY_NOT_LITERAL_OR, "a|b", "a", false},
        {QUERY_NOT_LITERAL_OR, "a|b", "A", true},
        {QUERY_NOT_ILITERAL_OR, "a|b", "A", false},
        {QUERY_NOT_ILITERAL_OR, "a|b", "c", true},
        {QUERY_WILDCARD, "ogg*ops*ank*com", "ogg-01.ops.ankh.morpork.com", true},
        {QUERY_WILDCARD, "Ogg*", "ogg-01.ops.ankh.morpork.com", false},
        {QUERY_IWILDCARD, "Ogg*", "ogg-01.ops.ankh.morpork.com", true},
        {QUERY_WILDCARD, "*", "", true},
        {QUERY_WILDCARD, "*", "x", true},
        {QUERY_WILDCARD, "*com", "a.com.com", true},
        {QUERY_WILDCARD, "a*b", "acb", true},
        {QUERY_WILDCARD, "a*b", "acbd", false},
        {QUERY_WILDCARD, "a*", "ba", false},
        {QUERY_WILDCARD, "**a**", "bab", true},
        {QUERY_WILDCARD, "*aab", "aaaaaab", true},
        {QUERY_REGEXP, "ops", "ogg-01.ops.ankh", true}, // unanchored
        {QUERY_REGEXP, "^ops", "ogg-01.ops.ankh", false},
        {QUERY_REGEXP, "^ogg-\\d+\\.", "ogg-01.ops", true},
        {QUERY_REGEXP, "^\\D+$", "abc", true},
        {QUERY_REGEXP, "^\\D+$", "abc1", false},
        {QUERY_REGEXP, "a{2,3}", "caab", true},
        {QUERY_REGEXP, "x|y", "by", true},
        {QUERY_REGEXP, "^[^]{}]+-[[:digit:]{]{1,3}$", "rack-17", true},
        {QUERY_REGEXP, "^(a+b+c+d+e+f+g+h+i+j+)+$", "abcdefghij", true},
        {QUERY_REGEXP, "^a.*?b+?c??d++$", "axxbbdd", true},
        {QUERY_REGEXP, "^a.*?b+?c??d++$", "axxbb", false},
        {QUERY_REGEXP, "^[+?]+?$", "+?+", true},
        {QUERY_REGEXP, "^a{2}?b", "aab", true},
        {QUERY_REGEXP, "[{]1000}", "{1000}", true},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        struct query_filter f = {facts[i].kind, STR("k"), str_of(facts[i].text), false};
        struct query_matcher m;
        assert_int_equal(query_matcher_init(&m, &f, NULL), 0);
        if (query_matcher_test(&m, str_of(facts[i].value)) != facts[i].match)
            fail_msg("%s(%s) of '%s'", query_filter_name(f.kind).data, facts[i].text,
                     facts[i].value);
        query_matcher_fini(&m);
    }
}

// A long list is hashed, and gives the same result as a short list.
static void a_long_list_is_a_list(void **state)
{
    (void)state;
    static const struct {
        enum query_filter_kind kind;
        const char *value;
        bool match;
    } facts[] = {
        {QUERY_LITERAL_OR, "n7", true},       {QUERY_LITERAL_OR, "N7", false},
        {QUERY_LITERAL_OR, "", false},        {QUERY_LITERAL_OR, "n7|N8", false},
        {QUERY_LITERAL_OR, "n", false},       {QUERY_ILITERAL_OR, "N7", true},
        {QUERY_ILITERAL_OR, "n8", true},      {QUERY_ILITERAL_OR, "n1000", false},
        {QUERY_NOT_LITERAL_OR, "n8", true},   {QUERY_NOT_LITERAL_OR, "N8", false},
        {QUERY_NOT_ILITERAL_OR, "n8", false}, {QUERY_NOT_ILITERAL_OR, "x", true},
        {QUERY_NOT_ILITERAL_OR, "", true},
    };
    struct buf text = {0};
    for (int i = 0; i < 1000; i++)
        buf_printf(&text, "|%c%d|", i % 2 ? 'n' : 'N', i); // and no value between two of them
    assert_true(text.size >= QUERY_FILTER_LONG);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        struct query_filter f = {facts[i].kind, STR("k"), buf_str(&text), false};
        struct query_matcher m;
        assert_int_equal(query_matcher_init(&m, &f, NULL), 0);
        if (query_matcher_test(&m, str_of(facts[i].value)) != facts[i].match)
            fail_msg("%s of '%s'", query_filter_name(f.kind).data, facts[i].value);
        query_matcher_fini(&m);
    }
    buf_free(&text);
}

static void many_asterisks_take_little_time(void **state)
{
    (void)state;
    char pattern[402], value[STORE_VALUE_MAX];
    for (size_t i = 0; i < 400; i += 2)
        memcpy(pattern + i, "*a", 2);
    memcpy(pattern + 400, "*b", 2);
    memset(value, 'a', sizeof value);
    struct query_filter f = {QUERY_WILDCARD, STR("k"), {pattern, sizeof pattern}, false};
    struct query_matcher m;
    assert_int_equal(query_matcher_init(&m, &f, NULL), 0);
    // a search in exponential time would never return
    assert_false(query_matcher_test(&m, (struct str){value, sizeof value}));
    query_matcher_fini(&m);
}

static void filters_that_are_refused(void **state)
{
    (void)state;
    char long_pattern[QUERY_REGEXP_MAX + 2];
    memset(long_pattern, 'a', sizeof long_pattern - 1);
    long_pattern[sizeof long_pattern - 1] = 0;
    const struct {
        enum query_filter_kind kind;
        const char *key, *text;
    } bad[] = {
        {QUERY_WILDCARD, "k", "abc"},
        {QUERY_IWILDCARD, "k", "abc"},
        {QUERY_NOT_KEY, "k", "abc"},
        {QUERY_LITERAL_OR, "k", ""},
        {QUERY_LITERAL_OR, "", "x"},
        {QUERY_REGEXP, "k", "("},
        {QUERY_REGEXP, "k", "[a"},
        {QUERY_REGEXP, "k", "(a)\\1"},
        {QUERY_REGEXP, "k", "a{1001}"},
        {QUERY_REGEXP, "k", "(a{40}){40}"},
        {QUERY_REGEXP, "k", "a{99999999999999999999}"},
        {QUERY_REGEXP, "k", "a++++++++++++++++++++++++++++++++++++++++"},
        {QUERY_REGEXP, "k", "((((((((((a+)+)+)+)+)+)+)+)+)+)+"},
        {QUERY_REGEXP, "k", "(((([]a]{9}){9}){9}){9}"},
        {QUERY_REGEXP, "k", "((a{500}|b{500})"},
        {QUERY_REGEXP, "k", "x?????????????????????????+"},
        {QUERY_REGEXP, "k", "a**"},
        {QUERY_REGEXP, "k", "(a*)(b*?+)"},
        {QUERY_REGEXP, "k",
         "((a*)?(b*)?(c*)?(d*)?(e*)?(f*)?(g*)?(h*)?(i*)?(j*)?(k*)?(l*)?(m*)?(n*)?(o*)?(p*)?(q*)?(r*"
         ")?)*"},
        {QUERY_REGEXP, "k",
         "((a|b*)(a|b*)(a|b*)(a|b*)(a|b*)(a|b*)(a|b*)(a|b*)(a|b*)(a|b*)(a|b*)(a|b*)(a|b*)(a|b*))*"},
        {QUERY_REGEXP, "k", long_pattern},
        {QUERY_FILTER_COUNT, "k", "x"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct query_filter f = {bad[i].kind, str_of(bad[i].key), str_of(bad[i].text), false};
        struct query_matcher m;
        struct error e = {0};
        if (query_matcher_init(&m, &f, &e) != -EINVAL || !e.text[0])
            fail_msg("'%s' was taken", bad[i].text);
        query_matcher_fini(&m);
    }
    struct query_filter f = {QUERY_REGEXP, STR("k"), STR("a\0b"), false};
    assert_int_equal(query_filter_check(&f, NULL), -EINVAL);
}

static void names_of_filters(void **state)
{
    (void)state;
    for (unsigned k = 0; k < QUERY_FILTER_COUNT; k++)
        assert_int_equal(query_filter_of(query_filter_name((enum query_filter_kind)k)), k);
    assert_int_equal(query_filter_of(STR("nope")), QUERY_FILTER_COUNT);
    assert_int_equal(query_filter_name(QUERY_FILTER_COUNT).size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_that_match),
        cmocka_unit_test(a_long_list_is_a_list),
        cmocka_unit_test(many_asterisks_take_little_time),
        cmocka_unit_test(filters_that_are_refused),
        cmocka_unit_test(names_of_filters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
