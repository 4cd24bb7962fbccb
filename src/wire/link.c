// link.c - a timer that connects and watches, and a `run` for each question that is being answered.
//
//   run    (refresh,) own answer ──┬─▶ gather (a merged question at a relay) ─┐
//          children ────┘                                          ▼
//                       └──────── else ─────────────────────────▶ out ─▶ PART … as credit allows ─▶ MISSING ─▶ END
#include "wire/link.h"

#include "wire/asking.h"
#include "wire/drain.h"
#include "wire/session.h"
#include "wire/telling.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory_account.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    OUT_MAX = 256 << 10,   // bytes of an answer that wait for credit; then no more records are made
    CHILDREN_TICK_MS = 10, // so often a relay looks whether its children are late
    CHILDREN_SHARE = 4,    // they have three quarters of the time that the relay has
    SIZE_BYTES = 4,        // in front of a record
};

struct run {
    struct wire_work work; // first: the work is the run
    struct wire_link *link;
    struct run *next, **at;
    uint32_t id, credit;
    char *request;
    struct wire_view view;
    struct wire_answer *answer;  // NULL: none is being made
    struct work_watch watch;     // of both the answer and the gather
    size_t held_bytes;           // of the account
    struct wire_refresh refresh; // before our own answer is begun, while `refreshing`
    unsigned question;
    struct str own_request; // views of `request`
    int64_t deadline_ns;    // of our own answer
    bool refreshing, view_is_open, answering, children_done;
    struct asking *children;
    int64_t children_deadline_ns;
    struct wire_gather *gather; // at a relay
    bool gathered;              // all of it is in `out`
    struct buf out;             // records, each behind its size
    size_t sent;                // of out
    struct reservation out_reservation;
    struct buf missing; // payload of MISSING
    struct error error; // code 0: none
};

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
    unsigned tries;       // which parent is next: counts from the first that is to be tried
    struct str host, job; // malloc'd
    uint64_t session_number;
    struct wire_source source;
    struct wire_refresher *refresher; // NULL: files need none
    struct hub *children;
    struct wire_bulk *bulk;
    struct memory_account *memory; // NULL: nobody counts
    struct wire_session *session;  // NULL: none
    uv_timer_t *timer, *children_timer;
    int64_t armed_ns;  // when the timer was set
    unsigned failures; // since it was open
    unsigned dead_ms;  // as the parent says
    struct run *runs;
    struct wire_telling telling;
    struct wire_link_stats stats;
};

static void arm(struct wire_link *l);

// ---- answers: ends ----

static void free_run(struct run *r)
{
    struct wire_link *l = r->link;
    wire_loop_work_cancel(l->loop, &r->work);
    if (r->refreshing)
        wire_refresh_cancel(l->refresher, &r->refresh);
    *r->at = r->next;
    if (r->next)
        r->next->at = r->at;
    if (r->children)
        asking_end(r->children, WIRE_LATE);
    l->settings.questions->gather_end(r->gather);
    l->settings.questions->answer_end(r->answer);
    if (r->view_is_open)
        l->source.close(l->source.user, &r->view);
    buf_free(&r->out);
    buf_free(&r->missing);
    free(r->request);
    if (l->memory)
        memory_account_give(l->memory, r->held_bytes);
    free(r);
    l->stats.running--;
}

// ---- answers: memory ----

static int look_at_run(void *user, struct error *e)
{
    (void)user, (void)e; // a question that is cancelled is freed between two steps
    return 0;
}

static int hold_for_run(void *user, size_t bytes, struct error *e)
{
    struct run *r = user;
    struct memory_account *memory = r->link->memory;
    if (!memory)
        return 0;
    if (!memory_account_take(memory, bytes))
        return error_set(
            e, -EBUSY,
            "all answers of a node together need more than %zu MiB: ask again later, or for less",
            memory->limit_bytes >> 20);
    r->held_bytes += bytes;
    return 0;
}

static void release_for_run(void *user, size_t bytes)
{
    struct run *r = user;
    if (!r->link->memory)
        return;
    r->held_bytes -= bytes;
    memory_account_give(r->link->memory, bytes);
}

static void send_end(struct wire_link *l, uint32_t id, int code, struct str text)
{
    struct buf payload = {0};
    wire_end_write(&(struct wire_end){code, text}, &payload);
    if (!payload.failed)
        wire_session_send(l->session, WIRE_END, id, buf_str(&payload));
    buf_free(&payload);
}

