// hub_ask.c - sends a question for another thread. The loop puts records into a list, and the
// caller takes them out.
//
// The caller takes a record faster than the loop reads one. If each record woke it, both threads
// would spend more time on that than on 1,000 small answers. So the caller sleeps until many
// records are there, or GATHER_NS, or the end.
#include "wire/hub_internal.h"
#include "wire/pending_question.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/memory_account.h"

#include <errno.h>
#include <stdlib.h>

enum {
    LOOK_AT_CANCEL_NS = 20 * NS_PER_MS,
    GATHER_NS = 2 * NS_PER_MS,
    MANY_RECORDS = 64,
    MANY_BYTES = 256 << 10,
};

struct item {
    struct list_link of_waiter;
    struct str host, record; // stored after the struct
};

struct absent {
    struct list_link of_waiter;
    struct wire_missing missing; // with its texts stored after the struct
};

struct waiter {
    struct hub *hub;
    struct pending_question *question; // belongs to the loop's thread
    const struct hub_ask *ask;
    uint32_t remaining_ms;
    int begin_result;
    int look_result; // the result of the caller's watch
    struct error *e;
    enum wire_reason reason; // reason for nodes that have not answered when the caller stops
    pthread_mutex_t lock;    // protects all members below
    pthread_cond_t news;
    struct list_link items; // records in order of arrival
    size_t held_bytes, item_count;
    bool paused, done, no_memory;
    struct list_link absent; // the newest first
    size_t absent_count;
};

// ---- received messages ----

static size_t item_bytes(const struct item *item)
{
    return sizeof *item + item->host.size + item->record.size;
}

static bool is_over(const struct waiter *w)
{
    return w->hub->memory && memory_account_is_over(w->hub->memory);
}

// Counts an item that has arrived, even beyond the limit, because the caller takes it soon. Returns
// true if the nodes must pause until then.
static bool is_too_much(struct waiter *w, const struct item *item)
{
    struct memory_account *memory = w->hub->memory;
    w->held_bytes += item_bytes(item);
    if (memory)
        memory_account_add(memory, item_bytes(item));
    return w->held_bytes > HUB_HELD_MAX || is_over(w);
}

static void free_item(struct waiter *w, struct item *item)
{
    if (w->hub->memory)
        memory_account_give(w->hub->memory, item_bytes(item));
    free(item);
}

// Whether the caller should wake up.
static bool are_many(const struct waiter *w)
{
    return w->item_count >= MANY_RECORDS || w->held_bytes >= MANY_BYTES || w->paused || w->done ||
           w->no_memory;
}

static void on_record(void *user, struct str host, struct str record)
{
    struct waiter *w = user;
    struct item *item = malloc(sizeof *item + host.size + record.size);
    bool pause = false;
    if (item) {
        char *at = (char *)(item + 1);
        memcpy(at, host.data, host.size);
        if (record.size)
            memcpy(at + host.size, record.data, record.size);
        *item = (struct item){.host = {at, host.size}, .record = {at + host.size, record.size}};
    }
    pthread_mutex_lock(&w->lock);
    bool were_many = are_many(w);
    if (item) {
        list_append(&w->items, &item->of_waiter);
        w->item_count++;
        pause = is_too_much(w, item) && !w->paused;
        w->paused |= pause;
    } else {
        w->no_memory = true;
    }
    if (!were_many && are_many(w))
        pthread_cond_signal(&w->news);
    pthread_mutex_unlock(&w->lock);
    if (pause)
        pending_question_pause(w->question, true);
}

static void on_missing(void *user, const struct wire_missing *m)
{
    struct waiter *w = user;
    struct absent *a = malloc(sizeof *a + m->host.size + m->text.size);
    if (a) {
        char *at = (char *)(a + 1);
        memcpy(at, m->host.data, m->host.size);
        if (m->text.size)
            memcpy(at + m->host.size, m->text.data, m->text.size);
        a->missing =
            (struct wire_missing){{at, m->host.size}, m->reason, {at + m->host.size, m->text.size}};
    }
    pthread_mutex_lock(&w->lock);
    if (a) {
        list_prepend(&w->absent, &a->of_waiter);
        w->absent_count++;
    } else {
        w->no_memory = true;
    }
    pthread_mutex_unlock(&w->lock);
}

