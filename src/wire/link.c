// link.c - one timer connects to the parent and watches the connection; answers.c answers the
// parent's questions.
#include "wire/link.h"

#include "wire/answers.h"
#include "wire/host_reports.h"
#include "wire/session.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct parent {
    char *host; // owned
    int port;
};

struct wire_link {
    struct wire_loop *loop;
    struct wire_settings settings;
    const struct wire_transport *transport;
    struct parent parents[WIRE_PARENTS_MAX];
    size_t parent_count;
    unsigned tries;       // number of the parent to try next, counted from the first
    struct str host, job; // malloc'd
    uint64_t session_number;
    struct wire_source source;
    struct hub *children; // NULL: none
    struct wire_bulk *bulk;
    struct wire_session *session; // NULL: not connected
    uv_timer_t *timer;
    int64_t armed_ns;  // when the timer was set
    unsigned failures; // failed attempts since the last open connection
    unsigned dead_ms;  // set by the parent
    struct answers *answers;
    struct wire_host_reports host_reports;
    struct wire_link_stats stats;
};

static void arm(struct wire_link *l);

// ---- frames ----

static bool take_ping(struct wire_link *l, struct str payload)
{
    struct wire_pong pong = {.received_ns = wire_realtime_ns(&l->settings)};
    if (wire_ping_read(payload, &pong.ping))
        return false;
    struct buf answer = {0};
    pong.sent_ns = wire_realtime_ns(&l->settings);
    wire_pong_write(&pong, &answer);
    if (!answer.failed)
        wire_session_send(l->session, WIRE_PONG, 0, buf_str(&answer));
    buf_free(&answer);
    wire_host_reports_look(&l->host_reports);
    return true;
}

static bool take_welcome(struct wire_link *l, struct str payload)
{
    struct wire_welcome welcome;
    if (l->stats.state == WIRE_LINK_OPEN || wire_welcome_read(payload, &welcome))
        return false;
    l->dead_ms = welcome.dead_ms;
    l->failures = 0;
    l->tries = 0; // after a loss, the link tries the first parent first
    l->stats.state = WIRE_LINK_OPEN;
    l->stats.opened++;
    l->stats.problem[0] = 0;
    if (wire_session_peer(l->session)->abilities & WIRE_ABLE_HOSTS)
        wire_host_reports_connected(&l->host_reports, l->session);
    answers_connected(l->answers, l->session);
    arm(l);
    return true;
}

static bool take(struct wire_link *l, const struct wire_header *h, struct str payload)
{
    if (h->type == WIRE_WELCOME)
        return take_welcome(l, payload);
    if (l->stats.state != WIRE_LINK_OPEN)
        return false;
    switch ((int)h->type) {
    case WIRE_PING:
        return take_ping(l, payload);
    case WIRE_ASK:
        return answers_ask(l->answers, h->id, payload);
    case WIRE_CREDIT:
        return answers_credit(l->answers, h->id, payload);
    case WIRE_CANCEL:
        answers_cancel(l->answers, h->id);
        return true;
    default:
        return false;
    }
}

// ---- the connection ----

static const struct parent *parent_of(const struct wire_link *l)
{
    return &l->parents[l->stats.parent];
}

static void disconnect(struct wire_link *l, const char *problem, const char *why)
{
    answers_disconnected(l->answers);
    wire_host_reports_disconnected(&l->host_reports);
    if (l->session) {
        uint64_t in, out;
        wire_session_bytes(l->session, &in, &out);
        l->stats.bytes_in += in;
        l->stats.bytes_out += out;
        l->stats.transport_bytes += wire_session_transport(l->session).bytes;
    }
    wire_session_close(l->session, why);
    l->session = NULL;
    l->stats.state = WIRE_LINK_WAITING;
    snprintf(l->stats.problem, sizeof l->stats.problem, "%s", problem);
    l->failures++;
}

static void on_frame(void *user, const struct wire_header *h, struct str payload)
{
    struct wire_link *l = user;
    if (take(l, h, payload))
        return;
    log_warning("the parent %s sent a damaged or untimely %s; connecting again", parent_of(l)->host,
                wire_frame_row(h->type)->name);
    disconnect(l, "the parent sent a damaged or untimely frame", "a damaged or untimely frame");
    arm(l);
}

static void on_sent(void *user)
{
    struct wire_link *l = user;
    answers_resume(l->answers);
}

static void on_closed(void *user, int why, const char *text)
{
    struct wire_link *l = user;
    (void)why;
    // Log once per outage, because a lost parent usually stays away for a while.
    if (l->stats.state == WIRE_LINK_OPEN || l->failures == 0)
        log_info("no connection to %s:%d: %s", parent_of(l)->host, parent_of(l)->port, text);
    disconnect(l, text, NULL);
    arm(l);
}

