// bounds.h - whether the tracing libraries record, and how many spans.
#ifndef SONDE_TRACE_BOUNDS_H
#define SONDE_TRACE_BOUNDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SPANS_MAX = 10000 }; // of a name in a process

// True if the program does not run under `sonde run`, or runs at level 0.
static inline bool trace_is_off(void)
{
    const char *level = secure_getenv("SONDE_LEVEL");
    return !secure_getenv("SONDE_SOCKET") || (level && strcmp(level, "0") == 0);
}

// True for the first `most` calls with this count, which never overflows.
static inline bool trace_may_span(_Atomic unsigned *spans, unsigned most)
{
    unsigned count = atomic_load_explicit(spans, memory_order_relaxed);
    while (count < most)
        if (atomic_compare_exchange_weak_explicit(spans, &count, count + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

#endif