static void on_done(void *user)
{
    struct waiter *w = user;
    pthread_mutex_lock(&w->lock);
    w->done = true;
    pthread_cond_signal(&w->news);
    pthread_mutex_unlock(&w->lock);
}

static void begin(void *user)
{
    struct waiter *w = user;
    struct pending_question_options o = {.question = w->ask->question,
                                         .request = w->ask->request,
                                         .hosts = w->ask->hosts,
                                         .host_count = w->ask->host_count,
                                         .remaining_ms = w->remaining_ms,
                                         .events = {on_record, on_missing, on_done},
                                         .user = w};
    size_t left = 0;
    w->begin_result = pending_question_begin(w->hub, &o, &w->question, &left);
    w->done = left == 0;
}

static void resume(void *user)
{
    struct waiter *w = user;
    if (w->question)
        pending_question_pause(w->question, false);
}

static void end(void *user)
{
    struct waiter *w = user;
    w->hub->stats.cancelled += w->reason == WIRE_ERROR;
    pending_question_end(w->question, w->reason);
    w->question = NULL;
}

// ---- in the caller's thread ----

// Calls the caller's watch, without the lock. Returns false if the caller must stop.
static bool look(struct waiter *w)
{
    if (w->ask->cancel && atomic_load(w->ask->cancel)) {
        w->reason = WIRE_ERROR;
        return false;
    }
    if (!w->ask->watch)
        return true;
    pthread_mutex_unlock(&w->lock);
    w->look_result = w->ask->watch->look(w->ask->watch->user, w->e);
    pthread_mutex_lock(&w->lock);
    if (w->look_result)
        w->reason = WIRE_ERROR;
    return !w->look_result;
}

// Waits for records or the end. Called with the lock held. Returns false if the caller's time is
// over (w->reason says why).
static bool wait_for_news(struct waiter *w, int64_t deadline_ns)
{
    int64_t look_ns = 0;
    while (list_empty(&w->items) && !w->done && !w->no_memory) {
        int64_t now = clock_monotonic_ns();
        if (now >= look_ns) {
            look_ns = now + LOOK_AT_CANCEL_NS;
            if (!look(w))
                return false;
        }
        if (now >= deadline_ns) {
            w->reason = WIRE_LATE;
            return false;
        }
        int64_t until = now + GATHER_NS < deadline_ns ? now + GATHER_NS : deadline_ns;
        while (!are_many(w) && condition_wait_until(&w->news, &w->lock, until)) {
        }
    }
    return true;
}

// Passes all records in the list to the caller.
static int hand_over(struct waiter *w)
{
    int r = 0;
    for (;;) {
        pthread_mutex_lock(&w->lock);
        struct list_link *first = list_take_first(&w->items);
        struct item *item = first ? LIST_OF(first, struct item, of_waiter) : NULL;
        bool go_on = false;
        if (item) {
            w->item_count--;
            w->held_bytes -= item_bytes(item);
            // Count only the bytes of this question. Other questions that hold many bytes must not
            // keep it waiting forever.
            go_on = w->paused &&
                    (w->held_bytes == 0 || (w->held_bytes <= HUB_HELD_MAX / 2 && !is_over(w)));
            w->paused &= !go_on;
        }
        pthread_mutex_unlock(&w->lock);
        if (!item)
            return r;
        if (go_on)
            wire_loop_call(w->hub->loop, resume, w);
        if (r == 0)
            r = w->ask->record(w->ask->user, item->host, item->record);
        if (r == -EBADMSG) {
            on_missing(
                w, &(struct wire_missing){item->host, WIRE_ERROR, STR("its answer is damaged")});
            r = 0;
        }
        free_item(w, item);
    }
}

