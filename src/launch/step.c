#include "launch/step.h"

#include "base/clock.h"
#include "launch/node.h"
#include "launch/node_start.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

int step_start(const struct allocation *allocation, const size_t *nodes, size_t count,
               const char *program, struct step **out, struct error *e)
{
    *out = NULL;
    struct step *s = calloc(1, sizeof *s);
    if (!s)
        return error_set(e, -ENOMEM, "out of memory");
    channel_none(&s->channel);
    s->allocation = allocation;
    s->count = count;
    s->nodes = calloc(count, sizeof *s->nodes);
    s->tasks = calloc(count, sizeof *s->tasks);
    int status = s->nodes && s->tasks ? 0 : error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < count && status == 0; i++) {
        s->nodes[i] = nodes[i];
        s->tasks[i] = count == 1 ? 0 : -1;
    }
    if (status == 0)
        status = node_start(allocation, nodes, count, program, &s->channel, e);
    if (status < 0) {
        step_free(s);
        return status;
    }
    s->started_ns = s->here_ns = clock_monotonic_ns();
    *out = s;
    return 0;
}

void step_free(struct step *s)
{
    if (s->channel.pid > 0)
        kill(s->channel.pid, SIGKILL);
    channel_close(&s->channel);
    free(s->nodes);
    free(s->tasks);
    free(s);
}

// ---------------------------------------------------------------- lines to the nodes

void step_add(struct step *s, const char *text)
{
    channel_add(&s->channel, str_of(text));
}

void step_tell(struct step *s, const char *key, const char *value)
{
    if (!value)
        return;
    step_add(s, key);
    step_add(s, value[0] ? " " : "");
    step_add(s, value);
    step_add(s, "\n");
}

void step_tell_one(struct step *s, size_t node, const char *key, const char *value)
{
    if (!value)
        return;
    if (step_is_shared(s)) {
        step_add(s, "@");
        step_add(s, s->allocation->hosts.names[node]);
        step_add(s, " ");
    }
    step_tell(s, key, value);
}

void step_send(struct step *s)
{
    channel_flush(&s->channel);
}

void step_end_one(struct step *s, size_t node)
{
    if (step_is_shared(s))
        step_tell_one(s, node, "end", "");
    else
        channel_finish(&s->channel);
}

// ---------------------------------------------------------------- lines from the nodes

struct reading {
    struct step *step;
    const struct step_events *events;
    void *user;
};

// Returns the node of this name, as an index in `nodes`, or -1.
static ptrdiff_t find(const struct step *s, struct str name)
{
    ptrdiff_t position = hosts_find(&s->allocation->hosts, name);
    for (size_t i = 0; i < s->count && position >= 0; i++)
        if (s->nodes[i] == (size_t)position)
            return (ptrdiff_t)i;
    return -1;
}

// Removes srun's label ("2: ", padded with blanks) from the line. Returns the task, or -1 for a
// line without a label.
static ptrdiff_t cut_label(const struct step *s, const char **line)
{
    struct str rest = str_of(*line + strspn(*line, " ")), number = str_cut(&rest, ':');
    uint64_t task;
    if (!rest.size || rest.data[0] != ' ' || !str_to_u64(number, &task) || task >= s->count)
        return -1;
    *line = rest.data + 1;
    return (ptrdiff_t)task;
}

// Returns the task's node, or STEP_NO_NODE. ssh writes no labels.
static size_t node_of(const struct step *s, ptrdiff_t task)
{
    ptrdiff_t index = !step_is_shared(s) ? 0 : task >= 0 ? s->tasks[task] : -1;
    return index < 0 ? STEP_NO_NODE : s->nodes[index];
}

static void on_answer(void *user, const char *line)
{
    struct reading *r = user;
    struct step *s = r->step;
    ptrdiff_t task = cut_label(s, &line);
    size_t prefix = strlen(NODE_PREFIX);
    if (strncmp(line, NODE_PREFIX, prefix) != 0)
        return; // output of a login shell
    struct str rest = str_of(line + prefix);
    size_t node = node_of(s, task);
    if (step_is_shared(s) && str_eq(str_cut(&rest, ' '), STR("here")) && task >= 0) {
        s->tasks[task] = find(s, rest);
        node = node_of(s, task);
        s->here_ns = clock_monotonic_ns();
        if (node != STEP_NO_NODE)
            r->events->here(r->user, node);
    } else if (node != STEP_NO_NODE && strcmp(line + prefix, "ended") == 0) {
        r->events->ended(r->user, node, "");
    } else if (node != STEP_NO_NODE) {
        r->events->answer(r->user, node, line + prefix);
    }
}

// Reports the nodes that srun calls ended: "srun: error: n[2-3]: tasks 0-1: Killed". 1 is the exit
// code of a node that has reported an error and then its end, which may reach us later than srun's
// message.
static void look_for_ended(struct reading *r, const char *line)
{
    struct str rest = str_of(line);
    if (r->step->begun && str_ends(rest, STR("Exited with exit code 1")))
        return;
    if (!str_eq(str_cut(&rest, ' '), STR("srun:")) || !str_eq(str_cut(&rest, ' '), STR("error:")))
        return;
    ptrdiff_t end = str_find(rest, STR(": task"));
    struct hosts hosts = {0};
    struct error e;
    if (end > 0 && hostlist_parse(str_slice(rest, 0, (size_t)end), &hosts, &e) == 0) {
        for (size_t i = 0; i < hosts.count; i++) {
            ptrdiff_t index = find(r->step, str_of(hosts.names[i]));
            if (index >= 0)
                r->events->ended(r->user, r->step->nodes[index], line);
        }
    }
    hosts_free(&hosts);
}

static void on_word(void *user, const char *line)
{
    struct reading *r = user;
    ptrdiff_t task = cut_label(r->step, &line);
    if (!line[0])
        return;
    r->events->word(r->user, node_of(r->step, task), task >= 0, line);
    if (task < 0 && step_is_shared(r->step))
        look_for_ended(r, line);
}

void step_read(struct step *s, bool words, const struct step_events *events, void *user)
{
    channel_read(&s->channel, words, words ? on_word : on_answer,
                 &(struct reading){s, events, user});
}
