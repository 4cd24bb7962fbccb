#include "wire/refresh.h"

#include "base/thread_signals.h"
#include "wire/drain.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct wire_refresher {
    struct wire_loop *loop;
    struct drain_line *line; // belongs to the thread
    pthread_t thread;
    pthread_mutex_t lock; // protects all members below
    pthread_cond_t news;
    struct list_link waiting;  // refreshes that wait for the next drain
    struct list_link draining; // refreshes that wait for the drain in progress
    struct list_link drained;  // finished refreshes, for the loop
    struct wire_task task;     // while `posted`, the loop has the task
    bool posted, stop;
};

// Runs in the loop's thread. A `ready` callback may cancel other refreshes.
static void on_drained(struct wire_task *task)
{
    struct wire_refresher *r =
        (struct wire_refresher *)((char *)task - offsetof(struct wire_refresher, task));
    pthread_mutex_lock(&r->lock);
    r->posted = false;
    for (struct list_link *first; (first = list_take_first(&r->drained));) {
        struct wire_refresh *refresh = LIST_OF(first, struct wire_refresh, in_turn);
        pthread_mutex_unlock(&r->lock);
        refresh->ready(refresh);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
}

static void *run(void *user)
{
    struct wire_refresher *r = user;
    pthread_setname_np(pthread_self(), "sonde-refresh");
    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        if (list_empty(&r->waiting)) {
            pthread_cond_wait(&r->news, &r->lock);
            continue;
        }
        list_take_all(&r->waiting, &r->draining);
        pthread_mutex_unlock(&r->lock);
        // after a timeout or without an agent, the question is answered from the file as it is
        drain_line_ask(r->line);
        pthread_mutex_lock(&r->lock);
        list_take_all(&r->draining, &r->drained);
        if (!list_empty(&r->drained) && !r->posted) {
            r->posted = true;
            wire_loop_post(r->loop, &r->task);
        }
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

int wire_refresher_create(struct wire_loop *loop, const char *agent_socket,
                          struct wire_refresher **out, struct error *e)
{
    struct wire_refresher *r = *out = calloc(1, sizeof *r);
    int rc = r ? drain_line_create(agent_socket, 0, &r->line) : -ENOMEM;
    if (!rc) {
        r->loop = loop;
        list_init(&r->waiting);
        list_init(&r->draining);
        list_init(&r->drained);
        r->task.run = on_drained;
        pthread_mutex_init(&r->lock, NULL);
        pthread_cond_init(&r->news, NULL);
        sigset_t before;
        thread_signals_block(&before);
        rc = -pthread_create(&r->thread, NULL, run, r);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (!rc)
        return 0;
    if (r)
        drain_line_destroy(r->line);
    free(r);
    *out = NULL;
    return error_set(e, rc, "cannot ask the agent at %s before questions: %s", agent_socket,
                     strerror(-rc));
}

static void nothing(void *user)
{
    (void)user;
}

void wire_refresher_destroy(struct wire_refresher *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->news);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    wire_loop_call(r->loop, nothing, NULL); // waits for a posted task to finish
    drain_line_destroy(r->line);
    pthread_cond_destroy(&r->news);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void wire_refresh_begin(struct wire_refresher *r, struct wire_refresh *refresh)
{
    pthread_mutex_lock(&r->lock);
    list_append(&r->waiting, &refresh->in_turn);
    pthread_cond_signal(&r->news);
    pthread_mutex_unlock(&r->lock);
}

void wire_refresh_cancel(struct wire_refresher *r, struct wire_refresh *refresh)
{
    pthread_mutex_lock(&r->lock);
    list_remove(&refresh->in_turn);
    pthread_mutex_unlock(&r->lock);
}
