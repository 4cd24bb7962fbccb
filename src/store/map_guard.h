// map_guard.h - survives mapped files that another program truncates.
//
// If a program accesses a page of a mapping beyond the end of its file (or a page that the disk
// cannot deliver), the kernel sends SIGBUS, which ends the process. With a guarded mapping the
// process survives: the handler notes the new end of the file, and replaces this page and all later
// pages with zero pages. Then the processor repeats the access.
//
//   file      ├── intact ───────┤ cut off
//   mapping   ├─────────────────┼──────────────────┤
//                               ▲ *lost            zeros from here on, private to the process
//
// So an access never fails, but may read zeros. After copying bytes, check *lost (map_guard_lost),
// and treat bytes at or after that offset as damage. The handler sets *lost before it maps zeros.
//
// The handler is installed only while a mapping is guarded. If a SIGBUS is for another address, or
// kill(2) has sent it, the handler calls the previous handler with the same arguments, or takes the
// default action. If a program installs its own handler meanwhile, that handler stays. Unless it
// passes signals on, a truncated mapping then ends the process, as without a guard. The same
// happens in a thread that blocks SIGBUS; sonde's threads do not (base/thread_signals.h).
//
// All functions are thread-safe; the handler itself takes no lock.
#ifndef SONDE_STORE_MAP_GUARD_H
#define SONDE_STORE_MAP_GUARD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct map_guard;

#define MAP_GUARD_NOTHING_LOST UINT64_MAX

// Guards base[0, size), a mapping of the file `fd` from its beginning with the protection `prot`.
// The caller owns *lost and sets it to MAP_GUARD_NOTHING_LOST; several mappings of one file may
// share it. `fd` must stay open. Returns NULL without memory.
struct map_guard *map_guard_add(void *base, size_t size, int prot, int fd, _Atomic uint64_t *lost);

// Call it before unmapping. NULL is allowed.
void map_guard_remove(struct map_guard *g);

// Notes that the bytes at or after `offset` are lost.
void map_guard_lose(_Atomic uint64_t *lost, uint64_t offset);

// Call it after the reads in question. Acquire: the reads are done before *lost is read, so zeros
// from the handler are never taken for data.
static inline uint64_t map_guard_lost(const _Atomic uint64_t *lost)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(lost, memory_order_relaxed);
}

#endif
