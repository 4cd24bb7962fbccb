#include "launch/placement_internal.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

void placement_set_state(struct node_process *n, enum node_state state)
{
    struct placement *p = n->all;
    p->starting -= n->state == NODE_STARTING;
    p->starting_alone -= n->state == NODE_STARTING && n->alone;
    p->waiting -= n->state == NODE_WAITING;
    p->waiting_alone -= n->state == NODE_WAITING && n->alone;
    n->state = state;
    p->starting += state == NODE_STARTING;
    p->starting_alone += state == NODE_STARTING && n->alone;
    p->waiting += state == NODE_WAITING;
    p->waiting_alone += state == NODE_WAITING && n->alone;
    if (state == NODE_WAITING && n->index < p->next_waiting)
        p->next_waiting = n->index;
}

void placement_report(struct node_process *n, enum node_event event, const char *words)
{
    n->all->o.on_event(n->all->o.user, n->index, event, words);
}

void placement_fail(struct node_process *n, const char *words)
{
    placement_set_state(n, NODE_FAILED);
    placement_report(n, NODE_EVENT_FAILED, words);
}

void placement_give_up(struct placement *p, struct step *s)
{
    s->given_up = true;
    p->running--;
    channel_finish(&s->channel); // ends the nodes that run
    if (s->channel.pid > 0)
        kill(s->channel.pid, SIGTERM);
}

void placement_start_again(struct placement *p, struct step *s)
{
    int64_t spent_ns = clock_monotonic_ns() - s->started_ns;
    placement_give_up(p, s);
    for (size_t i = 0; i < s->count; i++) {
        struct node_process *n = &p->nodes[s->nodes[i]];
        if (n->step && n->step != s)
            continue;
        n->step = NULL;
        if (n->state == NODE_ENDING)
            placement_set_state(n, NODE_ENDED);
        if (n->state != NODE_STARTING)
            continue;
        placement_set_state(n, NODE_IDLE);
        n->spent_ns += spent_ns;
        n->refused = n->said = false;
        n->reason[0] = 0;
        n->alone = !n->here || n->together >= PLACEMENT_TOGETHER_MAX;
        placement_set_state(n, NODE_WAITING);
    }
    placement_launch(p);
}

static void begin_step(struct placement *p, struct step *s)
{
    s->begun = true;
    step_tell(s, "go", "");
    placement_send(p, s);
}

void placement_check_step(struct placement *p, struct step *s)
{
    size_t here = 0, over = 0;
    if (s->begun || s->given_up)
        return;
    for (size_t i = 0; i < s->count; i++) {
        const struct node_process *n = &p->nodes[s->nodes[i]];
        over += n->step != s;
        here += n->step == s && (n->here || n->state != NODE_STARTING);
    }
    if (here == s->count)
        begin_step(p, s);
    else if (here + over == s->count)
        placement_start_again(p, s);
}

static void add_collector(void *user, const char *collector_line)
{
    step_tell(user, COLLECTOR_VERB, collector_line);
}

static void add_setup(struct placement *p, struct step *s)
{
    step_add(s, p->start_text);
    if (step_is_shared(s))
        step_tell(s, "name-in", NODE_START_NAME);
    else
        step_tell(s, "name", p->o.allocation->hosts.names[s->nodes[0]]);
    for (size_t i = 0; i < s->count; i++) {
        const struct node_process *n = &p->nodes[s->nodes[i]];
        step_tell_one(s, n->index, "children", n->children); // first, because it changes the relay
        step_tell_one(s, n->index, "parent", n->parents);
    }
    step_tell(s, "hosts", p->hosts);
    step_tell(s, "url", p->url);
    collector_requests_tell(p->o.collectors, add_collector, s);
}

// Makes a place for a step. Places are not used again: while a child is between fork and exec, it
// has copies of the descriptors, so epoll may report those of an ended step. Returns false without
// memory.
static bool make_slot(struct placement *p)
{
    struct step **steps = realloc(p->steps, (p->step_count + 1) * sizeof *steps);
    if (!steps)
        return false;
    p->steps = steps;
    p->steps[p->step_count++] = NULL;
    return true;
}

static void start_step(struct placement *p, const size_t *nodes, size_t count)
{
    struct error e;
    struct step *s = NULL;
    int status = make_slot(p) ? step_start(p->o.allocation, nodes, count, p->o.program, &s, &e)
                              : error_set(&e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        struct node_process *n = &p->nodes[nodes[i]];
        placement_set_state(n, NODE_STARTING);
        n->step = s;
        n->here = false;
        n->together += count > 1;
    }
    for (size_t i = 0; i < count && status < 0; i++)
        placement_fail(&p->nodes[nodes[i]], e.text);
    if (status < 0)
        return;
    s->slot = p->step_count - 1;
    p->steps[s->slot] = s;
    p->running++;
    placement_watch(p, s);
    add_setup(p, s);
    if (step_is_shared(s))
        placement_send(p, s);
    else
        begin_step(p, s);
}

void placement_launch(struct placement *p)
{
    while (p->waiting > p->waiting_alone) {
        size_t nodes[STEP_NODES_MAX], count = 0;
        for (size_t i = p->next_waiting; i < p->count && count < STEP_NODES_MAX; i++)
            if (p->nodes[i].state == NODE_WAITING && !p->nodes[i].alone)
                nodes[count++] = i;
        start_step(p, nodes, count);
    }
    for (;
         p->waiting > 0 && p->starting_alone < PLACEMENT_STARTING_MAX && p->next_waiting < p->count;
         p->next_waiting++) {
        size_t node = p->next_waiting;
        if (p->nodes[node].state == NODE_WAITING)
            start_step(p, &node, 1);
    }
    placement_set_tick(p);
}
