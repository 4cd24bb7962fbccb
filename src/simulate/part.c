#include "simulate/part.h"

#include "aggregator/control.h"
#include "ask/questions.h"
#include "base/clock.h"
#include "wire/link.h"
#include "wire/tree.h"

#include <errno.h>
#include <stdlib.h>

enum { LOOK_MS = 10 };
static const int64_t PATIENCE_NS = 30 * INT64_C(1000000000);

struct member {
    struct simulated_node node;
    struct hub *children; // NULL: none
    struct wire_link *link;
};

struct part {
    const struct part_options *o;
    struct control control;
    struct wire_loop *loop;
    struct wire_settings settings;
    struct member *members;
    size_t count, open; // open: number of connected nodes, which are the first ones
    double *row;
};

static int make_nodes(struct part *p, struct error *e)
{
    const struct part_options *o = p->o;
    // Node 0 belongs to the aggregator's process.
    for (size_t i = 1 + o->number; i < o->nodes; i += o->parts) {
        int rc = simulated_node_make(&p->members[p->count].node, o->folder, i, o->metrics, o->job,
                                     o->interval_ns, o->start_ns, o->now_ns, e);
        if (rc)
            return rc;
        p->count++;
        atomic_fetch_add(&o->shared->filled, 1);
        if (!control_wait(&p->control, 0, NULL, NULL))
            return error_set(e, -ECANCELED, "the simulation ends");
    }
    return 0;
}

// Makes a relay's own hub, which reports missing children.
static int make_hub(struct part *p, struct member *m, struct error *e)
{
    const struct part_options *o = p->o;
    struct hub_options hub = {.settings = p->settings,
                              .address = "127.0.0.1",
                              .host = str_of(m->node.host),
                              .relay = true,
                              .strangers_max = (unsigned)o->fanout};
    if (!wire_tree_is_relay(m->node.number, o->nodes, o->fanout))
        return 0;
    int rc = hub_create(p->loop, &hub, &m->children, e);
    size_t first = m->node.number * o->fanout + 1;
    for (size_t i = first; i < first + o->fanout && i < o->nodes && rc == 0; i++) {
        char host[SIMULATED_HOST_MAX];
        simulated_host(i, host);
        rc = hub_expect(m->children, str_of(host), STR(""));
        if (rc)
            error_set(e, rc, "cannot expect the node %s: %s", host, strerror(-rc));
    }
    if (rc == 0)
        atomic_store(&o->shared->ports[m->node.number], (unsigned short)hub_port(m->children));
    return rc;
}

// Waits until the port of node `number` is known, and returns it. Returns 0 when the part must end.
static int port_of(struct part *p, size_t number)
{
    const struct part_shared *s = p->o->shared;
    for (;;) {
        int port = number ? atomic_load(&s->ports[number]) : atomic_load(&s->hub_port);
        if (port || !control_wait(&p->control, LOOK_MS, NULL, NULL))
            return port;
    }
}

static int make_link(struct part *p, struct member *m, struct error *e)
{
    size_t parent = wire_tree_parent(m->node.number, p->o->fanout);
    int port = port_of(p, parent), root = port_of(p, 0);
    if (!port || !root)
        return error_set(e, -ECANCELED, "the simulation ends");
    struct wire_parent parents[] = {{"127.0.0.1", port}, {"127.0.0.1", root}};
    struct wire_link_options link = {.settings = p->settings,
                                     .parent_host = parents[0].host,
                                     .parent_port = port,
                                     .host = str_of(m->node.host),
                                     .session = (uint64_t)clock_realtime_ns(),
                                     .source = simulated_node_source(&m->node),
                                     .children = m->children};
    int rc = wire_link_create(p->loop, &link, &m->link, e);
    if (rc == 0 && parent)
        rc = wire_link_set_parents(m->link, parents, 2);
    return rc;
}

// Waits until all but `most` of the first `count` links are connected, at most for PATIENCE_NS;
// slower links connect later. Returns false when the part must end.
static bool wait_for_links(struct part *p, size_t count, size_t most)
{
    int64_t until_ns = clock_monotonic_ns() + PATIENCE_NS;
    for (;;) {
        struct wire_link_stats s = {.state = WIRE_LINK_OPEN};
        while (p->open < count && s.state == WIRE_LINK_OPEN) {
            wire_link_get_stats(p->members[p->open].link, &s);
            if (s.state == WIRE_LINK_OPEN) {
                p->open++;
                atomic_fetch_add(&p->o->shared->open, 1);
            }
        }
        if (count - p->open <= most || clock_monotonic_ns() > until_ns)
            return true;
        if (!control_wait(&p->control, LOOK_MS, NULL, NULL))
            return false;
    }
}

static int start(struct part *p, struct error *e)
{
    const struct part_options *o = p->o;
    size_t share = o->nodes / o->parts + 1;
    p->settings = (struct wire_settings){.questions = &ask_questions, .job = str_of(o->job)};
    memcpy(p->settings.key, o->key, sizeof p->settings.key);
    p->members = calloc(share, sizeof *p->members);
    p->row = calloc(o->metrics->count, sizeof *p->row);
    int rc = p->members && p->row ? make_nodes(p, e)
                                  : error_set(e, -ENOMEM, "no memory for so many nodes");
    if (rc == 0)
        rc = wire_loop_start(&p->loop, e);
    for (size_t i = 0; i < p->count && rc == 0; i++)
        rc = make_hub(p, &p->members[i], e);
    for (size_t i = 0; i < p->count && rc == 0; i++) {
        rc = make_link(p, &p->members[i], e);
        // Do not start more links at once than a hub accepts before they have proved the key.
        if (rc == 0 && !wait_for_links(p, i + 1, HUB_STRANGERS_DEFAULT / 4 / o->parts))
            rc = error_set(e, -ECANCELED, "the simulation ends");
    }
    if (rc == 0 && !wait_for_links(p, p->count, 0))
        rc = error_set(e, -ECANCELED, "the simulation ends");
    return rc;
}

static void sample(struct part *p)
{
    const struct part_options *o = p->o;
    int64_t next_ns = (o->now_ns + o->interval_ns - 1) / o->interval_ns * o->interval_ns;
    for (;;) {
        int64_t now_ns = clock_realtime_ns();
        if (now_ns < next_ns) {
            if (!control_wait(&p->control, (int)((next_ns - now_ns) / NS_PER_MS) + 1, NULL, NULL))
                return;
            continue;
        }
        for (size_t i = 0; i < p->count; i++)
            simulated_node_sample(&p->members[i].node, o->metrics, o->start_ns, next_ns, p->row);
        // A part that is late skips samples.
        next_ns += o->interval_ns;
        if (now_ns - next_ns > NS_PER_S)
            next_ns = (now_ns / o->interval_ns + 1) * o->interval_ns;
    }
}

int part_run(const struct part_options *o)
{
    struct part p = {.o = o};
    struct error e = {0};
    int rc = control_open(&p.control, o->control_fd, &e);
    if (rc == 0)
        rc = start(&p, &e);
    if (rc) {
        control_say(&p.control, "error %s", e.text);
    } else {
        control_say(&p.control, "ready");
        sample(&p);
    }
    for (size_t i = 0; i < p.count; i++)
        wire_link_destroy(p.members[i].link);
    for (size_t i = 0; i < p.count; i++)
        hub_destroy(p.members[i].children);
    wire_loop_stop(p.loop);
    for (size_t i = 0; i < p.count; i++)
        simulated_node_remove(&p.members[i].node);
    free(p.members);
    free(p.row);
    control_close(&p.control);
    return rc ? 1 : 0;
}
