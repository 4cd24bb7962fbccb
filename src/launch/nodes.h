// nodes.h - the nodes of a run, for the launcher's loop: allocation, placement and the rules of
// restarts put together.
//
//   nodes_find ─▶ nodes_place ─▶ (turn, until nothing starts any more) ─▶ nodes_begin ─▶ the command ─▶ nodes_verdict ─▶ nodes_begin …
//   ─▶ nodes_gather_begin ─▶ (turn, while nodes_gather) ─▶ nodes_stop ─▶ (turn, until nothing runs any more) ─▶ nodes_report ─▶ nodes_close
//
// What happens to nodes is said here, by name, as it happens. On one machine there is one node, and
// all of this is the rules alone.
#ifndef SONDE_LAUNCH_NODES_H
#define SONDE_LAUNCH_NODES_H

#include "base/str.h"
#include "launch/job.h"
#include "launch/restart.h"
#include "launch/wanted.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct nodes;

struct nodes_options {
    const char *hosts, *hostfile; // of --hosts, --hostfile; NULL
    const char *remote_sonde;     // NULL = our own path
    const char *transport;        // of nodes' data to the aggregator (wire/bulk.h)
    int dragon_port;              // of each node, for programs of Dragon; 0 = none
    bool strict;                  // a node that does not come up ends the run before it begins
    double node_timeout_s, stop_timeout_s;
    // more nodes than that are asked through each other (wire/tree.h); 0 = WIRE_FANOUT_DEFAULT
    int fanout;
    struct restart_rules rules;
    bool quiet, verbose;
};

// Finds the nodes of the run. 0, or a negative errno with words: a wrong option, or -ENOMEM. If the
// batch system gives wrong data, a warning says so, and the other nodes have no telemetry, unless
// the run is strict. `options` has to outlive *out.
int nodes_find(const struct nodes_options *options, const struct job *job, struct nodes **out,
               struct error *e);
void nodes_close(struct nodes *n);

// Starts agents on the other nodes that take part. `job` (id, folder, record, command),
// `agent_arguments` and `wanted` (the collectors, for nodes that are started later, too) outlive
// it. `key` is the job's for the aggregator's hub, in hexadecimal.
int nodes_place(struct nodes *n, const struct job *job, const char *token, const char *key,
                const char *const *agent_arguments, const struct wanted *wanted, struct error *e);

// Tells all other nodes where the job answers over HTTP.
void nodes_tell_url(struct nodes *n, const char *url);

// A collector is wanted, or no more (wire/collector_line.h): for all other nodes that run.
void nodes_tell_collector(struct nodes *n, const char *wanted);

// Whether there are nodes beside this one.
bool nodes_others(const struct nodes *n);
const char *nodes_own_name(const struct nodes *n); // of this machine, as the launcher calls it

// Our address as the other nodes reach it, where the aggregator has to listen for them; NULL: it is
// not known, all of them.
const char *nodes_address(const struct nodes *n);
void nodes_tell_port(struct nodes *n, int port); // it listens

// Calls tell("expect", HOST), tell("behind RELAY", HOST) or tell("exclude", HOST) for each other
// node that takes part, behind a relay or not, or no more, and of which that was not said yet;
// `anew`: as if nothing had been said.
void nodes_tell_expected(struct nodes *n, bool anew,
                         void (*tell)(void *user, const char *verb, const char *host), void *user);

int nodes_fd(const struct nodes *n); // to be watched for reading; -1: nothing to watch
void nodes_turn(struct nodes *n);
bool nodes_reaped(struct nodes *n, pid_t pid, int status); // true: it was one of ours
bool nodes_owns(const struct nodes *n, pid_t pid);         // a srun or ssh of ours

bool nodes_starting(const struct nodes *n);
bool nodes_running(const struct nodes *n);

// With --strict: whether all nodes have come up; else an error that names those that have not.
int nodes_check(const struct nodes *n, struct error *e);

// Replaces {nodelist}, {hosts}, {hostfile} and {nnodes} in the command's words with the nodes that
// take part (substitute.h); the caller frees the result with substitute_free. NULL: no memory.
char **nodes_substitute(const struct nodes *n, const char *hostfile, char *const *command);

// The nodes that take part, a line each. False: no memory.
bool nodes_hostfile_text(const struct nodes *n, struct buf *out);

// Begins an attempt: writes FOLDER/hostfile on this node (if there is a folder) and on the others.
// 0 or a negative errno with words.
int nodes_begin(struct nodes *n, struct error *e);
int nodes_restarts(const struct nodes *n);     // SONDE_RESTART
bool nodes_restartable(const struct nodes *n); // the rules know of restarts at all

// The nodes that take part now, as the launcher calls them.
size_t nodes_count(const struct nodes *n);
const char *nodes_list(const struct nodes *n);  // "n1,n2,n3"
const char *nodes_words(const struct nodes *n); // "n1 n2 n3"

// Someone asks for a restart without these hosts: "HOST,HOST", or "" for none; they may be given as
// the launcher or as the nodes call themselves.
void nodes_reboot(struct nodes *n, const char *hosts);

// What has been decided while the command runs: GO_ON, AGAIN or GIVE_UP. The launcher stops the
// command for the latter two.
enum restart_verb nodes_pending(const struct nodes *n);

// The command has ended. False: wait for more to happen and ask again; a failure is only the
// command's own when every node that takes part has shown afterwards that it lives.
bool nodes_command_ended(struct nodes *n, int exit_code, int64_t ended_ns);
// What then follows: AGAIN, GIVE_UP or OVER.
enum restart_verb nodes_verdict(const struct nodes *n);

// While the job goes on: the recordings of nodes that were taken out of it come here (gather.h). To
// be called when something has happened; it asks the aggregator for them.
void nodes_leave(struct nodes *n, void (*tell)(void *user, const char *verb, const char *text),
                 void *user);

// The recordings of the other nodes come here (gather.h): begin; then, as long as nodes_gather says
// so, turn. `words`: a line for people, or empty.
void nodes_gather_begin(struct nodes *n);
bool nodes_gather(struct nodes *n, void (*tell)(void *user, const char *verb, const char *text),
                  void *user, char *words, size_t size);
// what the aggregator says; true: it was about this
bool nodes_gather_heard(struct nodes *n, const char *line);

// The nodes are to end; those whose recordings are not here keep them. Where nothing was gathered,
// the folder of the recording is made first, by which a node tells a file system that all share.
void nodes_stop(struct nodes *n);
void nodes_kill(struct nodes *n);

// Says where the recordings of the other nodes are, unless they lie beside ours.
void nodes_report(const struct nodes *n);

#endif