static void add_missing(struct run *r, const struct wire_missing *m)
{
    struct buf one = {0};
    wire_missing_write(m, &one);
    if (r->missing.size + one.size > WIRE_PART_MAX) {
        wire_session_send(r->link->session, WIRE_MISSING, r->id, buf_str(&r->missing));
        r->missing.size = 0;
    }
    buf_add_str(&r->missing, buf_str(&one));
    buf_free(&one);
}

static void finish(struct run *r)
{
    struct wire_link *l = r->link;
    if (r->missing.size)
        wire_session_send(l->session, WIRE_MISSING, r->id, buf_str(&r->missing));
    send_end(l, r->id, r->error.code, str_of(r->error.code ? r->error.text : ""));
    free_run(r);
}

// ---- answers: making records ----

// Our own part cannot be had. A relay names itself and goes on with its children.
static void own_part_failed(struct run *r, const struct error *e)
{
    r->answering = false;
    if (r->children || r->link->children)
        add_missing(r, &(struct wire_missing){r->link->host,
                                              e->code == -ETIMEDOUT ? WIRE_LATE : WIRE_ERROR,
                                              str_of(e->text)});
    else
        r->error = *e;
}

static void put_size(struct buf *out, size_t at)
{
    uint32_t size = (uint32_t)(out->size - at - SIZE_BYTES);
    if (!out->failed)
        memcpy(out->data + at, &size, sizeof size);
}

// The next record of our own, into `out` or the gather.
static void step_own(struct run *r)
{
    struct error e = {0};
    size_t at = r->out.size;
    buf_u32(&r->out, 0);
    const struct wire_questions *questions = r->link->settings.questions;
    int more = questions->answer_step(r->answer, &r->out, &e);
    if (more > 0 && r->out.failed)
        more = error_set(&e, -ENOMEM, "no memory for an answer");
    if (more > 0 && r->gather) {
        int failed = questions->gather_take(
            r->gather, str_slice(buf_str(&r->out), at + SIZE_BYTES, r->out.size), &e);
        more = failed ? failed : more;
    }
    if (more <= 0 || r->gather)
        r->out.size = at;
    else
        put_size(&r->out, at);
    if (more < 0)
        own_part_failed(r, &e);
    else if (more == 0)
        r->answering = false;
}

// What was gathered. False: that was all.
static bool step_gathered(struct run *r)
{
    size_t at = r->out.size;
    buf_u32(&r->out, 0);
    int more = r->link->settings.questions->gather_step(r->gather, &r->out, &r->error);
    if (more > 0)
        put_size(&r->out, at);
    else
        r->out.size = at;
    return more > 0;
}

// Sends what credit allows. False: the connection has enough for now.
static bool send_out(struct run *r)
{
    struct wire_link *l = r->link;
    while (r->sent < r->out.size && r->credit &&
           wire_session_queued(l->session) < WIRE_LINK_QUEUED_MAX) {
        size_t n = r->out.size - r->sent;
        n = n < r->credit ? n : r->credit;
        n = wire_session_send_part(l->session, r->id, (struct str){r->out.data + r->sent, n});
        if (n == 0)
            break;
        r->sent += n;
        r->credit -= (uint32_t)n;
    }
    if (r->sent < r->out.size)
        return false;
    r->out.size = r->sent = 0;
    return true;
}

static void pause_children(struct run *r)
{
    if (r->children && !r->gather)
        asking_pause(r->children, r->out.size - r->sent >= OUT_MAX);
}

// Makes one more record, or finds that there are no more of a kind. False: nothing can be made now.
static bool make_record(struct run *r)
{
    if (r->error.code || r->out.size - r->sent >= OUT_MAX)
        return false;
    if (r->answering)
        step_own(r);
    else if (!r->refreshing && !r->children && r->gather && !r->gathered)
        r->gathered = !step_gathered(r);
    else
        return false;
    if (r->out.failed)
        error_set(&r->error, -ENOMEM, "no memory for an answer");
    else
        reservation_grow(&r->out_reservation, r->out.capacity, &r->error);
    return true;
}

static bool is_complete(const struct run *r)
{
    bool coming = r->refreshing || r->answering || r->children;
    return r->error.code || (!coming && (!r->gather || r->gathered));
}

