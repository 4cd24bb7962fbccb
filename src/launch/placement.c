#include "launch/placement_internal.h"

#include "base/clock.h"
#include "launch/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    TICK_MS = 250, // interval between checks while nodes start
    TICK_SLOW_MS = 1000,
    EVENTS_A_TURN = 64,
    BEATS_AN_ORPHAN = 4, // lines that a node gets while it waits for the launcher
};

// epoll's user data: the step and the kind of descriptor.
enum { FROM, WORDS, TO, KINDS };
static const uint64_t TIMER_KEY = UINT64_MAX;

// ---------------------------------------------------------------- descriptors

static void watch(struct placement *p, int fd, uint32_t events, size_t step, int kind)
{
    struct epoll_event event = {.events = events, .data.u64 = step * KINDS + (uint64_t)kind};
    epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &event);
}

void placement_watch(struct placement *p, const struct step *s)
{
    watch(p, s->channel.from, EPOLLIN, s->slot, FROM);
    watch(p, s->channel.words, EPOLLIN, s->slot, WORDS);
    watch(p, s->channel.to, 0, s->slot, TO);
}

// Polls the pipes for room only while text waits.
static void watch_room(struct placement *p, struct step *s)
{
    struct channel *c = &s->channel;
    if (c->to < 0)
        return; // closing removed it from epoll
    struct epoll_event event = {.events = channel_waits(c) ? EPOLLOUT : 0,
                                .data.u64 = s->slot * KINDS + TO};
    epoll_ctl(p->epoll, EPOLL_CTL_MOD, c->to, &event);
}

void placement_send(struct placement *p, struct step *s)
{
    step_send(s);
    watch_room(p, s);
}

void placement_end_one(struct node_process *n)
{
    step_end_one(n->step, n->index);
    placement_send(n->all, n->step);
}

static void send_line(struct node_process *n, const char *key, const char *value)
{
    if (!n->step)
        return;
    step_tell_one(n->step, n->index, key, value);
    placement_send(n->all, n->step);
}

static void send_to_all(struct placement *p, const char *key, const char *value)
{
    for (size_t i = 0; i < p->step_count; i++) {
        if (!p->steps[i] || p->steps[i]->given_up)
            continue;
        step_tell(p->steps[i], key, value);
        placement_send(p, p->steps[i]);
    }
}

void placement_set_tick(struct placement *p)
{
    int64_t ms = p->running + p->waiting == 0 ? 0 : p->starting ? TICK_MS : TICK_SLOW_MS;
    if (ms > p->beat_ms)
        ms = p->beat_ms;
    if (ms == p->tick_ms)
        return;
    p->tick_ms = ms;
    struct timespec every = {ms / 1000, (long)(ms % 1000) * NS_PER_MS};
    timerfd_settime(p->timer, 0, &(struct itimerspec){every, every}, NULL);
}

// ---------------------------------------------------------------- what nodes are told

static void set_hosts(struct placement *p, const char *hosts)
{
    char *copy = strdup(hosts);
    if (!copy)
        return;
    free(p->hosts);
    p->hosts = copy;
}

void placement_start(struct placement *p, const size_t *nodes, size_t count, const char *hosts)
{
    set_hosts(p, hosts);
    for (size_t i = 0; i < count; i++)
        if (p->nodes[nodes[i]].state == NODE_IDLE)
            placement_set_state(&p->nodes[nodes[i]], NODE_WAITING);
    placement_launch(p);
}

void placement_tell_hosts(struct placement *p, const char *hosts)
{
    set_hosts(p, hosts);
    send_to_all(p, "hosts", hosts);
}

void placement_tell_url(struct placement *p, const char *url)
{
    char *copy = p->url && strcmp(p->url, url) == 0 ? NULL : strdup(url);
    if (!copy)
        return;
    free(p->url);
    p->url = copy;
    send_to_all(p, "url", url);
}

void placement_tell_collector(struct placement *p, const char *collector_line)
{
    send_to_all(p, COLLECTOR_VERB, collector_line);
}

// Keeps the value for nodes that start later, and sends it to a running node.
static void tell_and_keep(struct node_process *n, char **kept, const char *key, const char *value)
{
    char *copy = *kept && strcmp(*kept, value) == 0 ? NULL : strdup(value);
    if (!copy)
        return;
    free(*kept);
    *kept = copy;
    send_line(n, key, value);
}

void placement_tell_parents(struct placement *p, size_t node, const char *parents)
{
    tell_and_keep(&p->nodes[node], &p->nodes[node].parents, "parent", parents);
}

void placement_tell_children(struct placement *p, size_t node, const char *children)
{
    tell_and_keep(&p->nodes[node], &p->nodes[node].children, "children", children);
}

