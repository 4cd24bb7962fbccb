#include "http/json_body.h"
#include "http/request.h"
#include "unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

static void test_target(void **state)
{
    (void)state;
    struct request r = {0};
    struct str value;
    assert_int_equal(
        request_parse_target(
            &r, STR("/api/qu%65ry?m=sum:a%7Bh=*%7d&m=b+c&ms&arrays=false&=x&&end="), NULL),
        0);
    assert_str_equal(r.path, "/api/query");
    assert_int_equal(r.parameter_count, 6);
    assert_str_equal(r.parameters[0].value, "sum:a{h=*}");
    assert_true(request_parameter(&r, "m", &value)); // the last one counts
    assert_str_equal(value, "b c");
    assert_true(request_flag(&r, "ms"));
    assert_true(request_flag(&r, "arrays")); // true if present
    assert_false(request_flag(&r, "show_query"));
    assert_true(request_parameter(&r, "end", &value));
    assert_str_equal(value, "");
    request_free(&r);
}

static void test_plus_is_a_blank_in_parameters_only(void **state)
{
    (void)state;
    struct request r = {0};
    assert_int_equal(request_parse_target(&r, STR("/a+b?a+b=1+2"), NULL), 0);
    assert_str_equal(r.path, "/a+b");
    assert_str_equal(r.parameters[0].name, "a b");
    assert_str_equal(r.parameters[0].value, "1 2");
    request_free(&r);
}

static void test_broken_targets(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "",     "api",  "http://host/api", "*",        "/%",  "/%4",
        "/%zz", "/a?%", "/a?b=%f",         "/a?b=%00", "/%00"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct request r = {0};
        struct error e = {0};
        assert_int_equal(request_parse_target(&r, str_of(broken[i]), &e), -EINVAL);
        assert_true(e.text[0]);
        request_free(&r);
    }
}

static void test_too_many_parameters(void **state)
{
    (void)state;
    struct request r = {0};
    struct buf target = {0};
    buf_add_str(&target, STR("/a?x"));
    for (int i = 1; i < REQUEST_PARAMETERS_MAX; i++)
        buf_add_str(&target, STR("&x"));
    assert_int_equal(request_parse_target(&r, buf_str(&target), NULL), 0);
    assert_int_equal(r.parameter_count, REQUEST_PARAMETERS_MAX);
    buf_add_str(&target, STR("&x"));
    assert_int_equal(request_parse_target(&r, buf_str(&target), NULL), -E2BIG);
    buf_free(&target);
    request_free(&r);
}

static void test_accepts(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        bool gzip;
    } rows[] = {
        {"gzip", true},
        {"gzip, deflate, br", true},
        {"deflate;q=0.5 , GZIP ; q=0.1", true},
        {"", false},
        {"identity", false},
        {"gzip;q=0", false},
        {"gzip;q=0.0, *", false},
        {"*", true},
        {"*;q=0", false},
        {"*, gzip;q=0", false},
        {"gzipped", false},
        {"x;q=0, gzip", true},
        {"gzip;q=rub", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(request_accepts(str_of(rows[i].header), STR("gzip"), true), rows[i].gzip);
    assert_false(request_accepts(STR("*/*"), STR("text/html"), false));
    assert_true(request_accepts(STR("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"),
                                STR("text/html"), false));
}

// Compresses `size` bytes in zlib's or gzip's format, into the request's arena.
static struct str compressed(struct request *r, const void *data, size_t size, int window)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)data, .avail_in = (unsigned)size};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t most = deflateBound(&z, size);
    unsigned char *out = arena_alloc(&r->arena, most);
    z.next_out = out;
    z.avail_out = (unsigned)most;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return (struct str){(char *)out, most - z.avail_out};
}

