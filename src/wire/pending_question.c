// pending_question.c - a question in flight (`pending_question`) has an `pending_answer` for each
// node that was asked. A peer finds the `pending_answer` of an answer by the id in the frame.
//
//   pending_question ──< pending_answer >── peer
//
// A `pending_answer` holds the incomplete record at the end of the node's stream, and the remaining
// credit.
#include "base/memory_account.h"
#include "wire/hub_internal.h"

#include <errno.h>
#include <stdlib.h>

// memory that a record gets at once, before its bytes have arrived
enum { RESERVE_MAX = 1 << 20 };

struct pending_answer {
    struct pending_question *question;
    struct peer *peer;
    struct list_link of_question, of_peer; // in the lists of a pending_question and of a peer
    uint32_t id;
    uint32_t credit_left; // the node's credit in bytes
    uint32_t unrenewed;   // bytes of used credit that the hub has not renewed
    struct buf record;    // an incomplete record: its size, and the bytes that have arrived
    size_t counted_bytes; // bytes of `record` that are in the hub's account
};

struct pending_question {
    struct hub *hub;
    struct pending_question_events events;
    void *user;
    struct list_link answers;
    size_t left;
    uint32_t credit;
    bool paused;
    // for each node's index: the caller requests the node, and it may hold the data. NULL: all
    // nodes
    bool *may;
    size_t may_count;
};

static struct pending_answer *answer_of_question(struct list_link *link)
{
    return LIST_OF(link, struct pending_answer, of_question);
}

static struct pending_answer *answer_of_peer(struct list_link *link)
{
    return LIST_OF(link, struct pending_answer, of_peer);
}

// ---- missing nodes ----

static void name_missing(struct pending_question *a, struct str host, enum wire_reason reason,
                         struct str text)
{
    a->events.missing(a->user, &(struct wire_missing){host, reason, text});
}

// True if the node may hold the requested data. A node that was added after the question began may
// hold them.
static bool may_hold(const struct pending_question *a, const struct node *n)
{
    return n->index >= a->may_count || a->may[n->index];
}

// Names all nodes behind a node as missing, except connected nodes, which answer for themselves.
// Returns the number of named nodes.
static size_t name_behind(struct pending_question *a, struct str host, enum wire_reason reason,
                          unsigned depth)
{
    size_t named = 0;
    struct behind *behind = hub_behind(a->hub, host);
    if (!behind)
        return 0;
    LIST_EACH (link, &behind->nodes) {
        const struct node *n = LIST_OF(link, struct node, of_via);
        if (!n->expected || n->excluded || n->peer)
            continue;
        if (may_hold(a, n)) {
            name_missing(a, n->host, reason, STR("its relay is missing"));
            named++;
        }
        if (depth > 1)
            named += name_behind(a, n->host, reason, depth - 1);
    }
    return named;
}

// Names a node that was asked as missing, and the unconnected nodes behind it.
static void name_asked_node(struct pending_question *a, const struct node *n,
                            enum wire_reason reason, struct str text)
{
    size_t behind = name_behind(a, n->host, reason, HUB_DEPTH_MAX);
    if (behind == 0 || may_hold(a, n))
        name_missing(a, n->host, reason, text);
}

// ---- closing ----

static void count_record(struct pending_answer *k)
{
    struct memory_account *memory = k->question->hub->memory;
    size_t now = k->record.capacity, before = k->counted_bytes;
    if (!memory || now == before)
        return;
    if (now > before)
        memory_account_add(memory, now - before);
    else
        memory_account_give(memory, before - now);
    k->counted_bytes = now;
}

static void free_record(struct pending_answer *k)
{
    buf_free(&k->record);
    k->record = (struct buf){0};
    count_record(k);
}

static void forget(struct pending_answer *k)
{
    list_remove(&k->of_question);
    list_remove(&k->of_peer);
    k->peer->answer_count--;
    k->question->left--;
    free_record(k);
    free(k);
}

static void finish(struct pending_answer *k)
{
    struct pending_question *a = k->question;
    forget(k);
    if (a->left == 0)
        a->events.done(a->user);
}

