// adaptive_lock.h - a mutex for critical sections of about a microsecond.
//
// Waking a thread that sleeps takes 5 µs at best; if its processor has gone to sleep, too, 50 µs,
// and in a virtual machine up to milliseconds. So a thread that finds the lock taken tries again
// for some 20 µs, and sleeps only then: the owner has probably been preempted.
#ifndef SONDE_BASE_ADAPTIVE_LOCK_H
#define SONDE_BASE_ADAPTIVE_LOCK_H

#include <pthread.h>

enum { ADAPTIVE_LOCK_TRIES = 500 };

static inline void adaptive_lock_pause(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("isb");
#endif
}

static inline void adaptive_lock(pthread_mutex_t *m)
{
    for (int i = 0; i < ADAPTIVE_LOCK_TRIES; i++) {
        if (pthread_mutex_trylock(m) == 0)
            return;
        adaptive_lock_pause();
    }
    pthread_mutex_lock(m);
}

#endif
