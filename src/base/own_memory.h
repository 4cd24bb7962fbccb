// own_memory.h - the memory that this process has to itself, beside mapped files: how malloc keeps it, and how it goes back.
//
// malloc keeps an arena for each thread and what was freed in them: short-lived blocks of requests between long-lived ones of caches
// made the aggregator three times as large as what it held. So there are two arenas, large blocks are mapped and unmapped on their
// own, and what is free goes back to the system when it is more than the process needs.
#ifndef SONDE_BASE_OWN_MEMORY_H
#define SONDE_BASE_OWN_MEMORY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

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

// Keeps a process flat that allocates and frees all the time: malloc keeps freed blocks between live ones, and so grows
// towards the sum of the largest sizes that each use of it ever had. Zero-initialised; shared by threads.
struct own_memory_keeper {
    _Atomic int64_t looked_ns;
    _Atomic size_t least_bytes; // since memory was given back last
};

enum { OWN_MEMORY_LOOK_MS = 5000 }; // giving back 16 MiB every 5 s, page faults included, is 0.2 % of a processor

// Call it behind each piece of work. Once in OWN_MEMORY_LOOK_MS it gives memory back, if the process has `slack_bytes`
// more than the least it had. `now_ns`: CLOCK_MONOTONIC.
void own_memory_keep(struct own_memory_keeper *k, size_t slack_bytes, int64_t now_ns);

#endif
