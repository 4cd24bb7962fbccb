// world.h - for tests of copies: the store of one node, n1, the hub to which it is linked, and the
// folder of its copy.
#ifndef SONDE_TESTS_WIRE_WORLD_H
#define SONDE_TESTS_WIRE_WORLD_H

#include "ask/copy_wire.h"
#include "proxy.h"
#include "store/store.h"
#include "unit/wire/net.h"

enum { WORLD_SERIES = 4 };

struct world {
    char folder[64], from[96], to[96], path[160]; // its file, and the copy's folder and file
    struct store *store;
    struct store_reader *reader;
    uint32_t metric, series[WORLD_SERIES]; // for definitions that the test itself makes
    int64_t next;
    struct wire_loop *loop;
    struct hub *hub;
    struct proxy *proxy; // between the two, or NULL
    struct wire_link *link;
    struct arena arena;
};

// With an empty store.
static inline struct world *world_begin(void)
{
    struct world *w = calloc(1, sizeof *w);
    strcpy(w->folder, "/tmp/sonde-wire-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->from, sizeof w->from, "%s/n1.sonde", w->folder);
    snprintf(w->to, sizeof w->to, "%s/copy", w->folder);
    snprintf(w->path, sizeof w->path, "%s/n1.sonde", w->to);
    struct store_label meta[] = {{STR("host"), STR("n1")}, {STR("job"), STR("7")}};
    assert_int_equal(store_open(w->from, &(struct store_options){.meta = meta, .meta_count = 2},
                                &w->store, NULL),
                     0);
    return w;
}

static inline uint32_t world_series(struct world *w, const char *name)
{
    uint32_t id;
    struct store_label labels[] = {{STR("host"), STR("n1")}, {STR("k"), str_of(name)}};
    assert_int_equal(store_define_series(w->store, w->metric, labels, 2, &id), 0);
    return id;
}

static inline void world_connect(struct world *w, bool through_proxy)
{
    struct wire_settings s = net_settings();
    assert_int_equal(store_reader_open(w->from, &w->reader, NULL), 0);
    w->loop = net_loop();
    w->hub = net_hub(w->loop, &s, "head", false);
    w->proxy = through_proxy ? proxy_start(hub_port(w->hub)) : NULL;
    w->link = net_link(w->loop, &s, "n1", w->proxy ? proxy_port(w->proxy) : hub_port(w->hub),
                       &(struct wire_source){net_open_reader, net_close_reader, &w->reader}, NULL);
    net_wait(w->hub, 1);
}

static inline struct ask_copied world_copy(struct world *w, int64_t from_ns, int64_t patience_ns)
{
    struct error e;
    struct hub_where where = {.deadline_ns = clock_monotonic_ns() + patience_ns};
    struct ask_copy_options o = {
        .folder = w->to, .job = STR("7"), .from_ns = from_ns, .to_ns = INT64_MAX};
    struct ask_copied copied;
    if (hub_copy(w->hub, STR(""), &o, &where, &w->arena, &copied, &e))
        fail_msg("%s", e.text);
    return copied;
}

static inline int world_end(void **state)
{
    struct world *w = *state;
    wire_link_destroy(w->link);
    hub_destroy(w->hub);
    if (w->proxy)
        proxy_stop(w->proxy);
    wire_loop_stop(w->loop);
    store_reader_close(w->reader);
    store_abandon(w->store);
    unlink(w->path);
    rmdir(w->to);
    unlink(w->from);
    rmdir(w->folder);
    arena_free(&w->arena);
    free(w);
    return 0;
}

#endif
