// restart.h - the rules of restarts: when a command is started again, and on which nodes. Pure
// logic, without processes, clocks or files.
//
// The allocation's nodes are numbered in its order; node 0 is the primary: the command's processes
// may keep their state there, so it is never excluded.
//
//   reserve ──begin: the first N; later: swapped in──▶ takes part ──lost, or excluded──▶ out
//      │                                                            by a reboot          for good
//      └────lost──▶ out
//
//   event                            with --resilient                                without
//   a node that takes part is lost   restart with a reserve in its place; without    go on
//                                    a reserve: with fewer nodes
//                                    (--exhaust-resources), else give up
//   the primary is lost              give up                                         go on
//   a reserve is lost                go on                                           go on
//   a reboot request                 as for lost nodes; the primary stays            refuse
//   the command ends with the code   restart with the same nodes                     the same
//   the command ends otherwise       over                                            over
//   any restart after max_restarts   give up; after the command's end: over          the same
//   a node does not start before     go on, with a reserve in its place, if any      the same
//   the first attempt
//
// Several events between two attempts cause one restart.
#ifndef SONDE_LAUNCH_RESTART_H
#define SONDE_LAUNCH_RESTART_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct restart_rules {
    size_t nodes;     // number that take part; 0 = all
    bool resilient;   // lost nodes and reboot requests restart the command
    bool exhaust;     // restart with fewer nodes when there are no reserves
    int max_restarts; // -1 = no limit
    int exit_code;    // exit code with which the command requests a restart; -1 = none
};

enum restart_verb {
    RESTART_GO_ON, // no action
    // stop the command if it runs, and start it on the nodes that take part then
    RESTART_AGAIN,
    RESTART_GIVE_UP, // stop the command, and end
    RESTART_OVER,    // the command has ended, and so does the run
    RESTART_REFUSED, // the request is refused; no action
};

struct restart_answer {
    enum restart_verb verb;
    char reason[256]; // for people; may be empty for GO_ON
};

enum restart_place { RESTART_RESERVE, RESTART_TAKES_PART, RESTART_OUT };

struct restart {
    struct restart_rules rules;
    size_t count;               // nodes
    enum restart_place *places; // owned
    int attempts;               // attempts that have begun
    bool pending;               // the answer was RESTART_AGAIN, and the next attempt has not begun
};

// `nodes` of `count` (at least 1) take part. Returns -EINVAL with a message if the rules need more
// nodes than there are, or a number is invalid.
int restart_init(struct restart *r, const struct restart_rules *rules, size_t count,
                 struct error *e);
void restart_free(struct restart *r);

// Handle an event. Events of nodes that were excluded before change nothing.
struct restart_answer restart_node_lost(struct restart *r, size_t node);
struct restart_answer restart_reboot(struct restart *r, const size_t *excluded,
                                     size_t excluded_count);
struct restart_answer restart_command_ended(struct restart *r, int exit_code);

// Begins an attempt.
void restart_begin(struct restart *r);

// Returns the number of attempts begun after the first, for SONDE_RESTART.
static inline int restart_count(const struct restart *r)
{
    return r->attempts > 0 ? r->attempts - 1 : 0;
}

size_t restart_taking_part(const struct restart *r);
static inline bool restart_takes_part(const struct restart *r, size_t node)
{
    return r->places[node] == RESTART_TAKES_PART;
}

#endif
