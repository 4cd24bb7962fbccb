// fetch.h - copies the recordings of other nodes for the launcher, when a node leaves the job or
// the job ends. The node's agent has then closed its file, and its relay still answers.
//
//   launcher ── fetch HOST DIR ─▶ queue ─▶ a thread of its own: hub_copy, FETCH_NODES_AT_ONCE
//            ◀─ fetched HOST PATH, or unfetched HOST TEXT ──┘               at a time
//
// If a node is not connected, it has FETCH_CONNECT_MS to connect.
#ifndef SONDE_AGGREGATOR_FETCH_H
#define SONDE_AGGREGATOR_FETCH_H

#include "base/str.h"
#include "wire/hub.h"

enum {
    FETCH_NODES_AT_ONCE = 32,
    // a link notices a lost connection within 10 s, and reconnects at most 7.5 s later
    FETCH_CONNECT_MS = 20000,
    FETCH_DEADLINE_S = 600, // deadline for FETCH_NODES_AT_ONCE nodes
};

struct fetch;

// `on_end` is called in the thread. If the copy failed, `path` is NULL and `problem` is the reason.
// fetch_create returns 0, -ENOMEM or -EAGAIN.
typedef void fetch_end_fn(void *user, struct str host, const char *path, const char *problem);
int fetch_create(struct hub *hub, struct str job, fetch_end_fn *on_end, void *user,
                 struct fetch **out);
void fetch_destroy(struct fetch *f); // cancels running copies; NULL is allowed

// Adds a node to the queue. Returns 0 or -ENOMEM.
int fetch_add(struct fetch *f, struct str host, struct str folder);

// Returns the number of received bytes. *moved grows with it, and also while existing copies are
// compared.
uint64_t fetch_bytes(const struct fetch *f, uint64_t *moved);

#endif
