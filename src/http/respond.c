// respond.c - writes errors in OpenTSDB's form; JSONP; gzip.
#include "http/respond.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

void answer_add_html(struct buf *out, const char *text)
{
    for (; *text; text++)
        if (strchr("<>&\"'", *text))
            buf_printf(out, "&#%d;", *text);
        else
            buf_add_char(out, *text);
}

void answer_begin(struct answer *a, size_t limit_bytes)
{
    *a = (struct answer){.status = 200,
                         .content_type = "application/json; charset=UTF-8",
                         .body.limit = limit_bytes};
}

void answer_free(struct answer *a)
{
    buf_free(&a->body);
}

void answer_header(struct answer *a, const char *name, char *value)
{
    if (value && a->header_count < ANSWER_HEADERS_MAX)
        a->headers[a->header_count++] = (struct answer_header){name, value};
}

void answer_error(struct answer *a, int status, const char *message, const char *details)
{
    size_t limit_bytes = a->body.limit;
    buf_free(&a->body);
    a->body.limit = limit_bytes;
    a->status = status;
    a->policy = a->cache = NULL;
    a->content_type = "application/json; charset=UTF-8";
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    json_key(&w, STR("error"));
    json_begin_object(&w);
    json_key_i64(&w, "code", status);
    json_key_string(&w, "message", str_of(message));
    if (details)
        json_key_string(&w, "details", str_of(details));
    json_end_object(&w);
    json_end_object(&w);
}

void answer_failure(struct answer *a, const struct error *e)
{
    static const struct {
        int code, status;
    } statuses[] = {
        {-EINVAL, 400},    {-ENOENT, 400}, {-ENOTSUP, 415},   {-E2BIG, 413},
        {-ETIMEDOUT, 408}, {-EBUSY, 503},  {-ECANCELED, 503},
    };
    int status = 500;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].code == e->code)
            status = statuses[i].status;
    answer_error(a, status, e->text, NULL);
    static char one_second[] = "1";
    if (e->code == -EBUSY)
        answer_header(a, "Retry-After", one_second);
}

// True for a JavaScript name with dots and array indexes, which cannot contain code.
static bool is_callback(struct str name)
{
    for (size_t i = 0; i < name.size; i++)
        if (!isalnum((unsigned char)name.data[i]) && !memchr("_$.[]", name.data[i], 5))
            return false;
    return name.size && name.size <= JSONP_NAME_MAX && !isdigit((unsigned char)name.data[0]);
}

static void wrap_for_jsonp(struct answer *a, struct str callback)
{
    struct buf wrapped = {.limit = a->body.limit};
    // The comment in front prevents the caller from choosing the first bytes.
    buf_add_str(&wrapped, STR("/**/"));
    buf_add_str(&wrapped, callback);
    buf_add_char(&wrapped, '(');
    buf_add_str(&wrapped, buf_str(&a->body));
    buf_add_char(&wrapped, ')');
    buf_free(&a->body);
    a->body = wrapped;
    a->content_type = "application/javascript; charset=UTF-8";
}

// Compresses the body, unless compression fails or saves nothing.
static void compress_body(struct answer *a)
{
    enum { LEVEL_FAST = 1, WINDOW_GZIP = 15 + 16, MEMORY_DEFAULT = 8 };
    z_stream z = {.next_in = (unsigned char *)a->body.data, .avail_in = (unsigned)a->body.size};
    if (a->body.size > UINT_MAX || deflateInit2(&z, LEVEL_FAST, Z_DEFLATED, WINDOW_GZIP,
                                                MEMORY_DEFAULT, Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    struct buf out = {0};
    if (buf_reserve(&out, a->body.size)) {
        z.next_out = (unsigned char *)out.data;
        z.avail_out = (unsigned)a->body.size;
        if (deflate(&z, Z_FINISH) == Z_STREAM_END) {
            out.size = a->body.size - z.avail_out;
            buf_free(&a->body);
            a->body = out;
            out = (struct buf){0};
            static char gzip[] = "gzip";
            answer_header(a, "Content-Encoding", gzip);
        }
    }
    deflateEnd(&z);
    buf_free(&out);
}

static bool is_encoded(const struct answer *a)
{
    for (size_t i = 0; i < a->header_count; i++)
        if (strcmp(a->headers[i].name, "Content-Encoding") == 0)
            return true;
    return false;
}

void answer_finish(struct answer *a, const struct request *r)
{
    struct str callback;
    bool jsonp = request_parameter(r, "jsonp", &callback) && callback.size;
    if (jsonp && !is_callback(callback)) {
        jsonp = false;
        answer_error(a, 400, "jsonp has to be the name of a function", NULL);
    }
    a->jsonp = jsonp && a->content_type && strstr(a->content_type, "json");
    if (a->jsonp)
        wrap_for_jsonp(a, callback);
    if (a->body.failed)
        answer_error(a, 413, "the answer is too large (limit answer_bytes)",
                     "Ask for a shorter range, fewer series, or downsample (\"1m-avg\").");
    if (a->body.size >= ANSWER_GZIP_FROM_BYTES && !is_encoded(a) &&
        request_accepts(r->headers[HEADER_ACCEPT_ENCODING], STR("gzip"), true))
        compress_body(a);
}
