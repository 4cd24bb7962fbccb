// gather.h - brings the recordings of the other nodes into the folder of the first node's
// recording: when a node leaves the job, and for the other nodes at its end.
//
//   gather_create  makes the folder and a file in it, the mark
//   gather_leave   tells one node to finish: its agent closes its file, its relay still answers
//   gather_finish  tells all others, at the end of the run
//   the node       "kept PATH": it sees the mark, so all nodes share the folder; it has moved
//                  its file there
//                  "closed": it does not see the mark ─▶ the aggregator fetches the file
//                  ─▶ "drop": the node removes its own
//   gather_end     nodes that have not finished by then keep their files
//
// Gathering ends after GATHER_STALL_MS without progress, GATHER_MAX_MS after the last node was told
// to finish, or when the user does not want to wait.
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

// All arguments outlive it. Fails with a message if nothing can be gathered; then nodes_stop works
// as without this call.
int gather_create(struct placement *p, const struct allocation *nodes, const struct job *job,
                  struct gather **out, struct error *e);

// Tells a node to finish while the job goes on. When its file has arrived or cannot arrive any
// more, the launcher tells the node to end. Idempotent.
void gather_leave(struct gather *g, size_t node);
bool gather_is_leaving(const struct gather *g, size_t node);
size_t gather_leaving(const struct gather *g); // number of leaving nodes
// Call it when a node's process has ended before the node had finished.
void gather_lost(struct gather *g, size_t node, const char *why);

void gather_finish(struct gather *g);

// Requests the files of nodes that have closed them, by tell("fetch", "HOST DIR"). Returns false if
// no transfer is in progress, or if it has taken too long.
bool gather_turn(struct gather *g, void (*tell)(void *user, const char *verb, const char *text),
                 void *user);
// Call it when the aggregator was restarted: the new one has no requests yet.
void gather_ask_anew(struct gather *g);

// Handles a message of the aggregator: "fetched HOST PATH", "unfetched HOST TEXT", "fetching
// BYTES". Returns false for any other message.
bool gather_heard(struct gather *g, const char *line);

// Writes a progress message if gathering takes long. Leaves it empty if there is nothing new to
// report.
void gather_words(struct gather *g, char *out, size_t size);

// Call it when gathering has ended. It tells the nodes whose files have arrived to drop them. No
// node ends earlier, because others may be reachable only through it.
void gather_release(struct gather *g);

// Removes the mark. The results of the nodes stay available.
void gather_end(struct gather *g);
void gather_free(struct gather *g); // NULL is allowed

// Whether the node's file has arrived. If not, *problem is the reason; NULL: it was not requested,
// or no reason is known.
bool gather_has(const struct gather *g, size_t node);
const char *gather_problem(const struct gather *g, size_t node);

#endif
