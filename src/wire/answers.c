#include "wire/answers.h"

#include "wire/drain.h"
#include "wire/pending_question.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/memory_account.h"

#include <errno.h>
#include <stdlib.h>

enum {
    // An answer stops making records while this many bytes wait for credit.
    OUT_MAX = 256 << 10,
    CHILDREN_TICK_MS = 10, // interval at which a relay checks the deadlines of its children
    CHILDREN_SHARE = 4,    // children get three quarters of their relay's time
};

// Our own part of an answer. It begins in a step, in the same turn as its first records.
enum own_state { OWN_ENDED, OWN_REFRESHING, OWN_BEGINS, OWN_ANSWERING };

struct run {
    struct wire_work work; // the first member: the work is the run
    struct answers *answers;
    struct list_link of_all; // in list answers->runs
    uint32_t id, credit;
    char *request;
    struct wire_view view;
    struct wire_answer *answer; // NULL: no answer in progress
    struct work_watch watch;    // for both the answer and the gather
    size_t held_bytes;          // accounted bytes
    // brings the files up to date before our own answer; valid in OWN_REFRESHING
    struct wire_refresh refresh;
    unsigned question;
    struct str own_request; // points into `request`
    int64_t deadline_ns;    // deadline of our own answer
    enum own_state own;
    bool view_is_open, children_done;
    struct pending_question *children;
    int64_t children_deadline_ns;
    struct wire_gather *gather; // only at a relay
    bool gathered;              // the complete gather is in `out`
    struct buf out;             // records, each after its size
    size_t sent;                // number of sent bytes of `out`
    struct reservation out_reservation;
    struct buf missing; // payload of MISSING
    struct error error; // code 0: no error
};

struct answers {
    struct answers_options o;
    struct wire_session *session; // NULL: no connection and no runs
    struct list_link runs;        // newest first
    uv_timer_t *children_timer;   // NULL: stopped
    struct answers_stats stats;
};

// ---- closing ----

static void free_run(struct run *r)
{
    struct answers *a = r->answers;
    wire_loop_work_cancel(&r->work);
    if (r->own == OWN_REFRESHING)
        wire_refresh_cancel(a->o.refresher, &r->refresh);
    list_remove(&r->of_all);
    if (r->children)
        pending_question_end(r->children, WIRE_LATE);
    a->o.questions->gather_end(r->gather);
    a->o.questions->answer_end(r->answer);
    if (r->view_is_open)
        a->o.source->close(a->o.source->user, &r->view);
    buf_free(&r->out);
    buf_free(&r->missing);
    free(r->request);
    if (a->o.memory)
        memory_account_give(a->o.memory, r->held_bytes);
    free(r);
    a->stats.running--;
}

// ---- memory ----

static int look_at_run(void *user, struct error *e)
{
    // a cancelled question ends between two steps, so this callback never ends one
    (void)user, (void)e;
    return 0;
}

static int hold_for_run(void *user, size_t bytes, struct error *e)
{
    struct run *r = user;
    struct memory_account *memory = r->answers->o.memory;
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
    if (!r->answers->o.memory)
        return;
    r->held_bytes -= bytes;
    memory_account_give(r->answers->o.memory, bytes);
}

static void send_end(struct answers *a, uint32_t id, int code, struct str text)
{
    struct buf payload = {0};
    wire_end_write(&(struct wire_end){code, text}, &payload);
    if (!payload.failed)
        wire_session_send(a->session, WIRE_END, id, buf_str(&payload));
    buf_free(&payload);
}

static void add_missing(struct run *r, const struct wire_missing *m)
{
    struct buf one = {0};
    wire_missing_write(m, &one);
    if (r->missing.size + one.size > WIRE_PART_MAX) {
        wire_session_send(r->answers->session, WIRE_MISSING, r->id, buf_str(&r->missing));
        r->missing.size = 0;
    }
    buf_add_str(&r->missing, buf_str(&one));
    buf_free(&one);
}

static void finish(struct run *r)
{
    struct answers *a = r->answers;
    if (r->missing.size)
        wire_session_send(a->session, WIRE_MISSING, r->id, buf_str(&r->missing));
    send_end(a, r->id, r->error.code, str_of(r->error.code ? r->error.text : ""));
    free_run(r);
}

