#include "aggregator/routes.h"
#include "faces/web/page.h"
#include "unit/test.h"

#include <stdlib.h>
#include <zlib.h>

static const char *header_of(const struct answer *a, const char *name)
{
    for (size_t i = 0; i < a->header_count; i++)
        if (strcmp(a->headers[i].name, name) == 0)
            return a->headers[i].value;
    return "";
}

static const char contents[] = "body { color: black } body { color: black } body { color: black }";
static struct page_file file = {{"/page.css", 9},
                                "text/css; charset=UTF-8",
                                {"0123456789abcdef", 16},
                                {0},
                                sizeof contents - 1};
static unsigned char packed[256];

static int pack(void **state)
{
    (void)state;
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)contents,
                  .avail_in = sizeof contents - 1,
                  .next_out = packed,
                  .avail_out = sizeof packed};
    deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    file.gzip = (struct str){(const char *)packed, sizeof packed - z.avail_out};
    deflateEnd(&z);
    return 0;
}

struct asked {
    const char *target, *encoding, *if_none_match;
};

static void ask(struct asked asked, struct request *r, struct answer *a)
{
    *r = (struct request){.method = METHOD_GET};
    assert_int_equal(request_parse_target(r, str_of(asked.target), NULL), 0);
    r->headers[HEADER_ACCEPT_ENCODING] = str_of(asked.encoding ? asked.encoding : "");
    r->headers[HEADER_IF_NONE_MATCH] = str_of(asked.if_none_match ? asked.if_none_match : "");
    answer_begin(a, 0);
    page_answer(&file, 1, r, a);
}