void pending_question_lost(struct peer *p)
{
    while (!list_empty(&p->answers)) {
        struct pending_answer *k = answer_of_peer(p->answers.next);
        name_asked_node(k->question, p->node, WIRE_LOST, (struct str){0});
        finish(k);
    }
}

void pending_question_end(struct pending_question *a, enum wire_reason reason)
{
    while (!list_empty(&a->answers)) {
        struct pending_answer *k = answer_of_question(a->answers.next);
        wire_session_send(k->peer->session, WIRE_CANCEL, k->id, (struct str){0});
        name_asked_node(a, k->peer->node, reason, (struct str){0});
        a->hub->stats.late += reason == WIRE_LATE;
        forget(k);
    }
    free(a->may);
    free(a);
}

// ---- credit ----

static void give_credit(struct pending_answer *k)
{
    if (k->question->paused || k->unrenewed < k->question->credit / 2)
        return;
    wire_session_send(k->peer->session, WIRE_CREDIT, k->id,
                      (struct str){(char *)&k->unrenewed, sizeof k->unrenewed});
    k->credit_left += k->unrenewed;
    k->unrenewed = 0;
}

void pending_question_pause(struct pending_question *a, bool paused)
{
    a->paused = paused;
    if (paused)
        return;
    LIST_EACH (link, &a->answers)
        give_credit(answer_of_question(link));
}

// ---- records ----

static uint32_t record_size(const char *at)
{
    uint32_t size;
    memcpy(&size, at, sizeof size);
    return size;
}

// Cuts the stream into records. Returns false if a record is too large, or if memory is exhausted.
static bool take_stream(struct pending_answer *k, struct str data)
{
    struct pending_question *a = k->question;
    struct str host = k->peer->node->host;
    while (data.size) {
        // Usually a record arrives complete.
        if (k->record.size == 0 && data.size >= WIRE_RECORD_SIZE_BYTES &&
            record_size(data.data) <= data.size - WIRE_RECORD_SIZE_BYTES) {
            uint32_t size = record_size(data.data);
            a->events.record(a->user, host, (struct str){data.data + WIRE_RECORD_SIZE_BYTES, size});
            data = str_slice(data, WIRE_RECORD_SIZE_BYTES + (size_t)size, data.size);
            continue;
        }
        size_t want = k->record.size < WIRE_RECORD_SIZE_BYTES
                          ? WIRE_RECORD_SIZE_BYTES
                          : WIRE_RECORD_SIZE_BYTES + (size_t)record_size(k->record.data);
        size_t lack = want - k->record.size, n = lack < data.size ? lack : data.size;
        // One allocation for most records. The size is only the peer's word, so it is limited.
        buf_reserve(&k->record, lack < RESERVE_MAX ? lack : RESERVE_MAX);
        buf_add(&k->record, data.data, n);
        data = str_slice(data, n, data.size);
        count_record(k);
        if (k->record.failed)
            return false;
        if (k->record.size == WIRE_RECORD_SIZE_BYTES &&
            record_size(k->record.data) > HUB_RECORD_MAX)
            return false;
        if (k->record.size >= WIRE_RECORD_SIZE_BYTES &&
            k->record.size == WIRE_RECORD_SIZE_BYTES + (size_t)record_size(k->record.data)) {
            a->events.record(
                a->user, host,
                str_slice(buf_str(&k->record), WIRE_RECORD_SIZE_BYTES, k->record.size));
            free_record(k);
        }
    }
    return true;
}

static bool take_part(struct pending_answer *k, struct str payload, const char **why)
{
    if (payload.size > k->credit_left) {
        *why = "more bytes of an answer than the credit allows";
        return false;
    }
    k->credit_left -= (uint32_t)payload.size;
    k->unrenewed += (uint32_t)payload.size;
    if (!take_stream(k, payload)) {
        *why = "a record is too large, or there is no memory for it";
        return false;
    }
    give_credit(k);
    return true;
}

