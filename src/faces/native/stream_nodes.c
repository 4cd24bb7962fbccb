#include "faces/native/stream_nodes.h"
#include "faces/native/handlers.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"
#include "base/map.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct absence {
    struct str host;  // owned
    int64_t since_ns; // its points since then are missing
    int64_t retry_ns; // not asked before this time
    bool here;        // part of the current request
};

struct stream_nodes {
    struct service *service;
    struct ask_recent_request request; // everything except its window
    int look_ms;                       // between two requests
    pthread_t thread;
    atomic_bool stop;
    pthread_mutex_t lock; // protects everything below
    pthread_cond_t changed;
    struct list_link news; // in the order of arrival
    size_t held_bytes;
    void (*woken)(void *user);
    void *woken_user;
    // Used by the thread alone.
    struct absence *absences;
    size_t absence_count, absence_capacity;
    int64_t requested_ns; // start time of the last request
    bool catching_up;     // the request is for nodes that were missing
};

// ---- received records ----

// Slow clients must not take the memory of requests, so all streams together have a share of it.
static void count_held(struct stream_nodes *n, size_t bytes)
{
    memory_account_add(&n->service->memory, bytes);
    memory_account_add(&n->service->stream_memory, bytes);
}

static void count_taken(struct stream_nodes *n, size_t bytes)
{
    memory_account_give(&n->service->memory, bytes);
    memory_account_give(&n->service->stream_memory, bytes);
}

// Call it with the lock held. A stream that holds nothing may always go on, however much the others
// hold.
static bool may_ask(struct stream_nodes *n)
{
    return n->held_bytes < STREAM_HELD_MAX &&
           (n->held_bytes == 0 || !memory_account_is_over(&n->service->stream_memory));
}

static int add_news(struct stream_nodes *n, bool event, struct str data)
{
    struct stream_news *news = malloc(sizeof *news + data.size);
    if (!news)
        return -ENOMEM;
    *news = (struct stream_news){.event = event, .size = data.size};
    if (data.size)
        memcpy(news->data, data.data, data.size);
    count_held(n, data.size);
    pthread_mutex_lock(&n->lock);
    list_append(&n->news, &news->in_nodes);
    n->held_bytes += data.size;
    pthread_mutex_unlock(&n->lock);
    return 0;
}

struct stream_news *stream_nodes_take(struct stream_nodes *n)
{
    pthread_mutex_lock(&n->lock);
    struct list_link *first = list_take_first(&n->news);
    struct stream_news *news = first ? LIST_OF(first, struct stream_news, in_nodes) : NULL;
    if (news)
        n->held_bytes -= news->size;
    pthread_mutex_unlock(&n->lock);
    if (news)
        count_taken(n, news->size);
    return news;
}

void stream_nodes_on_news(struct stream_nodes *n, void (*woken)(void *user), void *user)
{
    pthread_mutex_lock(&n->lock);
    n->woken = woken;
    n->woken_user = user;
    pthread_mutex_unlock(&n->lock);
}

// Call it without the lock, because the callback may take it.
static void tell(struct stream_nodes *n)
{
    pthread_mutex_lock(&n->lock);
    void (*woken)(void *user) = list_empty(&n->news) ? NULL : n->woken;
    void *user = n->woken_user;
    pthread_mutex_unlock(&n->lock);
    if (woken)
        woken(user);
}

static struct absence *find_absence(struct stream_nodes *n, struct str host)
{
    for (size_t i = 0; i < n->absence_count; i++)
        if (str_eq(n->absences[i].host, host))
            return &n->absences[i];
    return NULL;
}

// For a node behind a relay, `host` is the relay. For a node that was missing, only the answer to
// its separate request counts, because after newer points the missed ones would seem to have been
// sent.
static int on_record(void *user, struct str host, struct str record)
{
    struct stream_nodes *n = user;
    struct bytes b = bytes_of(record.data, record.size);
    host = bytes_short(&b);
    if (b.failed)
        return -EBADMSG;
    return !n->catching_up && find_absence(n, host) ? 0 : add_news(n, false, record);
}