static void test_files(void **state)
{
    (void)state;
    static const struct {
        struct asked asked;
        int status;
        bool gzip, immutable;
    } rows[] = {
        {{"/page.css", "gzip, br", NULL}, 200, true, false},
        {{"/page.css", NULL, NULL}, 200, false, false},
        {{"/page.css", "gzip;q=0", NULL}, 200, false, false},
        {{"/page.css?v=0123456789abcdef", "gzip", NULL}, 200, true, true},
        {{"/page.css?v=0123456789abcdee", "gzip", NULL}, 200, true, false}, // from another build
        {{"/page.css", "gzip", "\"0123456789abcdef\""}, 304, false, false},
        {{"/page.css", "gzip", "\"x\", W/\"0123456789abcdef\""}, 304, false, false},
        {{"/page.css", "gzip", "*"}, 304, false, false},
        {{"/page.css", "gzip", "\"0123456789abcde\""}, 200, true, false},
        {{"/page.css", "gzip", "0123456789abcdef"}, 200, true, false},
        {{"/page.css", "gzip", "\""}, 200, true, false},
        {{"/page.js", "gzip", NULL}, 501, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct request r;
        struct answer a;
        ask(rows[i].asked, &r, &a);
        assert_int_equal(a.status, rows[i].status);
        if (a.status == 501) {
            assert_null(a.policy);
        } else {
            assert_non_null(strstr(a.policy, "script-src 'self'"));
            assert_null(strstr(a.policy, "unsafe"));
            assert_non_null(strstr(a.cache, rows[i].immutable ? "immutable" : "no-cache"));
            assert_string_equal(header_of(&a, "ETag"), "\"0123456789abcdef\"");
            assert_string_equal(header_of(&a, "Vary"), "Accept-Encoding");
        }
        assert_string_equal(header_of(&a, "Content-Encoding"), rows[i].gzip ? "gzip" : "");
        struct str body = buf_str(&a.body);
        if (a.status == 200)
            assert_true(rows[i].gzip ? str_eq(body, file.gzip) : str_eq(body, STR(contents)));
        if (a.status == 304)
            assert_int_equal(body.size, 0);
        answer_free(&a);
        request_free(&r);
    }
}

static void test_damaged(void **state)
{
    (void)state;
    struct page_file good = file;
    struct request r;
    struct answer a;
    file.size_bytes++; // the contents end before the stated size
    ask((struct asked){"/page.css", NULL, NULL}, &r, &a);
    assert_int_equal(a.status, 500);
    answer_free(&a);
    request_free(&r);
    file.size_bytes -= 2;
    ask((struct asked){"/page.css", NULL, NULL}, &r, &a);
    assert_int_equal(a.status, 500);
    answer_free(&a);
    request_free(&r);
    file = good;
}

// A file that is already compressed is not compressed again, however large it is.
static void test_compressed_once(void **state)
{
    (void)state;
    struct request r = {.method = METHOD_GET};
    struct answer a;
    static char gzip[] = "gzip";
    assert_int_equal(request_parse_target(&r, STR("/"), NULL), 0);
    r.headers[HEADER_ACCEPT_ENCODING] = STR("gzip");
    answer_begin(&a, 0);
    answer_header(&a, "Content-Encoding", gzip);
    for (int i = 0; i < ANSWER_GZIP_FROM_BYTES; i++)
        buf_add_char(&a.body, 'x');
    answer_finish(&a, &r);
    assert_int_equal(a.body.size, ANSWER_GZIP_FROM_BYTES);
    assert_int_equal(a.header_count, 1);
    answer_free(&a);
    request_free(&r);
}

static void test_message(void **state)
{
    (void)state;
    struct answer a;
    answer_begin(&a, 0);
    page_message(&a, "<script>", "a & \"b\"", NULL);
    assert_true(str_find(buf_str(&a.body),
                         STR("<h1>&#60;script&#62;</h1><p>a &#38; &#34;b&#34;</p>")) >= 0);
    assert_string_equal(a.content_type, "text/html; charset=UTF-8");
    answer_free(&a);
}

// A person gets instructions; a program gets the error as before.
static void test_without_a_token(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        enum request_method method;
        int status;
        bool page;
    } rows[] = {{"text/html,*/*", METHOD_GET, 401, true},
                {"*/*", METHOD_GET, 401, false},
                {"", METHOD_GET, 401, false},
                {"text/html", METHOD_POST, 401, false},
                {"text/html", METHOD_GET, 403, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct request r = {.method = rows[i].method};
        struct answer a;
        r.headers[HEADER_ACCEPT] = str_of(rows[i].accept);
        answer_begin(&a, 0);
        answer_error(&a, rows[i].status, "a token is needed", NULL);
        page_for_people(&r, &a);
        assert_int_equal(a.status, rows[i].status);
        assert_int_equal(str_starts(buf_str(&a.body), STR("<!doctype html>")), rows[i].page);
        answer_free(&a);
        request_free(&r);
    }
}

// The files of this build: each can be unpacked, and has a route that needs a role.
static void test_embedded(void **state)
{
    (void)state;
    size_t route_count, total_bytes = 0;
    const struct route *routes = routes_all(&route_count);
    for (size_t i = 0; i < page_file_count; i++) {
        const struct page_file *f = &page_files[i];
        struct request r = {.method = METHOD_GET};
        struct answer a;
        bool routed = false;
        for (size_t j = 0; j < route_count; j++)
            routed |= str_eq(routes[j].path, f->path) && routes[j].access == ACCESS_VIEW;
        assert_true(routed);
        assert_int_equal(request_parse_target(&r, f->path, NULL), 0);
        answer_begin(&a, 0);
        page_answer(page_files, page_file_count, &r, &a);
        assert_int_equal(a.status, 200);
        assert_int_equal(a.body.size, f->size_bytes);
        total_bytes += f->gzip.size;
        answer_free(&a);
        request_free(&r);
    }
    assert_true(total_bytes <= 200 * 1024); // the page's limit
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),           cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_compressed_once), cmocka_unit_test(test_message),
        cmocka_unit_test(test_without_a_token), cmocka_unit_test(test_embedded),
    };
    return cmocka_run_group_tests_name("page", tests, pack, NULL);
}
