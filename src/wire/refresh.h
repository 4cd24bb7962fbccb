// refresh.h - a node's files are brought up to date before a question is answered, without holding
// up the event loop.
//
//   loop's thread           refresher's thread                 agent
//     wire_refresh_begin ──▶ drain_line_ask (wire/drain.h) ───▶ reads the rings
//     ready(refresh) ◀────── wire_loop_post ◀────────────────── done, or DRAIN_WAIT_MS
//
// Questions that come while a drain is under way share the next one.
#ifndef SONDE_WIRE_REFRESH_H
#define SONDE_WIRE_REFRESH_H

#include "wire/loop.h"

struct wire_refresher;

// Starts the thread. The agent need not be there.
int wire_refresher_create(struct wire_loop *loop, const char *agent_socket,
                          struct wire_refresher **out, struct error *e);

// NULL is allowed. All refreshes have ended or were cancelled. From any thread but the loop's.
void wire_refresher_destroy(struct wire_refresher *r);

struct wire_refresh {
    // once, in the loop's thread, unless it is cancelled
    void (*ready)(struct wire_refresh *refresh);
    struct wire_refresh *next, **at; // the refresher's
};

// Both in the loop's thread.
void wire_refresh_begin(struct wire_refresher *r, struct wire_refresh *refresh);
// one that is not ready yet
void wire_refresh_cancel(struct wire_refresher *r, struct wire_refresh *refresh);

#endif