static bool step(struct wire_work *work)
{
    struct run *r = (struct run *)work;
    if (r->children && r->children_done) {
        asking_end(r->children, WIRE_LATE);
        r->children = NULL;
    }
    // Small records travel together.
    if (make_record(r) && r->out.size - r->sent < WIRE_PART_MAX && !is_complete(r))
        return true;
    if (r->error.code)
        r->out.size = r->sent = 0;
    bool all_sent = send_out(r);
    pause_children(r);
    if (all_sent && is_complete(r)) {
        finish(r);
        return false;
    }
    return all_sent &&
           // else credit, a child or the refresh wakes it
           (r->answering || !(r->children || r->refreshing));
}

// ---- relays ----

static void on_child_record(void *user, struct str host, struct str record)
{
    struct run *r = user;
    struct error e;
    if (r->error.code)
        return;
    if (r->gather) {
        int failed = r->link->settings.questions->gather_take(r->gather, record, &e);
        if (failed == -EBADMSG)
            add_missing(r, &(struct wire_missing){host, WIRE_ERROR, STR("its answer is damaged")});
        else if (failed)
            r->error = e;
    } else {
        buf_u32(&r->out, (uint32_t)record.size);
        buf_add_str(&r->out, record);
        pause_children(r);
    }
    wire_loop_work(r->link->loop, &r->work);
}

static void on_child_missing(void *user, const struct wire_missing *m)
{
    add_missing(user, m);
}

static void on_children_done(void *user)
{
    struct run *r = user;
    r->children_done = true;
    wire_loop_work(r->link->loop, &r->work);
}

static void on_children_tick(uv_timer_t *timer)
{
    struct wire_link *l = timer->data;
    int64_t now = clock_monotonic_ns();
    bool more = false;
    for (struct run *r = l->runs; r; r = r->next) {
        if (r->children && !r->children_done && now >= r->children_deadline_ns) {
            r->children_done = true;
            wire_loop_work(l->loop, &r->work);
        }
        more |= r->children != NULL;
    }
    if (!more)
        uv_timer_stop(timer);
}

static void ask_children(struct run *r, const struct wire_ask *ask)
{
    struct wire_link *l = r->link;
    uint32_t remaining_ms = ask->remaining_ms - ask->remaining_ms / CHILDREN_SHARE;
    r->children_deadline_ns = clock_monotonic_ns() + remaining_ms * (int64_t)NS_PER_MS;
    struct asking_options o = {.question = ask->question,
                               .request = ask->request,
                               .hosts = ask->hosts,
                               .host_count = ask->host_count,
                               .remaining_ms = remaining_ms,
                               .events = {on_child_record, on_child_missing, on_children_done},
                               .user = r};
    size_t left;
    int failed = asking_begin(l->children, &o, &r->children, &left);
    if (failed)
        error_set(&r->error, failed, "the relay cannot ask its nodes: %s", strerror(-failed));
    else
        r->children_done = left == 0;
    uv_timer_start(l->children_timer, on_children_tick, CHILDREN_TICK_MS, CHILDREN_TICK_MS);
}

// ---- frames ----

static struct run *find_run(const struct wire_link *l, uint32_t id)
{
    struct run *r = l->runs;
    while (r && r->id != id)
        r = r->next;
    return r;
}

static bool is_for_us(const struct wire_link *l, const struct wire_ask *ask)
{
    if (ask->host_count == 0)
        return true;
    for (size_t i = 0; i < ask->host_count; i++)
        if (str_eq(ask->hosts[i], l->host))
            return true;
    return false;
}

static void start_own(struct run *r)
{
    struct wire_link *l = r->link;
    struct error e = {0};
    int failed = l->source.open(l->source.user, &r->view, &e);
    r->view_is_open = failed == 0;
    if (!failed)
        wire_telling_look_at(&l->telling, &r->view);
    if (!failed)
        failed = l->settings.questions->answer(&r->answer, r->question, r->own_request, &r->view,
                                               l->host, r->deadline_ns, &r->watch, &e);
    r->answering = failed == 0;
    if (failed)
        own_part_failed(r, &e);
}

static void on_refreshed(struct wire_refresh *refresh)
{
    struct run *r = (struct run *)((char *)refresh - offsetof(struct run, refresh));
    r->refreshing = false;
    start_own(r);
    wire_loop_work(r->link->loop, &r->work);
}

