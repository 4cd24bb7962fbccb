// own_memory.h - the memory that this process has to itself, beside mapped files: how malloc keeps it, and how it goes back.
//
// malloc keeps an arena for each thread and what was freed in them: short-lived blocks of requests between long-lived ones of caches
// made the aggregator three times as large as what it held. So there is one arena, large blocks are mapped and unmapped on their
// own, and what is free goes back to the system when it is more than the process needs.
#ifndef SONDE_BASE_OWN_MEMORY_H
#define SONDE_BASE_OWN_MEMORY_H

#include <stddef.h>

// Before the process starts its first thread. Where malloc is not the GNU C library's nothing changes.
void own_memory_set_up(void);

// Resident now, without mapped files and shared memory; 0 where the kernel does not say.
size_t own_memory_bytes(void);

// With them.
size_t own_memory_resident_bytes(void);

// Gives back what malloc holds and nobody uses. Takes about a millisecond for 100 MiB.
void own_memory_give_back(void);

#endif
