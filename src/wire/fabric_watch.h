// fabric_watch.h - ends the process if a call of libfabric does not return.
//
// The provider shm keeps a lock in the memory that two processes share, also while it copies. If
// one of them is killed meanwhile, the other waits for this lock in its next call, for ever. No
// call interrupts that. So the process ends, and its supervisor starts another one.
#ifndef SONDE_WIRE_FABRIC_WATCH_H
#define SONDE_WIRE_FABRIC_WATCH_H

enum {
    FABRIC_LOOK_MS = 1000,
    FABRIC_LOOKS_MAX = 10, // looks that find the same call, until the process ends
};

struct fabric_watch;

// Starts a thread that looks every `look_ms`. NULL: without memory; nothing is watched then, and
// the functions below do nothing.
struct fabric_watch *fabric_watch_open(unsigned look_ms);
void fabric_watch_close(struct fabric_watch *w);

// Call them around a call of libfabric, from one thread at a time.
void fabric_watch_enter(struct fabric_watch *w);
void fabric_watch_leave(struct fabric_watch *w);

unsigned fabric_watch_looks(const struct fabric_watch *w); // so far

#endif
