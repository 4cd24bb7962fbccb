// Checks the access rights of a request. The input has its address, headers and cookies in lines
// "NAME:value". $C, $W, $V, $S and $K stand for the control, write and view tokens and for the id
// and the key of an open session, so that inputs can contain them. Only such a token or session
// gives a role, and no answer contains one of them.
#include "http/auth.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    char letter;
    enum request_header header;
} headers[] = {
    {'a', HEADER_AUTHORIZATION}, {'c', HEADER_COOKIE},     {'h', HEADER_HOST},
    {'o', HEADER_ORIGIN},        {'s', HEADER_FETCH_SITE}, {'t', HEADER_ACCEPT},
    {'k', HEADER_SESSION_KEY},   {'x', HEADER_TOKEN},
};

static struct auth auth;
static char session[SESSION_ID_SIZE + 1], key[SESSION_ID_SIZE + 1];
static const struct peer client = {.local = true, .known = true, .uid = 1000};

static const char *word_of(char letter)
{
    switch (letter) {
    case 'C':
        return auth.token[ROLE_CONTROL];
    case 'W':
        return auth.token[ROLE_WRITE];
    case 'V':
        return auth.token[ROLE_VIEW];
    case 'S':
        return session;
    case 'K':
        return key;
    default:
        return NULL;
    }
}

static struct str expand(struct arena *arena, struct str line)
{
    struct buf out = {0};
    for (size_t i = 0; i < line.size; i++) {
        const char *word =
            line.data[i] == '$' && i + 1 < line.size ? word_of(line.data[i + 1]) : NULL;
        if (word) {
            buf_add_str(&out, str_of(word));
            i++;
        } else {
            buf_add_char(&out, line.data[i]);
        }
    }
    struct str copy = arena_str(arena, buf_str(&out));
    buf_free(&out);
    return copy.data ? copy : STR("");
}

static bool holds(struct str text, const char *word)
{
    return text.data && str_find(text, str_of(word)) >= 0;
}

// True if the decoded address has this token as a parameter, however it was encoded.
static bool has_parameter(const struct request *r, const char *word)
{
    for (size_t i = 0; i < r->parameter_count; i++)
        if (str_eq(r->parameters[i].name, STR("token")) &&
            str_eq(r->parameters[i].value, str_of(word)))
            return true;
    return false;
}

// Returns the highest role that the request may get.
static enum role most(const struct request *r)
{
    enum role role = ROLE_NOBODY;
    struct str authorization = r->headers[HEADER_AUTHORIZATION];
    bool basic = str_starts(str_trim(authorization), STR("B")) ||
                 str_starts(str_trim(authorization), STR("b"));
    if (holds(r->headers[HEADER_COOKIE], session))
        role = str_eq(str_trim(r->headers[HEADER_SESSION_KEY]), str_of(key)) ? ROLE_CONTROL
                                                                             : ROLE_VIEW;
    for (enum role i = ROLE_VIEW; i < ROLE_COUNT; i++) {
        if (has_parameter(r, auth.token[i]) && role < (i < ROLE_WRITE ? i : ROLE_WRITE))
            role = i < ROLE_WRITE ? i : ROLE_WRITE;
        if (str_eq(str_trim(r->headers[HEADER_TOKEN]), str_of(auth.token[i])) && role < i)
            role = i;
        if (basic && holds(authorization, auth.token[i]) && role < i)
            role = i;
    }
    return role;
}

static void check_headers(const struct answer *a)
{
    for (size_t i = 0; i < a->header_count; i++) {
        struct str value = str_of(a->headers[i].value);
        if (str_eq(str_of(a->headers[i].name), STR("Set-Cookie"))) {
            for (enum role role = ROLE_VIEW; role < ROLE_COUNT; role++)
                if (holds(value, auth.token[role]))
                    abort();
        } else if (str_eq(str_of(a->headers[i].name), STR("Location"))) {
            struct request next = {0};
            // The target may be written relative to the root.
            if (value.size > 1 && value.data[0] == '.' && value.data[1] == '/')
                value = str_slice(value, 1, value.size);
            if (value.size < 1 || value.data[0] != '/' ||
                (value.size > 1 && (value.data[1] == '/' || value.data[1] == '\\')) ||
                request_parse_target(&next, value, NULL) != 0 || request_flag(&next, "token"))
                abort();
            request_free(&next);
        }
    }
}

// True if the answer opens a session. The answer to a link on another site does so with status 200,
// and has a page that leads to the target.
static bool opens_session(const struct answer *a)
{
    for (size_t i = 0; i < a->header_count; i++)
        if (str_eq(str_of(a->headers[i].name), STR("Set-Cookie")))
            return true;
    return false;
}

static void take_lines(struct request *r, struct str rest)
{
    while (rest.data) {
        struct str line = str_cut(&rest, '\n');
        for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
            if (line.size > 2 && line.data[0] == headers[i].letter && line.data[1] == ':')
                r->headers[headers[i].header] = expand(&r->arena, str_slice(line, 2, line.size));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum request_method methods[] = {METHOD_GET, METHOD_POST, METHOD_HEAD,
                                                  METHOD_OPTIONS};
    if (!auth.sessions) {
        auth = (struct auth){.listen = STR("node7"), .port = 4242, .sessions = sessions_create()};
        auth_set_token(&auth, STR("a-control-token-of-enough-letters"));
        if (!auth.sessions)
            abort();
    }
    if (!sessions_check(auth.sessions, str_of(session), &client) &&
        !(sessions_open(auth.sessions, &client, session) &&
          sessions_raise(auth.sessions, str_of(session), &client, ROLE_CONTROL, key)))
        abort();
    struct str rest = {(const char *)data, size}, target = str_cut(&rest, '\n');
    struct request r = {.method = methods[size % 4], .peer = client};
    struct answer a;
    struct arena arena = {0};
    if (request_parse_target(&r, expand(&arena, target), NULL) == 0) {
        take_lines(&r, rest);
        answer_begin(&a, 1 << 16);
        bool on = auth_check(&auth, &r, &a);
        bool has_key = holds(r.headers[HEADER_SESSION_KEY], key);
        if (r.role > most(&r) || (r.by_cookie && r.role > ROLE_VIEW && !has_key) ||
            (on && !r.role) || (!on && a.status == 200 && !opens_session(&a)))
            // most() does not decode the base64 of Basic authentication, which gives at most WRITE.
            if (!on || r.role > ROLE_WRITE ||
                !str_starts(str_trim(r.headers[HEADER_AUTHORIZATION]), STR("B")))
                abort();
        check_headers(&a);
        answer_free(&a);
        // Another client cannot use the session, and this client cannot use a guessed id.
        const struct peer other = {.local = true, .known = true, .uid = 1001};
        struct str guess = r.headers[HEADER_COOKIE];
        if (sessions_check(auth.sessions, str_of(session), &other) ||
            (sessions_check(auth.sessions, guess, &client) && !holds(guess, session)))
            abort();
    }
    request_free(&r);
    arena_free(&arena);
    return 0;
}
