// hub_nodes.c - the nodes that a hub knows, and the functions about them for other threads.
#include "wire/hub_internal.h"

#include "base/array.h"
#include "base/condition.h"

#include <errno.h>
#include <stdlib.h>

bool hub_copy_text(struct str *to, struct str from)
{
    char *copy = malloc(from.size + 1);
    if (!copy)
        return false;
    if (from.size)
        memcpy(copy, from.data, from.size);
    copy[from.size] = 0;
    *to = (struct str){copy, from.size};
    return true;
}

struct node *hub_find_node(const struct hub *h, struct str host)
{
    const uint64_t *known = map_get(&h->by_host, host);
    return known ? h->nodes[*known] : NULL;
}

struct node *hub_get_node(struct hub *h, struct str host)
{
    struct node *n = hub_find_node(h, host);
    if (n || h->node_count == HUB_NODES_MAX)
        return n;
    if (!array_room(&h->nodes, &h->node_capacity, h->node_count + 1, sizeof(struct node *)))
        return NULL;
    n = calloc(1, sizeof *n);
    if (!n || !hub_copy_text(&n->host, host)) {
        free(n);
        return NULL;
    }
    uint64_t *index = map_add(&h->by_host, n->host, NULL);
    if (!index) {
        free((char *)n->host.data);
        free(n);
        return NULL;
    }
    list_init(&n->of_via);
    *index = n->index = h->node_count;
    h->nodes[h->node_count++] = n;
    return n;
}

struct behind *hub_behind(const struct hub *h, struct str relay)
{
    const uint64_t *known = map_get(&h->by_via, relay);
    return known ? (struct behind *)(uintptr_t)*known : NULL;
}

static struct behind *add_behind(struct hub *h, struct str relay)
{
    struct behind *b = calloc(1, sizeof *b);
    uint64_t *value = b && hub_copy_text(&b->via, relay) ? map_add(&h->by_via, b->via, NULL) : NULL;
    if (!value) {
        free(b ? (char *)b->via.data : NULL);
        free(b);
        return NULL;
    }
    *value = (uintptr_t)b;
    list_init(&b->nodes);
    return b;
}

// Puts the node behind the relay `via` (empty: behind none). Returns 0 or -ENOMEM; then nothing has
// changed.
static int put_behind(struct hub *h, struct node *n, struct str via)
{
    struct behind *b = via.size ? hub_behind(h, via) : NULL;
    if (via.size && !b && !(b = add_behind(h, via)))
        return -ENOMEM;
    list_remove(&n->of_via);
    n->via = b ? b->via : (struct str){0};
    if (b)
        list_append(&b->nodes, &n->of_via);
    return 0;
}

// ---- functions about nodes for other threads ----

struct expect {
    struct hub *hub;
    struct str host, via;
    int result;
};

static void expect(void *user)
{
    struct expect *x = user;
    struct node *n = hub_get_node(x->hub, x->host);
    x->result = !n && x->hub->node_count == HUB_NODES_MAX ? -E2BIG
                : n                                       ? put_behind(x->hub, n, x->via)
                                                          : -ENOMEM;
    if (x->result)
        return;
    n->expected = true;
    n->excluded = false;
    host_index_changed(x->hub, n);
}

int hub_expect(struct hub *h, struct str host, struct str via)
{
    if (host.size == 0 || host.size > WIRE_HOST_MAX || via.size > WIRE_HOST_MAX)
        return -EINVAL;
    struct expect x = {h, host, via, 0};
    wire_loop_call(h->loop, expect, &x);
    return x.result;
}

struct count {
    const struct hub *hub;
    size_t connected, lacking;
    uint64_t changes;
};

static void count_connected(void *user)
{
    struct count *c = user;
    for (size_t i = 0; i < c->hub->node_count; i++) {
        const struct node *n = c->hub->nodes[i];
        c->connected += n->peer != NULL;
        c->lacking += n->expected && !n->via.size && !n->peer;
    }
    c->changes = c->hub->changes; // needs no lock, because only this thread changes it
}

int hub_wait(struct hub *h, size_t count, int64_t deadline_ns)
{
    for (bool late = false;;) {
        struct count c = {.hub = h};
        wire_loop_call(h->loop, count_connected, &c);
        if (count ? c.connected >= count : c.lacking == 0)
            return 0;
        if (late)
            return -ETIMEDOUT;
        pthread_mutex_lock(&h->lock);
        while (h->changes == c.changes && !late)
            late = !condition_wait_until(&h->changed, &h->lock, deadline_ns);
        pthread_mutex_unlock(&h->lock);
    }
}

struct listing {
    struct hub *hub;
    struct arena *arena;
    struct hub_node *nodes;
    size_t count;
    int result;
};

static bool is_within_reach(const struct hub *h, const struct node *n)
{
    for (int depth = 0; n && !n->peer && n->via.size && depth < HUB_DEPTH_MAX; depth++)
        n = hub_find_node(h, n->via);
    return n && n->peer;
}

static bool describe(const struct hub *h, const struct node *n, struct arena *arena,
                     struct hub_node *out)
{
    *out = (struct hub_node){.host = arena_str(arena, n->host),
                             .via = arena_str(arena, n->via),
                             .expected = n->expected,
                             .connected = n->peer != NULL,
                             .relay = n->relay,
                             .within_reach = is_within_reach(h, n),
                             .last_frame_ns =
                                 n->peer ? wire_session_last_frame_ns(n->peer->session) : 0,
                             .connections = n->connections,
                             .questions = n->questions,
                             .bytes_in = n->bytes_in,
                             .bytes_out = n->bytes_out,
                             .transport_bytes = n->transport_bytes};
    out->offset_known = clock_offset_get(&n->clock, &out->offset_ns, &out->offset_error_ns);
    out->round_trip_ns = 2 * out->offset_error_ns;
    if (n->peer) {
        uint64_t in, gone;
        wire_session_bytes(n->peer->session, &in, &gone);
        out->bytes_in += in;
        out->bytes_out += gone;
        struct wire_transport_use way = wire_session_transport(n->peer->session);
        out->transport = arena_str(arena, str_of(way.name));
        out->transport_problem = arena_str(arena, str_of(way.why));
        out->transport_bytes += way.bytes;
    }
    return out->host.data && out->via.data &&
           (!n->peer || (out->transport.data && out->transport_problem.data));
}

static void list(void *user)
{
    struct listing *l = user;
    l->nodes = arena_array(l->arena, l->hub->node_count, sizeof *l->nodes);
    l->result = l->nodes ? 0 : -ENOMEM;
    for (size_t i = 0; i < l->hub->node_count && l->result == 0; i++) {
        const struct node *n = l->hub->nodes[i];
        // Relays also report nodes that have never connected; those are not listed.
        if (n->excluded || (!n->expected && !n->connections))
            continue;
        if (!describe(l->hub, n, l->arena, &l->nodes[l->count++]))
            l->result = -ENOMEM;
    }
}

static int compare_nodes(const void *a, const void *b)
{
    return str_compare(((const struct hub_node *)a)->host, ((const struct hub_node *)b)->host);
}

int hub_nodes(struct hub *h, struct arena *arena, const struct hub_node **out, size_t *count)
{
    struct listing l = {.hub = h, .arena = arena};
    wire_loop_call(h->loop, list, &l);
    if (l.result)
        return l.result;
    qsort(l.nodes, l.count, sizeof *l.nodes, compare_nodes);
    *out = l.nodes;
    *count = l.count;
    return 0;
}