static void test_bodies(void **state)
{
    (void)state;
    enum { GZIP = 15 + 16, ZLIB = 15, LIMIT = 1000 };
    static char zeros[LIMIT + 1];
    struct request r = {0};
    struct error e = {0};
    r.body = STR("{}");
    assert_int_equal(request_decode_body(&r, LIMIT, &e), 0);
    assert_str_equal(r.body, "{}");
    r.headers[HEADER_CONTENT_ENCODING] = STR(" GZIP ");
    r.body = compressed(&r, "hello", 5, GZIP);
    assert_int_equal(request_decode_body(&r, LIMIT, &e), 0);
    assert_str_equal(r.body, "hello");
    r.headers[HEADER_CONTENT_ENCODING] = STR("deflate");
    r.body = compressed(&r, "hello", 5, ZLIB);
    assert_int_equal(request_decode_body(&r, LIMIT, &e), 0);
    assert_str_equal(r.body, "hello");
    // It just fits; one more byte would not.
    r.headers[HEADER_CONTENT_ENCODING] = STR("gzip");
    r.body = compressed(&r, zeros, LIMIT, GZIP);
    assert_int_equal(request_decode_body(&r, LIMIT, &e), 0);
    assert_int_equal(r.body.size, LIMIT);
    r.body = compressed(&r, zeros, LIMIT + 1, GZIP);
    assert_int_equal(request_decode_body(&r, LIMIT, &e), -E2BIG);
    assert_non_null(strstr(e.text, "body_bytes"));
    // Truncated, and not compressed at all.
    r.body = compressed(&r, "hello", 5, GZIP);
    r.body.size -= 4;
    assert_int_equal(request_decode_body(&r, LIMIT, &e), -EINVAL);
    r.body = STR("{\"plain\":1}");
    assert_int_equal(request_decode_body(&r, LIMIT, &e), -EINVAL);
    r.headers[HEADER_CONTENT_ENCODING] = STR("br");
    assert_int_equal(request_decode_body(&r, LIMIT, &e), -ENOTSUP);
    request_free(&r);
}

static int take(struct request *r, const char *target, const char *body)
{
    *r = (struct request){.method = METHOD_POST};
    assert_int_equal(request_parse_target(r, str_of(target), NULL), 0);
    r->body = str_of(body);
    struct error e = {0};
    int rc = json_body_take(r, &e);
    assert_int_equal(rc != 0, e.text[0] != 0);
    return rc;
}

static void test_json_body(void **state)
{
    (void)state;
    struct request r;
    struct str value;
    assert_int_equal(take(&r, "/a?type=tagk&x=1",
                          "{\"type\":\"metrics\",\"max\":7,\"useMeta\":true,\"tags\":[{\"key\":"
                          "\"a\",\"value\":\"b=c\"},"
                          "{\"key\":\"d\",\"value\":\"*\"}]}"),
                     0);
    assert_true(request_parameter(&r, "type", &value)); // the body overrides the address
    assert_str_equal(value, "metrics");
    assert_true(request_parameter(&r, "max", &value));
    assert_str_equal(value, "7");
    assert_true(request_parameter(&r, "x", &value));
    assert_true(request_parameter(&r, "tag", &value));
    assert_str_equal(value, "d=*");
    request_free(&r);
    // any value, as in OpenTSDB
    assert_int_equal(take(&r, "/a", "{\"tags\":[{\"key\":\"a\",\"value\":null}]}"), 0);
    assert_true(request_parameter(&r, "tag", &value));
    assert_str_equal(value, "a=");
    request_free(&r);
    assert_int_equal(take(&r, "/a", ""), 0);
    request_free(&r);
    static const char *const broken[] = {
        "{", "[]", "1", "{\"a\":1,\"a\":2}", "{\"tags\":[1]}", "{\"tags\":[{\"key\":1}]}", "\xff"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_int_equal(take(&r, "/a", broken[i]), -EINVAL);
        request_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_plus_is_a_blank_in_parameters_only),
        cmocka_unit_test(test_broken_targets),
        cmocka_unit_test(test_too_many_parameters),
        cmocka_unit_test(test_accepts),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_json_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
