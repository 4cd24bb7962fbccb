// refresh.h - brings a node's files up to date before it answers a question, without blocking the
// event loop.
//
//   loop's thread           refresher's thread                 agent
//     wire_refresh_begin ──▶ drain_line_ask (wire/drain.h) ───▶ reads the rings
//     ready(refresh) ◀────── wire_loop_post ◀────────────────── done, or DRAIN_WAIT_MS
//
// Questions that arrive during a drain share the next one.
#ifndef SONDE_WIRE_REFRESH_H
#define SONDE_WIRE_REFRESH_H

#include "wire/loop.h"

struct wire_refresher;

// Starts the thread. It works without a running agent, too.
int wire_refresher_create(struct wire_loop *loop, const char *agent_socket,
                          struct wire_refresher **out, struct error *e);

// NULL is allowed. Call it after all refreshes have ended or were cancelled, from any thread but
// the loop's.
void wire_refresher_destroy(struct wire_refresher *r);

struct wire_refresh {
    // called once in the loop's thread, unless the refresh is cancelled
    void (*ready)(struct wire_refresh *refresh);
    struct list_link in_turn; // for the refresher
};

// Both are called in the loop's thread.
void wire_refresh_begin(struct wire_refresher *r, struct wire_refresh *refresh);
// only for a refresh that is not ready yet
void wire_refresh_cancel(struct wire_refresher *r, struct wire_refresh *refresh);

#endif
