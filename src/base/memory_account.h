// memory_account.h - one number for what requests and caches of a process take, and its bound.
//
//   requests   take before they allocate; past the bound the cache makes room first, then the request is refused
//   caches     add what they keep, and let go of the oldest for as long as the account is over
//
// Thread-safe: the number is atomic. A reservation that does not fit leaves no trace.
#ifndef SONDE_BASE_MEMORY_ACCOUNT_H
#define SONDE_BASE_MEMORY_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct memory_account {
    size_t limit_bytes;
    _Atomic size_t held_bytes;
    _Atomic size_t peak_bytes;
    void (*reclaim)(void *user,
                    size_t bytes); // lets go of at least so many bytes, as far as it can; NULL = nothing can
    void *user;
};

// False: there is no room, also after reclaiming.
bool memory_account_take(struct memory_account *a, size_t bytes);

// Takes without asking: for what is there already.
void memory_account_add(struct memory_account *a, size_t bytes);
void memory_account_give(struct memory_account *a, size_t bytes);

static inline size_t memory_account_held(struct memory_account *a)
{
    return atomic_load_explicit(&a->held_bytes, memory_order_relaxed);
}

static inline bool memory_account_is_over(struct memory_account *a)
{
    return memory_account_held(a) > a->limit_bytes;
}

#endif
