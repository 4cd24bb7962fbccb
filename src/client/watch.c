// watch.c - new points as they come: a question every WATCH_EVERY_MS for the last seconds, of which what was seen already is left out.
//
// Every look asks for more than it needs (WATCH_WINDOW_MS), as points of other nodes, and of sources that are slow, come late; and for all that has been missed while the
// job could not be reached, up to WATCH_BACK_MS. What counts is the time of a series' last point: nothing is told twice.
#include "client/client.h"

#include "base/clock.h"
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

enum {
    WATCH_EVERY_MS = 50,
    WATCH_AGAIN_MS = 500, // after a failure
    WATCH_WINDOW_MS = 5000,
    WATCH_BACK_MS = 60000,
    WATCH_ANSWER_MS = 10000, // for one look
    WATCH_SERIES_MAX = 100000,
};

struct sonde_watch {
    struct sonde_client *client;
    char *plan;         // the query, as JSON
    struct arena arena; // keys
    struct map seen;    // a series → time of its last point that was told, + 2^63
    int64_t asked_ns;   // CLOCK_MONOTONIC, when the last look that was answered began; 0: none was
    bool begun;         // what was there before is known
};

static uint64_t *place_of(struct sonde_watch *w, const struct sonde_series *s, bool *added)
{
    struct buf key = {0};
    buf_add_str(&key, str_of(s->metric));
    for (size_t i = 0; i < s->tag_count; i++)
        buf_printf(&key, "%c%s%c%s", 1, s->tags[i].key, 2, s->tags[i].value);
    uint64_t *place = key.failed ? NULL : map_get(&w->seen, buf_str(&key));
    *added = !place;
    if (!place && !key.failed && w->seen.count < WATCH_SERIES_MAX) {
        struct str kept = arena_str(&w->arena, buf_str(&key));
        place = kept.data ? map_add(&w->seen, kept, NULL) : NULL;
    }
    buf_free(&key);
    return place;
}

static bool is_new(void *user, const struct sonde_series *s, size_t *first)
{
    struct sonde_watch *w = user;
    bool added;
    uint64_t *place = s->count ? place_of(w, s, &added) : NULL;
    if (!place)
        return false;
    size_t low = 0, high = s->count;
    while (!added && low < high) {
        size_t middle = (low + high) / 2;
        if ((uint64_t)s->time_ns[middle] + INT64_MAX + 1 > *place)
            high = middle;
        else
            low = middle + 1;
    }
    *first = low;
    if (low == s->count)
        return false;
    *place = (uint64_t)s->time_ns[s->count - 1] + INT64_MAX + 1;
    return w->begun;
}

// One look: 0, and *out has what is new, NULL: nothing.
static int look(struct sonde_watch *w, struct sonde_result **out, struct error *e)
{
    struct http_answer answer = {0};
    struct buf body = {0};
    int64_t now_ns = clock_monotonic_ns();
    int64_t missed_ms = w->asked_ns ? (now_ns - w->asked_ns) / NS_PER_MS : 0;
    *out = NULL;
    buf_printf(&body, "{\"start\":\"%lldms-ago\",\"queries\":[%s]}",
               (long long)(WATCH_WINDOW_MS + (missed_ms < WATCH_BACK_MS ? missed_ms : WATCH_BACK_MS)), w->plan);
    int rc = body.failed
                 ? error_set(e, -ENOMEM, "out of memory")
                 : client_ask(w->client, "/sonde/v1/query?format=binary", buf_str(&body), WATCH_ANSWER_MS, &answer, e);
    buf_free(&body);
    // A metric that nobody knows yet: whatever comes of it will be new.
    bool unknown = rc == -EINVAL && e && str_starts(str_of(e->text), STR("No such name"));
    if (!rc)
        rc = result_read(&answer, out, e);
    if (rc && !unknown)
        return rc;
    w->asked_ns = now_ns;
    if (*out)
        result_narrow(*out, is_new, w);
    if (*out && !(*out)->count) {
        sonde_result_free(*out);
        *out = NULL;
    }
    w->begun = true;
    return 0;
}

int sonde_client_watch(struct sonde_client *c, const struct sonde_query *query, struct sonde_watch **out,
                       struct sonde_error *error)
{
    struct sonde_error own;
    struct error *e = error_inside(error ? error : &own);
    struct buf plan = {0};
    struct sonde_result *none;
    *out = NULL;
    if (query->span || query->downsample || (query->m && strncmp(query->m, "none:", 5) != 0))
        return error_set(e, -EINVAL, "points are watched as they come: a metric and filters (none:METRIC{TAG=VALUE})");
    struct sonde_watch *w = calloc(1, sizeof *w);
    int rc = w ? client_plan(query, &plan, e) : error_set(e, -ENOMEM, "out of memory");
    if (!rc) {
        w->client = c;
        w->plan = strdup(buf_cstr(&plan));
        rc = w->plan ? look(w, &none, e) : error_set(e, -ENOMEM, "out of memory");
    }
    buf_free(&plan);
    if (rc)
        sonde_watch_close(w);
    else
        *out = w;
    return rc;
}

static bool cured_by_waiting(int rc)
{
    static const int codes[] = {-ECONNREFUSED, -ECONNRESET, -EHOSTUNREACH, -ETIMEDOUT, -ETIME, -EBUSY, -EPROTO};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (rc == codes[i])
            return true;
    return false;
}

// Naps as long as it may; true: it is over.
static bool wait_ms(const struct sonde_watch *w, int64_t ms, int64_t end_ns)
{
    int64_t until_ns = clock_monotonic_ns() + ms * NS_PER_MS, left_ns;
    if (until_ns > end_ns)
        until_ns = end_ns;
    while ((left_ns = until_ns - clock_monotonic_ns()) > 0) {
        int64_t nap_ns = left_ns < (int64_t)WATCH_EVERY_MS * NS_PER_MS ? left_ns : (int64_t)WATCH_EVERY_MS * NS_PER_MS;
        struct timespec nap = {.tv_nsec = (long)nap_ns};
        nanosleep(&nap, NULL);
        if (w->client->look.stop && w->client->look.stop(w->client->look.user))
            return true;
    }
    return false;
}

int sonde_watch_next(struct sonde_watch *w, int timeout_ms, struct sonde_result **out, struct sonde_error *error)
{
    struct sonde_error own;
    struct error *e = error_inside(error ? error : &own);
    int64_t end_ns = clock_monotonic_ns() + (int64_t)timeout_ms * NS_PER_MS;
    while (true) {
        int rc = look(w, out, e);
        if ((rc && !cured_by_waiting(rc)) || *out)
            return rc;
        if (wait_ms(w, rc ? WATCH_AGAIN_MS : WATCH_EVERY_MS, end_ns))
            return error_set(e, -ECANCELED, "the watch was ended");
        if (clock_monotonic_ns() >= end_ns)
            return rc ? rc : error_set(e, -ETIMEDOUT, "no new points in %d ms", timeout_ms);
    }
}

void sonde_watch_close(struct sonde_watch *w)
{
    if (!w)
        return;
    map_free(&w->seen);
    arena_free(&w->arena);
    free(w->plan);
    free(w);
}
