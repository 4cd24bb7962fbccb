// condition.h - condition variables on the monotonic clock, so that setting the time of day does
// not affect waits.
#ifndef SONDE_BASE_CONDITION_H
#define SONDE_BASE_CONDITION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// Call pthread_cond_destroy at the end.
void condition_init(pthread_cond_t *c);

// Waits, and releases `lock` meanwhile. Returns false if `until_ns` (clock_monotonic_ns) has
// passed. Returns true if the condition was signalled or the wakeup is spurious, so the caller must
// check its predicate again.
bool condition_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t until_ns);

#endif
