// auth.c - token, cookie, redirect, Host.
#include "aggregator/auth.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>

enum { COOKIE_NAME_MAX = 32 };

bool auth_token_equal(struct str token, struct str given)
{
    if (!token.size)
        return false;
    // Every byte given is compared with some byte of the token; volatile keeps the loop from ending early.
    volatile unsigned char difference = token.size != given.size;
    for (size_t i = 0; i < given.size; i++)
        difference = (unsigned char)(difference | (given.data[i] ^ token.data[i % token.size]));
    return difference == 0;
}

bool auth_token_valid(struct str token)
{
    enum { TOKEN_MAX = 512 };
    for (size_t i = 0; i < token.size; i++)
        if (!isalnum((unsigned char)token.data[i]) && !memchr("-._~", token.data[i], 4))
            return false;
    return token.size && token.size <= TOKEN_MAX;
}

bool auth_is_loopback(struct str address)
{
    char text[INET6_ADDRSTRLEN];
    if (str_eq_nocase(address, STR("localhost")) || str_eq_nocase(address, STR("localhost.")))
        return true;
    if (address.size >= sizeof text)
        return false;
    memcpy(text, address.data, address.size);
    text[address.size] = 0;
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, text, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

// "name:port", "[v6]:port" or without port: the name.
static struct str host_name(struct str host)
{
    host = str_trim(host);
    if (host.size && host.data[0] == '[') {
        ptrdiff_t end = str_find_char(host, ']');
        return end < 0 ? STR("") : str_slice(host, 1, (size_t)end);
    }
    return str_cut(&host, ':');
}

static struct str cookie_value(struct str header, struct str name)
{
    while (header.data) {
        struct str value = str_cut(&header, ';');
        struct str key = str_trim(str_cut(&value, '='));
        if (str_eq(key, name) && value.data)
            return str_trim(value);
    }
    return STR("");
}

static struct str bearer(struct str header)
{
    struct str scheme = str_word(&header);
    return str_eq_nocase(scheme, STR("Bearer")) ? str_trim(header) : STR("");
}

// The target without its token parameters; NULL when there was none in plain text (or no memory). Slashes in front are folded into one: "//elsewhere/" would lead to another host.
static char *clean_target(struct request *r)
{
    struct str rest = r->target, path = str_cut(&rest, '?');
    while (path.size > 1 && (path.data[1] == '/' || path.data[1] == '\\'))
        path.data++, path.size--;
    struct buf out = {0};
    buf_add_char(&out, '/');
    buf_add_str(&out, str_slice(path, 1, path.size));
    char separator = '?';
    while (rest.data) {
        struct str part = str_cut(&rest, '&');
        if (!part.size || str_starts(part, STR("token=")))
            continue;
        buf_add_char(&out, separator);
        buf_add_str(&out, part);
        separator = '&';
    }
    bool changed = !str_eq(buf_str(&out), r->target);
    char *copy = out.failed || !changed ? NULL : arena_strdup(&r->arena, buf_str(&out));
    buf_free(&out);
    return copy;
}

static bool check_origin(const struct auth *auth, const struct request *r, struct answer *a)
{
    struct str header = r->headers[HEADER_HOST], host = host_name(header);
    // Only programs leave Host out: no browser does.
    if (header.size && !auth_is_loopback(host) && !str_eq_nocase(host, auth->listen)) {
        answer_error(a, 403, "this server answers only to its own name, as no token protects it",
                     "The Host header names another host. Use http://localhost:PORT/.");
        return false;
    }
    if (str_eq_nocase(str_trim(r->headers[HEADER_FETCH_SITE]), STR("cross-site"))) {
        answer_error(a, 403, "pages of other sites may not read from this server, as no token protects it", NULL);
        return false;
    }
    return true;
}

bool auth_by_header(const struct auth *auth, const struct request *r)
{
    return auth_token_equal(auth->token, bearer(r->headers[HEADER_AUTHORIZATION]));
}

bool auth_check(const struct auth *auth, struct request *r, struct answer *a)
{
    if (!auth->token.size)
        return check_origin(auth, r, a);
    char name[COOKIE_NAME_MAX];
    snprintf(name, sizeof name, "sonde_token_%d", auth->port);
    struct str given;
    if (request_parameter(r, "token", &given) && auth_token_equal(auth->token, given)) {
        answer_header(a, "Set-Cookie",
                      arena_printf(&r->arena, "%s=%.*s; Path=/; HttpOnly; SameSite=Strict%s", name,
                                   STR_ARG(auth->token), auth->tls ? "; Secure" : ""));
        char *target = NULL;
        if (r->method == METHOD_GET && request_accepts(r->headers[HEADER_ACCEPT], STR("text/html"), false))
            target = clean_target(r);
        if (!target)
            return true;
        a->status = 303;
        a->content_type = NULL;
        answer_header(a, "Location", target);
        return false;
    }
    if (auth_by_header(auth, r) || auth_token_equal(auth->token, cookie_value(r->headers[HEADER_COOKIE], str_of(name))))
        return true;
    static char challenge[] = "Bearer realm=\"sonde\"";
    answer_header(a, "WWW-Authenticate", challenge);
    answer_error(a, 401, "a token is needed",
                 "Send the job's token as \"Authorization: Bearer TOKEN\", or open the address that the job printed, "
                 "with ?token=TOKEN.");
    return false;
}
