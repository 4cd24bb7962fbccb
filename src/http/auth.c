// auth.c - tokens, cookie, redirect, Host, Origin.
#include "http/auth.h"

#include <arpa/inet.h>
#include <nettle/base64.h>
#include <nettle/memops.h>
#include <stdio.h>

enum { COOKIE_NAME_MAX = 32, BASIC_MAX = 1024 };

void auth_set_token(struct auth *auth, struct str control)
{
    memset(auth->token, 0, sizeof auth->token);
    for (enum role role = ROLE_VIEW; control.size && role < ROLE_COUNT; role++)
        token_of_role(control, role, auth->token[role]);
}

bool auth_needs_token(const struct auth *auth)
{
    return auth->token[ROLE_CONTROL][0] != 0;
}

bool auth_token_equal(struct str token, struct str given)
{
    return token.size && token.size == given.size && memeql_sec(token.data, given.data, token.size);
}

enum role auth_role_of(const struct auth *auth, struct str given)
{
    enum role found = ROLE_NOBODY;
    for (enum role role = ROLE_VIEW; role < ROLE_COUNT; role++)
        if (auth_token_equal(str_of(auth->token[role]), given))
            found = role;
    return found;
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

// Returns the name in "name:port", "[v6]:port", or a name without port.
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

static void cookie_name(const struct auth *auth, char out[COOKIE_NAME_MAX])
{
    snprintf(out, COOKIE_NAME_MAX, "sonde_session_%d", auth->port);
}

static enum role at_most(enum role role, enum role most)
{
    return role < most ? role : most;
}

// Returns the role of the password in "Basic " and base64 of "user:password".
static enum role basic_role(const struct auth *auth, struct str encoded)
{
    uint8_t text[BASE64_DECODE_LENGTH(BASIC_MAX)];
    struct base64_decode_ctx decoding;
    size_t size = sizeof text;
    if (encoded.size > BASIC_MAX)
        return ROLE_NOBODY;
    base64_decode_init(&decoding);
    if (!base64_decode_update(&decoding, &size, text, encoded.size, encoded.data) ||
        !base64_decode_final(&decoding))
        return ROLE_NOBODY;
    struct str password = {(const char *)text, size};
    str_cut(&password, ':');
    return password.data ? at_most(auth_role_of(auth, password), ROLE_WRITE) : ROLE_NOBODY;
}

static enum role header_role(const struct auth *auth, const struct request *r)
{
    if (r->headers[HEADER_TOKEN].size)
        return auth_role_of(auth, str_trim(r->headers[HEADER_TOKEN]));
    struct str rest = r->headers[HEADER_AUTHORIZATION], scheme = str_word(&rest);
    if (str_eq_nocase(scheme, STR("Bearer")))
        return auth_role_of(auth, str_trim(rest));
    return str_eq_nocase(scheme, STR("Basic")) ? basic_role(auth, str_trim(rest)) : ROLE_NOBODY;
}

// Returns the target without its token parameters, however their names are encoded. NULL: out of
// memory. Several leading slashes become one, because "//elsewhere/" would lead to another host.
static char *clean_target(struct request *r)
{
    struct str rest = r->target, path = str_cut(&rest, '?');
    while (path.size > 1 && (path.data[1] == '/' || path.data[1] == '\\'))
        path.data++, path.size--;
    struct buf out = {0};
    buf_add_char(&out, '/');
    buf_add_str(&out, str_slice(path, 1, path.size));
    char separator = '?';
    // Each non-empty part of the text belongs to one decoded parameter.
    for (size_t i = 0; rest.data && i < r->parameter_count;) {
        struct str part = str_cut(&rest, '&');
        if (!part.size || str_eq(r->parameters[i++].name, STR("token")))
            continue;
        buf_add_char(&out, separator);
        buf_add_str(&out, part);
        separator = '&';
    }
    char *copy = out.failed ? NULL : arena_strdup(&r->arena, buf_str(&out));
    buf_free(&out);
    return copy;
}

// Checks the headers in which a browser names the page that sends the request. *from_browser: the
// request has such headers. Sec-Fetch-Site is the browser's own comparison of the page's address
// with that of the request, and no page can set it. So `same-origin` is enough: behind a proxy that
// speaks HTTPS or replaces Host, Origin is the proxy's, which we do not know.
static bool is_own_page(const struct auth *auth, const struct request *r, bool *from_browser)
{
    struct str site = str_trim(r->headers[HEADER_FETCH_SITE]),
               origin = str_trim(r->headers[HEADER_ORIGIN]);
    struct str scheme = auth->tls ? STR("https://") : STR("http://");
    *from_browser = site.size || origin.size;
    if (str_eq_nocase(site, STR("same-origin")))
        return true;
    if (site.size && !str_eq_nocase(site, STR("none")))
        return false;
    return !origin.size ||
           (str_starts(origin, scheme) && str_eq_nocase(str_slice(origin, scheme.size, origin.size),
                                                        str_trim(r->headers[HEADER_HOST])));
}

static bool check_origin(const struct auth *auth, const struct request *r, struct answer *a)
{
    struct str header = r->headers[HEADER_HOST], host = host_name(header);
    bool from_browser;
    // Only programs omit Host; all browsers send it.
    if (header.size && !auth_is_loopback(host) && !str_eq_nocase(host, auth->listen)) {
        answer_error(a, 403, "without a token this server answers only to its own name",
                     "The Host header names another host. Use http://localhost:PORT/.");
        return false;
    }
    if (!is_own_page(auth, r, &from_browser)) {
        answer_error(a, 403, "without a token pages of other sites may not read from this server",
                     NULL);
        return false;
    }
    return true;
}

static bool refuse_cookie(struct answer *a, const char *why)
{
    answer_error(a, 403, why,
                 "A browser's session is for this server's own pages. Programs send a token.");
    return false;
}

static struct str session_id(const struct auth *auth, const struct request *r)
{
    char name[COOKIE_NAME_MAX];
    cookie_name(auth, name);
    return cookie_value(r->headers[HEADER_COOKIE], str_of(name));
}

static bool check_cookie(const struct auth *auth, struct request *r, struct answer *a)
{
    struct str callback, key = str_trim(r->headers[HEADER_SESSION_KEY]);
    bool from_browser, own = is_own_page(auth, r, &from_browser);
    if (!own)
        return refuse_cookie(a, "a page of another server may not use this browser's session");
    if (!from_browser && r->method != METHOD_GET && r->method != METHOD_HEAD)
        return refuse_cookie(a, "the browser does not say which page sent the request");
    if (request_parameter(r, "jsonp", &callback))
        return refuse_cookie(a, "jsonp is not available to a browser's session");
    r->role =
        key.size ? sessions_role(auth->sessions, session_id(auth, r), &r->peer, key) : ROLE_VIEW;
    if (!r->role)
        return refuse_cookie(a, "the key of this page's session is wrong, or no longer valid");
    r->by_cookie = true;
    return true;
}

// True if the target is the root. The redirect is then relative, because a proxy may show the root
// below another path (/user/me/proxy/4242/), which only the browser knows. The cookie's path is
// relative for the same reason.
static bool is_root(const char *target)
{
    return target[0] == '/' && (!target[1] || target[1] == '?');
}

// Redirects with a page of ours. The link may have been on another page (a chat, a file). With a
// redirect from such a page, browsers do not send a SameSite=Strict cookie, but with a redirect
// from our page they do.
static void lead_on(struct answer *a, const char *target)
{
    a->status = 200;
    a->content_type = "text/html; charset=UTF-8";
    buf_add_str(
        &a->body,
        STR("<!doctype html><html lang=\"en\"><title>sonde</title><meta http-equiv=\"refresh\" "
            "content=\"0;url="));
    answer_add_html(&a->body, target ? target : "");
    buf_add_str(&a->body, STR("\"></html>\n"));
}

// Handles a browser that opens a page with the token: makes a session, and redirects to the page
// without the token.
static bool send_on(const struct auth *auth, struct request *r, struct answer *a)
{
    char id[SESSION_ID_SIZE + 1], cookie[COOKIE_NAME_MAX];
    cookie_name(auth, cookie);
    if (!auth->sessions || r->method != METHOD_GET ||
        !request_accepts(r->headers[HEADER_ACCEPT], STR("text/html"), false))
        return false;
    char *target = clean_target(r);
    if (!target || !sessions_open(auth->sessions, &r->peer, id))
        return false;
    a->status = 303;
    a->content_type = NULL;
    bool root = is_root(target), from_browser;
    answer_header(a, "Set-Cookie",
                  arena_printf(&r->arena, "%s=%s%s; HttpOnly; SameSite=Strict%s", cookie, id,
                               root ? "" : "; Path=/", auth->tls ? "; Secure" : ""));
    if (root)
        target = arena_printf(&r->arena, ".%s", target);
    if (is_own_page(auth, r, &from_browser))
        answer_header(a, "Location", target);
    else
        lead_on(a, target);
    return true;
}

// True if a request without any proof may view. Pages of other sites and other users may not.
static bool is_open_view(const struct auth *auth, struct request *r)
{
    struct str ignored;
    if (!auth->open_view || r->headers[HEADER_AUTHORIZATION].size ||
        r->headers[HEADER_TOKEN].size || request_parameter(r, "token", &ignored))
        return false;
    peer_look_in_proc(&r->peer);
    return r->peer.local && peer_is_own(&r->peer);
}

// Checks a request that has no token, but whose connection itself is a proof.
static bool check_tokenless(const struct auth *auth, struct request *r, struct answer *a,
                            enum role role)
{
    struct str callback;
    if (!check_origin(auth, r, a))
        return false;
    if (request_parameter(r, "jsonp", &callback)) {
        answer_error(a, 403, "jsonp is not available without a token",
                     "Any page could run it as a script.");
        return false;
    }
    r->role = role;
    return true;
}

bool auth_check(const struct auth *auth, struct request *r, struct answer *a)
{
    r->role = ROLE_NOBODY;
    r->by_cookie = false;
    if (!auth_needs_token(auth)) {
        r->role = ROLE_WRITE;
        return check_origin(auth, r, a);
    }
    if (r->peer.holds_key)
        return check_tokenless(auth, r, a, ROLE_CONTROL);
    struct str given;
    r->role = header_role(auth, r);
    if (r->role == ROLE_NOBODY && request_parameter(r, "token", &given)) {
        r->role = at_most(auth_role_of(auth, given), ROLE_WRITE);
        if (r->role && send_on(auth, r, a))
            return false;
    }
    if (r->role)
        return true;
    if (sessions_check(auth->sessions, session_id(auth, r), &r->peer))
        return check_cookie(auth, r, a);
    if (is_open_view(auth, r))
        return check_tokenless(auth, r, a, ROLE_VIEW);
    static char challenge[] = "Bearer realm=\"sonde\"";
    answer_header(a, "WWW-Authenticate", challenge);
    answer_error(a, 401, "a token is needed",
                 "Send a token of the job (sonde token) as \"Authorization: Bearer TOKEN\", or "
                 "open the address with "
                 "?token=TOKEN. A data source in Grafana needs the URL that sonde token --url "
                 "prints: requests for "
                 "suggestions lose ?token=.");
    return false;
}

bool auth_raise_session(const struct auth *auth, const struct request *r,
                        char key[SESSION_ID_SIZE + 1])
{
    bool from_browser;
    return is_own_page(auth, r, &from_browser) && from_browser &&
           sessions_raise(auth->sessions, session_id(auth, r), &r->peer, r->role, key);
}
