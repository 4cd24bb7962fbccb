// own_memory.h - the memory that this process has to itself, beside mapped files: how malloc keeps it, and how it goes back.
//
// malloc keeps an arena for each thread and what was freed in them: short-lived blocks of requests between long-lived ones of caches
// made the aggregator three times as large as what it held. So there are two arenas, large blocks are mapped and unmapped on their
// own, and what is free goes back to the system when it is more than the process needs.
#ifndef SONDE_BASE_OWN_MEMORY_H
#define SONDE_BASE_OWN_MEMORY_H

#include <stddef.h>

// Blocks of so many bytes are mapped on their own: they go back as soon as they are freed, and cost a page fault for each 4 KiB when
// they are made again. Requests make many of a few MiB, so a server sets it above them.
enum { OWN_MEMORY_MAPPED_SMALL = 1 << 20, OWN_MEMORY_MAPPED_SERVER = 16 << 20 };

// Before the process starts its first thread. Where malloc is not the GNU C library's nothing changes.
void own_memory_set_up(size_t mapped_from_bytes);

// Resident now, without mapped files and shared memory; 0 where the kernel does not say.
size_t own_memory_bytes(void);

// With them.
size_t own_memory_resident_bytes(void);

// Gives back what malloc holds and nobody uses. Takes about a millisecond for 100 MiB.
void own_memory_give_back(void);

#endif
