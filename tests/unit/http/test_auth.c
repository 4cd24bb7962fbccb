#include "http/auth.h"
#include "http/listen.h"
#include "unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static void test_token_equal(void **state)
{
    (void)state;
    assert_true(auth_token_equal(STR("secret"), STR("secret")));
    static const char *const wrong[] = {"",       "s",      "secre",        "secret1",
                                        "Secret", "secrex", "secretsecret", "xecret"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(auth_token_equal(STR("secret"), str_of(wrong[i])));
    assert_false(auth_token_equal(STR(""), STR(""))); // an empty token admits no client
}

static void test_token_valid(void **state)
{
    (void)state;
    assert_true(token_valid(STR("aZ09-._~")));
    static const char *const wrong[] = {"", "a b", "a;b", "a\r\nb", "a%41", "a\"", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(token_valid(str_of(wrong[i])));
    char text[TOKEN_MAX + 1];
    memset(text, 'a', sizeof text);
    assert_true(token_valid((struct str){text, TOKEN_MAX}));
    assert_false(token_valid((struct str){text, TOKEN_MAX + 1}));
}

// The first digest is from `printf 'sonde view token' | openssl dgst -sha256 -hmac secret`, the
// second one is made likewise.
#define VIEW "dfddb7ba6fd00ee6ed004646510367cd10a6f4ea44c57456e87986286062aa31"
#define WRITE "0dbb9b8f55ba437c15d3d055dbbc1dd65568e507a1ecc64ef3fa4105f1649ade"

static void test_roles(void **state)
{
    (void)state;
    struct auth auth = {0};
    assert_false(auth_needs_token(&auth));
    assert_int_equal(auth_role_of(&auth, STR("")), ROLE_NOBODY);
    auth_set_token(&auth, STR("secret"));
    assert_true(auth_needs_token(&auth));
    static const struct {
        const char *token;
        enum role role;
    } rows[] = {{"secret", ROLE_CONTROL}, {WRITE, ROLE_WRITE},      {VIEW, ROLE_VIEW},
                {"", ROLE_NOBODY},        {"secretx", ROLE_NOBODY}, {VIEW WRITE, ROLE_NOBODY}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(auth_role_of(&auth, str_of(rows[i].token)), rows[i].role);
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
    const char *target, *authorization, *token, *cookie, *host, *accept, *site, *origin, *key;
    enum request_method method;
    bool holds_key;
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

// The sessions of the current test; the cookie "SESSION" is one of the requesting client.
static struct sessions *sessions;

static bool check(const char *token, const struct attempt *attempt, struct request *r,
                  struct answer *a)
{
    struct auth auth = {.listen = STR("node7"), .port = 4242, .sessions = sessions};
    static const struct peer other = {.local = true, .known = true, .uid = 1};
    char id[SESSION_ID_SIZE + 1], cookie[256];
    auth_set_token(&auth, given(token));
    *r = (struct request){.method = attempt->method ? attempt->method : METHOD_GET};
    assert_int_equal(
        request_parse_target(r, str_of(attempt->target ? attempt->target : "/x"), NULL), 0);
    r->headers[HEADER_AUTHORIZATION] = given(attempt->authorization);
    r->headers[HEADER_TOKEN] = given(attempt->token);
    r->headers[HEADER_COOKIE] = given(attempt->cookie);
    const char *session = attempt->cookie ? strstr(attempt->cookie, "SESSION") : NULL;
    if (session) {
        assert_true(
            sessions_open(sessions, session[strlen("SESSION")] == '1' ? &other : &r->peer, id));
        snprintf(cookie, sizeof cookie, "%.*s%s", (int)(session - attempt->cookie), attempt->cookie,
                 id);
        r->headers[HEADER_COOKIE] = str_of(arena_printf(&r->arena, "%s", cookie));
        if (attempt->key && strcmp(attempt->key, "KEY") == 0) {
            char key[SESSION_ID_SIZE + 1];
            assert_int_equal(sessions_raise(sessions, str_of(id), &r->peer, ROLE_WRITE, key),
                             session[strlen("SESSION")] != '1');
            r->headers[HEADER_SESSION_KEY] = str_of(arena_printf(&r->arena, "%s", key));
        }
    }
    if (attempt->key && strcmp(attempt->key, "KEY") != 0)
        r->headers[HEADER_SESSION_KEY] = given(attempt->key);
    r->headers[HEADER_ORIGIN] = given(attempt->origin);
    r->headers[HEADER_HOST] = given(attempt->host);
    r->headers[HEADER_ACCEPT] = given(attempt->accept);
    r->headers[HEADER_FETCH_SITE] = given(attempt->site);
    r->peer.holds_key = attempt->holds_key;
    answer_begin(a, 0);
    return auth_check(&auth, r, a);
}

static void test_with_token(void **state)
{
    (void)state;
    static const struct {
        struct attempt attempt;
        enum role role;
        int status; // 0: 401
    } rows[] = {
        {{.authorization = "Bearer secret"}, ROLE_CONTROL, 0},
        {{.authorization = "bearer  secret "}, ROLE_CONTROL, 0},
        {{.authorization = "Bearer " VIEW}, ROLE_VIEW, 0},
        {{.authorization = "Bearer " WRITE}, ROLE_WRITE, 0},
        // the token alone is enough
        {{.authorization = "Bearer secret", .host = "evil.example"}, ROLE_CONTROL, 0},
        {{.authorization = "Bearer secret", .site = "cross-site"}, ROLE_CONTROL, 0},
        {{.token = "secret"}, ROLE_CONTROL, 0},
        {{.token = " " VIEW " "}, ROLE_VIEW, 0},
        {{.token = "Bearer secret"}, ROLE_NOBODY, 0},
        {{.token = "wrong"}, ROLE_NOBODY, 0},
        {{.authorization = "Basic YTpzZWNyZXQ="}, ROLE_WRITE, 0},      // a:secret
        {{.authorization = "basic OnNlY3JldA=="}, ROLE_WRITE, 0},      // :secret
        {{.authorization = "Basic YTpiOnNlY3JldA=="}, ROLE_NOBODY, 0}, // a:b:secret
        {{.authorization = "Basic c2VjcmV0"}, ROLE_NOBODY, 0},         // secret
        {{.authorization = "Basic YTpzZWNyZXQ"}, ROLE_NOBODY, 0},      // cut
        {{.authorization = "Basic"}, ROLE_NOBODY, 0},
        {{.cookie = "sonde_session_4242=SESSION"}, ROLE_VIEW, 0},
        {{.cookie = "a=b; sonde_session_4242=SESSION"}, ROLE_VIEW, 0},
        {{.target = "/x?token=secret"}, ROLE_WRITE, 0},
        {{.target = "/x?token=" VIEW}, ROLE_VIEW, 0},
        {{.target = "/x?token=wrong", .cookie = "sonde_session_4242=SESSION"}, ROLE_VIEW, 0},
        {{0}, ROLE_NOBODY, 0},
        {{.authorization = "Bearer"}, ROLE_NOBODY, 0},
        {{.authorization = "Bearer wrong"}, ROLE_NOBODY, 0},
        {{.authorization = "Bearer secret1"}, ROLE_NOBODY, 0},
        {{.authorization = "Basic secret"}, ROLE_NOBODY, 0},
        {{.authorization = "secret"}, ROLE_NOBODY, 0},
        {{.cookie = "sonde_session_4242=SESSION1"}, ROLE_NOBODY, 0}, // of another client
        {{.cookie = "sonde_session_4242=secret"}, ROLE_NOBODY, 0},
        {{.cookie = "sonde_token_4242=secret"}, ROLE_NOBODY, 0},
        {{.cookie = "sonde_session_4243=SESSION"}, ROLE_NOBODY, 0}, // of another job
        {{.cookie = "sonde_session=SESSION"}, ROLE_NOBODY, 0},
        {{.cookie = "xsonde_session_4242=SESSION"}, ROLE_NOBODY, 0},
        {{.cookie = "sonde_session_4242"}, ROLE_NOBODY, 0},
        {{.target = "/x?token=wrong"}, ROLE_NOBODY, 0},
        {{.target = "/x?token="}, ROLE_NOBODY, 0},
        {{.target = "/x?token"}, ROLE_NOBODY, 0},
        {{.host = "localhost"}, ROLE_NOBODY, 0},
        // A browser's header about the page that sends the request.
        {{.cookie = "sonde_session_4242=SESSION", .site = "same-origin"}, ROLE_VIEW, 0},
        {{.cookie = "sonde_session_4242=SESSION", .site = "none"}, ROLE_VIEW, 0},
        {{.cookie = "sonde_session_4242=SESSION", .site = "same-site"}, ROLE_NOBODY, 403},
        {{.cookie = "sonde_session_4242=SESSION", .site = "cross-site"}, ROLE_NOBODY, 403},
        {{.cookie = "sonde_session_4242=SESSION", .origin = "http://n:4242", .host = "n:4242"},
         ROLE_VIEW,
         0},
        {{.cookie = "sonde_session_4242=SESSION", .origin = "http://n:4243", .host = "n:4242"},
         ROLE_NOBODY,
         403},
        {{.cookie = "sonde_session_4242=SESSION", .origin = "https://n:4242", .host = "n:4242"},
         ROLE_NOBODY,
         403},
        // Behind a proxy that speaks HTTPS, or replaces Host.
        {{.cookie = "sonde_session_4242=SESSION",
          .origin = "https://hub.example",
          .host = "hub.example",
          .method = METHOD_POST,
          .site = "same-origin"},
         ROLE_VIEW,
         0},
        {{.cookie = "sonde_session_4242=SESSION",
          .origin = "https://hub.example",
          .host = "n:4242",
          .method = METHOD_POST,
          .site = "same-origin"},
         ROLE_VIEW,
         0},
        {{.cookie = "sonde_session_4242=SESSION",
          .origin = "https://hub.example",
          .host = "n:4242",
          .site = "none"},
         ROLE_NOBODY,
         403},
        {{.cookie = "sonde_session_4242=SESSION", .origin = "null", .host = "n:4242"},
         ROLE_NOBODY,
         403},
        {{.cookie = "sonde_session_4242=SESSION", .origin = "http://", .host = "n:4242"},
         ROLE_NOBODY,
         403},
        {{.cookie = "sonde_session_4242=SESSION", .method = METHOD_POST}, ROLE_NOBODY, 403},
        {{.cookie = "sonde_session_4242=SESSION", .method = METHOD_POST, .site = "same-origin"},
         ROLE_VIEW,
         0},
        {{.cookie = "sonde_session_4242=SESSION", .target = "/x?jsonp=f"}, ROLE_NOBODY, 403},
        {{.target = "/x?jsonp=f&token=secret"}, ROLE_WRITE, 0},
        // The key of the session.
        {{.cookie = "sonde_session_4242=SESSION", .key = "KEY"}, ROLE_WRITE, 0},
        {{.cookie = "sonde_session_4242=SESSION", .key = VIEW}, ROLE_NOBODY, 403},
        {{.cookie = "sonde_session_4242=SESSION", .key = "x"}, ROLE_NOBODY, 403},
        {{.cookie = "sonde_session_4242=SESSION", .key = "KEY", .site = "cross-site"},
         ROLE_NOBODY,
         403},
        {{.cookie = "sonde_session_4242=SESSION", .key = "KEY", .method = METHOD_POST},
         ROLE_NOBODY,
         403},
        {{.cookie = "sonde_session_4242=SESSION",
          .key = "KEY",
          .method = METHOD_POST,
          .site = "same-origin"},
         ROLE_WRITE,
         0},
        {{.key = VIEW}, ROLE_NOBODY, 0},
    };
    assert_non_null(sessions = sessions_create());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct request r;
        struct answer a;
        int status = rows[i].status ? rows[i].status : 401;
        assert_int_equal(check("secret", &rows[i].attempt, &r, &a), rows[i].role != ROLE_NOBODY);
        assert_int_equal(r.role, rows[i].role);
        if (!rows[i].role) {
            assert_int_equal(a.status, status);
            assert_string_equal(header_of(&a, "WWW-Authenticate"),
                                status == 401 ? "Bearer realm=\"sonde\"" : "");
        }
        answer_free(&a);
        request_free(&r);
    }
    sessions_destroy(sessions);
    sessions = NULL;
}

static void test_session_table(void **state)
{
    (void)state;
    struct sessions *s = sessions_create();
    struct peer a = {.known = true, .local = true, .uid = 5}, b = a;
    char first[SESSION_ID_SIZE + 1], other[SESSION_ID_SIZE + 1], id[SESSION_ID_SIZE + 1];
    assert_true(sessions_open(s, &a, first));
    assert_true(sessions_open(s, &a, other));
    assert_string_not_equal(first, other);
    b.uid = 6;
    assert_false(sessions_check(s, str_of(first), &b));
    b = a;
    b.known = false;
    assert_false(sessions_check(s, str_of(first), &b));
    b = a;
    b.other.address[15] = 1; // the same user from another address of this machine
    assert_true(sessions_check(s, str_of(first), &b));
    struct peer far = {.other.address[15] = 1}, elsewhere = {.other.address[15] = 2};
    assert_true(sessions_open(s, &far, id));
    assert_true(sessions_check(s, str_of(id), &far));
    assert_false(sessions_check(s, str_of(id), &elsewhere));
    assert_false(sessions_check(s, STR(""), &a));
    char zeros[SESSION_ID_SIZE] = {0};
    assert_false(sessions_check(s, (struct str){zeros, sizeof zeros}, &a));
    assert_false(sessions_check(s, (struct str){zeros, sizeof zeros}, &(struct peer){0}));
    // The least recently used session is replaced.
    for (int i = 3; i < SESSIONS_MAX; i++)
        assert_true(sessions_open(s, &a, id));
    assert_true(sessions_check(s, str_of(first), &a));
    assert_true(sessions_open(s, &a, id));
    assert_true(sessions_check(s, str_of(first), &a));
    assert_false(sessions_check(s, str_of(other), &a));
    assert_true(sessions_check(s, str_of(id), &a));
    sessions_destroy(s);
}

static void test_session_keys(void **state)
{
    (void)state;
    struct sessions *s = sessions_create();
    const struct peer a = {.known = true, .local = true, .uid = 5},
                      b = {.known = true, .local = true, .uid = 6};
    char id[SESSION_ID_SIZE + 1], other[SESSION_ID_SIZE + 1], key[SESSION_ID_SIZE + 1],
        zeros[SESSION_ID_SIZE] = {0};
    assert_true(sessions_open(s, &a, id));
    assert_true(sessions_open(s, &a, other));
    // A session without a key has no role, and no key of zeros.
    assert_int_equal(sessions_role(s, str_of(id), &a, (struct str){zeros, sizeof zeros}), 0);
    assert_false(sessions_raise(s, str_of(id), &b, ROLE_CONTROL, key));
    assert_true(sessions_raise(s, str_of(id), &a, ROLE_CONTROL, key));
    assert_string_not_equal(id, key);
    assert_int_equal(sessions_role(s, str_of(id), &a, str_of(key)), ROLE_CONTROL);
    assert_int_equal(sessions_role(s, str_of(id), &b, str_of(key)), 0);
    assert_int_equal(sessions_role(s, str_of(other), &a, str_of(key)), 0);
    assert_int_equal(sessions_role(s, str_of(id), &a, str_of(id)), 0);
    assert_int_equal(sessions_role(s, str_of(id), &a, STR("")), 0);
    assert_int_equal(sessions_role(s, str_of(id), &a, (struct str){key, 63}), 0);
    // A new key replaces the earlier one, and its role.
    char before[SESSION_ID_SIZE + 1];
    memcpy(before, key, sizeof before);
    assert_true(sessions_raise(s, str_of(id), &a, ROLE_WRITE, key));
    assert_int_equal(sessions_role(s, str_of(id), &a, str_of(before)), 0);
    assert_int_equal(sessions_role(s, str_of(id), &a, str_of(key)), ROLE_WRITE);
    sessions_destroy(s);
}

static void test_cookie_and_redirect(void **state)
{
    (void)state;
    static const struct {
        const char *target, *location;
    } rows[] = {
        {"/?token=secret", "./"}, // below any path that a proxy adds
        {"/?token=secret&x=1", "./?x=1"},
        {"/a?x=1&token=secret&y=%20", "/a?x=1&y=%20"},
        {"/a?token=old&token=secret&y", "/a?y"},
        {"/a?&&token=old&&x&token=secret&&", "/a?x"},
        {"//evil.example/a?token=secret", "/evil.example/a"},
        {"/\\evil.example?token=secret", "/evil.example"},
        {"/a?%74oken=secret", "/a"},
        {"/a?t%6fken=old&x=token=&%74%6F%6b%65%6E=secret&y", "/a?x=token=&y"},
        {"/a?token=" VIEW, "/a"},
    };
    assert_non_null(sessions = sessions_create());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct request r;
        struct answer a;
        struct attempt attempt = {.target = rows[i].target, .accept = "text/html,*/*"};
        assert_false(check("secret", &attempt, &r, &a));
        assert_int_equal(a.status, 303);
        assert_string_equal(header_of(&a, "Location"), rows[i].location);
        const char *cookie = header_of(&a, "Set-Cookie");
        assert_int_equal(strncmp(cookie, "sonde_session_4242=", 19), 0);
        assert_string_equal(cookie + 19 + SESSION_ID_SIZE,
                            rows[i].location[0] == '.' ? "; HttpOnly; SameSite=Strict"
                                                       : "; Path=/; HttpOnly; SameSite=Strict");
        assert_true(sessions_check(sessions, (struct str){cookie + 19, SESSION_ID_SIZE}, &r.peer));
        answer_free(&a);
        request_free(&r);
        // A redirect for a page of another server must not carry the cookie, so a page of ours
        // continues.
        static const char *const sites[] = {"cross-site", "same-site"};
        for (size_t k = 0; k < 2; k++) {
            attempt.site = sites[k];
            assert_false(check("secret", &attempt, &r, &a));
            assert_int_equal(a.status, 200);
            assert_string_equal(header_of(&a, "Location"), "");
            assert_int_equal(strncmp(header_of(&a, "Set-Cookie"), "sonde_session_4242=", 19), 0);
            assert_true(str_find(buf_str(&a.body), STR("content=\"0;url=")) > 0);
            assert_true(str_find(buf_str(&a.body), STR("token")) < 0 ||
                        strstr(rows[i].location, "token"));
            answer_free(&a);
            request_free(&r);
        }
        attempt.site = NULL;
        // A program that accepts any type, and a form, get their answer at once, without a session.
        attempt.accept = "*/*";
        assert_true(check("secret", &attempt, &r, &a));
        assert_string_equal(header_of(&a, "Set-Cookie"), "");
        answer_free(&a);
        request_free(&r);
        attempt.accept = "text/html";
        attempt.method = METHOD_POST;
        assert_true(check("secret", &attempt, &r, &a));
        assert_string_equal(header_of(&a, "Set-Cookie"), "");
        answer_free(&a);
        request_free(&r);
    }
    sessions_destroy(sessions);
    sessions = NULL;
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
        {{0}, true}, // not a browser
        {{.host = "evil.example:4242"}, false},
        {{.host = "127.0.0.1.evil.example"}, false},
        {{.host = "[::1"}, false},
        {{.host = ":4242"}, false},
        {{.host = "localhost", .site = "same-origin"}, true},
        {{.host = "localhost", .site = "none"}, true},
        {{.host = "localhost", .site = "cross-site"}, false},
        {{.host = "localhost", .site = "same-site"}, false},
        {{.host = "localhost:4242", .origin = "http://localhost:4242"}, true},
        {{.host = "localhost:4242", .origin = "http://localhost:9999"}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct request r;
        struct answer a;
        assert_int_equal(check(NULL, &rows[i].attempt, &r, &a), rows[i].admitted);
        assert_int_equal(a.status, rows[i].admitted ? 200 : 403);
        assert_int_equal(r.role, ROLE_WRITE); // no higher role
        answer_free(&a);
        request_free(&r);
    }
}

// A client on another node that has the job's key needs no token. The protection against pages of
// other servers applies to it, too, because a user may forward a port to its socket.
static void test_holder_of_the_key(void **state)
{
    (void)state;
    static const struct {
        struct attempt attempt;
        int status;
        enum role role;
    } rows[] = {
        {{.host = "127.0.0.1:4242"}, 401, ROLE_NOBODY},
        {{.host = "127.0.0.1:4242", .holds_key = true}, 200, ROLE_CONTROL},
        {{.host = "localhost", .holds_key = true, .method = METHOD_POST}, 200, ROLE_CONTROL},
        {{.host = "node7:4242", .holds_key = true}, 200, ROLE_CONTROL},
        {{.host = "evil.example:4242", .holds_key = true}, 403, ROLE_NOBODY},
        {{.host = "localhost", .site = "cross-site", .holds_key = true}, 403, ROLE_NOBODY},
        {{.host = "localhost", .origin = "http://evil", .holds_key = true}, 403, ROLE_NOBODY},
        {{.host = "localhost", .target = "/x?jsonp=f", .holds_key = true}, 403, ROLE_NOBODY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct request r;
        struct answer a;
        assert_int_equal(check("secret", &rows[i].attempt, &r, &a), rows[i].status == 200);
        assert_int_equal(a.status, rows[i].status);
        assert_int_equal(r.role, rows[i].role);
        answer_free(&a);
        request_free(&r);
    }
}

static void test_listen(void **state)
{
    (void)state;
    struct listener first, second;
    struct error e = {0};
    // Without a token, addresses other than loopback are refused before the socket is bound.
    static const char *const open_to_all[] = {"0.0.0.0", "::", "192.0.2.1"};
    for (size_t i = 0; i < sizeof open_to_all / sizeof *open_to_all; i++) {
        assert_int_equal(listen_on(open_to_all[i], 0, false, true, &first, &e), -EPERM);
        assert_int_equal(first.fd, -1);
    }
    assert_int_equal(listen_on(NULL, 0, false, true, &first, &e), 0);
    assert_true(first.loopback);
    assert_in_range(first.port, LISTEN_PORT_DEFAULT, LISTEN_PORT_DEFAULT + LISTEN_PORT_TRIES - 1);
    // The next free port, or an error that names the port.
    assert_int_equal(listen_on("127.0.0.1", first.port, false, true, &second, &e), 0);
    assert_true(second.port > first.port);
    close(second.fd);
    assert_int_equal(listen_on("127.0.0.1", first.port, true, true, &second, &e), -EADDRINUSE);
    char want[128];
    snprintf(want, sizeof want, "port %d is taken by another program; choose another with --port",
             first.port);
    assert_string_equal(e.text, want);
    close(first.fd);
    assert_int_equal(listen_on("127.0.0.1", 70000, false, true, &first, &e), -EINVAL);
    assert_int_equal(listen_on("127.0.0.1", -1, false, true, &first, &e), -EINVAL);
    assert_int_equal(listen_on("no such host", 0, false, true, &first, &e), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_equal),   cmocka_unit_test(test_token_valid),
        cmocka_unit_test(test_loopback),      cmocka_unit_test(test_roles),
        cmocka_unit_test(test_with_token),    cmocka_unit_test(test_session_table),
        cmocka_unit_test(test_session_keys),  cmocka_unit_test(test_cookie_and_redirect),
        cmocka_unit_test(test_without_token), cmocka_unit_test(test_holder_of_the_key),
        cmocka_unit_test(test_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
