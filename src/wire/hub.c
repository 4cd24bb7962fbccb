// hub.c - the connections of a hub: accepts them, welcomes nodes, sends pings, and handles
// timeouts.
#include "wire/hub_internal.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>

enum {
    TICKS_A_HEARTBEAT = 4,
    TICK_MS_MIN = 5,
    FIRST_PINGS = 4, // pings that follow each other at once, so that the clock offset is known soon
    BUSY_HEARTBEATS = 4, // heartbeats between pings to a node that answers questions meanwhile
};

static void tell_waiters(struct hub *h)
{
    pthread_mutex_lock(&h->lock);
    h->changes++;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

// ---- connections ----

static void unlink_peer(struct peer *p)
{
    list_remove(&p->of_hub);
    if (!p->node)
        p->hub->strangers_count--;
}

// Ends a connection of a node or a stranger, and frees it. The other end gets the reason `why`.
static void drop(struct peer *p, const char *why)
{
    struct hub *h = p->hub;
    uint64_t in, out;
    wire_session_bytes(p->session, &in, &out);
    h->stats.bytes_in += in;
    h->stats.bytes_out += out;
    unlink_peer(p);
    if (p->node) {
        p->node->bytes_in += in;
        p->node->bytes_out += out;
        uint64_t beside = wire_session_transport(p->session).bytes;
        p->node->transport_bytes += beside;
        if (beside)
            log_info("%llu bytes of %.*s came over %s", (unsigned long long)beside,
                     STR_ARG(p->node->host), h->bulk->name);
        if (p->node->peer == p)
            p->node->peer = NULL;
        pending_question_lost(p);
        tell_waiters(h);
    }
    wire_session_close(p->session, why);
    free(p);
}

static void send_ping(struct peer *p)
{
    struct hub *h = p->hub;
    struct buf payload = {0};
    p->pinged_ns = wire_monotonic_ns(&h->settings);
    wire_ping_write(&(struct wire_ping){p->pinged_ns, wire_realtime_ns(&h->settings)}, &payload);
    if (!payload.failed)
        wire_session_send(p->session, WIRE_PING, 0, buf_str(&payload));
    buf_free(&payload);
    p->pings++;
    h->stats.pings++;
}

static void take_pong(struct peer *p, struct str payload)
{
    struct wire_pong m;
    if (wire_pong_read(payload, &m)) {
        p->hub->stats.lost++;
        drop(p, "a damaged answer to a ping");
        return;
    }
    // Measure the passed time with the monotonic clock, so that a step of our own real-time clock
    // does not change the result.
    int64_t passed, now;
    if (!__builtin_sub_overflow(wire_monotonic_ns(&p->hub->settings), m.ping.hub_monotonic_ns,
                                &passed) &&
        !__builtin_add_overflow(m.ping.hub_realtime_ns, passed, &now))
        clock_offset_add(&p->node->clock, m.ping.hub_realtime_ns, m.received_ns, m.sent_ns, now);
    if (p->pings < FIRST_PINGS)
        send_ping(p);
}

static void on_frame(void *user, const struct wire_header *header, struct str payload)
{
    struct peer *p = user;
    if (header->type == WIRE_PONG) {
        take_pong(p, payload);
        return;
    }
    const char *why;
    bool sound = false;
    if (header->type == WIRE_STREAM || header->type == WIRE_ROOM)
        why = "a frame that only clients send";
    else if (header->type == WIRE_HOSTS)
        sound = host_index_take(p, payload, &why);
    else {
        p->answered_ns = wire_session_last_frame_ns(p->session);
        sound = pending_question_frame(p, header, payload, &why);
    }
    if (!sound) {
        log_warning("%.*s sent %s; its connection is closed", STR_ARG(p->node->host), why);
        p->hub->stats.lost++;
        drop(p, why);
    }
}

static void welcome(struct peer *p)
{
    struct hub *h = p->hub;
    struct buf payload = {0};
    wire_welcome_write(&(struct wire_welcome){h->settings.heartbeat_ms, h->settings.dead_ms},
                       &payload);
    if (!payload.failed)
        wire_session_send(p->session, WIRE_WELCOME, 0, buf_str(&payload));
    buf_free(&payload);
    send_ping(p);
}

// True if `who` is a later attempt of the same process, or a newer process.
static bool is_newer(const struct wire_identity *who, const struct node *than)
{
    return who->session != than->session ? who->session > than->session
                                         : who->attempt > than->attempt;
}

static void take_client(struct peer *p)
{
    const char *why = hub_clients_add(&p->hub->clients, p->session);
    if (why) {
        drop(p, why);
        return;
    }
    unlink_peer(p);
    free(p);
}

static void on_opened(void *user)
{
    struct peer *p = user;
    struct hub *h = p->hub;
    const struct wire_identity *who = wire_session_peer(p->session);
    if (who->role == WIRE_ROLE_CLIENT) {
        take_client(p);
        return;
    }
    struct node *n = hub_get_node(h, who->host);
    if (!n) {
        h->stats.refused_room++;
        drop(p, "no room for more nodes");
        return;
    }
    if (n->excluded) {
        h->stats.refused_excluded++;
        drop(p, "this node was taken out of the job");
        return;
    }
    if (n->connections && !is_newer(who, n)) {
        h->stats.refused_old++;
        drop(p, "a newer connection of this node is there");
        return;
    }
    if (n->peer) {
        h->stats.replaced++;
        drop(n->peer, "replaced by a newer connection of this node");
    }
    unlink_peer(p);
    p->node = n;
    list_prepend(&h->peers, &p->of_hub);
    n->peer = p;
    n->session = who->session;
    n->attempt = who->attempt;
    n->relay = who->role == WIRE_ROLE_RELAY;
    n->connections++;
    n->clock = (struct clock_offset){0};
    welcome(p);
    tell_waiters(h);
    host_index_changed(h, n);
}

static void on_closed(void *user, int why, const char *text)
{
    struct peer *p = user;
    struct hub *h = p->hub;
    if (p->node) {
        h->stats.lost++;
        log_info("lost %.*s: %s", STR_ARG(p->node->host), text);
    } else if (why == -EACCES || wire_session_has_challenged(p->session)) {
        // A peer with another key closes the connection when it has checked our proof.
        h->stats.refused_key++;
    } else {
        h->stats.refused_garbage++;
    }
    drop(p, NULL);
}

static void on_accepted(void *user, struct wire_channel *channel)
{
    struct hub *h = user;
    h->stats.accepted++;
    // The oldest stranger makes room. A peer that knows the key proves it within milliseconds, so
    // it gets in even during a flood of connections.
    if (h->strangers_count >= h->strangers_max) {
        h->stats.refused_room++;
        drop(hub_peer_of(h->strangers.next), NULL);
    }
    struct peer *p = calloc(1, sizeof *p);
    struct wire_session_options o = {.loop = h->loop,
                                     .settings = &h->settings,
                                     .transport = h->transport,
                                     .bulk = h->bulk,
                                     .side = WIRE_HUB,
                                     .self = {.role = h->relay ? WIRE_ROLE_RELAY : WIRE_ROLE_ROOT,
                                              .session = h->session,
                                              .host = h->host,
                                              .job = h->job,
                                              .abilities = WIRE_ABLE_HOSTS},
                                     .events = {on_opened, on_frame, NULL, on_closed},
                                     .user = p};
    if (!p) {
        h->transport->close(channel);
        return;
    }
    p->hub = h;
    list_init(&p->answers);
    if (wire_session_accept(&o, channel, &p->session)) {
        free(p);
        return;
    }
    list_append(&h->strangers, &p->of_hub);
    h->strangers_count++;
}

// ---- timers ----

static void on_tick(uv_timer_t *timer)
{
    struct hub *h = timer->data;
    int64_t now = wire_monotonic_ns(&h->settings);
    int64_t greeting_ns = (int64_t)h->settings.handshake_ms * NS_PER_MS,
            dead_ns = (int64_t)h->settings.dead_ms * NS_PER_MS;
    int64_t heartbeat_ns = (int64_t)h->settings.heartbeat_ms * NS_PER_MS,
            seldom_ns = BUSY_HEARTBEATS * heartbeat_ns;
    if (seldom_ns > dead_ns / 2)
        seldom_ns = heartbeat_ns;
    // After a stall of this process (an overloaded machine, a debugger), read pending input before
    // declaring any node dead.
    bool stalled = h->ticked_ns && now - h->ticked_ns > dead_ns / 2;
    h->ticked_ns = now;
    if (stalled)
        return;
    LIST_EACH (link, &h->strangers) {
        if (now - wire_session_began_ns(hub_peer_of(link)->session) <= greeting_ns)
            break;
        h->stats.refused_time++;
        drop(hub_peer_of(link), NULL);
    }
    LIST_EACH (link, &h->peers) {
        struct peer *p = hub_peer_of(link);
        if (now - wire_session_last_frame_ns(p->session) > dead_ns) {
            h->stats.dead++;
            log_info("lost %.*s: no data for %u ms", STR_ARG(p->node->host), h->settings.dead_ms);
            drop(p, "no data for too long");
        } else {
            // The answers of a node show that it lives, and the node hears the questions.
            bool busy = now - p->answered_ns < heartbeat_ns;
            if (now - p->pinged_ns >= (busy ? seldom_ns : heartbeat_ns))
                send_ping(p);
        }
    }
}

// ---- lifetime ----

struct start {
    struct hub *hub;
    const struct hub_options *options;
    int result;
    struct error error;
};

static void start(void *user)
{
    struct start *s = user;
    struct hub *h = s->hub;
    h->port = s->options->port;
    s->result = s->options->fd ? h->transport->listen_at(h->loop, s->options->fd, &h->port,
                                                         on_accepted, h, &h->listener, &s->error)
                               : h->transport->listen(h->loop, s->options->address, &h->port,
                                                      on_accepted, h, &h->listener, &s->error);
    if (s->result)
        return;
    unsigned tick_ms = h->settings.heartbeat_ms / TICKS_A_HEARTBEAT;
    if (tick_ms > h->settings.handshake_ms / TICKS_A_HEARTBEAT)
        tick_ms = h->settings.handshake_ms / TICKS_A_HEARTBEAT;
    tick_ms = tick_ms < TICK_MS_MIN ? TICK_MS_MIN : tick_ms;
    uv_timer_init(wire_loop_uv(h->loop), h->timer);
    h->timer->data = h;
    uv_timer_start(h->timer, on_tick, tick_ms, tick_ms);
}

static void free_hub(struct hub *h)
{
    for (size_t i = 0; i < h->node_count; i++) {
        free((char *)h->nodes[i]->host.data);
        wire_host_set_free(&h->nodes[i]->held);
        free(h->nodes[i]);
    }
    free(h->nodes);
    map_free(&h->by_host);
    for (struct map_slot *s = map_next(&h->by_via, NULL); s; s = map_next(&h->by_via, s)) {
        struct behind *b = (struct behind *)(uintptr_t)s->value;
        free((char *)b->via.data);
        free(b);
    }
    map_free(&h->by_via);
    free((char *)h->host.data);
    free((char *)h->job.data);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

static struct hub *new_hub(struct wire_loop *loop, const struct hub_options *o)
{
    struct hub *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->loop = loop;
    h->settings = wire_settings_of(&o->settings);
    h->transport = o->transport ? o->transport : &wire_tcp;
    h->bulk = o->bulk;
    h->relay = o->relay;
    h->memory = o->memory;
    h->strangers_max = o->strangers_max ? o->strangers_max : HUB_STRANGERS_DEFAULT;
    list_init(&h->strangers);
    list_init(&h->peers);
    h->session = (uint64_t)wire_realtime_ns(&h->settings);
    pthread_mutex_init(&h->lock, NULL);
    condition_init(&h->changed);
    h->timer = calloc(1, sizeof *h->timer);
    if (!h->timer || !hub_copy_text(&h->host, o->host) ||
        !hub_copy_text(&h->job, o->settings.job)) {
        free(h->timer);
        free_hub(h);
        return NULL;
    }
    h->settings.job = h->job;
    hub_clients_init(&h->clients, loop, &h->settings);
    return h;
}

int hub_create(struct wire_loop *loop, const struct hub_options *options, struct hub **out,
               struct error *e)
{
    *out = NULL;
    if (options->host.size == 0 || options->host.size > WIRE_HOST_MAX ||
        options->settings.job.size > WIRE_JOB_MAX)
        return error_set(e, -EINVAL, "a host's name has 1 to %d bytes, a job's at most %d",
                         WIRE_HOST_MAX, WIRE_JOB_MAX);
    struct hub *h = new_hub(loop, options);
    if (!h)
        return error_set(e, -ENOMEM, "no memory for a hub");
    struct start s = {.hub = h, .options = options};
    wire_loop_call(loop, start, &s);
    if (s.result) {
        free(h->timer);
        free_hub(h);
        return error_set(e, s.result, "%s", s.error.text);
    }
    *out = h;
    return 0;
}

static void free_timer(uv_handle_t *timer)
{
    free(timer);
}

static void stop(void *user)
{
    struct hub *h = user;
    h->transport->stop_listening(h->listener);
    uv_close((uv_handle_t *)h->timer, free_timer);
    while (!list_empty(&h->strangers))
        drop(hub_peer_of(h->strangers.next), NULL);
    hub_clients_stop(&h->clients, "the first node's server ends");
    while (!list_empty(&h->peers))
        drop(hub_peer_of(h->peers.next), "the parent ends");
}

void hub_destroy(struct hub *h)
{
    if (!h)
        return;
    wire_loop_call(h->loop, stop, h);
    free_hub(h);
}

int hub_port(const struct hub *h)
{
    return h->port;
}

struct str hub_host(const struct hub *h)
{
    return h->host;
}

// ---- functions for other threads ----

struct exclusion {
    struct hub *hub;
    struct str host;
};

static void exclude(void *user)
{
    struct exclusion *x = user;
    struct node *n = hub_get_node(x->hub, x->host);
    if (!n)
        return;
    n->expected = false;
    n->excluded = true;
    if (n->peer)
        drop(n->peer, "this node was taken out of the job");
}

void hub_exclude(struct hub *h, struct str host)
{
    struct exclusion x = {h, host};
    wire_loop_call(h->loop, exclude, &x);
}

struct take_call {
    struct hub *hub;
    hub_client_fn *take;
    void *user;
};

static void set_take(void *user)
{
    struct take_call *t = user;
    t->hub->clients.take = t->take;
    t->hub->clients.user = t->user;
}

void hub_take_clients(struct hub *h, hub_client_fn *take, void *user)
{
    struct take_call t = {h, take, user};
    wire_loop_call(h->loop, set_take, &t);
}

struct stats_call {
    const struct hub *hub;
    struct hub_stats *out;
};

static void read_stats(void *user)
{
    struct stats_call *s = user;
    *s->out = s->hub->stats;
    s->out->strangers = s->hub->strangers_count;
    s->out->clients = s->hub->clients.count;
    s->out->clients_taken = s->hub->clients.taken;
    s->out->clients_refused = s->hub->clients.refused;
    LIST_EACH (link, &s->hub->peers) {
        uint64_t in, out;
        wire_session_bytes(hub_peer_of(link)->session, &in, &out);
        s->out->bytes_in += in;
        s->out->bytes_out += out;
    }
}

void hub_get_stats(struct hub *h, struct hub_stats *out)
{
    struct stats_call s = {h, out};
    wire_loop_call(h->loop, read_stats, &s);
}
