// thread_signals.h - blocks the signals that only the thread with the event loop should handle.
#ifndef SONDE_BASE_THREAD_SIGNALS_H
#define SONDE_BASE_THREAD_SIGNALS_H

#include <signal.h>

// Blocks all signals except SIGBUS in the calling thread and in threads that it creates. A
// truncated mapped file raises SIGBUS (store/map_guard.h), and the kernel ends a process whose
// thread blocks the signal of its own fault. *before: the previous mask, for pthread_sigmask.
void thread_signals_block(sigset_t *before);

#endif
