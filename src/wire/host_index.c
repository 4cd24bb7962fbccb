#include "wire/host_index.h"

#include "wire/hub_internal.h"

void host_index_listen(struct hub *h, const struct host_index_listener *listener)
{
    h->host_listener = listener ? *listener : (struct host_index_listener){0};
}

void host_index_each(struct hub *h, const struct host_index_listener *each)
{
    for (size_t i = 0; i < h->node_count; i++)
        if (!h->nodes[i]->excluded)
            each->changed(each->user, h->nodes[i]->host, &h->nodes[i]->held);
}

void host_index_changed(struct hub *h, const struct node *n)
{
    if (h->host_listener.changed)
        h->host_listener.changed(h->host_listener.user, n->host, &n->held);
}

// ---- received reports ----

static bool is_reported_by(const struct node *n, const struct node *relay)
{
    for (unsigned i = 0; i < n->reporter_count; i++)
        if (n->reporters[i] == relay)
            return true;
    return false;
}

// Adds the relay to those that have reported the node. Returns true if it is new.
static bool add_reporter(struct node *n, struct node *relay)
{
    if (n == relay || is_reported_by(n, relay))
        return false;
    if (n->reporter_count == HUB_REPORTERS_MAX)
        n->more_reporters = true;
    else
        n->reporters[n->reporter_count++] = relay;
    return true;
}

static void take_entry(struct peer *p, struct str host, const struct wire_host_set *held)
{
    struct hub *h = p->hub;
    struct node *n = hub_get_node(h, host);
    if (!n) {
        p->node->reports_too_many = true;
        return;
    }
    bool new = add_reporter(n, p->node);
    if (wire_host_set_merge(&n->held, held) || new)
        host_index_changed(h, n);
}

bool host_index_take(struct peer *p, struct str payload, const char **why)
{
    struct bytes b = bytes_of(payload.data, payload.size);
    unsigned all = bytes_u8(&b);
    bool sound = !b.failed && all <= 1;
    while (sound && bytes_left(&b)) {
        struct str room[WIRE_HOST_SET_MAX], host;
        struct wire_host_set held;
        sound = wire_host_set_read(&b, room, &host, &held) == 0 &&
                (p->node->relay || str_eq(host, p->node->host));
        if (sound)
            take_entry(p, host, &held);
    }
    if (!sound)
        *why = "a damaged list of the hosts that it holds";
    p->report_complete |= sound && all;
    return sound;
}

// ---- nodes to ask ----

static void choose_relay(struct node *relay)
{
    if (relay && relay->peer)
        relay->peer->chosen = true;
}

// Chooses the peer that can answer for the node: the node itself, or a relay in front of it.
static void choose_way(const struct hub *h, struct node *n)
{
    if (n->peer) {
        n->peer->chosen = true;
        return;
    }
    for (unsigned i = 0; i < n->reporter_count; i++)
        choose_relay(n->reporters[i]);
    const struct node *at = n;
    for (int depth = 0; at && !at->peer && at->via.size && depth < HUB_DEPTH_MAX; depth++)
        at = hub_find_node(h, at->via);
    if (at && at->peer)
        at->peer->chosen = true;
}

void host_index_choose(struct hub *h, const struct wire_host_filter *filter, bool *may)
{
    bool all_relays = false;
    LIST_EACH (link, &h->peers) {
        struct peer *p = hub_peer_of(link);
        p->chosen = !filter || !p->report_complete || p->node->reports_too_many;
    }
    for (size_t i = 0; i < h->node_count; i++) {
        struct node *n = h->nodes[i];
        may[i] =
            !n->excluded && (!filter || h->settings.questions->concerns(filter, n->host, &n->held));
        if (!may[i])
            continue;
        choose_way(h, n);
        all_relays |= n->more_reporters && !n->peer;
    }
    if (!all_relays)
        return;
    LIST_EACH (link, &h->peers)
        hub_peer_of(link)->chosen |= hub_peer_of(link)->node->relay;
}
