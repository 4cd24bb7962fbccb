// loop.h - one thread with one event loop, which runs any number of hubs and links.
//
// The loop's thread is the only thread of this layer. Other threads create and destroy hubs and
// links, but hubs and links do all their work in the loop's thread. A process may have several
// loops. A relay's hub and link share one; a simulation has a thousand links on one.
//
//   posted tasks ─▶ ┌───────────────────────────────┐
//   sockets, timers │ callbacks ─▶ work in slices ─▶ flush output ─▶ sleep
//                   └───────────────────────────────┘
#ifndef SONDE_WIRE_LOOP_H
#define SONDE_WIRE_LOOP_H

#include "base/error.h"
#include "base/list.h"

#include <stdbool.h>
#include <uv.h>

struct wire_loop;

int wire_loop_start(struct wire_loop **out, struct error *e);

// Call it after destroying everything on the loop. Waits for the thread.
void wire_loop_stop(struct wire_loop *l);

uv_loop_t *wire_loop_uv(struct wire_loop *l);

// Returns the buffer for a socket's input, valid until the end of the callback that reads the
// socket. All sockets of the loop share it, because only one reads at a time. Returns NULL if
// memory is exhausted.
// It has room for several of the longest PARTs, because a frame that is cut by the end of the input
// must be copied.
enum { WIRE_LOOP_ROOM = 256 << 10 };
char *wire_loop_room(struct wire_loop *l);

// Runs fn(user) in the loop's thread and waits for it; if called in that thread, runs it at once.
void wire_loop_call(struct wire_loop *l, void (*fn)(void *user), void *user);

// Runs task->run(task) soon in the loop's thread; callable from any thread. The task belongs to the
// loop until it runs.
struct wire_task {
    void (*run)(struct wire_task *task);
    struct list_link posted; // for the loop
};
void wire_loop_post(struct wire_loop *l, struct wire_task *task);

// Long work in slices: the loop calls step(item) repeatedly until it returns false. A turn of an
// item ends with the first step after WIRE_LOOP_TURN_NS; then all other work has its turn. So the
// memory of short work stays in the processor's cache until the work has ended, and long work keeps
// nothing waiting. Between two rounds (some 2 ms) the loop polls its sockets. Queueing work twice
// has no effect. Only in the loop's thread.
enum { WIRE_LOOP_TURN_NS = 100000 };
struct wire_work {
    bool (*step)(struct wire_work *work);
    struct list_link in_queue; // for the loop, while `queued`
    bool queued;
};
void wire_loop_work(struct wire_loop *l, struct wire_work *work);
void wire_loop_work_cancel(struct wire_work *work);

// Calls step(item) once before the loop sleeps. That joins many small frames into one write.
void wire_loop_flush(struct wire_loop *l, struct wire_work *work);
void wire_loop_flush_cancel(struct wire_work *work);

#endif
