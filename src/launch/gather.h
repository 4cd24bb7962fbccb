// gather.h - brings the recordings of the other nodes into the folder of the first node's
// recording: when a node leaves the job, and for the other nodes at its end.
//
//   gather_create  makes the folder, with a mark in it
//   gather_leave   tells one node to finish: its agent closes its file, its relay still answers
//   gather_finish  tells all others, at the end of the run
//   the node       "kept PATH": it sees the mark, so all nodes share the folder, and it has moved
//                  its file there
//                  "closed": it does not see the mark ─▶ the aggregator fetches the file
//                  ─▶ "drop": the node removes its own
//   gather_end     nodes that have not finished by then keep their files
//
// Bounded: ends after GATHER_STALL_MS without progress, after GATHER_MAX_MS since the last node was
// told to finish, or when the user does not want to wait.
#ifndef SONDE_LAUNCH_GATHER_H
#define SONDE_LAUNCH_GATHER_H

#include "launch/job.h"
#include "launch/placement.h"

enum {
    GATHER_STALL_MS = 30000,
    GATHER_MAX_MS = 15 * 60 * 1000,
    GATHER_SAY_MS = 5000, // between two progress messages
};

struct gather;

// All arguments outlive it. It fails with a message if nothing can be gathered; then nodes_stop
// works as if it had not been called.
int gather_create(struct placement *p, const struct allocation *nodes, const struct job *job,
                  struct gather **out, struct error *e);

// Tells a node to finish while the job goes on. When its file has arrived, or cannot arrive, the
// node is told to end. Idempotent.
void gather_leave(struct gather *g, size_t node);
bool gather_is_leaving(const struct gather *g, size_t node);
size_t gather_leaving(const struct gather *g); // the number of leaving nodes
// Call it when the node's process has ended before it had finished.
void gather_lost(struct gather *g, size_t node, const char *why);

void gather_finish(struct gather *g);

// Requests the files of nodes that have closed them, by tell("fetch", "HOST DIR"). False: no
// transfer is in progress, or it has taken too long.
bool gather_turn(struct gather *g, void (*tell)(void *user, const char *verb, const char *text),
                 void *user);
// Call it when the aggregator was restarted: the new one has no requests yet.
void gather_ask_anew(struct gather *g);

// Handles a message of the aggregator: "fetched HOST PATH", "unfetched HOST TEXT", "fetching
// BYTES". False: it is another message.
bool gather_heard(struct gather *g, const char *line);

// Writes a progress message if gathering takes long; empty: nothing new to report.
void gather_words(struct gather *g, char *out, size_t size);

// Call it when gathering has ended: nodes whose files have arrived need not keep theirs. No node
// ends earlier, because it may be the way to others.
void gather_release(struct gather *g);

// Removes the mark. The results of the nodes stay available.
void gather_end(struct gather *g);
void gather_free(struct gather *g); // NULL is allowed

// Whether the node's file has arrived; if not, the reason (NULL: it was not requested, or no reason
// is known).
bool gather_has(const struct gather *g, size_t node);
const char *gather_problem(const struct gather *g, size_t node);

#endif
