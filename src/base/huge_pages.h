// huge_pages.h - large blocks in huge pages, if the system offers them on request (transparent huge
// pages, "madvise").
//
// A new block from the system costs a page fault for each 4 KiB at the first access. The fault
// takes longer than filling the page. With pages of 2 MiB, there are 512 times fewer faults. Only
// pages that lie wholly within the block become huge, so no memory is wasted. Use it for blocks of
// at least HUGE_PAGES_FROM_BYTES.
#ifndef SONDE_BASE_HUGE_PAGES_H
#define SONDE_BASE_HUGE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE_BYTES = 2 << 20, HUGE_PAGES_FROM_BYTES = 2 * HUGE_PAGE_BYTES };

// Call it before the first write to the block. Without support by the system it has no effect.
static inline void huge_pages_advise(void *block, size_t size)
{
    if (size < HUGE_PAGES_FROM_BYTES)
        return;
    uintptr_t from = ((uintptr_t)block + HUGE_PAGE_BYTES - 1) & ~(uintptr_t)(HUGE_PAGE_BYTES - 1);
    uintptr_t to = ((uintptr_t)block + size) & ~(uintptr_t)(HUGE_PAGE_BYTES - 1);
    if (from < to)
        madvise((void *)from, to - from, MADV_HUGEPAGE);
}

// Returns a block with undefined contents; NULL without memory. One of at least HUGE_PAGE_BYTES is
// mapped on its own: it begins at a huge page, and returns to the system when it is freed.
static inline void *huge_pages_alloc(size_t size)
{
    if (size < HUGE_PAGE_BYTES)
        return malloc(size);
    size_t mapped = size + HUGE_PAGE_BYTES;
    char *at =
        (char *)mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), early = -(uintptr_t)at & (HUGE_PAGE_BYTES - 1);
    size_t end = (early + size + page - 1) & ~(page - 1);
    if (early)
        munmap(at, early);
    munmap(at + end, mapped - end);
    madvise(at + early, size, MADV_HUGEPAGE);
    return at + early;
}

static inline void huge_pages_free(void *block, size_t size)
{
    if (size < HUGE_PAGE_BYTES)
        free(block);
    else
        munmap(block, size);
}

#endif
