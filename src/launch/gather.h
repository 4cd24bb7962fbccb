// gather.h - the recordings of the other nodes come to the folder of the first node's: of those
// that are taken out of the job then, of the others at its end.
//
//   gather_create  the folder is made, with a mark in it
//   gather_leave   this node is told to finish: its agent closes its file, its relay still answers
//   gather_finish  all others are, too: the end of the run
//   node           "kept PATH": the mark is there, so all nodes share the folder, and its file lies there now
//                  "closed": the folder is this node's alone ─▶ the aggregator fetches the file ─▶ "drop": the node's own is no longer needed
//   gather_end     who is not through by then keeps its file, on itself
//
// Bounded: GATHER_STALL_MS without anything new, GATHER_MAX_MS since the last node was told, or
// until nobody wants to wait.
#ifndef SONDE_LAUNCH_GATHER_H
#define SONDE_LAUNCH_GATHER_H

#include "launch/job.h"
#include "launch/placement.h"

enum {
    GATHER_STALL_MS = 30000,
    GATHER_MAX_MS = 15 * 60 * 1000,
    GATHER_SAY_MS = 5000, // between two lines of how far it is
};

struct gather;

// All arguments outlive it. Where nothing can be gathered it fails, with words; nodes_stop is then
// as good as before.
int gather_create(struct placement *p, const struct allocation *nodes, const struct job *job,
                  struct gather **out, struct error *e);

// While the job goes on. Once its file is here, or cannot come, the node is told to end.
// Idempotent.
void gather_leave(struct gather *g, size_t node);
bool gather_is_leaving(const struct gather *g, size_t node);
size_t gather_leaving(const struct gather *g); // how many
// Its process has ended before it was through.
void gather_lost(struct gather *g, size_t node, const char *why);

void gather_finish(struct gather *g);

// Asks, by tell("fetch", "HOST DIR"), for the files of nodes that have closed them. False: nothing
// is under way, or has taken too long.
bool gather_turn(struct gather *g, void (*tell)(void *user, const char *verb, const char *text),
                 void *user);
// The aggregator is a new one, which was asked for nothing yet.
void gather_ask_anew(struct gather *g);

// What the aggregator has said of it: "fetched HOST PATH", "unfetched HOST TEXT", "fetching BYTES".
// False: that is another line.
bool gather_heard(struct gather *g, const char *line);

// One line for people, when it takes long; empty: nothing new to say.
void gather_words(struct gather *g, char *out, size_t size);

// It is over: nodes whose files are here need not keep theirs. None of them ends before, as others
// may be reached through it.
void gather_release(struct gather *g);

// Removes the mark. What is known of each node stays.
void gather_end(struct gather *g);
void gather_free(struct gather *g); // NULL is allowed

// Whether the node's file is here; why not (NULL: it was not asked for, or nothing was said).
bool gather_has(const struct gather *g, size_t node);
const char *gather_problem(const struct gather *g, size_t node);

#endif
