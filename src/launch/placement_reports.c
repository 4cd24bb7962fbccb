#include "launch/placement_internal.h"

#include "base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

// ---------------------------------------------------------------- answers of nodes

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
        placement_end_one(n);
        return;
    }
    placement_set_state(n, NODE_UP);
    placement_report(n, NODE_EVENT_UP, "");
}

static void take_answer(struct node_process *n, const char *line)
{
    const char *rest;
    n->last_message_ns = clock_monotonic_ns();
    if (n->state == NODE_SILENT) {
        placement_set_state(n, NODE_UP);
        placement_report(n, NODE_EVENT_BACK, "");
    }
    if (takes(line, "ready", &rest) && n->state == NODE_STARTING && !n->refused) {
        on_ready(n, rest);
    } else if (takes(line, "error", &rest)) {
        n->refused = true;
        snprintf(n->reason, sizeof n->reason, "%s", rest);
    } else if (takes(line, "agent", &rest) || takes(line, "relay", &rest)) {
        char words[PLACEMENT_REASON_MAX];
        snprintf(words, sizeof words, "the %s", line);
        placement_report(n, NODE_EVENT_WORDS, words);
    } else if (takes(line, "hub", &rest)) {
        placement_report(n, NODE_EVENT_HUB, rest);
    } else if (takes(line, "kept", &rest) || takes(line, "stays", &rest)) {
        free(n->recording);
        n->recording = strdup(rest);
        n->stays = line[0] == 's';
        if (n->finish != NODE_NOT_FINISHING && n->state == NODE_UP)
            placement_set_state(n, NODE_ENDING);
    } else if (takes(line, "closed", &rest) && n->finish == NODE_CLOSING) {
        n->finish = NODE_CLOSED;
    }
}

// ---------------------------------------------------------------- reports of steps

// Whether srun or ssh has no node any more that it may wait for.
static bool is_deserted(const struct placement *p, const struct step *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (p->nodes[s->nodes[i]].step == s)
            return false;
    return true;
}

void placement_leave_step(struct node_process *n)
{
    struct step *s = n->step;
    n->step = NULL;
    if (s->stuck && is_deserted(n->all, s) && s->channel.pid > 0)
        kill(s->channel.pid, SIGKILL);
}

// Keeps the last message as the reason of a failure. While a node starts, its own message stays
// when srun reports the node.
static void keep_reason(struct node_process *n, bool own, const char *words)
{
    if (n->refused || (n->state == NODE_STARTING && n->said && !own))
        return;
    snprintf(n->reason, sizeof n->reason, "%s", words);
    n->said = own;
}

void placement_node_ended(struct node_process *n, const char *how)
{
    struct step *s = n->step;
    placement_leave_step(n);
    if (how[0])
        keep_reason(n, false, how);
    else if (!n->reason[0])
        keep_reason(n, false, "its process has ended");
    if (n->state == NODE_STARTING && s->begun) {
        placement_fail(n, n->reason);
    } else if (n->state == NODE_STARTING) {
        placement_check_step(n->all, s);
    } else if (n->state == NODE_UP || n->state == NODE_SILENT) {
        placement_set_state(n, NODE_LOST);
        placement_report(n, NODE_EVENT_LOST, n->reason);
    } else if (n->state == NODE_ENDING) {
        placement_set_state(n, NODE_ENDED);
    }
}

// What step_read reports, and of which step.
struct report {
    struct placement *all;
    struct step *step;
};

// Returns NULL for a node that the step no longer has.
static struct node_process *reported(const struct report *r, size_t node)
{
    struct node_process *n = node == STEP_NO_NODE ? NULL : &r->all->nodes[node];
    return n && n->step == r->step ? n : NULL;
}

static void report_here(void *user, size_t node)
{
    struct node_process *n = reported(user, node);
    if (!n)
        return;
    n->here = true;
    placement_check_step(n->all, n->step);
}

static void report_answer(void *user, size_t node, const char *line)
{
    struct node_process *n = reported(user, node);
    if (n)
        take_answer(n, line);
}

// Handles messages of srun, ssh or the node's programs for people. Login banners arrive here, too,
// so lines are passed on only if the caller asks for them.
static void report_word(void *user, size_t node, bool own, const char *line)
{
    const struct report *r = user;
    struct node_process *n = reported(user, node);
    if (n)
        keep_reason(n, own, line);
    if (r->all->o.verbose || (n && strncmp(line, "sonde", strlen("sonde")) == 0))
        placement_report(n ? n : &r->all->nodes[r->step->nodes[0]], NODE_EVENT_WORDS, line);
}

static void report_end(void *user, size_t node, const char *how)
{
    struct node_process *n = reported(user, node);
    if (n)
        placement_node_ended(n, how);
}

void placement_read(struct placement *p, struct step *s, bool words)
{
    static const struct step_events events = {report_here, report_answer, report_word, report_end};
    step_read(s, words, &events, &(struct report){p, s});
}
