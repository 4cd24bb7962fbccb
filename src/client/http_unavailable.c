// http.h in a build without an HTTP client (-Dhttp_client=disabled): no client can be created, so
// nothing calls the other functions.
#include "client/http.h"

#include <errno.h>

static int unavailable(struct error *e)
{
    return error_set(
        e, -ENOTSUP,
        "this sonde cannot send requests to jobs, because it was built without libcurl "
        "(-Dhttp_client); it can read recordings");
}

int http_client_create(const char *url, const char *token, struct http_client **out,
                       struct error *e)
{
    (void)url;
    (void)token;
    *out = NULL;
    return unavailable(e);
}

int http_client_create_for(const struct job *job, const char *token, struct http_client **out,
                           struct error *e)
{
    (void)job;
    (void)token;
    *out = NULL;
    return unavailable(e);
}

int http_client_create_like(const struct http_client *other, struct http_client **out,
                            struct error *e)
{
    (void)other;
    *out = NULL;
    return unavailable(e);
}

void http_client_on_look(struct http_client *c, bool (*stop)(void *user), void *user)
{
    (void)c;
    (void)stop;
    (void)user;
}

void http_client_destroy(struct http_client *c)
{
    (void)c;
}

const char *http_client_url(const struct http_client *c)
{
    (void)c;
    return "";
}

int http_ask(struct http_client *c, const char *path, struct str body, const char *type,
             int timeout_ms, const atomic_bool *cancel, struct http_answer *out, struct error *e)
{
    (void)c;
    (void)path;
    (void)body;
    (void)type;
    (void)timeout_ms;
    (void)cancel;
    *out = (struct http_answer){0};
    return unavailable(e);
}

int http_stream_open(struct http_client *c, const char *path, struct http_stream **out,
                     struct error *e)
{
    (void)c;
    (void)path;
    *out = NULL;
    return unavailable(e);
}

void http_stream_close(struct http_stream *s)
{
    (void)s;
}

int http_stream_next(struct http_stream *s, int timeout_ms, struct buf *out, struct error *e)
{
    (void)s;
    (void)timeout_ms;
    (void)out;
    return unavailable(e);
}
