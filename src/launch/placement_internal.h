// placement_internal.h - the parts of placement.c.
//
//   placement_start.c     starts waiting nodes in steps, and again in others
//   placement_reports.c   what nodes, srun and ssh report, and what follows from it
//   placement.c           the rest: descriptors, lines to nodes, clock, end
#ifndef SONDE_LAUNCH_PLACEMENT_INTERNAL_H
#define SONDE_LAUNCH_PLACEMENT_INTERNAL_H

#include "launch/job.h"
#include "launch/placement.h"
#include "launch/step.h"

enum {
    PLACEMENT_REASON_MAX = 400,
};

struct node_process {
    struct placement *all;
    size_t index;
    enum node_state state;
    struct step *step; // its srun or ssh; NULL: not started, or its process has ended
    bool here;         // it has answered that it runs
    bool alone;        // it starts in a step of its own
    int together;      // starts together with others
    int64_t spent_ns;  // in former starts
    int64_t last_message_ns;
    char host[JOB_HOST_MAX + 1];
    char reason[PLACEMENT_REASON_MAX]; // the last message of the node, srun or ssh
    bool said;                         // the reason is a message of the node itself
    bool refused;                      // the node reported "error"
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
    struct step **steps; // owned; NULL: it has ended
    size_t step_count;
    size_t starting, waiting, running;
    size_t starting_alone, waiting_alone; // of them
    size_t next_waiting;                  // no node before it waits
    int epoll, timer;
    int64_t tick_ms, beat_ms, beaten_ns;
    char *start_text; // owned: the first lines that every node gets, without its hosts
    char *hosts;      // owned: the newest list
    char *url;        // owned; NULL: no HTTP server yet
};

void placement_set_state(struct node_process *n, enum node_state state);
// Reports an event to the launcher, which may call functions of placement.h meanwhile.
void placement_report(struct node_process *n, enum node_event event, const char *words);
void placement_fail(struct node_process *n, const char *words);

// Starts waiting nodes.
void placement_launch(struct placement *p);
// Begins a step whose nodes have all answered. Starts them again as soon as the others have ended.
void placement_check_step(struct placement *p, struct step *s);
// Ends a step whose nodes hold no data yet. Therefore the launcher does not wait for the end of
// srun, which takes long if Slurm hangs on a node.
void placement_give_up(struct placement *p, struct step *s);
// Starts the nodes of a step that is not complete in other steps.
void placement_start_again(struct placement *p, struct step *s);

// Reads a step's answers or its messages.
void placement_read(struct placement *p, struct step *s, bool words);
// The node's process has ended; `how` may be "".
void placement_node_ended(struct node_process *n, const char *how);
// The node's process has ended, or is no longer waited for.
void placement_leave_step(struct node_process *n);

void placement_watch(struct placement *p, const struct step *s);
void placement_send(struct placement *p, struct step *s); // the lines that were added to the step
void placement_end_one(struct node_process *n);
void placement_set_tick(struct placement *p);

#endif