// ---------------------------------------------------------------- events

static struct step *step_of(const struct placement *p, pid_t pid)
{
    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i] && p->steps[i]->channel.pid == pid)
            return p->steps[i];
    return NULL;
}

bool placement_reaped(struct placement *p, pid_t pid, int status)
{
    struct step *s = step_of(p, pid);
    if (!s)
        return false;
    placement_read(p, s, true); // its last messages
    placement_read(p, s, false);
    channel_close(&s->channel);
    char how[PLACEMENT_REASON_MAX];
    child_status_text(status, how, sizeof how);
    if (!s->given_up && !s->begun) {
        placement_start_again(p, s);
    } else if (!s->given_up) {
        p->running--;
        for (size_t i = 0; i < s->count; i++) {
            struct node_process *n = &p->nodes[s->nodes[i]];
            if (n->step == s)
                placement_node_ended(n, n->reason[0] ? "" : how);
        }
    }
    p->steps[s->slot] = NULL;
    step_free(s);
    placement_launch(p);
    return true;
}

bool placement_owns(const struct placement *p, pid_t pid)
{
    return step_of(p, pid) != NULL;
}

static void give_up(struct node_process *n)
{
    char words[PLACEMENT_REASON_MAX + 64];
    struct step *s = n->step;
    snprintf(words, sizeof words, "it was not ready within %d s%s%s", PLACEMENT_UP_MS / 1000,
             n->reason[0] ? ": " : "", n->reason);
    if (step_is_shared(s)) {
        placement_end_one(n); // if the node starts after all, it ends at once
    } else {
        n->step = NULL;
        placement_give_up(n->all, s);
    }
    placement_fail(n, words);
}

static void tick_step(struct placement *p, struct step *s, int64_t now_ns)
{
    if (!s->begun && !s->given_up &&
        (now_ns - s->here_ns > (int64_t)PLACEMENT_HERE_MS * NS_PER_MS ||
         now_ns - s->started_ns > (int64_t)PLACEMENT_UP_MS * NS_PER_MS))
        placement_start_again(p, s);
}

static void tick_node(struct node_process *n, int64_t now_ns)
{
    const struct placement *p = n->all;
    if (n->state == NODE_STARTING && n->step && n->step->begun &&
        n->spent_ns + now_ns - n->step->started_ns > (int64_t)PLACEMENT_UP_MS * NS_PER_MS)
        give_up(n);
    if (n->state == NODE_UP && now_ns - n->last_message_ns > p->o.node_timeout_ms * NS_PER_MS) {
        char words[64];
        snprintf(words, sizeof words, "nothing was heard of it for %.3g s",
                 (double)p->o.node_timeout_ms / 1000);
        placement_set_state(n, NODE_SILENT);
        placement_report(n, NODE_EVENT_SILENT, words);
    }
}

static void tick(struct placement *p)
{
    int64_t now_ns = clock_monotonic_ns();
    if (now_ns - p->beaten_ns >= p->o.node.orphan_ms / BEATS_AN_ORPHAN * NS_PER_MS) {
        p->beaten_ns = now_ns;
        send_to_all(p, "beat", "");
    }
    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i])
            tick_step(p, p->steps[i], now_ns);
    for (size_t i = 0; i < p->count; i++)
        tick_node(&p->nodes[i], now_ns);
    placement_launch(p);
}

void placement_turn(struct placement *p)
{
    struct epoll_event events[EVENTS_A_TURN];
    int count = epoll_wait(p->epoll, events, EVENTS_A_TURN, 0);
    for (int i = 0; i < count; i++) {
        uint64_t key = events[i].data.u64, ticks;
        if (key == TIMER_KEY) {
            if (read(p->timer, &ticks, sizeof ticks) > 0)
                tick(p);
            continue;
        }
        struct step *s = p->steps[key / KINDS];
        if (!s)
            continue;
        if (key % KINDS == TO) {
            if (events[i].events & (EPOLLERR | EPOLLHUP))
                channel_finish(&s->channel); // no process reads it now
            placement_send(p, s);
        } else {
            placement_read(p, s, key % KINDS == WORDS);
        }
    }
    placement_set_tick(p);
}

// ---------------------------------------------------------------- the end

void placement_finish(struct placement *p, size_t node, const char *mark)
{
    struct node_process *n = &p->nodes[node];
    if (n->state != NODE_UP) {
        placement_stop(p, node);
    } else if (n->finish == NODE_NOT_FINISHING) {
        n->finish = NODE_CLOSING;
        send_line(n, "finish", mark);
    }
}

enum node_finish placement_finishing(const struct placement *p, size_t node)
{
    const struct node_process *n = &p->nodes[node];
    return n->state == NODE_UP ? n->finish : NODE_NOT_FINISHING;
}

