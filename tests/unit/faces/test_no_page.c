// A build without node: `/` explains how to get the page, and where the data is; the routes of the
// data do not change. The empty list of files replaces the one that embed.py makes.
#include "faces/web/page.h"
#include "unit/test.h"

const struct page_file page_files[] = {{{0}, 0, {0}, {0}, 0}};
const size_t page_file_count = 0;

static void answer(const char *target, struct answer *a)
{
    struct request r = {.method = METHOD_GET};
    assert_int_equal(request_parse_target(&r, str_of(target), NULL), 0);
    answer_begin(a, 0);
    page_show(NULL, &r, a);
    request_free(&r);
}

static void the_start_page_is_a_message(void **unused)
{
    (void)unused;
    struct answer a;
    answer("/", &a);
    assert_int_equal(a.status, 200);
    assert_string_equal(a.content_type, "text/html; charset=UTF-8");
    struct str text = buf_str(&a.body);
    assert_true(str_find(text, STR("built without the page")) >= 0);
    assert_true(str_find(text, STR("Install nodejs")) >= 0);
    assert_true(str_find(text, STR("sonde query")) >= 0);
    assert_true(str_find(text, STR("<script")) < 0);
    answer_free(&a);
}

static void its_parts_are_errors(void **unused)
{
    (void)unused;
    const char *const parts[] = {"/page.js?v=1", "/page.css"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct answer a;
        answer(parts[i], &a);
        assert_int_equal(a.status, 501);
        assert_true(str_find(buf_str(&a.body), STR("built without the page")) >= 0);
        answer_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_start_page_is_a_message),
        cmocka_unit_test(its_parts_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
