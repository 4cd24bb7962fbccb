// placement.h - the agents of the other nodes: starts them in parallel, detects lost ones, ends
// them.
//
//   launcher ──lines──▶ srun (a step for up to STEP_NODES_MAX nodes) or ssh (one for each host)
//                          └──▶ sonde node ──▶ sonde agent, sonde relay
//
// Nodes of Slurm start together in one step (step.h). If it cannot be launched on a node, or no
// further node answers for PLACEMENT_HERE_MS, its nodes start again: those that have answered in
// another step, once, and each of the others in a step of its own, which also tells its reason. At
// most PLACEMENT_STARTING_MAX nodes start alone at a time.
//
//   IDLE ─start─▶ WAITING ─▶ STARTING ──"ready"──▶ UP ──silent──▶ SILENT ──a beat──▶ UP
//                               │                   └─────┬────────┘
//                               │ error, end, time-out    │ its process ends
//                               ▼                         ▼
//                             FAILED                     LOST             stop: ─▶ ENDING ─▶ ENDED
//
// All events come through one descriptor. The launcher's loop watches it and hands over reaped
// children; a callback reports the events to the launcher.
#ifndef SONDE_LAUNCH_PLACEMENT_H
#define SONDE_LAUNCH_PLACEMENT_H

#include "launch/allocation.h"
#include "launch/collector_requests.h"
#include "launch/folder.h"
#include "launch/node_start.h"

#include <stdint.h>
#include <sys/types.h>

enum {
    PLACEMENT_STARTING_MAX = 64,
    // from a node's first start to "ready": so a node that fails is named within 10 s
    PLACEMENT_UP_MS = 9000,
    PLACEMENT_HERE_MS = 3000, // for the next answer of a step's nodes, before its nodes start again
    PLACEMENT_TOGETHER_MAX = 2, // times that a node starts together with others
    // a node without a line from the launcher ends by itself after this many node time-outs…
    PLACEMENT_ORPHAN_FACTOR = 4,
    // …but not before this time, so that a partition of the network does not lose its data
    PLACEMENT_ORPHAN_MIN_MS = 60000,
    PLACEMENT_BEAT_MAX_MS = 5000,
};

enum node_state {
    NODE_IDLE,
    NODE_WAITING,
    NODE_STARTING,
    NODE_UP,
    NODE_SILENT,
    NODE_ENDING,
    NODE_ENDED,
    NODE_FAILED,
    NODE_LOST,
};

// The progress of a node that was told to finish.
enum node_finish {
    NODE_NOT_FINISHING, // never asked to, or done, or lost
    NODE_CLOSING,       // its agent is closing the file
    // the file is closed, and only on the node; its relay answers until the file is dropped or the
    // node stops
    NODE_CLOSED,
};

// Events for the launcher. `words` is the reason, for people.
enum node_event {
    NODE_EVENT_UP,
    NODE_EVENT_FAILED, // it did not start
    NODE_EVENT_LOST,   // it was running, and its process has ended
    NODE_EVENT_SILENT, // no line for the node time-out: lost until the next line arrives
    NODE_EVENT_BACK,   // a silent node sends lines again
    NODE_EVENT_WORDS,  // a message to pass on
    // words: the port at which its relay accepts other nodes; "0": the relay no longer does
    NODE_EVENT_HUB,
};

struct placement_options {
    const struct allocation *allocation; // outlives the placement
    const char *program;                 // `sonde` on the other nodes
    struct node_setup node;              // without its times, which this file sets
    // the collectors that a node starts with
    const struct collector_requests *collectors;
    int64_t node_timeout_ms;
    bool verbose; // pass on all messages of srun and ssh
    void (*on_event)(void *user, size_t node, enum node_event event, const char *words);
    void *user;
};

struct placement;

int placement_create(const struct placement_options *options, struct placement **out,
                     struct error *e);
// Closes everything, and kills processes that still run.
void placement_destroy(struct placement *p);

// A descriptor that is readable when there are events; then call placement_turn.
int placement_fd(const struct placement *p);
void placement_turn(struct placement *p);

// Takes a reaped child; true if it belongs to the placement.
bool placement_reaped(struct placement *p, pid_t pid, int status);

// Whether the process is a srun or ssh of the placement.
bool placement_owns(const struct placement *p, pid_t pid);

// Starts these nodes, except those that were started before. A node that starts alone waits until
// fewer than PLACEMENT_STARTING_MAX do. The launcher starts the agent on its own node itself.
// `hosts` (names, separated by commas) goes into the nodes' hostfiles; placement_tell_hosts sends a
// new list to all nodes.
void placement_start(struct placement *p, const size_t *nodes, size_t count, const char *hosts);
void placement_tell_hosts(struct placement *p, const char *hosts);

// Tells all nodes, also those that start later, the job's HTTP address.
void placement_tell_url(struct placement *p, const char *url);

// Tell a node its place in the tree, now and whenever it starts: the listeners that its relay
// connects to, the preferred one first ("ADDRESS PORT ADDRESS PORT"), and its children, separated
// by commas. Unchanged values are not sent again.
void placement_tell_parents(struct placement *p, size_t node, const char *parents);
void placement_tell_children(struct placement *p, size_t node, const char *children);

// placement_finish tells a running node to finish, any other to end. A node that finds the mark in
// the recording's folder shares that folder with the launcher. Idempotent. placement_drop: the
// launcher has the node's file.
void placement_finish(struct placement *p, size_t node, const char *mark);
enum node_finish placement_finishing(const struct placement *p, size_t node);
void placement_drop(struct placement *p, size_t node);
// Sends all running nodes a line of wire/collector_line.h, given without its verb.
void placement_tell_collector(struct placement *p, const char *collector_line);

// Asks a node, or all, to end. Idempotent.
void placement_stop(struct placement *p, size_t node);
void placement_stop_all(struct placement *p);
void placement_kill_all(struct placement *p); // sends SIGKILL to srun and ssh

size_t placement_starting(const struct placement *p); // nodes that wait or are starting
size_t placement_running(const struct placement *p);  // processes of srun and ssh
enum node_state placement_state(const struct placement *p, size_t node);

// Returns the time (CLOCK_MONOTONIC) of the last line from a node; 0 = never.
int64_t placement_heard_ns(const struct placement *p, size_t node);

// placement_host: the node's own name once it is up, "" before. placement_recording: the path of
// its recording after its end, "" if unknown. *stays: the recording is still in the node's run
// folder, and the reason follows the path.
const char *placement_host(const struct placement *p, size_t node);
const char *placement_recording(const struct placement *p, size_t node, bool *stays);

#endif