static void say(struct stream_nodes *n, const char *event, struct str host, const char *reason,
                struct str text)
{
    struct buf out = {0};
    buf_printf(&out, "event: %s\ndata: ", event);
    struct json_writer w = json_to(&out);
    json_begin_object(&w);
    json_key_string(&w, "host", host);
    if (reason)
        json_key_string(&w, "reason", str_of(reason));
    if (text.size)
        json_key_string(&w, "text", text);
    json_end_object(&w);
    buf_add_str(&out, STR("\n\n"));
    if (!out.failed)
        add_news(n, true, buf_str(&out));
    buf_free(&out);
}

// ---- missing nodes ----

static int note_absence(struct stream_nodes *n, const struct wire_missing *m, int64_t since_ns)
{
    struct absence *a = find_absence(n, m->host);
    if (!a) {
        if (!array_room(&n->absences, &n->absence_capacity, n->absence_count + 1,
                        sizeof *n->absences))
            return -ENOMEM;
        char *host = strndup(m->host.data, m->host.size);
        if (!host)
            return -ENOMEM;
        a = &n->absences[n->absence_count++];
        *a = (struct absence){.host = {host, m->host.size}, .since_ns = since_ns};
        say(n, "missing", m->host, wire_reason_name(m->reason), m->text);
    }
    a->here = false;
    // A request to a node that is not connected takes no time.
    a->retry_ns =
        m->reason == WIRE_LATE ? clock_monotonic_ns() + (int64_t)STREAM_RETRY_S * NS_PER_S : 0;
    return 0;
}

static int ask(struct stream_nodes *n, const struct str *hosts, size_t count, int64_t window_ns,
               struct arena *arena, const struct wire_missing **missing, size_t *missing_count,
               struct error *e)
{
    struct buf request = {0};
    n->request.window_ns = window_ns + (int64_t)STREAM_OVERLAP_S * NS_PER_S;
    ask_recent_request_write(&n->request, &request);
    struct hub_ask question = {.question = ASK_RECENT,
                               .request = buf_str(&request),
                               .hosts = hosts,
                               .host_count = count,
                               .deadline_ns =
                                   clock_monotonic_ns() + n->service->limits.node_deadline_ns,
                               .cancel = &n->stop,
                               .record = on_record,
                               .user = n};
    int rc = request.failed
                 ? error_set(e, -ENOMEM, "no memory for the stream")
                 : hub_ask(n->service->reads.hub, &question, arena, missing, missing_count, e);
    buf_free(&request);
    return rc;
}

// Chooses all nodes except those to leave out; an empty list would mean all.
static int choose_hosts(struct stream_nodes *n, struct arena *arena, const struct str **out,
                        size_t *count)
{
    int64_t now_ns = clock_monotonic_ns();
    size_t left_alone = 0, known;
    for (size_t i = 0; i < n->absence_count; i++) {
        // may change if it is missing again
        n->absences[i].here = now_ns >= n->absences[i].retry_ns;
        left_alone += !n->absences[i].here;
    }
    *out = NULL;
    *count = 0;
    if (!left_alone)
        return 0;
    const struct hub_node *nodes;
    int rc = hub_nodes(n->service->reads.hub, arena, &nodes, &known);
    struct str *hosts = rc ? NULL : arena_array(arena, known + 1, sizeof *hosts);
    if (!hosts)
        return -ENOMEM;
    hosts[(*count)++] = hub_host(n->service->reads.hub); // keeps the list from being empty
    for (size_t i = 0; i < known; i++) {
        const struct absence *a = find_absence(n, nodes[i].host);
        if (!a || a->here)
            hosts[(*count)++] = nodes[i].host;
    }
    *out = hosts;
    return 0;
}

