// large.h - memory of many megabytes, in large pages where the system gives them to who asks (transparent huge pages, "madvise").
//
// A block that malloc has fresh from the system costs a page fault for every 4 KiB that is touched first, which takes longer than filling it; in pages of 2 MiB it
// costs a 512th of them. Only whole ones within the block count, so that nothing is taken that would not be used: blocks have LARGE_FROM_BYTES at least.
#ifndef SONDE_BASE_LARGE_H
#define SONDE_BASE_LARGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { LARGE_PAGE_BYTES = 2 << 20, LARGE_FROM_BYTES = 2 * LARGE_PAGE_BYTES };

// Before the block is written to. Where it cannot be had nothing changes.
static inline void large_pages(void *block, size_t size)
{
    if (size < LARGE_FROM_BYTES)
        return;
    uintptr_t from = ((uintptr_t)block + LARGE_PAGE_BYTES - 1) & ~(uintptr_t)(LARGE_PAGE_BYTES - 1);
    uintptr_t to = ((uintptr_t)block + size) & ~(uintptr_t)(LARGE_PAGE_BYTES - 1);
    if (from < to)
        madvise((void *)from, to - from, MADV_HUGEPAGE);
}

#endif
