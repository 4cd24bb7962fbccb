// condition.h - condition variables that wait by the monotonic clock: who sets the time of day neither shortens a wait nor draws it out.
#ifndef SONDE_BASE_CONDITION_H
#define SONDE_BASE_CONDITION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// pthread_cond_destroy when it is no longer needed.
void condition_init(pthread_cond_t *c);

// Gives `lock` back while it waits. False: `until_ns` (clock_monotonic_ns) has come. True: somebody has signalled it, or nothing has happened, as ever with
// conditions: what is waited for is to be looked at.
bool condition_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t until_ns);

#endif
