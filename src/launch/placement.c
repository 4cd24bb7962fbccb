#include "launch/placement.h"

#include "base/clock.h"
#include "launch/channel.h"
#include "launch/child.h"
#include "launch/job.h"
#include "launch/node.h"
#include "launch/node_input.h"

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
    REASON_MAX = 400,
};

struct node_process {
    struct placement *all;
    size_t index;
    enum node_state state;
    struct channel channel;
    int64_t started_ns, last_message_ns;
    char host[JOB_HOST_MAX + 1];
    char reason[REASON_MAX]; // the last message of the node, srun or ssh
    bool refused;            // the node reported "error"
    enum node_finish finish;
    char *recording; // path; owned; NULL: unknown
    bool stays;
    // owned: addresses of its parents, names of its children; NULL: not known yet
    char *parents, *children;
};

struct placement {
    struct placement_options o;
    struct node_process *nodes;
    size_t count;
    size_t starting, waiting, running;
    size_t next_waiting; // no node before it waits
    int epoll, timer;
    int64_t tick_ms, beat_ms, beaten_ns;
    char *start_text; // owned: the first lines that every node gets, without its hosts
    char *hosts;      // owned: the newest list
    char *url;        // owned; NULL: no HTTP server yet
};

// epoll's user data: the node and the kind of descriptor.
enum { FROM, WORDS, TO, KINDS };
static const uint64_t TIMER_KEY = UINT64_MAX;

// ---------------------------------------------------------------- descriptors

static void watch(struct placement *p, int fd, uint32_t events, size_t node, int kind)
{
    struct epoll_event event = {.events = events, .data.u64 = node * KINDS + (uint64_t)kind};
    epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &event);
}

// Polls the pipe for room only while text waits.
static void watch_room(struct node_process *n)
{
    struct channel *c = &n->channel;
    if (c->to < 0)
        return; // closing removed it from epoll
    struct epoll_event event = {.events = channel_waits(c) ? EPOLLOUT : 0,
                                .data.u64 = n->index * KINDS + TO};
    epoll_ctl(n->all->epoll, EPOLL_CTL_MOD, c->to, &event);
}

static void send_text(struct node_process *n, struct str text)
{
    channel_send(&n->channel, text);
    watch_room(n);
}

static void send_line(struct node_process *n, const char *key, const char *value)
{
    if (!value)
        return;
    channel_send(&n->channel, str_of(key));
    channel_send(&n->channel, STR(" "));
    channel_send(&n->channel, str_of(value));
    send_text(n, STR("\n"));
}

static void set_tick(struct placement *p)
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

// ---------------------------------------------------------------- messages of nodes

static void set_state(struct node_process *n, enum node_state state)
{
    struct placement *p = n->all;
    p->starting -= n->state == NODE_STARTING;
    p->waiting -= n->state == NODE_WAITING;
    n->state = state;
    p->starting += state == NODE_STARTING;
    p->waiting += state == NODE_WAITING;
    if (state == NODE_WAITING && n->index < p->next_waiting)
        p->next_waiting = n->index;
}

static void tell(struct node_process *n, enum node_event event, const char *words)
{
    n->all->o.on_event(n->all->o.user, n->index, event, words);
}

static bool takes(const char *line, const char *word, const char **rest)
{
    size_t size = strlen(word);
    if (strncmp(line, word, size) != 0 || (line[size] != ' ' && line[size] != 0))
        return false;
    *rest = line + size + (line[size] == ' ');
    return true;
}

// Returns the node with the same machine under another name. That machine's agent runs already, and
// its file is being written.
static const struct node_process *twin_of(const struct node_process *n)
{
    const struct placement *p = n->all;
    for (size_t i = 0; i < p->count; i++) {
        const struct node_process *other = &p->nodes[i];
        bool up = other->state == NODE_UP || other->state == NODE_SILENT;
        if (i != n->index && up && strcmp(other->host, n->host) == 0)
            return other;
    }
    return NULL;
}

static void on_ready(struct node_process *n, const char *host)
{
    snprintf(n->host, sizeof n->host, "%s", host);
    const struct node_process *twin = twin_of(n);
    char own[JOB_HOST_MAX + 1];
    job_host(own);
    if (twin || strcmp(own, n->host) == 0) {
        snprintf(n->reason, sizeof n->reason,
                 "it calls itself %s, as %s does: a name twice would mix up their data", n->host,
                 twin ? n->all->o.allocation->hosts.names[twin->index] : "this machine");
        n->refused = true;
        channel_finish(&n->channel);
        return;
    }
    set_state(n, NODE_UP);
    tell(n, NODE_EVENT_UP, "");
}

