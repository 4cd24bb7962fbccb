// huge_heap.h - a heap of limited size for blocks of up to a megabyte, in huge pages if the system
// has them (huge_pages.h).
//
// malloc's memory comes from the system in pages of 4 KiB, and the first write to each page is a
// page fault. A cache that fills for the first time spends more time in these faults than in its
// copies. This heap takes huge pages, its chunks, one at a time:
//
//   chunk, HUGE_PAGE_BYTES, aligned to its size
//   ┌───────┬───────┬──────┬───────┬───────────────┬───────┬─────┐
//   │ chunk │ block │ free │ block │ free          │ block │ end │
//   └───────┴───────┴──────┴───────┴───────────────┴───────┴─────┘
//
// A block comes from the first chunk that has room, so the last chunks become empty. Adjacent free
// blocks join. An empty chunk returns to the system, except one.
//
// Not thread-safe: the caller has a lock.
#ifndef SONDE_BASE_HUGE_HEAP_H
#define SONDE_BASE_HUGE_HEAP_H

#include <stddef.h>

enum { HUGE_HEAP_BLOCK_MAX = 1 << 20 };

struct huge_heap;

// Makes an empty heap, which takes at most this many chunks. Returns NULL if memory is exhausted.
struct huge_heap *huge_heap_create(size_t chunks_max);
// Blocks that were not given back become invalid. NULL is allowed.
void huge_heap_destroy(struct huge_heap *h);

// Returns a block, aligned to 16 bytes, or NULL if the chunks have no room or the system has no
// memory. The content is undefined.
void *huge_heap_take(struct huge_heap *h, size_t bytes);
void huge_heap_give(struct huge_heap *h, void *block); // NULL is allowed

// Returns the empty chunk that the heap keeps to the system.
void huge_heap_trim(struct huge_heap *h);

size_t huge_heap_chunks(const struct huge_heap *h); // number of chunks that it has now

#endif
