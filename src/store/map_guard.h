// map_guard.h - mapped files that another program cuts short.
//
// Reading or writing a page of a mapping that lies behind the end of its file (or that the disk cannot deliver) raises SIGBUS,
// which ends the process. A guarded mapping survives it: the handler puts zero pages in the place of that page and of all that
// follow, notes where the file ends now, and the access is repeated.
//
//   file      ├── still there ──┤ cut off
//   mapping   ├─────────────────┼──────────────────┤
//                               ▲ *lost            zeros from here on, private to the process
//
// So an access never fails, but what it gave may be zeros: who copies bytes looks at *lost afterwards (map_guard_lost), and
// treats what lies at or behind it as damage. Zeros are there only after *lost says so.
//
// The handler is the process's only as long as something is guarded. A SIGBUS at any other address, or one that was sent by
// kill(2), goes to the handler that was there before: with the same arguments, or with the default action. A program that
// installs a handler of its own meanwhile keeps it; where that does not pass signals on, a mapping that is cut ends the
// process, as it does without a guard. So does one in a thread that blocks SIGBUS: threads of ours leave it unblocked
// (base/thread_signals.h).
//
// All functions are thread-safe; the handler itself takes no lock.
#ifndef SONDE_STORE_MAP_GUARD_H
#define SONDE_STORE_MAP_GUARD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct map_guard;

#define MAP_GUARD_NOTHING_LOST UINT64_MAX

// Guards base[0, size), a mapping of the file `fd` from its beginning with the protection `prot`. *lost is the caller's, begins
// as MAP_GUARD_NOTHING_LOST, and may be that of several mappings of one file; `fd` stays open. NULL: no memory.
struct map_guard *map_guard_add(void *base, size_t size, int prot, int fd, _Atomic uint64_t *lost);

// Before the mapping is given up. NULL is allowed.
void map_guard_remove(struct map_guard *g);

// Notes that nothing at or behind `offset` can be believed.
void map_guard_lose(_Atomic uint64_t *lost, uint64_t offset);

// To be asked behind the reads that it is about.
static inline uint64_t map_guard_lost(const _Atomic uint64_t *lost)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(lost, memory_order_relaxed);
}

#endif
