// watch.c - returns new points as they arrive, from the job's stream. Without a stream, it queries
// the last seconds every WATCH_EVERY_MS.
//
//   query ─▶ existing or missed points ─▶ stream, from WATCH_WINDOW_MS ago ─▶ points … until it
//   ends ─▶ query ─▶ …
//
// Queries overlap with each other and with the beginning of the stream. The time of each series'
// last point decides which points are new, so no point is returned twice. A query covers more than
// necessary (WATCH_WINDOW_MS), because points of other nodes and of slow sources come late. It also
// covers everything missed while the job could not be reached, up to WATCH_BACK_MS. For recordings,
// for selections that a stream does not support (feed.h), and for jobs that accept no further
// streams, the watch polls with queries.
#include "client/client.h"
#include "client/feed.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    WATCH_EVERY_MS = 50,
    WATCH_AGAIN_MS = 500, // pause after a failure
    WATCH_WINDOW_MS = 5000,
    WATCH_BACK_MS = 60000,
    WATCH_ANSWER_MS = 10000, // timeout of a query
    WATCH_SERIES_MAX = 100000,
};

struct sonde_watch {
    struct sonde_client *client;
    char *plan;         // the query as JSON
    char *path;         // path of its stream; NULL: it has no stream
    struct feed *feed;  // NULL: the stream is not open
    pid_t pid;          // process that opened the stream
    struct arena arena; // holds keys
    struct map seen;    // series → time of its last returned point, + 2^63
    // CLOCK_MONOTONIC: no point before it was missed; 0: no query has succeeded yet
    int64_t covered_ns;
    bool begun; // the existing points are known
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
    size_t i = 0;
    if (!added)
        SEARCH_FIRST(i, s->count, (uint64_t)s->time_ns[i] + INT64_MAX + 1 > *place);
    *first = i;
    if (i == s->count)
        return false;
    *place = (uint64_t)s->time_ns[s->count - 1] + INT64_MAX + 1;
    return w->begun;
}

// Removes all points that are not new.
static void narrow(struct sonde_watch *w, struct sonde_result **r)
{
    if (*r)
        result_narrow(*r, is_new, w);
    if (*r && !(*r)->count) {
        sonde_result_free(*r);
        *r = NULL;
    }
}

static bool cured_by_waiting(int rc)
{
    static const int codes[] = {-ECONNREFUSED, -ECONNRESET, -EHOSTUNREACH, -ETIMEDOUT,
                                -ETIME,        -EBUSY,      -EPROTO};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (rc == codes[i])
            return true;
    return false;
}

// Runs one query. Returns 0 with the new points in *out, or NULL if there are none.
static int look(struct sonde_watch *w, struct sonde_result **out, struct error *e)
{
    struct http_answer answer = {0};
    struct buf body = {0};
    int64_t now_ns = clock_monotonic_ns();
    int64_t missed_ms = w->covered_ns ? (now_ns - w->covered_ns) / NS_PER_MS : 0;
    *out = NULL;
    buf_printf(
        &body, "{\"start\":\"%lldms-ago\",\"queries\":[%s]}",
        (long long)(WATCH_WINDOW_MS + (missed_ms < WATCH_BACK_MS ? missed_ms : WATCH_BACK_MS)),
        w->plan);
    int rc = body.failed ? error_set(e, -ENOMEM, "out of memory")
                         : client_ask(w->client, "/sonde/v1/query?format=binary", buf_str(&body),
                                      WATCH_ANSWER_MS, &answer, e);
    buf_free(&body);
    // The metric is unknown so far, so all its later points will be new.
    bool unknown = rc == -EINVAL && e && str_starts(str_of(e->text), STR("No such name"));
    if (!rc)
        rc = result_read(&answer, out, e);
    if (rc && !unknown)
        return rc;
    w->covered_ns = now_ns;
    narrow(w, out);
    w->begun = true;
    return 0;
}

// Reads points from the stream. Also returns 0 if the stream has ended, because a query then
// succeeds, or finds the reason.
static int listen_for(struct sonde_watch *w, int timeout_ms, struct sonde_result **out,
                      struct error *e)
{
    int rc = feed_next(w->feed, timeout_ms, out, e);
    if (rc == 0)
        narrow(w, out);
    if (rc == 0 || rc == -EAGAIN)
        w->covered_ns = clock_monotonic_ns();
    if (rc == 0 || rc == -EAGAIN || rc == -ECANCELED)
        return rc == -EAGAIN ? 0 : rc;
    feed_close(w->feed);
    w->feed = NULL;
    if (!cured_by_waiting(rc) || rc == -EBUSY) {
        free(w->path); // the server does not accept a stream of these points
        w->path = NULL;
    }
    return 0;
}

