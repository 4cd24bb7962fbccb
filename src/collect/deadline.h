// deadline.h - makes a call that may hang (a stuck file server, a lost device) in a thread of its
// own.
//
// The caller waits at most a given time. While a call hangs, further calls are refused at once, so
// a caller loses the waiting time only once. The next run returns a late result, without waiting,
// and deadline_done can then start the next call. So a device that is always slow costs no waiting,
// and its results are one run old. Once a call is prompt again, the caller waits for calls again. A
// thread that is blocked in the kernel cannot be ended; it outlives deadline_destroy and frees its
// memory when it returns.
#ifndef SONDE_COLLECT_DEADLINE_H
#define SONDE_COLLECT_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

struct deadline;

// `call` runs in the thread. `dispose` runs exactly once, when `job` is no longer used: in
// deadline_destroy or, after a call that hung, in the thread. After a failure (negative errno)
// `job` stays the caller's.
int deadline_create(void (*call)(void *job), void (*dispose)(void *job), void *job,
                    struct deadline **out);

// A late result is used if its call began at most this long ago.
#define DEADLINE_LATE_MAX_NS (INT64_C(10) * 1000000000)

// Makes the call and waits at most wait_ns. Returns 0 when it is done, and the caller can read the
// job until deadline_done; -ETIMEDOUT if it hangs, and the caller must not touch the job. *late_ns:
// 0 after a prompt call; how long a late call took; how long a call has hung so far.
int deadline_run(struct deadline *d, int64_t wait_ns, int64_t *late_ns);

// Like deadline_run, for the result of a late call only: begins no call, and does not wait. Returns
// -ENODATA if there is no late call, or if its result is outdated.
int deadline_take(struct deadline *d, int64_t *late_ns);

// The caller has read the result of deadline_run or deadline_take, which returned 0. After a late
// result, the next call begins now if `ahead` is true. If not, the caller waits for it again.
// Returns true if a call begins: the caller must not touch the job until the next result.
bool deadline_done(struct deadline *d, bool ahead);

void deadline_destroy(struct deadline *d); // does not wait for a hanging call

#endif