void placement_drop(struct placement *p, size_t node)
{
    struct node_process *n = &p->nodes[node];
    if (n->state != NODE_UP)
        return;
    send_line(n, "drop", "");
    placement_set_state(n, NODE_ENDING);
}

// srun waits for a node that has fallen silent or hangs, and would not end.
static void stop_waiting_for(struct node_process *n)
{
    if (step_is_shared(n->step)) {
        n->step->stuck = true;
        placement_leave_step(n);
        if (n->state == NODE_ENDING)
            placement_set_state(n, NODE_ENDED);
    } else if (n->state == NODE_ENDING) { // the node will end by itself
        kill(n->step->channel.pid, SIGKILL);
    }
}

static void stop(struct node_process *n, bool with_others)
{
    if (n->state == NODE_WAITING)
        placement_set_state(n, NODE_IDLE);
    if (!n->step)
        return;
    bool stuck = n->state == NODE_SILENT || n->state == NODE_FAILED;
    if (n->state != NODE_FAILED)
        placement_set_state(n, NODE_ENDING);
    if (!with_others)
        placement_end_one(n);
    if (stuck)
        stop_waiting_for(n);
}

void placement_stop(struct placement *p, size_t node)
{
    stop(&p->nodes[node], false);
}

void placement_stop_all(struct placement *p)
{
    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i])
            channel_finish(&p->steps[i]->channel);
    for (size_t i = 0; i < p->count; i++)
        stop(&p->nodes[i], true);
}

void placement_kill_all(struct placement *p)
{
    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i] && p->steps[i]->channel.pid > 0)
            kill(p->steps[i]->channel.pid, SIGKILL);
}

// ---------------------------------------------------------------- create and destroy

int placement_create(const struct placement_options *options, struct placement **out,
                     struct error *e)
{
    *out = NULL;
    struct placement *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(e, -ENOMEM, "out of memory");
    p->o = *options;
    p->count = options->allocation->hosts.count;
    p->beat_ms = options->node_timeout_ms / 4 < PLACEMENT_BEAT_MAX_MS ? options->node_timeout_ms / 4
                                                                      : PLACEMENT_BEAT_MAX_MS;
    if (p->beat_ms < 1)
        p->beat_ms = 1;
    p->nodes = calloc(p->count, sizeof *p->nodes);
    p->o.node.beat_ms = p->beat_ms;
    p->o.node.orphan_ms = options->node_timeout_ms * PLACEMENT_ORPHAN_FACTOR;
    if (p->o.node.orphan_ms < PLACEMENT_ORPHAN_MIN_MS)
        p->o.node.orphan_ms = PLACEMENT_ORPHAN_MIN_MS;
    p->start_text = node_start_text(&p->o.node);
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = TIMER_KEY};
    int status = 0;
    if (!p->nodes || !p->start_text)
        status = error_set(e, -ENOMEM, "out of memory");
    else if (p->epoll < 0 || p->timer < 0 ||
             epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->timer, &event) < 0)
        status = error_set(e, -errno, "cannot watch the other nodes: %s", strerror(errno));
    for (size_t i = 0; p->nodes && i < p->count; i++) {
        p->nodes[i].all = p;
        p->nodes[i].index = i;
        p->nodes[i].alone = options->allocation->kind != ALLOCATION_SLURM;
    }
    if (status < 0) {
        placement_destroy(p);
        return status;
    }
    *out = p;
    return 0;
}

void placement_destroy(struct placement *p)
{
    if (!p)
        return;
    for (size_t i = 0; p->nodes && i < p->count; i++) {
        free(p->nodes[i].recording);
        free(p->nodes[i].parents);
        free(p->nodes[i].children);
    }
    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i])
            step_free(p->steps[i]);
    free(p->steps);
    if (p->epoll >= 0)
        close(p->epoll);
    if (p->timer >= 0)
        close(p->timer);
    free(p->nodes);
    free(p->start_text);
    free(p->hosts);
    free(p->url);
    free(p);
}

int placement_fd(const struct placement *p)
{
    return p->epoll;
}

size_t placement_starting(const struct placement *p)
{
    return p->starting + p->waiting;
}

size_t placement_running(const struct placement *p)
{
    return p->running;
}

enum node_state placement_state(const struct placement *p, size_t node)
{
    return p->nodes[node].state;
}

int64_t placement_heard_ns(const struct placement *p, size_t node)
{
    return p->nodes[node].last_message_ns;
}

const char *placement_host(const struct placement *p, size_t node)
{
    return p->nodes[node].host;
}

const char *placement_recording(const struct placement *p, size_t node, bool *stays)
{
    *stays = p->nodes[node].stays;
    return p->nodes[node].recording ? p->nodes[node].recording : "";
}
