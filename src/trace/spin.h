// spin.h - a lock for rare and short work: defining a series, adding a name.
#ifndef SONDE_TRACE_SPIN_H
#define SONDE_TRACE_SPIN_H

#include <sched.h>
#include <stdatomic.h>

// Acquire and release: the holder of the lock reads all that earlier holders have changed.
static inline void spin_lock(atomic_flag *lock)
{
    while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire))
        sched_yield();
}

static inline void spin_unlock(atomic_flag *lock)
{
    atomic_flag_clear_explicit(lock, memory_order_release);
}

#endif
