// loop.h - one thread with one event loop, on which any number of hubs and links live.
//
// The only thread of this layer. Hubs and links are made and destroyed from any thread but this
// one, and do all their work in it. A process has as many loops as it likes; a relay's hub and link
// share one; a simulation has a thousand links on one.
//
//   posted tasks ─▶ ┌───────────────────────────────┐
//   sockets, timers │ callbacks ─▶ work in slices ─▶ flush what they want sent ─▶ sleep
//                   └───────────────────────────────┘
#ifndef SONDE_WIRE_LOOP_H
#define SONDE_WIRE_LOOP_H

#include "base/error.h"

#include <stdbool.h>
#include <uv.h>

struct wire_loop;

int wire_loop_start(struct wire_loop **out, struct error *e);

// After everything on it was destroyed. Waits for the thread.
void wire_loop_stop(struct wire_loop *l);

uv_loop_t *wire_loop_uv(struct wire_loop *l);

// Room for what a socket gives, until the callback that looks at it returns: one for all of the
// loop's sockets, as there is one at a time. NULL: no memory.
enum { WIRE_LOOP_ROOM = 64 << 10 };
char *wire_loop_room(struct wire_loop *l);

// Runs fn(user) in the loop's thread and waits for it; called in that thread, at once.
void wire_loop_call(struct wire_loop *l, void (*fn)(void *user), void *user);

// Runs task->run(task) in the loop's thread, soon; from any thread. The task belongs to the loop
// until it runs.
struct wire_task {
    void (*run)(struct wire_task *task);
    struct wire_task *next;
};
void wire_loop_post(struct wire_loop *l, struct wire_task *task);

// Work that takes long and is cut in slices: step(item) is called again and again, in turn with all
// other work, and between two rounds (some 2 ms) the loop looks at its sockets; until it returns
// false. Queueing what is queued already does nothing. In the loop's thread only.
struct wire_work {
    bool (*step)(struct wire_work *work);
    struct wire_work *next;
    bool queued;
};
void wire_loop_work(struct wire_loop *l, struct wire_work *work);
void wire_loop_work_cancel(struct wire_loop *l, struct wire_work *work);

// Calls step(item) once, before the loop sleeps: how many small frames become one write.
void wire_loop_flush(struct wire_loop *l, struct wire_work *work);
void wire_loop_flush_cancel(struct wire_loop *l, struct wire_work *work);

#endif
