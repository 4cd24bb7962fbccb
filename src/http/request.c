// request.c - parses a request: target, parameters, header lists, compressed bodies.
#include "http/request.h"

#include <errno.h>
#include <zlib.h>

const char *const request_header_names[HEADER_COUNT] = {
    [HEADER_HOST] = "Host",
    [HEADER_AUTHORIZATION] = "Authorization",
    [HEADER_TOKEN] = "X-Sonde-Token",
    [HEADER_COOKIE] = "Cookie",
    [HEADER_ACCEPT] = "Accept",
    [HEADER_ACCEPT_ENCODING] = "Accept-Encoding",
    [HEADER_CONTENT_ENCODING] = "Content-Encoding",
    [HEADER_FETCH_SITE] = "Sec-Fetch-Site",
    [HEADER_ORIGIN] = "Origin",
    [HEADER_SESSION_KEY] = "X-Sonde-Session-Key",
    [HEADER_IF_NONE_MATCH] = "If-None-Match",
    [HEADER_FORWARDED] = "Forwarded",
    [HEADER_FORWARDED_FOR] = "X-Forwarded-For",
    [HEADER_VIA] = "Via",
};

enum request_method request_method_of(struct str name)
{
    static const struct {
        struct str name;
        enum request_method method;
    } methods[] = {
        {STR("GET"), METHOD_GET}, {STR("HEAD"), METHOD_HEAD},     {STR("POST"), METHOD_POST},
        {STR("PUT"), METHOD_PUT}, {STR("DELETE"), METHOD_DELETE}, {STR("OPTIONS"), METHOD_OPTIONS},
    };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (str_eq(name, methods[i].name))
            return methods[i].method;
    return METHOD_OTHER;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Decodes a text: %41 becomes A, and in parameters + becomes a blank.
static int decode(struct arena *arena, struct str text, bool plus_is_blank, struct str *out,
                  struct error *e)
{
    char *to = arena_alloc(arena, text.size + 1);
    if (!to)
        return error_set(e, -ENOMEM, "no memory for the request");
    size_t n = 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '%') {
            int high = i + 2 < text.size ? hex_digit(text.data[i + 1]) : -1;
            int low = i + 2 < text.size ? hex_digit(text.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return error_set(e, -EINVAL, "broken %% escape in the address: \"%.*s\"",
                                 (int)(text.size - i < 3 ? text.size - i : 3), text.data + i);
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus_is_blank) {
            c = ' ';
        }
        if (!c)
            return error_set(e, -EINVAL, "the address holds a NUL character");
        to[n++] = c;
    }
    to[n] = 0;
    *out = (struct str){to, n};
    return 0;
}

int request_parse_target(struct request *r, struct str target, struct error *e)
{
    r->target = arena_str(&r->arena, target);
    if (!r->target.data)
        return error_set(e, -ENOMEM, "no memory for the request");
    if (!target.size || target.data[0] != '/')
        return error_set(e, -EINVAL, "the address has to be a path that begins with /");
    struct str rest = r->target, path = str_cut(&rest, '?');
    int rc = decode(&r->arena, path, false, &r->path, e);
    if (rc)
        return rc;
    size_t most = rest.size ? 1 : 0;
    for (size_t i = 0; i < rest.size; i++)
        most += rest.data[i] == '&';
    if (most > REQUEST_PARAMETERS_MAX)
        return error_set(e, -E2BIG, "more than %d parameters in the address",
                         REQUEST_PARAMETERS_MAX);
    r->parameter_count = 0;
    r->parameters = arena_array(&r->arena, most ? most : 1, sizeof *r->parameters);
    if (!r->parameters)
        return error_set(e, -ENOMEM, "no memory for the request");
    while (rest.data && most) {
        struct str value = str_cut(&rest, '&');
        if (!value.size)
            continue;
        struct str name = str_cut(&value, '=');
        struct request_parameter *p = &r->parameters[r->parameter_count];
        rc = decode(&r->arena, name, true, &p->name, e);
        if (!rc)
            rc = decode(&r->arena, value.data ? value : STR(""), true, &p->value, e);
        if (rc)
            return rc;
        r->parameter_count++;
    }
    return 0;
}

