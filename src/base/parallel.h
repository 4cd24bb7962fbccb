// parallel.h - independent pieces of work on a few threads.
#ifndef SONDE_BASE_PARALLEL_H
#define SONDE_BASE_PARALLEL_H

#include <pthread.h>
#include <stddef.h>

enum { PARALLEL_THREADS_MAX = 4 };

// The number of processors that this process may use; at least 1.
size_t parallel_processors(void);

// Starts a thread beside the caller, which goes on computing: on any processor that the process may
// use except the caller's present one, if there is another. If caches are not shared, Linux starts
// and wakes threads on the processor of the thread that starts or wakes them, although others are
// idle; then one of the two waits for some 3 ms. Returns like pthread_create.
int parallel_start(pthread_t *out, void *(*run)(void *user), void *user);

// Calls work(user, i) once for each i below `count`. Uses at most PARALLEL_THREADS_MAX threads, and
// one for each processor that this process may use; the caller's thread is one of them. Returns
// after the last call. Calls begin in the order of i. If no thread can be started, the caller's
// thread does all the work.
typedef void parallel_fn(void *user, size_t i);
void parallel_each(size_t count, parallel_fn *work, void *user);

#endif
