// memory_account.h - counts the memory of a process's requests and caches, and enforces its limit.
//
//   requests   reserve memory before they allocate; beyond the limit, first the cache frees memory,
//              then the account refuses the request
//   caches     add the bytes that they keep, and drop their oldest entries while the account is
//              over its limit
//
// Thread-safe: the number is atomic. A reservation that fails leaves the number unchanged.
#ifndef SONDE_BASE_MEMORY_ACCOUNT_H
#define SONDE_BASE_MEMORY_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct memory_account {
    size_t limit_bytes;
    _Atomic size_t held_bytes;
    _Atomic size_t peak_bytes;
    // Frees at least `bytes` if possible; NULL = nothing to free.
    void (*reclaim)(void *user, size_t bytes);
    void *user;
};

// Returns false if the limit leaves no room, even after reclaiming.
bool memory_account_take(struct memory_account *a, size_t bytes);

// Adds memory that is already allocated, without checking the limit.
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
