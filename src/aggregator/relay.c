#include "aggregator/relay.h"

#include "aggregator/control.h"
#include "aggregator/dragon_port.h"
#include "aggregator/node_lines.h"
#include "ask/questions.h"
#include "ask/sources.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "wire/forwarder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLACK_BYTES = 2 << 20 }; // bytes of freed memory that malloc may keep

struct relay {
    struct control control;
    struct sources *sources;
    struct wire_loop *loop;
    struct hub *children; // NULL: none
    // transports of large answers: our own, and those of our children; NULL: the connection itself
    struct wire_bulk *bulk, *from_children;
    struct wire_refresher *refresher;
    struct wire_link *link;
    struct wire_forwarder *forwarder; // for HTTP clients on this node
    struct memory_account memory;     // limits the memory of answers
    struct process_memory_keeper keeper;
};

// The open view of one request.
struct opened {
    struct arena arena;
    struct sources_view view;
};

static int open_view(void *user, struct wire_view *out, struct error *e)
{
    struct relay *relay = user;
    struct opened *o = calloc(1, sizeof *o);
    if (!o)
        return error_set(e, -ENOMEM, "no memory for an answer");
    int r = sources_open(relay->sources, &o->arena, &o->view, e);
    bool opened = r == 0;
    if (opened)
        r = sources_wire_view(&o->view, &o->arena, out, e);
    if (r == 0) {
        out->user = o;
        return 0;
    }
    if (opened)
        sources_close(&o->view);
    arena_free(&o->arena);
    free(o);
    return r;
}

static void close_view(void *user, struct wire_view *view)
{
    struct opened *o = view->user;
    struct relay *relay = user;
    sources_close(&o->view);
    arena_free(&o->arena);
    free(o);
    // Each request and each ping closes a view at its end, so even an idle relay returns memory,
    // without a timer.
    int64_t now_ns = clock_monotonic_ns();
    process_memory_keep(&relay->keeper, SLACK_BYTES, now_ns);
    // Answers may take half of the limit, and freed memory in malloc a quarter.
    process_memory_ease(&relay->keeper,
                        memory_account_held(&relay->memory) + RELAY_MEMORY_BYTES / 4,
                        RELAY_MEMORY_BYTES, now_ns);
}

// Writes the response for an HTTP client whose connection to the first node has failed.
static void write_refusal(const char *why, struct buf *out)
{
    struct buf body = {0};
    struct json_writer w = json_to(&body);
    json_begin_object(&w);
    json_key(&w, STR("error"));
    json_begin_object(&w);
    json_key_i64(&w, "code", 503);
    json_key_string(&w, "message", str_of(why));
    json_end_object(&w);
    json_end_object(&w);
    buf_printf(out,
               "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
               body.size, buf_cstr(&body));
    out->failed |= body.failed;
    buf_free(&body);
}

// Starts the forwarder. If that fails, clients on this node cannot reach the first node's server,
// but the relay works.
static void start_forwarder(struct relay *r, const struct relay_options *o,
                            const struct wire_settings *settings)
{
    const struct wire_parent *first_node = &o->parents[o->parent_count - 1];
    struct buf path = {0};
    struct error e;
    buf_printf(&path, "%s/" WIRE_FORWARDER_SOCKET, o->folder);
    struct wire_forwarder_options options = {.settings = *settings,
                                             .path = buf_cstr(&path),
                                             .host = str_of(o->host),
                                             .hub_host = first_node->host,
                                             .hub_port = first_node->port,
                                             .refusal = write_refusal};
    if (wire_forwarder_create(r->loop, &options, &r->forwarder, &e) != 0)
        log_warning("programs on this node cannot query the job: %s", e.text);
    explicit_bzero(options.settings.key, sizeof options.settings.key);
    buf_free(&path);
}

