// spin.h - a lock for rare and short work: defining a series, adding a name.
//
// A forked child has a copy of each lock, and only one thread. If another thread of the parent held
// a lock, the copy is free in the child, although this thread may have stopped in the middle of an
// entry. So the holder of a lock first completes an entry, and then makes it visible.
#ifndef SONDE_TRACE_SPIN_H
#define SONDE_TRACE_SPIN_H

#include <sched.h>
#include <stdatomic.h>

// The process that holds the lock: spin_process then; 0: the lock is free.
typedef _Atomic unsigned spin;

extern _Atomic unsigned spin_process; // 1 more than the number of forks up to this process

// Acquire and release: the holder of the lock reads all that earlier holders have changed.
static inline void spin_lock(spin *lock)
{
    unsigned ours = atomic_load_explicit(&spin_process, memory_order_relaxed);
    for (unsigned holder = 0; !atomic_compare_exchange_weak_explicit(
             lock, &holder, ours, memory_order_acquire, memory_order_relaxed);)
        if (holder == ours) {
            holder = 0;
            sched_yield();
        }
}

static inline void spin_unlock(spin *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

#endif