static bool take_missing(struct pending_answer *k, struct str payload, const char **why)
{
    struct bytes b = bytes_of(payload.data, payload.size);
    while (bytes_left(&b)) {
        struct wire_missing m;
        if (wire_missing_read(&b, &m)) {
            *why = "a damaged list of missing nodes";
            return false;
        }
        // The relay reports a node as missing that has connected to us instead.
        const struct node *n = hub_find_node(k->peer->hub, m.host);
        if (!n || !n->peer || n->peer == k->peer)
            k->question->events.missing(k->question->user, &m);
    }
    return true;
}

static bool take_end(struct pending_answer *k, struct str payload, const char **why)
{
    struct wire_end end;
    if (wire_end_read(payload, &end) || k->record.size) {
        *why = "a damaged end of an answer";
        return false;
    }
    if (end.code)
        name_missing(k->question, k->peer->node->host,
                     end.code == -ETIMEDOUT ? WIRE_LATE : WIRE_ERROR, end.text);
    finish(k);
    return true;
}

bool pending_question_frame(struct peer *p, const struct wire_header *h, struct str payload,
                            const char **why)
{
    struct pending_answer *k = NULL;
    LIST_EACH (link, &p->answers)
        if (answer_of_peer(link)->id == h->id) {
            k = answer_of_peer(link);
            break;
        }
    if (!k)
        return true; // the question was given up; its CANCEL is under way
    return h->type == WIRE_PART      ? take_part(k, payload, why)
           : h->type == WIRE_MISSING ? take_missing(k, payload, why)
                                     : take_end(k, payload, why);
}

// ---- questions to nodes ----

// True if the caller requests this host; without a list, the caller requests all.
static bool is_in(const struct map *requested, struct str host)
{
    return requested->count == 0 || map_get(requested, host);
}

struct reached {
    const struct hub *hub;
    const struct node *node;
};

// True if the question for a host goes to this node: the host is the node itself, or is behind it,
// or its relay is unknown.
static bool is_reached(void *user, struct str host)
{
    const struct reached *r = user;
    if (!r->node->relay)
        return str_eq(host, r->node->host);
    for (unsigned depth = 0; depth <= HUB_DEPTH_MAX; depth++) {
        const struct node *n = hub_find_node(r->hub, host);
        if (n && n->peer)
            return n == r->node;
        if (!n || !n->via.size)
            break;
        host = n->via;
    }
    return true;
}

static int write_ask(const struct pending_question *a, const struct pending_question_options *o,
                     const struct node *n, struct buf *out)
{
    struct buf request = {0};
    struct reached reached = {a->hub, n};
    // Reduces the request to the part that this node and the nodes behind it need.
    int r =
        a->hub->settings.questions->narrow(o->question, o->request, is_reached, &reached, &request);
    struct wire_ask ask = {.question = (uint8_t)o->question,
                           .credit = a->credit,
                           .remaining_ms = o->remaining_ms,
                           .hosts = n->relay ? o->hosts : NULL,
                           .host_count = n->relay ? o->host_count : 0,
                           .request = buf_str(&request)};
    wire_ask_write(&ask, out);
    if (r == 0 && (request.failed || out->failed))
        r = out->size > WIRE_ASK_MAX / 2 ? -E2BIG : -ENOMEM;
    buf_free(&request);
    return r;
}

static int ask_node(struct pending_question *a, const struct pending_question_options *o,
                    struct node *n)
{
    struct peer *p = n->peer;
    if (p->answer_count >= HUB_QUESTIONS_MAX) {
        name_asked_node(a, n, WIRE_ERROR, STR("too many questions at a time"));
        return 0;
    }
    struct buf payload = {.limit = WIRE_ASK_MAX};
    struct pending_answer *k = calloc(1, sizeof *k);
    int r = k ? write_ask(a, o, n, &payload) : -ENOMEM;
    if (r) {
        free(k);
        buf_free(&payload);
        return r;
    }
    *k = (struct pending_answer){
        .question = a, .peer = p, .id = ++p->last_id, .credit_left = a->credit};
    list_prepend(&a->answers, &k->of_question);
    list_prepend(&p->answers, &k->of_peer);
    p->answer_count++;
    n->questions++;
    a->hub->stats.node_questions++;
    a->left++;
    wire_session_send(p->session, WIRE_ASK, k->id, buf_str(&payload));
    buf_free(&payload);
    return 0;
}

