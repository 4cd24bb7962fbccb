// deadline.h - makes a call that may hang (a stuck file server, a lost device) in a thread of its
// own.
//
// The caller waits at most a given time. While a call hangs, further calls are refused at once, so
// a caller loses the waiting time only once. A thread that is blocked in the kernel cannot be
// ended; it outlives deadline_destroy and frees its memory when it returns.
#ifndef SONDE_COLLECT_DEADLINE_H
#define SONDE_COLLECT_DEADLINE_H

#include <stdint.h>

struct deadline;

// `call` runs in the thread. `dispose` runs exactly once, when `job` is no longer used: in
// deadline_destroy or, after a call that hung, in the thread. After a failure (negative errno)
// `job` stays the caller's.
int deadline_create(void (*call)(void *job), void (*dispose)(void *job), void *job,
                    struct deadline **out);

// Makes the call and waits at most wait_ns. Returns 0 when it is done, and the caller can read the
// job; -ETIMEDOUT if it hangs, for *hangs_ns so far, and the caller must not touch the job.
int deadline_run(struct deadline *d, int64_t wait_ns, int64_t *hangs_ns);

void deadline_destroy(struct deadline *d); // does not wait for a hanging call

#endif
