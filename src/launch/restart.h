// restart.h - when a command is started again, and on which nodes: the rules, and nothing else. No
// process, no clock, no file.
//
// The allocation's nodes are numbered in its order; node 0 is the primary: the command's processes
// may keep there what they need to go on, so it is never excluded.
//
//            begin: the first N                  takes part ──lost, or excluded by a reboot──▶ out, for good
//   reserve ───────────────────▶ takes part          ▲
//      │   └─────────────── swapped in ──────────────┘
//      └─lost─▶ out
//
//   what happens                        answer, with --resilient                                   without
//   a node that takes part is lost      restart with a reserve in its place; without a reserve:    go on
//                                       with fewer nodes (--exhaust-resources), else give up
//   the primary is lost                 give up                                                    go on
//   a reserve is lost                   go on                                                      go on
//   a reboot request                    the same as lost nodes; the primary stays in               refuse
//   the command ends with the code      restart with the same nodes                                the same
//   the command ends otherwise          over                                                       over
//   any of the restarts, when there     give up; after the command's end: over                     the same
//   were max_restarts already
//   before the first attempt a node     go on, with a reserve in its place where there is one      the same
//   does not come up
//
// Several events between two attempts are one restart.
#ifndef SONDE_LAUNCH_RESTART_H
#define SONDE_LAUNCH_RESTART_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct restart_rules {
    size_t nodes;     // that take part; 0 = all
    bool resilient;   // lost nodes and reboot requests restart the command
    bool exhaust;     // with fewer nodes when there are no reserves
    int max_restarts; // -1 = no limit
    int exit_code;    // of the command, that asks for a restart; -1 = none
};

enum restart_verb {
    RESTART_GO_ON, // nothing follows
    // stop the command where it runs, and start it with the nodes that take part now
    RESTART_AGAIN,
    RESTART_GIVE_UP, // stop the command, and end
    RESTART_OVER,    // the command has ended, and that was it
    RESTART_REFUSED, // a request that is not granted; nothing follows
};

struct restart_answer {
    enum restart_verb verb;
    char reason[256]; // for people; empty for GO_ON without anything to say
};

enum restart_place { RESTART_RESERVE, RESTART_TAKES_PART, RESTART_OUT };

struct restart {
    struct restart_rules rules;
    size_t count;               // nodes
    enum restart_place *places; // owned
    int attempts;               // that have begun
    bool pending;               // RESTART_AGAIN was answered, and the next attempt has not begun
};

// `nodes` of `count` (at least 1) take part. -EINVAL with words when there are fewer than asked
// for, or a node count makes no sense.
int restart_init(struct restart *r, const struct restart_rules *rules, size_t count,
                 struct error *e);
void restart_free(struct restart *r);

// What happened. Events about nodes that are out already change nothing.
struct restart_answer restart_node_lost(struct restart *r, size_t node);
struct restart_answer restart_reboot(struct restart *r, const size_t *excluded,
                                     size_t excluded_count);
struct restart_answer restart_command_ended(struct restart *r, int exit_code);

// An attempt begins.
void restart_begin(struct restart *r);

// Attempts begun after the first: SONDE_RESTART.
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
