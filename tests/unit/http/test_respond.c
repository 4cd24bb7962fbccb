#include "http/respond.h"
#include "unit/test.h"

#include <errno.h>
#include <zlib.h>

static void test_error(void **state)
{
    (void)state;
    struct answer a;
    answer_begin(&a, 0);
    buf_add_str(&a.body, STR("[half an answer"));
    answer_error(&a, 404, "no \"x\"", "look elsewhere");
    assert_int_equal(a.status, 404);
    assert_string_equal(
        buf_cstr(&a.body),
        "{\"error\":{\"code\":404,\"message\":\"no \\\"x\\\"\",\"details\":\"look elsewhere\"}}");
    answer_free(&a);
}

static void test_failure(void **state)
{
    (void)state;
    static const struct {
        int code, status;
    } rows[] = {{-EINVAL, 400},  {-ENOENT, 400}, {-E2BIG, 413}, {-ETIMEDOUT, 408},
                {-ENOTSUP, 415}, {-ENOMEM, 500}, {-EIO, 500}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct answer a;
        struct error e;
        error_set(&e, rows[i].code, "why");
        answer_begin(&a, 0);
        answer_failure(&a, &e);
        assert_int_equal(a.status, rows[i].status);
        assert_non_null(strstr(buf_cstr(&a.body), "\"message\":\"why\""));
        answer_free(&a);
    }
}

static void finish(struct answer *a, const char *target, const char *accept_encoding)
{
    struct request r = {.method = METHOD_GET};
    assert_int_equal(request_parse_target(&r, str_of(target), NULL), 0);
    r.headers[HEADER_ACCEPT_ENCODING] = str_of(accept_encoding);
    answer_finish(a, &r);
    request_free(&r);
}

static void test_jsonp(void **state)
{
    (void)state;
    struct answer a;
    answer_begin(&a, 0);
    buf_add_str(&a.body, STR("[1]"));
    finish(&a, "/a?jsonp=app.f_1[0]", "");
    assert_string_equal(buf_cstr(&a.body), "/**/app.f_1[0]([1])");
    assert_non_null(strstr(a.content_type, "javascript"));
    answer_free(&a);
    static const char *const wrong[] = {"/a?jsonp=alert(1)//", "/a?jsonp=%3Cscript%3E",
                                        "/a?jsonp=1f", "/a?jsonp=a;b", "/a?jsonp=a+b"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        answer_begin(&a, 0);
        buf_add_str(&a.body, STR("[1]"));
        finish(&a, wrong[i], "");
        assert_int_equal(a.status, 400);
        assert_non_null(strstr(a.content_type, "json;"));
        answer_free(&a);
    }
}

static void test_too_large(void **state)
{
    (void)state;
    struct answer a;
    answer_begin(&a, 1000);
    for (int i = 0; i < 1001; i++)
        buf_add_char(&a.body, 'x');
    finish(&a, "/a", "");
    assert_int_equal(a.status, 413);
    assert_non_null(strstr(buf_cstr(&a.body), "answer_bytes"));
    answer_free(&a);
}

static void fill(struct answer *a, size_t size)
{
    answer_begin(a, 0);
    for (size_t i = 0; i < size; i++)
        buf_add_char(&a->body, (char)('a' + i % 7));
}

static void test_gzip(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        const char *accept;
        bool compressed;
    } rows[] = {
        {ANSWER_GZIP_FROM_BYTES, "gzip", true},
        {ANSWER_GZIP_FROM_BYTES - 1, "gzip", false},
        {ANSWER_GZIP_FROM_BYTES, "", false},
        {ANSWER_GZIP_FROM_BYTES, "gzip;q=0", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct answer a;
        fill(&a, rows[i].size);
        finish(&a, "/a", rows[i].accept);
        assert_int_equal(a.header_count, rows[i].compressed);
        if (!rows[i].compressed) {
            assert_int_equal(a.body.size, rows[i].size);
            answer_free(&a);
            continue;
        }
        assert_string_equal(a.headers[0].name, "Content-Encoding");
        assert_string_equal(a.headers[0].value, "gzip");
        static unsigned char plain[ANSWER_GZIP_FROM_BYTES + 1];
        z_stream z = {.next_in = (unsigned char *)a.body.data,
                      .avail_in = (unsigned)a.body.size,
                      .next_out = plain,
                      .avail_out = sizeof plain};
        assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
        assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
        inflateEnd(&z);
        assert_int_equal(z.total_out, rows[i].size);
        for (size_t k = 0; k < rows[i].size; k++)
            assert_int_equal(plain[k], 'a' + k % 7);
        answer_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error), cmocka_unit_test(test_failure),
        cmocka_unit_test(test_jsonp), cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_gzip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
