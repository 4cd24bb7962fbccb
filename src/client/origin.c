#include "client/origin.h"

#include <errno.h>
#include <stdlib.h>

struct origin {
    struct http_client *first; // how others are made; never asked itself
    _Atomic(struct http_client *)
        kept[ORIGIN_CONNECTIONS_KEPT]; // slots rather than a lock: a fork may come at any time
};

int origin_open(const char *where, const char *token, struct origin **out, struct error *e)
{
    struct origin *o = calloc(1, sizeof *o);
    *out = NULL;
    if (!o)
        return error_set(e, -ENOMEM, "out of memory");
    bool address = !where || !*where || strstr(where, "://");
    int rc = address ? http_client_create(where, token, &o->first, e) : http_client_create_for_job(where, &o->first, e);
    if (rc) {
        origin_close(o);
        return rc;
    }
    *out = o;
    return 0;
}

void origin_close(struct origin *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < ORIGIN_CONNECTIONS_KEPT; i++)
        http_client_destroy(atomic_load(&o->kept[i]));
    http_client_destroy(o->first);
    free(o);
}

const char *origin_name(const struct origin *o)
{
    return http_client_url(o->first);
}

static int take(struct origin *o, struct http_client **out, struct error *e)
{
    for (size_t i = 0; i < ORIGIN_CONNECTIONS_KEPT; i++)
        if ((*out = atomic_exchange(&o->kept[i], NULL)))
            return 0;
    return http_client_create_like(o->first, out, e);
}

static void give_back(struct origin *o, struct http_client *c)
{
    for (size_t i = 0; i < ORIGIN_CONNECTIONS_KEPT; i++) {
        struct http_client *none = NULL;
        if (atomic_compare_exchange_strong(&o->kept[i], &none, c))
            return;
    }
    http_client_destroy(c);
}

int origin_ask(struct origin *o, const char *path, struct str body, const char *type, int timeout_ms,
               const struct origin_look *look, struct http_answer *out, struct error *e)
{
    struct http_client *c;
    *out = (struct http_answer){0};
    int rc = take(o, &c, e);
    if (rc)
        return rc;
    http_client_on_look(c, look ? look->stop : NULL, look ? look->user : NULL);
    rc = http_ask(c, path, body, type, timeout_ms, NULL, out, e);
    give_back(o, c);
    return rc;
}
