#include "aggregator/fetch.h"

#include "ask/copy_wire.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/list.h"
#include "base/thread_signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOOK_MS = 20 }; // interval of checks whether an expected node has connected

struct fetch_request {
    struct list_link in_queue;
    char *host, *folder; // owned by this struct
    int64_t since_ns;
};

struct fetch {
    struct hub *hub;
    char *job;
    fetch_end_fn *on_end;
    void *user;
    pthread_t thread;
    pthread_mutex_t lock; // protects the queue
    pthread_cond_t news;
    struct list_link queue; // in the order of the requests
    atomic_bool stop;
    struct ask_copy_progress progress;
};

static void free_request(struct fetch_request *w)
{
    free(w->host);
    free(w->folder);
    free(w);
}

int fetch_add(struct fetch *f, struct str host, struct str folder)
{
    struct fetch_request *w = calloc(1, sizeof *w);
    if (w) {
        w->host = strndup(host.data, host.size);
        w->folder = strndup(folder.data, folder.size);
        w->since_ns = clock_monotonic_ns();
    }
    if (!w || !w->host || !w->folder) {
        if (w)
            free_request(w);
        return -ENOMEM;
    }
    pthread_mutex_lock(&f->lock);
    list_append(&f->queue, &w->in_queue);
    pthread_cond_signal(&f->news);
    pthread_mutex_unlock(&f->lock);
    return 0;
}

uint64_t fetch_bytes(const struct fetch *f, uint64_t *moved)
{
    uint64_t bytes = atomic_load(&f->progress.bytes);
    *moved = bytes + atomic_load(&f->progress.steps);
    return bytes;
}

// ---------------------------------------------------------------- the thread that copies

static const struct hub_node *find_node(const struct hub_node *nodes, size_t count,
                                        const char *host)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(nodes[i].host, str_of(host)))
            return &nodes[i];
    return NULL;
}

// Removes nodes from the queue that are connected, or whose time to connect is over. All of them
// have the same target folder.
static size_t take_some(struct fetch *f, struct arena *arena,
                        struct fetch_request *out[FETCH_NODES_AT_ONCE])
{
    const struct hub_node *nodes;
    size_t count = 0, n = 0;
    if (hub_nodes(f->hub, arena, &nodes, &count))
        return 0; // out of memory: try again later
    int64_t late_ns = clock_monotonic_ns() - (int64_t)FETCH_CONNECT_MS * NS_PER_MS;
    pthread_mutex_lock(&f->lock);
    LIST_EACH (link, &f->queue) {
        struct fetch_request *w = LIST_OF(link, struct fetch_request, in_queue);
        if (n == FETCH_NODES_AT_ONCE)
            break;
        const struct hub_node *node = find_node(nodes, count, w->host);
        bool ready = (node && node->within_reach) || w->since_ns < late_ns;
        if (!ready || (n && strcmp(w->folder, out[0]->folder) != 0))
            continue;
        list_remove(link);
        out[n++] = w;
    }
    pthread_mutex_unlock(&f->lock);
    return n;
}

static void say_one(struct fetch *f, struct str host, const struct ask_copied *copied,
                    const char *failed)
{
    const char *path = NULL;
    char words[256];
    for (size_t i = 0; i < copied->count && !failed; i++) {
        if (!str_eq(copied->files[i].host, host))
            continue;
        failed = copied->files[i].problem;
        path = copied->files[i].path;
    }
    for (size_t i = 0; i < copied->absent.count && !failed; i++) {
        const struct wire_missing *m = &copied->absent.nodes[i];
        if (!str_eq(m->host, host))
            continue;
        snprintf(words, sizeof words, "%s%s%.*s", wire_reason_name(m->reason),
                 m->text.size ? ": " : "", m->text.size > 150 ? 150 : (int)m->text.size,
                 m->text.size ? m->text.data : "");
        failed = words;
    }
    if (!path && !failed)
        failed = "it has none";
    f->on_end(f->user, host, failed ? NULL : path, failed);
}

static void fetch_some(struct fetch *f, struct arena *arena, struct fetch_request *const requests[],
                       size_t count)
{
    struct str hosts[FETCH_NODES_AT_ONCE];
    struct error e = {0};
    struct ask_copied copied = {0};
    for (size_t i = 0; i < count; i++)
        hosts[i] = str_of(requests[i]->host);
    struct ask_copy_options o = {.folder = requests[0]->folder,
                                 .job = str_of(f->job),
                                 .to_ns = INT64_MAX,
                                 .progress = &f->progress};
    struct hub_where where = {.hosts = hosts,
                              .host_count = count,
                              .deadline_ns =
                                  clock_monotonic_ns() + (int64_t)FETCH_DEADLINE_S * NS_PER_S,
                              .cancel = &f->stop};
    int rc = hub_copy(f->hub, STR(""), &o, &where, arena, &copied, &e);
    for (size_t i = 0; i < count; i++)
        say_one(f, hosts[i], &copied, rc ? e.text : NULL);
}

static void *work(void *user)
{
    struct fetch *f = user;
    while (!atomic_load(&f->stop)) {
        struct arena arena = {0};
        struct fetch_request *some[FETCH_NODES_AT_ONCE];
        size_t n = take_some(f, &arena, some);
        if (n)
            fetch_some(f, &arena, some, n);
        for (size_t i = 0; i < n; i++)
            free_request(some[i]);
        arena_free(&arena);
        if (n)
            continue;
        pthread_mutex_lock(&f->lock);
        if (list_empty(&f->queue) && !atomic_load(&f->stop))
            pthread_cond_wait(&f->news, &f->lock);
        else
            condition_wait_until(&f->news, &f->lock,
                                 clock_monotonic_ns() + (int64_t)LOOK_MS * NS_PER_MS);
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

int fetch_create(struct hub *hub, struct str job, fetch_end_fn *on_end, void *user,
                 struct fetch **out)
{
    struct fetch *f = *out = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    f->hub = hub;
    f->job = strndup(job.data, job.size);
    f->on_end = on_end;
    f->user = user;
    list_init(&f->queue);
    pthread_mutex_init(&f->lock, NULL);
    condition_init(&f->news);
    sigset_t before;
    thread_signals_block(&before);
    int failed = f->job ? pthread_create(&f->thread, NULL, work, f) : ENOMEM;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        return 0;
    free(f->job);
    free(f);
    *out = NULL;
    return -failed;
}

void fetch_destroy(struct fetch *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    atomic_store(&f->stop, true);
    pthread_cond_signal(&f->news);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    LIST_EACH (link, &f->queue)
        free_request(LIST_OF(link, struct fetch_request, in_queue));
    pthread_cond_destroy(&f->news);
    pthread_mutex_destroy(&f->lock);
    free(f->job);
    free(f);
}
