// fetch.h - copies the recordings of other nodes for the launcher, when a node leaves the job or
// the job ends: the node's agent has closed its file, its relay still answers.
//
//   launcher ── fetch HOST DIR ─▶ queue ─▶ a thread of its own: hub_copy, FETCH_NODES_AT_ONCE
//            ◀─ fetched HOST PATH, or unfetched HOST TEXT ──┘               at a time
//
// A node without a connection has FETCH_CONNECT_MS to connect.
#ifndef SONDE_AGGREGATOR_FETCH_H
#define SONDE_AGGREGATOR_FETCH_H

#include "base/str.h"
#include "wire/hub.h"

enum {
    FETCH_NODES_AT_ONCE = 32,
    // a link that was cut off finds out within 10 s, and comes again at most 7.5 s later
    FETCH_CONNECT_MS = 20000,
    FETCH_DEADLINE_S = 600, // of so many nodes
};

struct fetch;

// `said` is called from the thread: `path` NULL where it could not be had, then `problem` says why.
// -ENOMEM, -EAGAIN.
typedef void fetch_said_fn(void *user, struct str host, const char *path, const char *problem);
int fetch_create(struct hub *hub, struct str job, fetch_said_fn *said, void *user,
                 struct fetch **out);
void fetch_destroy(struct fetch *f); // ends what is being fetched; NULL is allowed

// -ENOMEM.
int fetch_add(struct fetch *f, struct str host, struct str folder);

// Bytes that have come so far; *moved grows with them, and while copies that are here are looked
// through.
uint64_t fetch_bytes(const struct fetch *f, uint64_t *moved);

#endif