static void connect_now(struct wire_link *l)
{
    struct wire_session_options o = {
        .loop = l->loop,
        .settings = &l->settings,
        .transport = l->transport,
        .bulk = l->bulk,
        .side = WIRE_LINK,
        .self = {.role = l->children ? WIRE_ROLE_RELAY : WIRE_ROLE_NODE,
                 .session = l->session_number,
                 .attempt = ++l->stats.attempts,
                 .host = l->host,
                 .job = l->job,
                 .abilities = WIRE_ABLE_HOSTS},
        .events = {NULL, on_frame, on_sent, on_closed},
        .user = l};
    struct error e;
    l->dead_ms = l->settings.dead_ms;
    l->stats.state = WIRE_LINK_CONNECTING;
    l->stats.parent = (int)(l->tries++ % l->parent_count);
    if (wire_session_connect(&o, parent_of(l)->host, parent_of(l)->port, &l->session, &e))
        disconnect(l, e.text, NULL);
}

// Returns the wait before the next attempt. Its upper limit doubles with each failure, up to
// retry_max_ms. The wait is random, between half of the limit and all of it, so that a thousand
// nodes do not connect at the same moment.
static uint64_t retry_wait_ms(const struct wire_link *l)
{
    uint64_t wait = l->settings.retry_ms;
    for (unsigned i = 1; i < l->failures && wait < l->settings.retry_max_ms; i++)
        wait *= 2;
    if (wait > l->settings.retry_max_ms)
        wait = l->settings.retry_max_ms;
    uint32_t random = 0;
    wire_random(&l->settings, (uint8_t *)&random, sizeof random);
    return wait / 2 + random % (wait / 2 + 1);
}

static void on_timer(uv_timer_t *timer)
{
    struct wire_link *l = timer->data;
    if (!l->session) {
        connect_now(l);
    } else {
        bool open = l->stats.state == WIRE_LINK_OPEN;
        int64_t since =
            open ? wire_session_last_frame_ns(l->session) : wire_session_began_ns(l->session);
        int64_t most_ms = open ? l->dead_ms : l->settings.handshake_ms;
        int64_t now_ns = wire_monotonic_ns(&l->settings);
        // After a stall of this process, read pending input before declaring the parent dead.
        bool stalled = now_ns - l->armed_ns > most_ms * NS_PER_MS / 2;
        if (!stalled && now_ns - since > most_ms * NS_PER_MS) {
            // After a timeout, try this silent parent last.
            l->tries = open ? (unsigned)l->stats.parent + 1 : l->tries;
            disconnect(l,
                       open ? "no data from the parent for too long" : "the parent did not answer",
                       "no data for too long");
        } else if (open && l->stats.parent > 0 &&
                   now_ns - wire_session_began_ns(l->session) > l->settings.return_ms * NS_PER_MS) {
            l->tries = 0;
            disconnect(l, "", "the preferred parent is tried again");
        }
    }
    arm(l);
}

static void arm(struct wire_link *l)
{
    enum { LOOKS = 8 }; // number of checks in one timeout
    unsigned watched = l->stats.state == WIRE_LINK_OPEN ? l->dead_ms : l->settings.handshake_ms;
    uint64_t wait = l->session ? watched / LOOKS + 1 : retry_wait_ms(l);
    l->armed_ns = wire_monotonic_ns(&l->settings);
    uv_timer_start(l->timer, on_timer, wait, 0);
}

// ---- lifetime ----

static void start(void *user)
{
    struct wire_link *l = user;
    uv_timer_init(wire_loop_uv(l->loop), l->timer);
    l->timer->data = l;
    answers_start(l->answers);
    wire_host_reports_begin(&l->host_reports, l->host, l->settings.questions, &l->source,
                            l->children);
    connect_now(l);
    arm(l);
}

static void free_parents(struct parent *parents, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(parents[i].host);
}

static void free_link(struct wire_link *l)
{
    answers_destroy(l->answers);
    free_parents(l->parents, l->parent_count);
    free((char *)l->host.data);
    free((char *)l->job.data);
    free(l);
}