static void on_answer(void *user, const char *line)
{
    struct node_process *n = user;
    const char *rest;
    if (strncmp(line, NODE_PREFIX, strlen(NODE_PREFIX)) != 0)
        return; // output of a login shell
    line += strlen(NODE_PREFIX);
    n->last_message_ns = clock_monotonic_ns();
    if (n->state == NODE_SILENT) {
        set_state(n, NODE_UP);
        tell(n, NODE_EVENT_BACK, "");
    }
    if (takes(line, "ready", &rest) && n->state == NODE_STARTING && !n->refused) {
        on_ready(n, rest);
    } else if (takes(line, "error", &rest)) {
        n->refused = true;
        snprintf(n->reason, sizeof n->reason, "%s", rest);
    } else if (takes(line, "agent", &rest) || takes(line, "relay", &rest)) {
        char words[REASON_MAX];
        snprintf(words, sizeof words, "the %s", line);
        tell(n, NODE_EVENT_WORDS, words);
    } else if (takes(line, "hub", &rest)) {
        tell(n, NODE_EVENT_HUB, rest);
    } else if (takes(line, "kept", &rest) || takes(line, "stays", &rest)) {
        free(n->recording);
        n->recording = strdup(rest);
        n->stays = line[0] == 's';
        if (n->finish != NODE_NOT_FINISHING && n->state == NODE_UP)
            set_state(n, NODE_ENDING);
    } else if (takes(line, "closed", &rest) && n->finish == NODE_CLOSING) {
        n->finish = NODE_CLOSED;
    }
}

// Handles messages of srun, ssh or the node's programs for people. Login banners arrive here, too,
// so lines are passed on only if the caller asks for them. The last line is kept as the reason of a
// failure.
static void on_word(void *user, const char *line)
{
    struct node_process *n = user;
    if (!line[0])
        return;
    if (!n->refused)
        snprintf(n->reason, sizeof n->reason, "%s", line);
    if (n->all->o.verbose || strncmp(line, "sonde", strlen("sonde")) == 0)
        tell(n, NODE_EVENT_WORDS, line);
}

// ---------------------------------------------------------------- starting

static void fail(struct node_process *n, const char *words)
{
    set_state(n, NODE_FAILED);
    tell(n, NODE_EVENT_FAILED, words);
}

static void tell_collector_line(void *user, const char *collector_line)
{
    struct node_process *n = user;
    channel_send(&n->channel, STR(COLLECTOR_VERB " "));
    channel_send(&n->channel, str_of(collector_line));
    send_text(n, STR("\n"));
}

static void start_one(struct node_process *n)
{
    struct placement *p = n->all;
    struct error e;
    if (node_start(p->o.allocation, n->index, p->o.program, &n->channel, &e) < 0) {
        fail(n, e.text);
        return;
    }
    p->running++;
    set_state(n, NODE_STARTING);
    n->started_ns = clock_monotonic_ns();
    watch(p, n->channel.from, EPOLLIN, n->index, FROM);
    watch(p, n->channel.words, EPOLLIN, n->index, WORDS);
    watch(p, n->channel.to, 0, n->index, TO);
    channel_send(&n->channel, str_of(p->start_text));
    channel_send(&n->channel, STR("name "));
    channel_send(&n->channel, str_of(p->o.allocation->hosts.names[n->index]));
    channel_send(&n->channel, STR("\n"));
    send_line(n, "children", n->children); // first, because it changes the relay
    send_line(n, "parent", n->parents);
    if (p->hosts) {
        channel_send(&n->channel, STR("hosts "));
        channel_send(&n->channel, str_of(p->hosts));
        channel_send(&n->channel, STR("\n"));
    }
    if (p->url)
        send_line(n, "url", p->url);
    collector_requests_tell(p->o.collectors, tell_collector_line, n);
    send_text(n, STR("go\n"));
}

static void launch_waiting(struct placement *p)
{
    for (; p->waiting > 0 && p->starting < PLACEMENT_STARTING_MAX && p->next_waiting < p->count;
         p->next_waiting++) {
        struct node_process *n = &p->nodes[p->next_waiting];
        if (n->state == NODE_WAITING)
            start_one(n);
    }
    set_tick(p);
}

static void set_hosts(struct placement *p, const char *hosts)
{
    char *copy = strdup(hosts);
    if (!copy)
        return;
    free(p->hosts);
    p->hosts = copy;
}

void placement_start(struct placement *p, size_t node, const char *hosts)
{
    struct node_process *n = &p->nodes[node];
    if (n->state != NODE_IDLE)
        return;
    set_hosts(p, hosts);
    set_state(n, NODE_WAITING);
    launch_waiting(p);
}

void placement_tell_hosts(struct placement *p, const char *hosts)
{
    set_hosts(p, hosts);
    for (size_t i = 0; i < p->count; i++) {
        struct node_process *n = &p->nodes[i];
        if (n->state != NODE_UP && n->state != NODE_SILENT)
            continue;
        channel_send(&n->channel, STR("hosts "));
        channel_send(&n->channel, str_of(hosts));
        send_text(n, STR("\n"));
    }
}

void placement_tell_url(struct placement *p, const char *url)
{
    char *copy = p->url && strcmp(p->url, url) == 0 ? NULL : strdup(url);
    if (!copy)
        return;
    free(p->url);
    p->url = copy;
    for (size_t i = 0; i < p->count; i++)
        if (p->nodes[i].state == NODE_STARTING || p->nodes[i].state == NODE_UP ||
            p->nodes[i].state == NODE_SILENT)
            send_line(&p->nodes[i], "url", url);
}

