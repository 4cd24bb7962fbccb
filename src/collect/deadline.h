// deadline.h - a call that may hang (a stuck file server, a device that is gone), made in a thread
// of its own.
//
// The caller waits for it a given time at most. A call that hangs is left alone: until it returns,
// the next ones are refused at once, so a caller loses the waiting time once, not each time. A
// thread that sits in the kernel cannot be ended; it outlives deadline_destroy and frees its memory
// when it returns.
#ifndef SONDE_COLLECT_DEADLINE_H
#define SONDE_COLLECT_DEADLINE_H

#include <stdint.h>

struct deadline;

// `call` is made in the thread; `dispose` exactly once, when `job` is no longer used: in
// deadline_destroy or, after a call that hung, in the thread. A failure (negative errno) leaves
// `job` to the caller.
int deadline_create(void (*call)(void *job), void (*dispose)(void *job), void *job,
                    struct deadline **out);

// Makes the call and waits at most wait_ns. 0: it is done, and the caller can read the job.
// -ETIMEDOUT: it hangs, *hangs_ns long by now, and the caller must not touch the job.
int deadline_run(struct deadline *d, int64_t wait_ns, int64_t *hangs_ns);

void deadline_destroy(struct deadline *d); // does not wait for a call that hangs

#endif