int wire_link_create(struct wire_loop *loop, const struct wire_link_options *o,
                     struct wire_link **out, struct error *e)
{
    *out = NULL;
    if (o->host.size == 0 || o->host.size > WIRE_HOST_MAX || o->settings.job.size > WIRE_JOB_MAX)
        return error_set(e, -EINVAL, "a host's name has 1 to %d bytes, a job's at most %d",
                         WIRE_HOST_MAX, WIRE_JOB_MAX);
    if (o->parent_port < 1 || o->parent_port > 65535)
        return error_set(e, -EINVAL, "port %d is not between 1 and 65535", o->parent_port);
    struct wire_link *l = calloc(1, sizeof *l);
    if (!l)
        return error_set(e, -ENOMEM, "no memory for a link");
    *l = (struct wire_link){
        .loop = loop,
        .settings = wire_settings_of(&o->settings),
        .transport = o->transport ? o->transport : &wire_tcp,
        .parents = {{strdup(o->parent_host), o->parent_port}},
        .parent_count = 1,
        .host = {strndup(o->host.data, o->host.size), o->host.size},
        .job = {strndup(o->settings.job.size ? o->settings.job.data : "", o->settings.job.size),
                o->settings.job.size},
        .session_number = o->session,
        .source = o->source,
        .children = o->children,
        .bulk = o->bulk,
        .timer = calloc(1, sizeof *l->timer)};
    l->settings.job = l->job;
    l->answers = answers_create(&(struct answers_options){.loop = loop,
                                                          .questions = l->settings.questions,
                                                          .host = l->host,
                                                          .source = &l->source,
                                                          .host_reports = &l->host_reports,
                                                          .refresher = o->refresher,
                                                          .children = o->children,
                                                          .memory = o->memory});
    if (!l->parents[0].host || !l->host.data || !l->job.data || !l->timer || !l->answers) {
        free(l->timer);
        free_link(l);
        return error_set(e, -ENOMEM, "no memory for a link");
    }
    wire_loop_call(loop, start, l);
    *out = l;
    return 0;
}

static void free_timer(uv_handle_t *timer)
{
    free(timer);
}

static void stop(void *user)
{
    struct wire_link *l = user;
    disconnect(l, "", "this node ends");
    wire_host_reports_end(&l->host_reports);
    uv_close((uv_handle_t *)l->timer, free_timer);
    answers_stop(l->answers);
}

void wire_link_destroy(struct wire_link *l)
{
    if (!l)
        return;
    wire_loop_call(l->loop, stop, l);
    free_link(l);
}

static void look(void *user)
{
    struct wire_link *l = user;
    wire_host_reports_look(&l->host_reports);
}

void wire_link_look(struct wire_link *l)
{
    wire_loop_call(l->loop, look, l);
}

struct new_parents {
    struct wire_link *link;
    struct parent parents[WIRE_PARENTS_MAX];
    size_t count;
};

static void set_parents(void *user)
{
    struct new_parents *p = user;
    struct wire_link *l = p->link;
    const struct parent *now = parent_of(l);
    bool stays =
        l->session && now->port == p->parents[0].port && strcmp(now->host, p->parents[0].host) == 0;
    free_parents(l->parents, l->parent_count);
    memcpy(l->parents, p->parents, sizeof l->parents);
    l->parent_count = p->count;
    l->stats.parent = 0;
    l->tries = stays ? 1 : 0;
    if (stays)
        return;
    disconnect(l, "", "another parent is to be preferred");
    l->failures = 0;
    arm(l);
}

int wire_link_set_parents(struct wire_link *l, const struct wire_parent *parents, size_t count)
{
    struct new_parents p = {.link = l};
    int r = count == 0 || count > WIRE_PARENTS_MAX ? -EINVAL : 0;
    for (; p.count < count && r == 0; p.count++) {
        p.parents[p.count] = (struct parent){strdup(parents[p.count].host), parents[p.count].port};
        r = parents[p.count].port < 1 || parents[p.count].port > 65535 ? -EINVAL
            : !p.parents[p.count].host                                 ? -ENOMEM
                                                                       : 0;
    }
    if (r)
        free_parents(p.parents, p.count);
    else
        wire_loop_call(l->loop, set_parents, &p);
    return r;
}

struct stats_call {
    const struct wire_link *link;
    struct wire_link_stats *out;
};

static void read_stats(void *user)
{
    struct stats_call *s = user;
    *s->out = s->link->stats;
    struct answers_stats answers = answers_stats(s->link->answers);
    s->out->questions = answers.questions;
    s->out->cancelled = answers.cancelled;
    s->out->running = answers.running;
    if (!s->link->session)
        return;
    uint64_t in, out;
    wire_session_bytes(s->link->session, &in, &out);
    s->out->bytes_in += in;
    s->out->bytes_out += out;
    struct wire_transport_use way = wire_session_transport(s->link->session);
    s->out->transport_bytes += way.bytes;
    snprintf(s->out->transport, sizeof s->out->transport, "%s", way.name);
    snprintf(s->out->transport_problem, sizeof s->out->transport_problem, "%s", way.why);
}

void wire_link_get_stats(struct wire_link *l, struct wire_link_stats *out)
{
    struct stats_call s = {l, out};
    wire_loop_call(l->loop, read_stats, &s);
}
