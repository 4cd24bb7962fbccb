// step.h - one srun or ssh of the placement, and the nodes behind it.
//
//                       ┌──▶ sonde node on n2       to all nodes:  "beat"
//   placement ──▶ srun ─┼──▶ sonde node on n3       to one:        "@n3 drop"
//                       └──▶ sonde node on n4       from one:      "2: sonde-node closed"
//
// ssh has one node behind it; srun makes a step of Slurm, with one task on each of its nodes. srun
// gives all of them the same input, so a line for one of several nodes begins with its name. It
// labels their output with the number of the task.
//
// Slurm ends a step on all its nodes if it cannot be launched on one of them. Therefore several
// nodes begin in two phases: each answers "here NAME", which also tells the number of its task.
// After the last answer all get "go". Before "go" a node has no data, and can be started again in
// another step.
//
// Slurm does not tell srun that a node has died before its own time-out (SlurmdTimeout). The
// placement notices it by the missing heartbeats.
#ifndef SONDE_LAUNCH_STEP_H
#define SONDE_LAUNCH_STEP_H

#include "launch/allocation.h"
#include "launch/channel.h"

#include <stdint.h>

enum {
    // Each line for one node goes to all nodes of its step: at a start 100 bytes for each of 256
    // nodes, 26 KB a node and 6.5 MB from srun.
    STEP_NODES_MAX = 256,
};

struct step {
    struct channel channel;
    const struct allocation *allocation;
    size_t slot;          // for the placement
    size_t *nodes, count; // owned: positions in the allocation
    ptrdiff_t *tasks;     // owned: the node of each task, as an index in `nodes`; -1: not known
    int64_t started_ns, here_ns; // here_ns: when the last node answered, or the start
    bool begun;                  // "go" was sent
    bool given_up;               // its nodes are in other steps, or have failed
    bool stuck;                  // a node was given up, and srun waits for it
};

// Reports of step_read. A node is a position in the allocation, or STEP_NO_NODE.
#define STEP_NO_NODE SIZE_MAX
struct step_events {
    void (*here)(void *user, size_t node);
    void (*answer)(void *user, size_t node, const char *line); // without NODE_PREFIX
    // A message for people; `own`: the node's, and not of srun or ssh about it.
    void (*word)(void *user, size_t node, bool own, const char *line);
    // Its process has ended; `how` is srun's message, "" for an orderly end. It may come twice.
    void (*ended)(void *user, size_t node, const char *how);
};

// Starts srun or ssh. `program` is `sonde` on the nodes; the allocation outlives the step. Returns
// 0, or a negative errno with a message.
int step_start(const struct allocation *allocation, const size_t *nodes, size_t count,
               const char *program, struct step **out, struct error *e);
// Kills the process if it was not reaped (channel.pid).
void step_free(struct step *s);

// Whether one input reaches several nodes.
static inline bool step_is_shared(const struct step *s)
{
    return s->count > 1;
}

// Adds whole lines for all nodes; step_send sends them.
void step_add(struct step *s, const char *text);
// Adds the line "KEY VALUE" for all nodes, or for one; without a value (NULL) it adds nothing.
void step_tell(struct step *s, const char *key, const char *value);
void step_tell_one(struct step *s, size_t node, const char *key, const char *value);

void step_send(struct step *s);

// Adds a line that ends a node while the others go on. A node of its own ends at once.
void step_end_one(struct step *s, size_t node);

// Reads answers or messages (channel_read) and reports them.
void step_read(struct step *s, bool words, const struct step_events *events, void *user);

#endif