// Our own answer, from files that hold all that was emitted so far if it is about the present.
static void prepare_own(struct run *r)
{
    struct wire_link *l = r->link;
    if (!l->refresher ||
        !drain_reaches(l->settings.questions->until(r->question, r->own_request))) {
        start_own(r);
        return;
    }
    r->refreshing = true;
    r->refresh.ready = on_refreshed;
    wire_refresh_begin(l->refresher, &r->refresh);
}

static void start_run(struct wire_link *l, uint32_t id, const struct wire_ask *ask)
{
    struct run *r = calloc(1, sizeof *r);
    char *request = malloc(ask->request.size + 1);
    if (!r || !request) {
        free(r);
        free(request);
        send_end(l, id, -ENOMEM, STR("no memory for an answer"));
        return;
    }
    if (ask->request.size)
        memcpy(request, ask->request.data, ask->request.size);
    struct str kept = {request, ask->request.size};
    *r = (struct run){.work.step = step,
                      .link = l,
                      .id = id,
                      .credit = ask->credit,
                      .request = request,
                      .question = ask->question,
                      .own_request = kept,
                      .deadline_ns = clock_monotonic_ns() + ask->remaining_ms * (int64_t)NS_PER_MS};
    r->watch = (struct work_watch){look_at_run, hold_for_run, release_for_run, r};
    r->out_reservation.watch = &r->watch;
    r->next = l->runs;
    r->at = &l->runs;
    if (r->next)
        r->next->at = &r->next;
    l->runs = r;
    l->stats.running++;
    bool merged, known = l->settings.questions->known(ask->question, &merged);
    if (!known)
        error_set(&r->error, -ENOSYS, "this node does not know question %d", ask->question);
    if (known && l->children && merged)
        l->settings.questions->gather(&r->gather, ask->question, kept, &r->watch, &r->error);
    if (known && l->children && !r->error.code)
        ask_children(r, ask);
    if (known && !r->error.code && is_for_us(l, ask))
        prepare_own(r);
    wire_loop_work(l->loop, &r->work);
}

static bool take_ask(struct wire_link *l, uint32_t id, struct str payload)
{
    struct arena arena = arena_limited(WIRE_ASK_MAX);
    struct wire_ask ask;
    int r = wire_ask_read(payload, &arena, &ask);
    if (r == 0 && !find_run(l, id)) {
        l->stats.questions++;
        if (l->stats.running >= HUB_QUESTIONS_MAX)
            send_end(l, id, -EBUSY, STR("too many questions at a time"));
        else
            start_run(l, id, &ask);
    } else {
        r = -EBADMSG;
    }
    arena_free(&arena);
    return r == 0;
}

static void take_credit(struct wire_link *l, uint32_t id, uint32_t more)
{
    struct run *r = find_run(l, id);
    if (!r)
        return;
    if (__builtin_add_overflow(r->credit, more, &r->credit))
        r->credit = UINT32_MAX;
    wire_loop_work(l->loop, &r->work);
}

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
    wire_telling_look(&l->telling);
    return true;
}

static bool take_welcome(struct wire_link *l, struct str payload)
{
    struct wire_welcome welcome;
    if (l->stats.state == WIRE_LINK_OPEN || wire_welcome_read(payload, &welcome))
        return false;
    l->dead_ms = welcome.dead_ms;
    l->failures = 0;
    l->tries = 0; // when it is lost, it begins with the first
    l->stats.state = WIRE_LINK_OPEN;
    l->stats.opened++;
    l->stats.problem[0] = 0;
    if (wire_session_peer(l->session)->abilities & WIRE_ABLE_HOSTS)
        wire_telling_connected(&l->telling, l->session);
    arm(l);
    return true;
}

