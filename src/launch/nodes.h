// nodes.h - the nodes of a run, for the launcher's loop: combines allocation, placement and rules
// of restarts.
//
//   nodes_find ─▶ nodes_place ─▶ (turn, until no node is starting)
//   ─▶ nodes_begin ─▶ the command ─▶ nodes_verdict ─▶ nodes_begin …
//   ─▶ nodes_gather_begin ─▶ (turn, while nodes_gather)
//   ─▶ nodes_stop ─▶ (turn, until no node runs) ─▶ nodes_report ─▶ nodes_close
//
// This file reports each event of a node with the node's name. On one machine there is one node,
// and only the rules of restarts apply.
#ifndef SONDE_LAUNCH_NODES_H
#define SONDE_LAUNCH_NODES_H

#include "base/str.h"
#include "launch/collector_requests.h"
#include "launch/job.h"
#include "launch/restart.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct nodes;

struct nodes_options {
    const char *hosts, *hostfile; // values of --hosts and --hostfile, or NULL
    const char *remote_sonde;     // NULL = our own path
    const char *transport;        // for data from nodes to the aggregator (wire/bulk.h)
    int dragon_port;              // of each node, for programs of Dragon; 0 = none
    // if a node does not start, the run ends before the command begins
    bool strict;
    double node_timeout_s, stop_timeout_s;
    // more nodes than this form a tree of relays (wire/tree.h); 0 = WIRE_FANOUT_DEFAULT
    int fanout;
    struct restart_rules rules;
    bool quiet, verbose;
};

// Finds the nodes of the run. Returns 0, or a negative errno with a message: a wrong option, or
// -ENOMEM. If the batch system gives wrong data, a warning says so, and the other nodes have no
// telemetry, unless the run is strict. `options` has to outlive *out.
int nodes_find(const struct nodes_options *options, const struct job *job, struct nodes **out,
               struct error *e);
void nodes_close(struct nodes *n);

// Starts agents on the other nodes that take part. `job` (id, folder, record, command),
// `agent_arguments` and `collectors` (the requested ones, also for nodes that start later) outlive
// it. `key` is the job's for the aggregator's hub, in hexadecimal.
int nodes_place(struct nodes *n, const struct job *job, const char *token, const char *key,
                const char *const *agent_arguments, const struct collector_requests *collectors,
                struct error *e);

// Tells all other nodes the job's HTTP address.
void nodes_tell_url(struct nodes *n, const char *url);

// Tells all other running nodes to start or stop a collector (wire/collector_line.h).
void nodes_tell_collector(struct nodes *n, const char *collector_line);

// Whether there are nodes beside this one.
bool nodes_others(const struct nodes *n);
const char *nodes_own_name(const struct nodes *n); // the launcher's name of this machine

// Returns the address at which other nodes reach this machine, and at which the aggregator listens.
// NULL: not known, so the aggregator listens at all addresses.
const char *nodes_address(const struct nodes *n);
void nodes_tell_port(struct nodes *n, int port); // `port`: the aggregator's, for nodes

// Reports to the aggregator the changes since the last call: tell("expect", HOST) for each other
// node that takes part, tell("behind RELAY", HOST) if it is behind a relay, tell("exclude", HOST)
// if it no longer takes part. With `anew` it reports all nodes again.
void nodes_tell_expected(struct nodes *n, bool anew,
                         void (*tell)(void *user, const char *verb, const char *host), void *user);

int nodes_fd(const struct nodes *n); // to poll for reading; -1: no other nodes
void nodes_turn(struct nodes *n);
bool nodes_reaped(struct nodes *n, pid_t pid, int status); // true: a process of this file's
bool nodes_owns(const struct nodes *n, pid_t pid); // whether it is a srun or ssh of this file's

bool nodes_starting(const struct nodes *n);
bool nodes_running(const struct nodes *n);

// Checks for --strict that all nodes have come up; otherwise an error names those that have not.
int nodes_check(const struct nodes *n, struct error *e);

// Replaces {nodelist}, {hosts}, {hostfile} and {nnodes} in the command's words with the nodes that
// take part (substitute.h); the caller frees the result with substitute_free. NULL without memory.
char **nodes_substitute(const struct nodes *n, const char *hostfile, char *const *command);

// Writes the nodes that take part, one a line. Returns false without memory.
bool nodes_hostfile_text(const struct nodes *n, struct buf *out);

// Begins an attempt: writes FOLDER/hostfile on this node (if there is a folder) and on the others.
// Returns 0 or a negative errno with a message.
int nodes_begin(struct nodes *n, struct error *e);
int nodes_restarts(const struct nodes *n);     // number of restarts, for SONDE_RESTART
bool nodes_restartable(const struct nodes *n); // the rules allow restarts

// The nodes that take part now, under the launcher's names.
size_t nodes_count(const struct nodes *n);
const char *nodes_list(const struct nodes *n);  // "n1,n2,n3"
const char *nodes_words(const struct nodes *n); // "n1 n2 n3"

// Handles a request for a restart without these hosts: "HOST,HOST", or "" for none. Hosts may have
// the launcher's names or the nodes' own.
void nodes_reboot(struct nodes *n, const char *hosts);

// Returns the decision while the command runs: GO_ON, AGAIN or GIVE_UP. For the latter two, the
// launcher stops the command.
enum restart_verb nodes_pending(const struct nodes *n);

// Call it after the command's end. Returns false if the caller has to wait for the next event and
// call it again. A failure counts as the command's own only after every node that takes part has
// shown that it is still alive.
bool nodes_command_ended(struct nodes *n, int exit_code, int64_t ended_ns);
// Returns the decision after the command's end: AGAIN, GIVE_UP or OVER.
enum restart_verb nodes_verdict(const struct nodes *n);

// Fetches the recordings of nodes that leave the job while it goes on (gather.h), through the
// aggregator. Call it after each event.
void nodes_leave(struct nodes *n, void (*tell)(void *user, const char *verb, const char *text),
                 void *user);

// Fetches the recordings of the other nodes (gather.h): begin, then turn as long as nodes_gather
// returns true. `words` is a progress message, or empty.
void nodes_gather_begin(struct nodes *n);
bool nodes_gather(struct nodes *n, void (*tell)(void *user, const char *verb, const char *text),
                  void *user, char *words, size_t size);
// Handles a message of the aggregator; returns true if it was about gathering.
bool nodes_gather_heard(struct nodes *n, const char *line);

// Tells the nodes to end. A node whose recording was not fetched keeps it. If nothing was gathered,
// the recording's folder is made first, because a node recognises a shared file system by it.
void nodes_stop(struct nodes *n);
void nodes_kill(struct nodes *n);

// Reports where the recordings of the other nodes are, unless they lie beside ours.
void nodes_report(const struct nodes *n);

#endif
