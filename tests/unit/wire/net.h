// net.h - hubs and links in one process, for tests: their identities, their data, and waiting for
// conditions.
#ifndef SONDE_TESTS_WIRE_NET_H
#define SONDE_TESTS_WIRE_NET_H

#include "ask/query_wire.h"
#include "ask/questions.h"
#include "base/clock.h"
#include "unit/test.h"
#include "wire/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Long, because tests wait for conditions, and only a failing test waits this long.
static const int64_t NET_PATIENCE_NS = 60 * INT64_C(1000000000);

static inline struct wire_settings net_settings(void)
{
    struct wire_settings s = {
        .questions = &ask_questions, .job = STR("job-1"), .retry_ms = 10, .retry_max_ms = 100};
    for (int i = 0; i < WIRE_KEY_BYTES; i++)
        s.key[i] = (uint8_t)(i * 7 + 1);
    return s;
}

static inline struct wire_loop *net_loop(void)
{
    struct wire_loop *l;
    struct error e;
    if (wire_loop_start(&l, &e))
        fail_msg("%s", e.text);
    return l;
}

static inline struct hub *net_hub(struct wire_loop *loop, const struct wire_settings *settings,
                                  const char *host, bool relay)
{
    struct hub_options o = {
        .settings = *settings, .address = "127.0.0.1", .host = str_of(host), .relay = relay};
    struct hub *h;
    struct error e;
    if (hub_create(loop, &o, &h, &e))
        fail_msg("%s", e.text);
    return h;
}

static inline int net_no_view(void *user, struct wire_view *out, struct error *e)
{
    (void)user;
    (void)e;
    *out = (struct wire_view){0};
    return 0;
}

static inline void net_close_view(void *user, struct wire_view *view)
{
    (void)user;
    (void)view;
}

// Opens a view of the reader that `user` points to. Each request gets a new snapshot, because
// several may run at a time.
static inline int net_open_reader(void *user, struct wire_view *out, struct error *e)
{
    struct store_reader **reader = user;
    struct store_snapshot **snapshot = malloc(sizeof *snapshot);
    *snapshot = store_snapshot_open(*reader);
    *out = (struct wire_view){.stores = snapshot, .readers = reader, .count = 1, .user = snapshot};
    return *snapshot ? 0 : error_set(e, -ENOMEM, "no memory");
}

static inline void net_close_reader(void *user, struct wire_view *view)
{
    struct store_snapshot **snapshot = view->user;
    (void)user;
    store_snapshot_close(*snapshot);
    free(snapshot);
}

static inline struct wire_link *net_link(struct wire_loop *loop,
                                         const struct wire_settings *settings, const char *host,
                                         int port, const struct wire_source *source,
                                         struct hub *children)
{
    static const struct wire_source nothing = {net_no_view, net_close_view, NULL};
    struct wire_link_options o = {.settings = *settings,
                                  .parent_host = "127.0.0.1",
                                  .parent_port = port,
                                  .host = str_of(host),
                                  .session = 1,
                                  .source = source ? *source : nothing,
                                  .children = children};
    struct wire_link *l;
    struct error e;
    if (wire_link_create(loop, &o, &l, &e))
        fail_msg("%s", e.text);
    return l;
}

// Polls until the condition holds.
#define NET_AWAIT(condition)                                     \
    do {                                                         \
        int64_t until_ = clock_monotonic_ns() + NET_PATIENCE_NS; \
        while (!(condition)) {                                   \
            if (clock_monotonic_ns() > until_)                   \
                fail_msg("waited in vain for " #condition);      \
            usleep(1000);                                        \
        }                                                        \
    } while (0)

static inline struct hub_stats net_stats(struct hub *h)
{
    struct hub_stats s;
    hub_get_stats(h, &s);
    return s;
}

static inline struct wire_link_stats net_link_stats(struct wire_link *l)
{
    struct wire_link_stats s;
    wire_link_get_stats(l, &s);
    return s;
}

static inline void net_wait(struct hub *h, size_t count)
{
    assert_int_equal(hub_wait(h, count, clock_monotonic_ns() + NET_PATIENCE_NS), 0);
}

#endif
