// watch.c - new points as they come: from the job's stream, or where there is none, by a question
// every WATCH_EVERY_MS for the last seconds.
//
//   look ─▶ what is there, or was missed ─▶ stream, from WATCH_WINDOW_MS ago ─▶ points … its end ─▶ look ─▶ …
//
// What is had twice (of looks, that overlap, and of the stream's beginning) is left out: what
// counts is the time of a series' last point, and nothing is told twice. A look asks for more than
// it needs (WATCH_WINDOW_MS), as points of other nodes, and of sources that are slow, come late;
// and for all that has been missed while the job could not be reached, up to WATCH_BACK_MS.
// Recordings, selections that a stream cannot follow (feed.h) and jobs that have no stream left are
// looked at again and again.
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
    WATCH_AGAIN_MS = 500, // after a failure
    WATCH_WINDOW_MS = 5000,
    WATCH_BACK_MS = 60000,
    WATCH_ANSWER_MS = 10000, // for one look
    WATCH_SERIES_MAX = 100000,
};

struct sonde_watch {
    struct sonde_client *client;
    char *plan;         // the query, as JSON
    char *path;         // of its stream; NULL: there is none
    struct feed *feed;  // the stream; NULL: it is not open
    pid_t pid;          // who opened it
    struct arena arena; // keys
    struct map seen;    // a series → time of its last point that was told, + 2^63
    int64_t asked_ns;   // CLOCK_MONOTONIC: so far nothing was missed; 0: nothing was had
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
    size_t i = 0;
    if (!added)
        SEARCH_FIRST(i, s->count, (uint64_t)s->time_ns[i] + INT64_MAX + 1 > *place);
    *first = i;
    if (i == s->count)
        return false;
    *place = (uint64_t)s->time_ns[s->count - 1] + INT64_MAX + 1;
    return w->begun;
}

// Leaves what is new.
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

// One look: 0, and *out has what is new, NULL: nothing.
static int look(struct sonde_watch *w, struct sonde_result **out, struct error *e)
{
    struct http_answer answer = {0};
    struct buf body = {0};
    int64_t now_ns = clock_monotonic_ns();
    int64_t missed_ms = w->asked_ns ? (now_ns - w->asked_ns) / NS_PER_MS : 0;
    *out = NULL;
    buf_printf(
        &body, "{\"start\":\"%lldms-ago\",\"queries\":[%s]}",
        (long long)(WATCH_WINDOW_MS + (missed_ms < WATCH_BACK_MS ? missed_ms : WATCH_BACK_MS)),
        w->plan);
    int rc = body.failed ? error_set(e, -ENOMEM, "out of memory")
                         : client_ask(w->client, "/sonde/v1/query?format=binary", buf_str(&body),
                                      WATCH_ANSWER_MS, &answer, e);
    buf_free(&body);
    // A metric that nobody knows yet: whatever comes of it will be new.
    bool unknown = rc == -EINVAL && e && str_starts(str_of(e->text), STR("No such name"));
    if (!rc)
        rc = result_read(&answer, out, e);
    if (rc && !unknown)
        return rc;
    w->asked_ns = now_ns;
    narrow(w, out);
    w->begun = true;
    return 0;
}

// What has come by the stream. 0 also where it has ended: a look says why, or that all is well.
static int listen_for(struct sonde_watch *w, int timeout_ms, struct sonde_result **out,
                      struct error *e)
{
    int rc = feed_next(w->feed, timeout_ms, out, e);
    if (rc == 0)
        narrow(w, out);
    if (rc == 0 || rc == -EAGAIN)
        w->asked_ns = clock_monotonic_ns();
    if (rc == 0 || rc == -EAGAIN || rc == -ECANCELED)
        return rc == -EAGAIN ? 0 : rc;
    feed_close(w->feed);
    w->feed = NULL;
    if (!cured_by_waiting(rc) || rc == -EBUSY) {
        free(w->path); // this server gives us none
        w->path = NULL;
    }
    return 0;
}

// 0, and *out has what is new, NULL: nothing (with a stream, for timeout_ms).
static int news(struct sonde_watch *w, int timeout_ms, struct sonde_result **out, struct error *e)
{
    if (w->feed && w->pid == getpid())
        return listen_for(w, timeout_ms, out, e);
    feed_close(w->feed); // a child has its own
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
            "points are watched as they come: a metric and filters (none:METRIC{TAG=VALUE})");
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

// Naps as long as it may; true: it is over.
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
            e->code = -ETIMEDOUT; // the words of a failure stay
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
