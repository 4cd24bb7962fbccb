// thread_signals.h - the signals that threads of ours leave to the thread with the event loop.
#ifndef SONDE_BASE_THREAD_SIGNALS_H
#define SONDE_BASE_THREAD_SIGNALS_H

#include <signal.h>

// Blocks, in the calling thread and in those that it makes, all signals but SIGBUS: a blocked one that a fault raises ends the
// process, and mapped files that are cut short raise it (store/map_guard.h). *before: what was blocked, for pthread_sigmask.
void thread_signals_block(sigset_t *before);

#endif