// ---- records ----

// Called when the node cannot answer from its own files. A relay then names itself as missing, and
// continues with its children.
static void own_part_failed(struct run *r, const struct error *e)
{
    r->own = OWN_ENDED;
    if (r->children || r->answers->o.children)
        add_missing(r, &(struct wire_missing){r->answers->o.host,
                                              e->code == -ETIMEDOUT ? WIRE_LATE : WIRE_ERROR,
                                              str_of(e->text)});
    else
        r->error = *e;
}

static void start_own(struct run *r)
{
    struct answers *a = r->answers;
    struct error e = {0};
    int failed = a->o.source->open(a->o.source->user, &r->view, &e);
    r->view_is_open = failed == 0;
    if (!failed)
        wire_host_reports_look_at(a->o.host_reports, &r->view);
    if (!failed)
        failed = a->o.questions->answer(&r->answer, r->question, r->own_request, &r->view,
                                        a->o.host, r->deadline_ns, &r->watch, &e);
    r->own = OWN_ANSWERING;
    if (failed)
        own_part_failed(r, &e);
}

static void put_size(struct buf *out, size_t at)
{
    uint32_t size = (uint32_t)(out->size - at - WIRE_RECORD_SIZE_BYTES);
    if (!out->failed)
        memcpy(out->data + at, &size, sizeof size);
}

// Makes the next record of our own answer. It goes into `out`, or into the gather.
static void step_own(struct run *r)
{
    struct error e = {0};
    size_t at = r->out.size;
    buf_u32(&r->out, 0);
    const struct wire_questions *questions = r->answers->o.questions;
    int more = questions->answer_step(r->answer, &r->out, &e);
    if (more > 0 && r->out.failed)
        more = error_set(&e, -ENOMEM, "no memory for an answer");
    if (more > 0 && r->gather) {
        int failed = questions->gather_take(
            r->gather, str_slice(buf_str(&r->out), at + WIRE_RECORD_SIZE_BYTES, r->out.size), &e);
        more = failed ? failed : more;
    }
    if (more <= 0 || r->gather)
        r->out.size = at;
    else
        put_size(&r->out, at);
    if (more < 0)
        own_part_failed(r, &e);
    else if (more == 0)
        r->own = OWN_ENDED;
}

// Makes the next gathered record. Returns false after the last one.
static bool step_gathered(struct run *r)
{
    size_t at = r->out.size;
    buf_u32(&r->out, 0);
    int more = r->answers->o.questions->gather_step(r->gather, &r->out, &r->error);
    if (more > 0)
        put_size(&r->out, at);
    else
        r->out.size = at;
    return more > 0;
}