static bool take(struct wire_link *l, const struct wire_header *h, struct str payload)
{
    if (h->type == WIRE_WELCOME)
        return take_welcome(l, payload);
    if (l->stats.state != WIRE_LINK_OPEN)
        return false;
    uint32_t more;
    struct run *r;
    switch ((int)h->type) {
    case WIRE_PING:
        return take_ping(l, payload);
    case WIRE_ASK:
        return take_ask(l, h->id, payload);
    case WIRE_CREDIT:
        if (wire_credit_read(payload, &more))
            return false;
        take_credit(l, h->id, more);
        return true;
    case WIRE_CANCEL:
        r = find_run(l, h->id);
        l->stats.cancelled += r != NULL;
        if (r)
            free_run(r);
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
    while (l->runs)
        free_run(l->runs);
    wire_telling_disconnected(&l->telling);
    if (l->session) {
        uint64_t in, out;
        wire_session_bytes(l->session, &in, &out);
        l->stats.bytes_in += in;
        l->stats.bytes_out += out;
        l->stats.way_bytes += wire_session_way(l->session).bytes;
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
    for (struct run *r = l->runs; r; r = r->next)
        wire_loop_work(l->loop, &r->work);
}

static void on_closed(void *user, int why, const char *text)
{
    struct wire_link *l = user;
    (void)why;
    // Once is enough: a parent that is gone stays gone for a while.
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

// Twice as long after each failure, up to the most; from half of it to all of it, so that a
// thousand nodes do not come at once.
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
            open ? wire_session_heard_ns(l->session) : wire_session_began_ns(l->session);
        int64_t most_ms = open ? l->dead_ms : l->settings.handshake_ms;
        int64_t now_ns = wire_monotonic_ns(&l->settings);
        // Who stood still itself reads what has come meanwhile before it takes the parent for dead.
        bool stood_still = now_ns - l->armed_ns > most_ms * NS_PER_MS / 2;
        if (!stood_still && now_ns - since > most_ms * NS_PER_MS) {
            // that one would not answer now
            l->tries = open ? (unsigned)l->stats.parent + 1 : l->tries;
            disconnect(l,
                       open ? "the parent was not heard for too long" : "the parent did not answer",
                       "nothing heard for too long");
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
    enum { LOOKS = 8 }; // while a time-out passes
    unsigned watched = l->stats.state == WIRE_LINK_OPEN ? l->dead_ms : l->settings.handshake_ms;
    uint64_t wait = l->session ? watched / LOOKS + 1 : retry_wait_ms(l);
    l->armed_ns = wire_monotonic_ns(&l->settings);
    uv_timer_start(l->timer, on_timer, wait, 0);
}

// ---- life ----

static void start(void *user)
{
    struct wire_link *l = user;
    uv_timer_init(wire_loop_uv(l->loop), l->timer);
    uv_timer_init(wire_loop_uv(l->loop), l->children_timer);
    l->timer->data = l->children_timer->data = l;
    wire_telling_begin(&l->telling, l->host, l->settings.questions, &l->source, l->children);
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
        .memory = o->memory,
        .transport = o->transport ? o->transport : &wire_tcp,
        .parents = {{strdup(o->parent_host), o->parent_port}},
        .parent_count = 1,
        .host = {strndup(o->host.data, o->host.size), o->host.size},
        .job = {strndup(o->settings.job.size ? o->settings.job.data : "", o->settings.job.size),
                o->settings.job.size},
        .session_number = o->session,
        .source = o->source,
        .refresher = o->refresher,
        .children = o->children,
        .bulk = o->bulk,
        .timer = calloc(1, sizeof *l->timer),
        .children_timer = calloc(1, sizeof *l->children_timer)};
    l->settings.job = l->job;
    if (!l->parents[0].host || !l->host.data || !l->job.data || !l->timer || !l->children_timer) {
        free(l->timer);
        free(l->children_timer);
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
    wire_telling_end(&l->telling);
    uv_close((uv_handle_t *)l->timer, free_timer);
    uv_close((uv_handle_t *)l->children_timer, free_timer);
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
    wire_telling_look(&l->telling);
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
    if (!s->link->session)
        return;
    uint64_t in, out;
    wire_session_bytes(s->link->session, &in, &out);
    s->out->bytes_in += in;
    s->out->bytes_out += out;
    struct wire_way way = wire_session_way(s->link->session);
    s->out->way_bytes += way.bytes;
    snprintf(s->out->way, sizeof s->out->way, "%s", way.name);
    snprintf(s->out->way_problem, sizeof s->out->way_problem, "%s", way.why);
}

void wire_link_get_stats(struct wire_link *l, struct wire_link_stats *out)
{
    struct stats_call s = {l, out};
    wire_loop_call(l->loop, read_stats, &s);
}
