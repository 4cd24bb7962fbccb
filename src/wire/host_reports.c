#include "wire/host_reports.h"

#include "base/log.h"

enum { MORE, ALL }; // the first byte of a HOSTS

static void begin_frame(struct wire_host_reports *t)
{
    t->out = (struct buf){0};
    buf_u8(&t->out, MORE);
}

static void send_frame(struct wire_host_reports *t, uint8_t all)
{
    if (!t->out.failed) {
        t->out.data[0] = (char)all;
        wire_session_send(t->session, WIRE_HOSTS, 0, buf_str(&t->out));
    } else {
        log_warning(
            "no memory to report the hosts of this node: the parent asks it every question");
    }
    buf_free(&t->out);
}

// ---- the nodes behind us, and our own node ----

static void tell_one(void *user, struct str host, const struct wire_host_set *held)
{
    struct wire_host_reports *t = user;
    if (!t->session)
        return;
    begin_frame(t);
    wire_host_set_write(host, held, &t->out);
    send_frame(t, MORE);
}

static void add_one(void *user, struct str host, const struct wire_host_set *held)
{
    struct wire_host_reports *t = user;
    if (t->out.size + WIRE_HOST_SET_ENTRY_MAX > WIRE_HOSTS_BYTES_MAX) {
        send_frame(t, MORE);
        begin_frame(t);
    }
    wire_host_set_write(host, held, &t->out);
}

// ---- our own store ----

// Adds the hosts of the view to our set. Returns true if the view has new hosts.
static bool learn(struct wire_host_reports *t, const struct wire_view *view)
{
    uint64_t identity = t->questions->identity(view);
    if (t->own.any || identity == t->seen)
        return false;
    t->seen = identity;
    struct wire_host_set before = t->own;
    t->own.known = true;
    t->questions->hosts(view, t->host, &t->own);
    return !before.known || t->own.any || t->own.count != before.count ||
           t->own.without != before.without;
}

static bool learn_from_source(struct wire_host_reports *t)
{
    struct wire_view view;
    if (t->own.any || t->source->open(t->source->user, &view, NULL) != 0)
        return false;
    bool news = learn(t, &view);
    t->source->close(t->source->user, &view);
    return news;
}

void wire_host_reports_look_at(struct wire_host_reports *t, const struct wire_view *view)
{
    if (t->session && learn(t, view))
        tell_one(t, t->host, &t->own);
}

void wire_host_reports_look(struct wire_host_reports *t)
{
    if (t->session && learn_from_source(t))
        tell_one(t, t->host, &t->own);
}

// ---- lifetime ----

void wire_host_reports_begin(struct wire_host_reports *t, struct str host,
                             const struct wire_questions *questions,
                             const struct wire_source *source, struct hub *children)
{
    *t = (struct wire_host_reports){
        .host = host, .questions = questions, .source = source, .children = children};
    if (children)
        host_index_listen(children, &(struct host_index_listener){tell_one, t});
}

void wire_host_reports_end(struct wire_host_reports *t)
{
    if (t->children)
        host_index_listen(t->children, NULL);
    wire_host_set_free(&t->own);
}

void wire_host_reports_connected(struct wire_host_reports *t, struct wire_session *session)
{
    learn_from_source(t);
    t->session = session;
    begin_frame(t);
    add_one(t, t->host, &t->own);
    if (t->children)
        host_index_each(t->children, &(struct host_index_listener){add_one, t});
    send_frame(t, ALL);
}

void wire_host_reports_disconnected(struct wire_host_reports *t)
{
    t->session = NULL;
}
