#include "trace/spin.h"

#include <pthread.h>

_Atomic unsigned spin_process = 1;

static void after_fork_in_child(void)
{
    atomic_fetch_add_explicit(&spin_process, 1, memory_order_relaxed);
}

__attribute__((constructor(101))) static void start(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}