void placement_tell_collector(struct placement *p, const char *collector_line)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->nodes[i].state == NODE_STARTING || p->nodes[i].state == NODE_UP ||
            p->nodes[i].state == NODE_SILENT)
            tell_collector_line(&p->nodes[i], collector_line);
}

// Keeps the value for nodes that start later, and sends it to a running node.
static void tell_and_keep(struct node_process *n, char **kept, const char *key, const char *value)
{
    char *copy = *kept && strcmp(*kept, value) == 0 ? NULL : strdup(value);
    if (!copy)
        return;
    free(*kept);
    *kept = copy;
    if (n->state == NODE_STARTING || n->state == NODE_UP || n->state == NODE_SILENT)
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

bool placement_reaped(struct placement *p, pid_t pid, int status)
{
    for (size_t i = 0; i < p->count; i++) {
        struct node_process *n = &p->nodes[i];
        if (n->channel.pid != pid)
            continue;
        channel_read(&n->channel, true, on_word, n); // reads its last messages
        channel_read(&n->channel, false, on_answer, n);
        channel_close(&n->channel);
        p->running--;
        if (!n->reason[0])
            child_status_text(status, n->reason, sizeof n->reason);
        if (n->state == NODE_STARTING) {
            fail(n, n->reason);
        } else if (n->state == NODE_UP || n->state == NODE_SILENT) {
            set_state(n, NODE_LOST);
            tell(n, NODE_EVENT_LOST, n->reason);
        } else if (n->state == NODE_ENDING) {
            set_state(n, NODE_ENDED);
        }
        launch_waiting(p);
        return true;
    }
    return false;
}

bool placement_owns(const struct placement *p, pid_t pid)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->nodes[i].channel.pid == pid)
            return true;
    }
    return false;
}

static void give_up(struct node_process *n)
{
    char words[REASON_MAX + 64];
    snprintf(words, sizeof words, "it was not ready within %d s%s%s", PLACEMENT_UP_MS / 1000,
             n->reason[0] ? ": " : "", n->reason);
    fail(n, words);
    channel_finish(&n->channel);   // if the node starts after all, it ends at once
    kill(n->channel.pid, SIGTERM); // it holds no data yet that could be lost
}

static void tick(struct placement *p)
{
    int64_t now_ns = clock_monotonic_ns();
    bool beat = now_ns - p->beaten_ns >= p->beat_ms * NS_PER_MS;
    if (beat)
        p->beaten_ns = now_ns;
    for (size_t i = 0; i < p->count; i++) {
        struct node_process *n = &p->nodes[i];
        bool up = n->state == NODE_UP || n->state == NODE_SILENT;
        if (beat && up)
            send_text(n, STR("beat\n"));
        if (n->state == NODE_STARTING &&
            now_ns - n->started_ns > (int64_t)PLACEMENT_UP_MS * NS_PER_MS)
            give_up(n);
        if (n->state == NODE_UP && now_ns - n->last_message_ns > p->o.node_timeout_ms * NS_PER_MS) {
            char words[64];
            snprintf(words, sizeof words, "nothing was heard of it for %.3g s",
                     (double)p->o.node_timeout_ms / 1000);
            set_state(n, NODE_SILENT);
            tell(n, NODE_EVENT_SILENT, words);
        }
    }
    launch_waiting(p);
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
        struct node_process *n = &p->nodes[key / KINDS];
        if (key % KINDS == TO) {
            if (events[i].events & (EPOLLERR | EPOLLHUP))
                channel_finish(&n->channel); // nobody reads it any more
            channel_flush(&n->channel);
            watch_room(n);
        } else {
            bool words = key % KINDS == WORDS;
            channel_read(&n->channel, words, words ? on_word : on_answer, n);
        }
    }
    set_tick(p);
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
    send_text(n, STR("drop\n"));
    set_state(n, NODE_ENDING);
}

void placement_stop(struct placement *p, size_t node)
{
    struct node_process *n = &p->nodes[node];
    if (n->state == NODE_WAITING)
        set_state(n, NODE_IDLE);
    if (n->channel.pid > 0) {
        if (n->state == NODE_SILENT) // it does not receive our lines either, and will end by itself
            kill(n->channel.pid, SIGKILL);
        if (n->state != NODE_FAILED)
            set_state(n, NODE_ENDING);
        channel_finish(&n->channel);
    }
}

void placement_stop_all(struct placement *p)
{
    for (size_t i = 0; i < p->count; i++)
        placement_stop(p, i);
}

void placement_kill_all(struct placement *p)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->nodes[i].channel.pid > 0)
            kill(p->nodes[i].channel.pid, SIGKILL);
    }
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
        channel_none(&p->nodes[i].channel);
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
        if (p->nodes[i].channel.pid > 0)
            kill(p->nodes[i].channel.pid, SIGKILL);
        channel_close(&p->nodes[i].channel);
        free(p->nodes[i].recording);
        free(p->nodes[i].parents);
        free(p->nodes[i].children);
    }
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