// Sends as many bytes as credit allows. Returns false if the connection's queue is full.
static bool send_out(struct run *r)
{
    struct answers *a = r->answers;
    size_t waiting = r->out.size - r->sent;
    wire_session_reserve(a->session, waiting < r->credit ? waiting : r->credit);
    while (r->sent < r->out.size && r->credit &&
           wire_session_queued(a->session) < WIRE_LINK_QUEUED_MAX) {
        size_t n = r->out.size - r->sent;
        n = n < r->credit ? n : r->credit;
        n = wire_session_send_part(a->session, r->id, (struct str){r->out.data + r->sent, n});
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
        pending_question_pause(r->children, r->out.size - r->sent >= OUT_MAX);
}

// Makes one more record of our own answer or the gather, or finds that there is none. Returns false
// if no record can be made now.
static bool make_record(struct run *r)
{
    if (r->error.code || r->out.size - r->sent >= OUT_MAX)
        return false;
    if (r->own == OWN_ANSWERING)
        step_own(r);
    else if (r->own == OWN_ENDED && !r->children && r->gather && !r->gathered)
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
    bool coming = r->own != OWN_ENDED || r->children;
    return r->error.code || (!coming && (!r->gather || r->gathered));
}

static bool step(struct wire_work *work)
{
    struct run *r = (struct run *)work;
    if (r->children && r->children_done) {
        pending_question_end(r->children, WIRE_LATE);
        r->children = NULL;
    }
    if (r->own == OWN_BEGINS)
        start_own(r);
    // Several small records go out together, so make more before sending.
    if (make_record(r) && r->out.size - r->sent < wire_session_part_max(r->answers->session) &&
        !is_complete(r))
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
           // otherwise new credit, a child or the refresh resumes the answer
           (r->own == OWN_ANSWERING || !(r->children || r->own == OWN_REFRESHING));
}

// ---- children of a relay ----

static void on_child_record(void *user, struct str host, struct str record)
{
    struct run *r = user;
    struct error e;
    if (r->error.code)
        return;
    if (r->gather) {
        int failed = r->answers->o.questions->gather_take(r->gather, record, &e);
        if (failed == -EBADMSG)
            add_missing(r, &(struct wire_missing){host, WIRE_ERROR, STR("its answer is damaged")});
        else if (failed)
            r->error = e;
    } else {
        buf_u32(&r->out, (uint32_t)record.size);
        buf_add_str(&r->out, record);
        pause_children(r);
    }
    wire_loop_work(r->answers->o.loop, &r->work);
}

static void on_child_missing(void *user, const struct wire_missing *m)
{
    add_missing(user, m);
}

static void on_children_done(void *user)
{
    struct run *r = user;
    r->children_done = true;
    wire_loop_work(r->answers->o.loop, &r->work);
}

static void on_children_tick(uv_timer_t *timer)
{
    struct answers *a = timer->data;
    int64_t now = clock_monotonic_ns();
    bool more = false;
    LIST_EACH (link, &a->runs) {
        struct run *r = LIST_OF(link, struct run, of_all);
        if (r->children && !r->children_done && now >= r->children_deadline_ns) {
            r->children_done = true;
            wire_loop_work(a->o.loop, &r->work);
        }
        more |= r->children != NULL;
    }
    if (!more)
        uv_timer_stop(timer);
}

static void ask_children(struct run *r, const struct wire_ask *ask)
{
    struct answers *a = r->answers;
    uint32_t remaining_ms = ask->remaining_ms - ask->remaining_ms / CHILDREN_SHARE;
    r->children_deadline_ns = clock_monotonic_ns() + remaining_ms * (int64_t)NS_PER_MS;
    struct pending_question_options o = {
        .question = ask->question,
        .request = ask->request,
        .hosts = ask->hosts,
        .host_count = ask->host_count,
        .remaining_ms = remaining_ms,
        .events = {on_child_record, on_child_missing, on_children_done},
        .user = r};
    size_t left;
    int failed = pending_question_begin(a->o.children, &o, &r->children, &left);
    if (failed)
        error_set(&r->error, failed, "the relay cannot ask its nodes: %s", strerror(-failed));
    else
        r->children_done = left == 0;
    uv_timer_start(a->children_timer, on_children_tick, CHILDREN_TICK_MS, CHILDREN_TICK_MS);
}

// ---- frames ----

static struct run *find_run(const struct answers *a, uint32_t id)
{
    LIST_EACH (link, &a->runs) {
        struct run *r = LIST_OF(link, struct run, of_all);
        if (r->id == id)
            return r;
    }
    return NULL;
}

static bool is_for_us(const struct answers *a, const struct wire_ask *ask)
{
    if (ask->host_count == 0)
        return true;
    for (size_t i = 0; i < ask->host_count; i++)
        if (str_eq(ask->hosts[i], a->o.host))
            return true;
    return false;
}

static void on_refreshed(struct wire_refresh *refresh)
{
    struct run *r = LIST_OF(refresh, struct run, refresh);
    r->own = OWN_BEGINS;
    wire_loop_work(r->answers->o.loop, &r->work);
}

// Prepares our own answer. If the question is about the present, the files are refreshed first, so
// that they contain everything emitted so far.
static void prepare_own(struct run *r)
{
    struct answers *a = r->answers;
    if (!a->o.refresher || !drain_reaches(a->o.questions->until(r->question, r->own_request))) {
        r->own = OWN_BEGINS;
        return;
    }
    r->own = OWN_REFRESHING;
    r->refresh.ready = on_refreshed;
    wire_refresh_begin(a->o.refresher, &r->refresh);
}

static void start_run(struct answers *a, uint32_t id, const struct wire_ask *ask)
{
    struct run *r = calloc(1, sizeof *r);
    char *request = malloc(ask->request.size + 1);
    if (!r || !request) {
        free(r);
        free(request);
        send_end(a, id, -ENOMEM, STR("no memory for an answer"));
        return;
    }
    if (ask->request.size)
        memcpy(request, ask->request.data, ask->request.size);
    struct str kept = {request, ask->request.size};
    *r = (struct run){.work.step = step,
                      .answers = a,
                      .id = id,
                      .credit = ask->credit,
                      .request = request,
                      .question = ask->question,
                      .own_request = kept,
                      .deadline_ns = clock_monotonic_ns() + ask->remaining_ms * (int64_t)NS_PER_MS};
    r->watch = (struct work_watch){look_at_run, hold_for_run, release_for_run, r};
    r->out_reservation.watch = &r->watch;
    list_prepend(&a->runs, &r->of_all);
    a->stats.running++;
    bool merged, known = a->o.questions->known(ask->question, &merged);
    if (!known)
        error_set(&r->error, -ENOSYS, "this node does not know question %d", ask->question);
    if (known && a->o.children && merged)
        a->o.questions->gather(&r->gather, ask->question, kept, &r->watch, &r->error);
    if (known && a->o.children && !r->error.code)
        ask_children(r, ask);
    if (known && !r->error.code && is_for_us(a, ask))
        prepare_own(r);
    wire_loop_work(a->o.loop, &r->work);
}

bool answers_ask(struct answers *a, uint32_t id, struct str payload)
{
    struct arena arena = arena_limited(WIRE_ASK_MAX);
    struct wire_ask ask;
    int r = wire_ask_read(payload, &arena, &ask);
    if (r == 0 && !find_run(a, id)) {
        a->stats.questions++;
        if (a->stats.running >= HUB_QUESTIONS_MAX)
            send_end(a, id, -EBUSY, STR("too many questions at a time"));
        else
            start_run(a, id, &ask);
    } else {
        r = -EBADMSG;
    }
    arena_free(&arena);
    return r == 0;
}

bool answers_credit(struct answers *a, uint32_t id, struct str payload)
{
    uint32_t more;
    if (wire_credit_read(payload, &more))
        return false;
    struct run *r = find_run(a, id);
    if (!r)
        return true;
    if (__builtin_add_overflow(r->credit, more, &r->credit))
        r->credit = UINT32_MAX;
    wire_loop_work(a->o.loop, &r->work);
    return true;
}

void answers_cancel(struct answers *a, uint32_t id)
{
    struct run *r = find_run(a, id);
    if (!r)
        return;
    a->stats.cancelled++;
    free_run(r);
}

void answers_resume(struct answers *a)
{
    LIST_EACH (link, &a->runs)
        wire_loop_work(a->o.loop, &LIST_OF(link, struct run, of_all)->work);
}

// ---- lifetime ----

struct answers *answers_create(const struct answers_options *options)
{
    struct answers *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->o = *options;
    list_init(&a->runs);
    a->children_timer = calloc(1, sizeof *a->children_timer);
    if (!a->children_timer) {
        free(a);
        return NULL;
    }
    return a;
}

void answers_destroy(struct answers *a)
{
    if (!a)
        return;
    free(a->children_timer);
    free(a);
}

void answers_start(struct answers *a)
{
    uv_timer_init(wire_loop_uv(a->o.loop), a->children_timer);
    a->children_timer->data = a;
}

static void free_timer(uv_handle_t *timer)
{
    free(timer);
}

void answers_stop(struct answers *a)
{
    uv_close((uv_handle_t *)a->children_timer, free_timer);
    a->children_timer = NULL;
}

void answers_connected(struct answers *a, struct wire_session *session)
{
    a->session = session;
}

void answers_disconnected(struct answers *a)
{
    while (!list_empty(&a->runs))
        free_run(LIST_OF(a->runs.next, struct run, of_all));
    a->session = NULL;
}

struct answers_stats answers_stats(const struct answers *a)
{
    return a->stats;
}
