#include "base/memory_account.h"

static void note_peak(struct memory_account *a, size_t held)
{
    size_t peak = atomic_load_explicit(&a->peak_bytes, memory_order_relaxed);
    while (held > peak &&
           !atomic_compare_exchange_weak_explicit(&a->peak_bytes, &peak, held, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

static bool try_take(struct memory_account *a, size_t bytes)
{
    size_t held = atomic_load_explicit(&a->held_bytes, memory_order_relaxed);
    do {
        if (bytes > a->limit_bytes || held > a->limit_bytes - bytes)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&a->held_bytes, &held, held + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    note_peak(a, held + bytes);
    return true;
}

bool memory_account_take(struct memory_account *a, size_t bytes)
{
    enum { TRIES = 8 }; // other threads may take the memory that was freed for this thread
    for (int i = 0; i < TRIES; i++) {
        if (try_take(a, bytes))
            return true;
        if (!a->reclaim || bytes > a->limit_bytes)
            return false;
        size_t held = memory_account_held(a), room = a->limit_bytes - bytes;
        a->reclaim(a->user, held > room ? held - room : 0);
    }
    return try_take(a, bytes);
}

void memory_account_add(struct memory_account *a, size_t bytes)
{
    note_peak(a, atomic_fetch_add_explicit(&a->held_bytes, bytes, memory_order_relaxed) + bytes);
}

void memory_account_give(struct memory_account *a, size_t bytes)
{
    atomic_fetch_sub_explicit(&a->held_bytes, bytes, memory_order_relaxed);
}