bool request_parameter(const struct request *r, const char *name, struct str *value)
{
    for (size_t i = r->parameter_count; i-- > 0;) {
        if (str_eq(r->parameters[i].name, str_of(name))) {
            *value = r->parameters[i].value;
            return true;
        }
    }
    return false;
}

bool request_flag(const struct request *r, const char *name)
{
    struct str value;
    return request_parameter(r, name, &value);
}

int request_count(const struct request *r, const char *name, int64_t otherwise, int64_t *out,
                  struct error *e)
{
    struct str text;
    *out = otherwise;
    if (!request_parameter(r, name, &text) || !text.size)
        return 0;
    if (!str_to_i64(text, out) || *out < 0)
        return error_set(e, -EINVAL, "Unable to parse '%s' as a number: '%.*s'", name,
                         STR_ARG(text));
    return 0;
}

bool request_accepts(struct str header, struct str token, bool any)
{
    bool by_star = false;
    while (header.data && header.size) {
        struct str weights = str_cut(&header, ',');
        struct str name = str_trim(str_cut(&weights, ';'));
        double weight = 1;
        while (weights.data) {
            struct str value = str_cut(&weights, ';');
            struct str key = str_trim(str_cut(&value, '='));
            if (str_eq_nocase(key, STR("q")) && value.data &&
                !str_to_double(str_trim(value), &weight))
                weight = 0;
        }
        if (str_eq_nocase(name, token))
            return weight > 0; // an explicit entry overrides the star
        if (any && (str_eq(name, STR("*")) || str_eq(name, STR("*/*"))))
            by_star = weight > 0;
    }
    return by_star;
}

static int inflate_body(struct request *r, size_t limit_bytes, struct error *e)
{
    z_stream z = {.next_in = (unsigned char *)r->body.data, .avail_in = (unsigned)r->body.size};
    enum { WINDOW_ANY = 15, DETECT_GZIP_OR_ZLIB = 32 };
    if (inflateInit2(&z, WINDOW_ANY + DETECT_GZIP_OR_ZLIB) != Z_OK)
        return error_set(e, -ENOMEM, "no memory to inflate the body");
    struct buf out = {.limit = limit_bytes};
    unsigned char piece[16384];
    int rc = Z_OK;
    while (rc == Z_OK && !out.failed) {
        z.next_out = piece;
        z.avail_out = sizeof piece;
        rc = inflate(&z, Z_NO_FLUSH);
        buf_add(&out, piece, sizeof piece - z.avail_out);
    }
    inflateEnd(&z);
    int result = 0;
    if (out.failed)
        result = error_set(e, -E2BIG,
                           "the body is larger than %zu bytes when inflated (limit body_bytes)",
                           limit_bytes);
    else if (rc != Z_STREAM_END)
        result =
            error_set(e, -EINVAL, "the body says that it is compressed, but cannot be inflated");
    else if (!(r->body = arena_str(&r->arena, buf_str(&out))).data)
        result = error_set(e, -ENOMEM, "no memory for the body");
    buf_free(&out);
    return result;
}

int request_decode_body(struct request *r, size_t limit_bytes, struct error *e)
{
    struct str encoding = str_trim(r->headers[HEADER_CONTENT_ENCODING]);
    if (!encoding.size || str_eq_nocase(encoding, STR("identity")) || !r->body.size)
        return 0;
    if (str_eq_nocase(encoding, STR("gzip")) || str_eq_nocase(encoding, STR("x-gzip")) ||
        str_eq_nocase(encoding, STR("deflate")))
        return inflate_body(r, limit_bytes, e);
    return error_set(e, -ENOTSUP, "Content-Encoding \"%.*s\" is not known here; use gzip or none",
                     STR_ARG(encoding));
}

void request_free(struct request *r)
{
    arena_free(&r->arena);
}

bool request_is_proxied(const struct request *r)
{
    return r->headers[HEADER_FORWARDED].size || r->headers[HEADER_FORWARDED_FOR].size ||
           r->headers[HEADER_VIA].size;
}