// Returns 0 with the new points in *out, or NULL if none arrive (on a stream: within timeout_ms).
static int news(struct sonde_watch *w, int timeout_ms, struct sonde_result **out, struct error *e)
{
    if (w->feed && w->pid == getpid())
        return listen_for(w, timeout_ms, out, e);
    feed_close(w->feed); // the child opens its own stream
    w->feed = NULL;
    int rc = look(w, out, e);
    if (!rc && w->path &&
        feed_open(w->client->origins[0], w->path, WATCH_WINDOW_MS, &w->client->look, &w->feed,
                  NULL)) {
        free(w->path);
        w->path = NULL;
    }
    w->pid = getpid();
    return rc;
}

int sonde_client_watch(struct sonde_client *c, const struct sonde_query *query,
                       struct sonde_watch **out, struct sonde_error *error)
{
    struct sonde_error own;
    struct error *e = error_inside(error ? error : &own);
    struct buf plan = {0}, path = {0};
    struct sonde_result *none;
    *out = NULL;
    if (query->span || query->downsample || (query->m && strncmp(query->m, "none:", 5) != 0))
        return error_set(
            e, -EINVAL,
            "cannot watch this query: a watch takes a metric and filters (none:METRIC{TAG=VALUE})");
    struct sonde_watch *w = calloc(1, sizeof *w);
    int rc = w ? client_plan(query, &plan, e) : error_set(e, -ENOMEM, "out of memory");
    if (!rc) {
        w->client = c;
        w->plan = strdup(buf_cstr(&plan));
        w->path = feed_path(query, &path) ? strdup(buf_cstr(&path)) : NULL;
        rc = w->plan ? look(w, &none, e) : error_set(e, -ENOMEM, "out of memory");
    }
    buf_free(&plan);
    buf_free(&path);
    if (rc)
        sonde_watch_close(w);
    else
        *out = w;
    return rc;
}

// Sleeps for `ms`, or until end_ns if that is earlier. Returns true if end_ns is reached.
static bool wait_ms(const struct sonde_watch *w, int64_t ms, int64_t end_ns)
{
    int64_t until_ns = clock_monotonic_ns() + ms * NS_PER_MS, left_ns;
    if (until_ns > end_ns)
        until_ns = end_ns;
    while ((left_ns = until_ns - clock_monotonic_ns()) > 0) {
        int64_t nap_ns = left_ns < (int64_t)WATCH_EVERY_MS * NS_PER_MS
                             ? left_ns
                             : (int64_t)WATCH_EVERY_MS * NS_PER_MS;
        struct timespec nap = {.tv_nsec = (long)nap_ns};
        nanosleep(&nap, NULL);
        if (w->client->look.stop && w->client->look.stop(w->client->look.user))
            return true;
    }
    return false;
}

int sonde_watch_next(struct sonde_watch *w, int timeout_ms, struct sonde_result **out,
                     struct sonde_error *error)
{
    struct sonde_error own;
    struct error *e = error_inside(error ? error : &own);
    int64_t end_ns = clock_monotonic_ns() + (int64_t)timeout_ms * NS_PER_MS;
    while (true) {
        int64_t left_ms = (end_ns - clock_monotonic_ns()) / NS_PER_MS;
        int rc = news(w, left_ms > 0 ? (int)left_ms : 0, out, e);
        if ((rc && !cured_by_waiting(rc)) || *out)
            return rc;
        if (wait_ms(w, rc ? WATCH_AGAIN_MS : w->feed ? 0 : WATCH_EVERY_MS, end_ns))
            return error_set(e, -ECANCELED, "the watch was ended");
        if (clock_monotonic_ns() >= end_ns) {
            e->code = -ETIMEDOUT; // keeps the message of the failure
            return rc ? -ETIMEDOUT : error_set(e, -ETIMEDOUT, "no new points in %d ms", timeout_ms);
        }
    }
}

void sonde_watch_close(struct sonde_watch *w)
{
    if (!w)
        return;
    feed_close(w->feed);
    map_free(&w->seen);
    arena_free(&w->arena);
    free(w->path);
    free(w->plan);
    free(w);
}