// Nodes that answer again get a separate request for the points that were missed.
static int catch_up(struct stream_nodes *n, struct arena *arena, struct error *e)
{
    int64_t now_ns = clock_monotonic_ns();
    int rc = 0;
    n->catching_up = true;
    for (size_t i = 0; i < n->absence_count && rc == 0;) {
        struct absence *a = &n->absences[i];
        const struct wire_missing *missing;
        size_t missing_count = 0;
        if (!a->here) {
            i++;
            continue;
        }
        int64_t gap_ns = now_ns - a->since_ns, most_ns = (int64_t)STREAM_CATCH_UP_S * NS_PER_S;
        rc = ask(n, &a->host, 1, gap_ns < most_ns ? gap_ns : most_ns, arena, &missing,
                 &missing_count, e);
        if (rc == 0 && missing_count) {
            a->here = false;
            a->retry_ns = now_ns + (int64_t)STREAM_RETRY_S * NS_PER_S;
            i++;
        } else if (rc == 0) {
            say(n, "back", a->host, NULL, (struct str){0});
            free((char *)(uintptr_t)a->host.data);
            *a = n->absences[--n->absence_count];
        }
    }
    n->catching_up = false;
    return rc;
}

static int look(struct stream_nodes *n, struct error *e)
{
    struct arena arena = {0};
    const struct str *hosts;
    const struct wire_missing *missing;
    size_t host_count, missing_count = 0;
    int64_t before_ns = n->requested_ns, now_ns = clock_monotonic_ns();
    int rc = choose_hosts(n, &arena, &hosts, &host_count);
    n->requested_ns = now_ns;
    if (rc == 0)
        rc = ask(n, hosts, host_count, now_ns - before_ns, &arena, &missing, &missing_count, e);
    for (size_t i = 0; i < missing_count && rc == 0; i++)
        rc = note_absence(n, &missing[i], before_ns);
    if (rc == 0)
        rc = catch_up(n, &arena, e);
    arena_free(&arena);
    return rc;
}

// ---- the thread ----

static void *follow(void *user)
{
    struct stream_nodes *n = user;
    struct error e = {0};
    pthread_mutex_lock(&n->lock);
    while (!atomic_load(&n->stop)) {
        if (may_ask(n)) {
            pthread_mutex_unlock(&n->lock);
            int rc = look(n, &e);
            if (rc && rc != -ECANCELED)
                log_warning("the other nodes' part of a stream: %s", e.text);
            tell(n);
            pthread_mutex_lock(&n->lock);
        }
        int64_t next_ns = clock_monotonic_ns() + n->look_ms * (int64_t)NS_PER_MS;
        while (!atomic_load(&n->stop) && condition_wait_until(&n->changed, &n->lock, next_ns))
            ;
    }
    pthread_mutex_unlock(&n->lock);
    return NULL;
}

static void free_nodes(struct stream_nodes *n)
{
    for (struct stream_news *news; (news = stream_nodes_take(n));)
        free(news);
    for (size_t i = 0; i < n->absence_count; i++)
        free((char *)(uintptr_t)n->absences[i].host.data);
    free(n->absences);
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

int stream_nodes_open(struct service *service, const struct ask_selection *selections, size_t count,
                      int64_t from_ns, int look_ms, struct stream_nodes **out, struct error *e)
{
    struct stream_nodes *n = *out = calloc(1, sizeof *n);
    if (!n)
        return error_set(e, -ENOMEM, "no memory for the stream");
    n->service = service;
    n->look_ms = look_ms;
    n->request = (struct ask_recent_request){
        .from_ns = from_ns, .selections = selections, .selection_count = count};
    list_init(&n->news);
    // The first request is for all points since from_ns.
    int64_t age_ns;
    if (__builtin_sub_overflow(clock_realtime_ns(), from_ns, &age_ns) ||
        age_ns > clock_monotonic_ns())
        age_ns = INT64_MAX / 2;
    n->requested_ns = clock_monotonic_ns() - age_ns;
    pthread_mutex_init(&n->lock, NULL);
    condition_init(&n->changed);
    int rc = pthread_create(&n->thread, NULL, follow, n);
    if (rc == 0)
        return 0;
    free_nodes(n);
    *out = NULL;
    return error_set(e, -rc, "cannot start the thread for a stream: %s", strerror(rc));
}

void stream_nodes_close(struct stream_nodes *n)
{
    if (!n)
        return;
    pthread_mutex_lock(&n->lock);
    atomic_store(&n->stop, true);
    pthread_cond_signal(&n->changed);
    pthread_mutex_unlock(&n->lock);
    pthread_join(n->thread, NULL);
    free_nodes(n);
}