static int collect(struct waiter *w, int64_t deadline_ns)
{
    for (;;) {
        pthread_mutex_lock(&w->lock);
        bool more = wait_for_news(w, deadline_ns), over = w->done && list_empty(&w->items),
             failed = w->no_memory;
        pthread_mutex_unlock(&w->lock);
        if (!more)
            return w->look_result ? w->look_result : w->reason == WIRE_LATE ? 0 : -ECANCELED;
        if (failed)
            return -ENOMEM;
        if (over)
            return 0;
        int r = hand_over(w);
        if (r)
            return r;
        if (clock_monotonic_ns() >= deadline_ns)
            w->reason = WIRE_LATE;
    }
}

// ---- missing nodes ----

static int compare_missing(const void *a, const void *b)
{
    const struct wire_missing *x = a, *y = b;
    return str_compare(x->host, y->host);
}

static int list_missing(struct waiter *w, struct arena *arena, const struct wire_missing **out,
                        size_t *count)
{
    struct wire_missing *all = arena_array(arena, w->absent_count, sizeof *all);
    size_t n = 0, unique = 0;
    if (!all)
        return -ENOMEM;
    LIST_EACH (link, &w->absent) {
        const struct absent *a = LIST_OF(link, struct absent, of_waiter);
        all[n] = (struct wire_missing){arena_str(arena, a->missing.host), a->missing.reason,
                                       arena_str(arena, a->missing.text)};
        if (!all[n].host.data || !all[n++].text.data)
            return -ENOMEM;
    }
    qsort(all, n, sizeof *all, compare_missing);
    for (size_t i = 0; i < n; i++)
        if (unique == 0 || !str_eq(all[unique - 1].host, all[i].host))
            all[unique++] = all[i];
    *out = all;
    *count = unique;
    return 0;
}

static void free_waiter(struct waiter *w)
{
    LIST_EACH (link, &w->items)
        free_item(w, LIST_OF(link, struct item, of_waiter));
    LIST_EACH (link, &w->absent)
        free(LIST_OF(link, struct absent, of_waiter));
    pthread_cond_destroy(&w->news);
    pthread_mutex_destroy(&w->lock);
}

int hub_ask(struct hub *h, const struct hub_ask *ask, struct arena *arena,
            const struct wire_missing **missing, size_t *missing_count, struct error *e)
{
    *missing = NULL;
    *missing_count = 0;
    int64_t now = clock_monotonic_ns();
    int64_t deadline_ns =
        ask->deadline_ns ? ask->deadline_ns : now + HUB_DEADLINE_DEFAULT_MS * (int64_t)NS_PER_MS;
    int64_t remaining_ms = deadline_ns > now ? (deadline_ns - now) / NS_PER_MS : 0;
    struct waiter w = {
        .hub = h, .ask = ask, .reason = WIRE_LATE, .e = e, .lock = PTHREAD_MUTEX_INITIALIZER};
    w.remaining_ms = remaining_ms < INT32_MAX ? (uint32_t)remaining_ms : INT32_MAX;
    list_init(&w.items);
    list_init(&w.absent);
    condition_init(&w.news);

    wire_loop_call(h->loop, begin, &w);
    int r = w.begin_result;
    if (r == 0) {
        r = ask->begun ? ask->begun(ask->user) : 0;
        if (r == 0)
            r = collect(&w, deadline_ns);
        w.reason = r ? WIRE_ERROR : WIRE_LATE;
        wire_loop_call(h->loop, end, &w);
        // also passes on records that have arrived at the last moment
        int rest = r ? 0 : hand_over(&w);
        r = r ? r : rest;
    }
    if (r == 0)
        r = w.no_memory ? -ENOMEM : list_missing(&w, arena, missing, missing_count);
    free_waiter(&w);
    if (w.look_result)
        return r; // the watch has set the error
    if (r == -ENOMEM)
        error_set(e, r, "no memory for an answer");
    else if (r == -E2BIG && w.begin_result)
        error_set(e, r, "the question is too long");
    else if (r == -ECANCELED)
        error_set(e, r, "the question was cancelled");
    return r;
}