static int start(struct relay *r, const struct relay_options *o, struct error *e)
{
    struct wire_settings settings = {.questions = &ask_questions, .job = str_of(o->job)};
    struct buf socket = {0};
    int rc = sources_create(&o->folder, 1, false, &r->sources, e);
    if (rc == 0)
        rc = wire_loop_start(&r->loop, e);
    buf_printf(&socket, "%s/agent.sock", o->folder);
    if (rc == 0)
        rc = wire_refresher_create(r->loop, buf_cstr(&socket), &r->refresher, e);
    buf_free(&socket);
    if (rc == 0)
        rc = wire_key_read(o->key_file, settings.key, e);
    if (rc == 0 && o->transport)
        rc = wire_bulk_open(r->loop, o->transport, WIRE_LINK, o->parents[0].host, &r->bulk, e);
    if (rc == 0 && o->transport && o->children)
        rc = wire_bulk_open(r->loop, o->transport, WIRE_HUB, NULL, &r->from_children, e);
    if (rc == 0 && o->children) {
        struct hub_options hub = {
            .settings = settings, .host = str_of(o->host), .relay = true, .bulk = r->from_children};
        rc = hub_create(r->loop, &hub, &r->children, e);
        explicit_bzero(hub.settings.key, sizeof hub.settings.key);
    }
    if (rc == 0) {
        struct wire_link_options link = {
            .settings = settings,
            .bulk = r->bulk,
            .parent_host = o->parents[0].host,
            .parent_port = o->parents[0].port,
            .host = str_of(o->host),
            .session = (uint64_t)clock_realtime_ns(),
            .source = {open_view, close_view, r},
            .refresher = r->refresher,
            .children = r->children,
            .memory = &r->memory,
        };
        rc = wire_link_create(r->loop, &link, &r->link, e);
        explicit_bzero(link.settings.key, sizeof link.settings.key);
    }
    if (rc == 0)
        start_forwarder(r, o, &settings);
    explicit_bzero(settings.key, sizeof settings.key);
    if (rc == 0 && o->parent_count > 1)
        rc = wire_link_set_parents(r->link, o->parents, o->parent_count);
    return rc;
}

size_t relay_parents(struct str text, struct arena *arena, struct wire_parent out[WIRE_PARENTS_MAX])
{
    size_t count = 0;
    while (text.data && text.size && count < WIRE_PARENTS_MAX) {
        // The rest is HOST:PORT up to the next comma, or the two words HOST PORT.
        struct str rest = text, host = str_cut(&rest, ' '), number;
        if (rest.data) {
            number = str_cut(&rest, ' ');
        } else {
            rest = text;
            struct str one = str_cut(&rest, ',');
            size_t colon = one.size;
            while (colon > 0 && one.data[colon - 1] != ':')
                colon--;
            host = str_slice(one, 0, colon ? colon - 1 : 0);
            number = str_slice(one, colon, one.size);
        }
        int64_t port;
        char *name = arena_strdup(arena, host);
        if (!name || !host.size || host.size > WIRE_HOST_MAX || !str_to_i64(number, &port) ||
            port < 1 || port > 65535)
            return 0;
        out[count++] = (struct wire_parent){name, (int)port};
        text = rest;
    }
    return count;
}

static void take_line(void *user, struct str line)
{
    struct relay *r = user;
    struct str rest = line, word = str_cut(&rest, ' ');
    if (str_eq(word, STR("hosts"))) {
        wire_link_look(r->link);
    } else if (str_eq(word, STR("parent"))) {
        struct wire_parent parents[WIRE_PARENTS_MAX];
        struct arena arena = {0};
        size_t count = relay_parents(rest, &arena, parents);
        const struct wire_parent *first_node = &parents[count ? count - 1 : 0];
        if (count == 0 || wire_link_set_parents(r->link, parents, count) != 0 ||
            (r->forwarder &&
             wire_forwarder_set_hub(r->forwarder, first_node->host, first_node->port) != 0))
            log_warning("not a list of parents: %.*s", STR_ARG(str_slice(line, 0, 200)));
        arena_free(&arena);
    } else if (r->children) {
        node_lines_take(r->children, line);
    }
}

static struct aggregator *start_dragon_port(const struct relay_options *o)
{
    char *socket = NULL;
    if (!o->dragon_port || asprintf(&socket, "%s/agent.sock", o->folder) < 0)
        return NULL;
    struct aggregator *g = dragon_port_start(0, o->dragon_port, socket);
    free(socket);
    return g;
}

int relay_run(const struct relay_options *options, int control_fd, struct error *e)
{
    struct error own = {0};
    struct relay r = {.memory.limit_bytes = RELAY_MEMORY_BYTES / 2};
    int rc = control_open(&r.control, control_fd, &own);
    if (rc == 0)
        rc = start(&r, options, &own);
    if (rc) {
        control_say(&r.control, "error %s", own.text);
    } else {
        if (r.children)
            control_say(&r.control, "ready %d", hub_port(r.children));
        else
            control_say(&r.control, "ready");
        struct aggregator *dragon = start_dragon_port(options);
        while (control_wait(&r.control, -1, take_line, &r))
            ;
        aggregator_stop(dragon);
    }
    wire_forwarder_destroy(r.forwarder);
    wire_link_destroy(r.link);
    wire_refresher_destroy(r.refresher);
    hub_destroy(r.children);
    wire_bulk_close(r.bulk);
    wire_bulk_close(r.from_children);
    if (r.loop)
        wire_loop_stop(r.loop);
    if (r.sources)
        sources_destroy(r.sources);
    control_close(&r.control);
    if (rc && e)
        *e = own;
    return rc;
}