// Names every requested node that is not connected. If a connected relay is in front of the node,
// the relay names it.
static void name_absent(struct pending_question *a, const struct pending_question_options *o)
{
    struct hub *h = a->hub;
    bool relays = h->relay;
    for (size_t i = 0; i < h->node_count; i++) {
        const struct node *n = h->nodes[i];
        relays |= n->relay && n->peer;
        if (!n->expected || n->excluded || n->peer || n->via.size)
            continue;
        if (may_hold(a, n))
            name_missing(a, n->host, WIRE_NOT_CONNECTED, (struct str){0});
        name_behind(a, n->host, WIRE_NOT_CONNECTED, HUB_DEPTH_MAX);
    }
    for (size_t i = 0; i < o->host_count && !relays; i++) {
        const struct node *n = hub_find_node(h, o->hosts[i]);
        if (!str_eq(o->hosts[i], h->host) && (!n || (!n->peer && !n->expected && !n->via.size)))
            name_missing(a, o->hosts[i], WIRE_NOT_CONNECTED, STR("no node of that name"));
    }
}

// Marks the nodes to ask, by the list of hosts and by the filters of the question.
static int choose(struct pending_question *a, const struct pending_question_options *o)
{
    struct map requested = {0};
    const struct wire_questions *questions = a->hub->settings.questions;
    int r = 0;
    a->may = calloc(a->hub->node_count + 1, sizeof *a->may);
    if (!a->may)
        return -ENOMEM;
    a->may_count = a->hub->node_count;
    for (size_t i = 0; i < o->host_count && r == 0; i++)
        r = map_add(&requested, o->hosts[i], NULL) ? 0 : -ENOMEM;
    struct wire_host_filter *filter = questions->host_filter(o->question, o->request);
    host_index_choose(a->hub, filter, a->may);
    questions->host_filter_end(filter);
    for (size_t i = 0; i < a->may_count; i++)
        a->may[i] &= is_in(&requested, a->hub->nodes[i]->host);
    LIST_EACH (link, &a->hub->peers) {
        struct peer *p = hub_peer_of(link);
        bool listed = p->node->relay || is_in(&requested, p->node->host);
        a->hub->stats.spared += listed && !p->chosen;
        p->chosen &= listed;
    }
    map_free(&requested);
    return r;
}

static int ask_all(struct pending_question *a, const struct pending_question_options *o)
{
    int r = choose(a, o);
    LIST_EACH (link, &a->hub->peers)
        if (r == 0 && hub_peer_of(link)->chosen)
            r = ask_node(a, o, hub_peer_of(link)->node);
    if (r == 0)
        name_absent(a, o);
    return r;
}

static uint32_t credit_of_each(const struct hub *h)
{
    size_t connected = 1;
    LIST_EACH (link, &h->peers)
        connected++;
    size_t share = HUB_CREDIT_ALL / connected;
    return share < HUB_CREDIT_MIN   ? HUB_CREDIT_MIN
           : share > HUB_CREDIT_MAX ? HUB_CREDIT_MAX
                                    : (uint32_t)share;
}

int pending_question_begin(struct hub *h, const struct pending_question_options *o,
                           struct pending_question **out, size_t *left)
{
    *out = NULL;
    struct pending_question *a = calloc(1, sizeof *a);
    if (!a)
        return -ENOMEM;
    *a = (struct pending_question){.hub = h, .events = o->events, .user = o->user};
    list_init(&a->answers);
    h->stats.questions++;
    a->credit = credit_of_each(h);
    int r = ask_all(a, o);
    if (r) {
        pending_question_end(a, WIRE_ERROR);
        return r;
    }
    *out = a;
    *left = a->left;
    return 0;
}
