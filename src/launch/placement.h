// placement.h - the agents of the other nodes: brings them up side by side, notices which are lost,
// ends them.
//
//   launcher ──lines──▶ srun, one step a node, or ssh, one a host ──▶ sonde node ──▶ sonde agent, sonde relay
//
// One step a node, because Slurm ends a step on all its nodes when it cannot be launched on one of
// them. On a cluster of three, three steps at once take as long as one step of three tasks (70 ms);
// each further one costs about 20 ms, so at most PLACEMENT_STARTING_MAX are being started at a
// time.
//
//   IDLE ─start─▶ WAITING ─▶ STARTING ──"ready"──▶ UP ──silent──▶ SILENT ──a beat──▶ UP
//                               │                   └─────┬────────┘
//                               │ error, end, time-out    │ its process ends
//                               ▼                         ▼
//                             FAILED                     LOST             stop: ─▶ ENDING ─▶ ENDED
//
// Everything that happens comes through one descriptor; the launcher's loop watches it, hands over
// reaped children, and is told by a callback.
#ifndef SONDE_LAUNCH_PLACEMENT_H
#define SONDE_LAUNCH_PLACEMENT_H

#include "launch/allocation.h"
#include "launch/folder.h"
#include "launch/node_start.h"
#include "launch/wanted.h"

#include <stdint.h>
#include <sys/types.h>

enum {
    PLACEMENT_STARTING_MAX = 64,
    PLACEMENT_UP_MS = 9000, // from its start to "ready"; named within 10 s
    // times the node time-out without a word from us, and a node ends by itself…
    PLACEMENT_ORPHAN_FACTOR = 4,
    PLACEMENT_ORPHAN_MIN_MS = 60000, // …but not before this: a partition shall not cost its data
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

// What a node that was told to finish has done so far.
enum node_finish {
    NODE_NOT_FINISHING, // or through, or lost
    NODE_CLOSING,       // its agent closes the file
    // and that is on the node alone: its relay still answers, until it is dropped or stopped
    NODE_CLOSED,
};

// What the launcher is told. `words` is the reason, for people.
enum node_event {
    NODE_EVENT_UP,
    NODE_EVENT_FAILED, // it did not come up
    NODE_EVENT_LOST,   // it was up, and its process has ended
    NODE_EVENT_SILENT, // nothing was heard for the node time-out: lost, as long as nothing is heard
    NODE_EVENT_BACK,   // heard again
    NODE_EVENT_WORDS,  // something to pass on
    NODE_EVENT_HUB,    // words: the port on which its relay takes in other nodes; "0": no more
};

struct placement_options {
    const struct allocation *allocation; // outlives the placement
    const char *program;                 // `sonde` on the other nodes
    struct node_setup node;              // without its times, which placement sets
    // collectors that a node is told when it is started
    const struct wanted *wanted;
    int64_t node_timeout_ms;
    bool verbose; // pass on all that srun and ssh say
    void (*on_event)(void *user, size_t node, enum node_event event, const char *words);
    void *user;
};

struct placement;

int placement_create(const struct placement_options *options, struct placement **out,
                     struct error *e);
// Closes everything; what still runs is killed.
void placement_destroy(struct placement *p);

// Readable when there is something to do; then call placement_turn.
int placement_fd(const struct placement *p);
void placement_turn(struct placement *p);

// A child was reaped; true when it was one of the placement's.
bool placement_reaped(struct placement *p, pid_t pid, int status);

// Whether a process is a srun or ssh of the placement's.
bool placement_owns(const struct placement *p, pid_t pid);

// Brings a node up, as soon as fewer than PLACEMENT_STARTING_MAX are being started. Node 0 is the
// launcher's own affair where it runs on it. `hosts` (names, separated by commas) goes into the
// node's hostfile; placement_tell_hosts sends another to all that are up.
void placement_start(struct placement *p, size_t node, const char *hosts);
void placement_tell_hosts(struct placement *p, const char *hosts);

// Tells all nodes, also those that are started later, where the job answers over HTTP.
void placement_tell_url(struct placement *p, const char *url);

// Told to the node when it runs, and each time when it is started: "ADDRESS PORT ADDRESS PORT", who
// asks it, the one to be preferred first; and the nodes that it takes in, separated by commas.
// Nothing is said twice.
void placement_tell_parents(struct placement *p, size_t node, const char *parents);
void placement_tell_children(struct placement *p, size_t node, const char *children);

// Tells a node that is up to finish, another to end; one that finds the mark in the recording's
// folder shares it with us. Idempotent. "drop": we have its file.
void placement_finish(struct placement *p, size_t node, const char *mark);
enum node_finish placement_finishing(const struct placement *p, size_t node);
void placement_drop(struct placement *p, size_t node);
// What stands behind the verb of a line for all that run (wire/collector_line.h).
void placement_tell_collector(struct placement *p, const char *wanted);

// Asks a node, or all, to end. Idempotent.
void placement_stop(struct placement *p, size_t node);
void placement_stop_all(struct placement *p);
void placement_kill_all(struct placement *p); // SIGKILL to srun and ssh

size_t placement_starting(const struct placement *p); // waiting or being started
size_t placement_running(const struct placement *p);  // with a process
enum node_state placement_state(const struct placement *p, size_t node);

// When a node was heard last, CLOCK_MONOTONIC; 0 = never.
int64_t placement_heard_ns(const struct placement *p, size_t node);

// The node's own name for itself, once it is up ("" before), and where its recording is after its
// end ("" unknown; *stays: it is still in the run folder there, and why stands behind the path).
const char *placement_host(const struct placement *p, size_t node);
const char *placement_recording(const struct placement *p, size_t node, bool *stays);

#endif
