#include "aggregator/auth.h"
#include "aggregator/listen.h"
#include "unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static void test_token_equal(void **state)
{
    (void)state;
    assert_true(auth_token_equal(STR("secret"), STR("secret")));
    static const char *const wrong[] = {"", "s", "secre", "secret1", "Secret", "secrex", "secretsecret", "xecret"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(auth_token_equal(STR("secret"), str_of(wrong[i])));
    assert_false(auth_token_equal(STR(""), STR(""))); // no token lets nobody in
}

static void test_token_valid(void **state)
{
    (void)state;
    assert_true(auth_token_valid(STR("aZ09-._~")));
    static const char *const wrong[] = {"", "a b", "a;b", "a\r\nb", "a%41", "a\"", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(auth_token_valid(str_of(wrong[i])));
    char text[513];
    memset(text, 'a', sizeof text);
    assert_true(auth_token_valid((struct str){text, 512}));
    assert_false(auth_token_valid((struct str){text, 513}));
}

static void test_loopback(void **state)
{
    (void)state;
    static const struct {
        const char *address;
        bool loopback;
    } rows[] = {
        {"127.0.0.1", true},
        {"127.9.8.7", true},
        {"::1", true},
        {"localhost", true},
        {"LocalHost", true},
        {"0.0.0.0", false},
        {"::", false},
        {"10.0.0.1", false},
        {"", false},
        {"1", false},
        {"127.0.0.1.evil.example", false},
        {"localhost.evil.example", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(auth_is_loopback(str_of(rows[i].address)), rows[i].loopback);
}

struct attempt {
    const char *target, *authorization, *cookie, *host, *accept, *site;
    enum request_method method;
};

static const char *header_of(const struct answer *a, const char *name)
{
    for (size_t i = 0; i < a->header_count; i++)
        if (strcmp(a->headers[i].name, name) == 0)
            return a->headers[i].value;
    return "";
}

static struct str given(const char *text)
{
    return str_of(text ? text : "");
}

static bool check(const char *token, const struct attempt *attempt, struct request *r, struct answer *a)
{
    struct auth auth = {.token = given(token), .listen = STR("node7"), .port = 4242};
    *r = (struct request){.method = attempt->method ? attempt->method : METHOD_GET};
    assert_int_equal(request_parse_target(r, str_of(attempt->target ? attempt->target : "/x"), NULL), 0);
    r->headers[HEADER_AUTHORIZATION] = given(attempt->authorization);
    r->headers[HEADER_COOKIE] = given(attempt->cookie);
    r->headers[HEADER_HOST] = given(attempt->host);
    r->headers[HEADER_ACCEPT] = given(attempt->accept);
    r->headers[HEADER_FETCH_SITE] = given(attempt->site);
    answer_begin(a, 0);
    return auth_check(&auth, r, a);
}

static void test_with_token(void **state)
{
    (void)state;
    static const struct {
        struct attempt attempt;
        bool admitted;
    } rows[] = {
        {{.authorization = "Bearer secret"}, true},
        {{.authorization = "bearer  secret "}, true},
        {{.authorization = "Bearer secret", .host = "evil.example"}, true}, // the token is proof enough
        {{.cookie = "sonde_token_4242=secret"}, true},
        {{.cookie = "a=b; sonde_token_4242=secret;c"}, true},
        {{.target = "/x?token=secret"}, true},
        {{.target = "/x?token=wrong", .cookie = "sonde_token_4242=secret"}, true},
        {{0}, false},
        {{.authorization = "Bearer"}, false},
        {{.authorization = "Bearer wrong"}, false},
        {{.authorization = "Bearer secret1"}, false},
        {{.authorization = "Basic secret"}, false},
        {{.authorization = "secret"}, false},
        {{.cookie = "sonde_token_4242=wrong"}, false},
        {{.cookie = "sonde_token_4243=secret"}, false}, // another job's
        {{.cookie = "sonde_token=secret"}, false},
        {{.cookie = "xsonde_token_4242=secret"}, false},
        {{.cookie = "sonde_token_4242"}, false},
        {{.target = "/x?token=wrong"}, false},
        {{.target = "/x?token="}, false},
        {{.target = "/x?token"}, false},
        {{.host = "localhost"}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct request r;
        struct answer a;
        assert_int_equal(check("secret", &rows[i].attempt, &r, &a), rows[i].admitted);
        if (!rows[i].admitted) {
            assert_int_equal(a.status, 401);
            assert_string_equal(header_of(&a, "WWW-Authenticate"), "Bearer realm=\"sonde\"");
            assert_non_null(strstr(buf_cstr(&a.body), "{\"error\":{\"code\":401"));
        }
        answer_free(&a);
        request_free(&r);
    }
}

static void test_cookie_and_redirect(void **state)
{
    (void)state;
    static const struct {
        const char *target, *location;
    } rows[] = {
        {"/?token=secret", "/"},
        {"/a?x=1&token=secret&y=%20", "/a?x=1&y=%20"},
        {"/a?token=old&token=secret&y", "/a?y"},
        {"//evil.example/a?token=secret", "/evil.example/a"},
        {"/\\evil.example?token=secret", "/evil.example"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct request r;
        struct answer a;
        struct attempt attempt = {.target = rows[i].target, .accept = "text/html,*/*"};
        assert_false(check("secret", &attempt, &r, &a));
        assert_int_equal(a.status, 303);
        assert_string_equal(header_of(&a, "Location"), rows[i].location);
        assert_string_equal(header_of(&a, "Set-Cookie"), "sonde_token_4242=secret; Path=/; HttpOnly; SameSite=Strict");
        answer_free(&a);
        request_free(&r);
        // A program that takes anything, and a form, get their answer at once, with the cookie.
        attempt.accept = "*/*";
        assert_true(check("secret", &attempt, &r, &a));
        assert_true(header_of(&a, "Set-Cookie")[0]);
        answer_free(&a);
        request_free(&r);
        attempt.accept = "text/html";
        attempt.method = METHOD_POST;
        assert_true(check("secret", &attempt, &r, &a));
        answer_free(&a);
        request_free(&r);
    }
    // Written so that it cannot be taken out of the address: no redirect in a circle.
    struct request r;
    struct answer a;
    assert_true(check("secret", &(struct attempt){.target = "/a?%74oken=secret", .accept = "text/html"}, &r, &a));
    answer_free(&a);
    request_free(&r);
}

static void test_without_token(void **state)
{
    (void)state;
    static const struct {
        struct attempt attempt;
        bool admitted;
    } rows[] = {
        {{.host = "localhost:4242"}, true},
        {{.host = "127.0.0.1"}, true},
        {{.host = "[::1]:4242"}, true},
        {{.host = "node7:4242"}, true},
        {{0}, true}, // no browser
        {{.host = "evil.example:4242"}, false},
        {{.host = "127.0.0.1.evil.example"}, false},
        {{.host = "[::1"}, false},
        {{.host = ":4242"}, false},
        {{.host = "localhost", .site = "same-origin"}, true},
        {{.host = "localhost", .site = "none"}, true},
        {{.host = "localhost", .site = "cross-site"}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct request r;
        struct answer a;
        assert_int_equal(check(NULL, &rows[i].attempt, &r, &a), rows[i].admitted);
        assert_int_equal(a.status, rows[i].admitted ? 200 : 403);
        answer_free(&a);
        request_free(&r);
    }
}

static void test_listen(void **state)
{
    (void)state;
    struct listener first, second;
    struct error e = {0};
    // Other addresses than loopback are refused where no token protects the data, before anything is bound.
    static const char *const open_to_all[] = {"0.0.0.0", "::", "192.0.2.1"};
    for (size_t i = 0; i < sizeof open_to_all / sizeof *open_to_all; i++) {
        assert_int_equal(listen_on(open_to_all[i], 0, false, true, &first, &e), -EPERM);
        assert_int_equal(first.fd, -1);
    }
    assert_int_equal(listen_on(NULL, 0, false, true, &first, &e), 0);
    assert_true(first.loopback);
    assert_in_range(first.port, LISTEN_PORT_DEFAULT, LISTEN_PORT_DEFAULT + LISTEN_PORT_TRIES - 1);
    // The next free one, or an error that names the port.
    assert_int_equal(listen_on("127.0.0.1", first.port, false, true, &second, &e), 0);
    assert_true(second.port > first.port);
    close(second.fd);
    assert_int_equal(listen_on("127.0.0.1", first.port, true, true, &second, &e), -EADDRINUSE);
    char want[128];
    snprintf(want, sizeof want, "port %d is taken by another program; choose another with --port", first.port);
    assert_string_equal(e.text, want);
    close(first.fd);
    assert_int_equal(listen_on("127.0.0.1", 70000, false, true, &first, &e), -EINVAL);
    assert_int_equal(listen_on("127.0.0.1", -1, false, true, &first, &e), -EINVAL);
    assert_int_equal(listen_on("no such host", 0, false, true, &first, &e), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_equal),
        cmocka_unit_test(test_token_valid),
        cmocka_unit_test(test_loopback),
        cmocka_unit_test(test_with_token),
        cmocka_unit_test(test_cookie_and_redirect),
        cmocka_unit_test(test_without_token),
        cmocka_unit_test(test_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
