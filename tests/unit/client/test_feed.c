// The stream of a watch: which queries it supports, and how its data is divided.
#include "base/bytes.h"
#include "client/feed.h"
#include "unit/test.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

// Returns the decoded m= of the path; NULL if a stream does not support the query.
static const char *selection(const struct sonde_query *q)
{
    static const char before[] = "/sonde/v1/stream?format=binary&m=";
    static char text[256];
    struct buf path = {0};
    size_t n = 0;
    if (!feed_path(q, &path)) {
        buf_free(&path);
        return NULL;
    }
    assert_true(str_starts(buf_str(&path), str_of(before)));
    for (const char *at = buf_cstr(&path) + sizeof before - 1; *at && n < sizeof text - 1;
         at += 3) {
        char hex[3] = {at[1], at[2], 0};
        assert_true(*at == '%' && isxdigit(hex[0]) && isxdigit(hex[1]));
        text[n++] = (char)strtol(hex, NULL, 16);
    }
    text[n] = 0;
    buf_free(&path);
    return text;
}

static void test_what_a_stream_follows(void **state)
{
    (void)state;
    static const struct {
        const char *m, *follows;
    } rows[] = {
        {"none:loss", "loss"},
        {"none:loss{}", "loss"},
        {"none:loss{rank=*}", "loss{rank=*}"},
        {"none:a.b/c-d{host=n1,rank=3}", "a.b/c-d{host=n1,rank=3}"},
        {"none:loss{rank=3|4}", NULL},
        {"none:loss{host=n*}", NULL},
        {"none:loss{host=regexp(n.)}", NULL},
        {"none:loss{rank=3}{host=n1}", NULL},
        {"none:loss{rank}", NULL},
        {"none:loss{rank=3", NULL},
        {"none:loss{=3}", NULL},
        {"none:loss{rank=}", NULL},
        {"none:rate:loss", NULL},
        {"none:1s-avg:loss", NULL},
        {"none:", NULL},
        {"none:a b", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *got = selection(&(struct sonde_query){.m = rows[i].m});
        if (!got != !rows[i].follows || (got && strcmp(got, rows[i].follows) != 0))
            fail_msg("%s: %s", rows[i].m, got ? got : "nothing");
    }
}

static void test_what_a_stream_follows_by_name(void **state)
{
    (void)state;
    static const struct {
        struct sonde_filter filter;
        const char *follows;
    } rows[] = {
        {{"rank", NULL, "3", false}, "loss{host=n1,rank=3}"},
        {{"rank", NULL, "*", true}, "loss{host=n1,rank=*}"},
        {{"rank", "literal_or", "3", false}, "loss{host=n1,rank=3}"},
        {{"rank", "wildcard", "*", false}, "loss{host=n1,rank=*}"},
        {{"rank", "literal_or", "*", false}, NULL}, // a value that is literally "*"
        {{"rank", "wildcard", "3*", false}, NULL},
        {{"rank", "regexp", "3", false}, NULL},
        {{"rank", "not_literal_or", "3", false}, NULL},
        {{"rank", NULL, "3|4", false}, NULL},
        {{"rank", NULL, "a,b=c", false}, NULL},
        {{"ra}nk", NULL, "3", false}, NULL},
        {{"rank", NULL, NULL, false}, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sonde_filter both[] = {{"host", NULL, "n1", false}, rows[i].filter};
        const char *got =
            selection(&(struct sonde_query){.metric = "loss", .filters = both, .filter_count = 2});
        if (!got != !rows[i].follows || (got && strcmp(got, rows[i].follows) != 0))
            fail_msg("%zu: %s", i, got ? got : "nothing");
    }
    const struct sonde_query others[] = {
        {.metric = "loss", .rate = true},
        {.metric = "loss", .explicit_tags = true},
        {.metric = "loss", .aggregator = "sum"},
        {.metric = "lo ss"},
        {.metric = "lo{ss"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_null(selection(&others[i]));
    assert_string_equal(selection(&(struct sonde_query){.metric = "a:b", .aggregator = "none"}),
                        "a:b");
}

static void test_cut(void **state)
{
    (void)state;
    struct buf all = {0};
    struct str rest, piece;
    buf_u64(&all, 0);
    buf_u64(&all, 3);
    buf_add_str(&all, STR("abc"));
    buf_u64(&all, 1);
    buf_add_str(&all, STR("d"));
    static const char *const pieces[] = {"", "abc", "d"};
    static const size_t ends[] = {8, 19, 28};
    for (size_t size = 0; size <= all.size; size++) {
        rest = str_slice(buf_str(&all), 0, size);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(feed_cut(&rest, &piece), size >= ends[i]);
            if (size < ends[i])
                break;
            assert_true(str_eq(piece, str_of(pieces[i])));
            assert_int_equal(rest.size, size - ends[i]);
        }
    }
    all.size = 0;
    buf_u64(&all, FEED_PIECE_MAX + 1);
    rest = buf_str(&all);
    assert_int_equal(feed_cut(&rest, &piece), -EBADMSG);
    all.size = 0;
    buf_u64(&all, UINT64_MAX);
    rest = buf_str(&all);
    assert_int_equal(feed_cut(&rest, &piece), -EBADMSG);
    buf_free(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_stream_follows),
        cmocka_unit_test(test_what_a_stream_follows_by_name),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
