// process_memory.h - the process's own memory, without mapped files: configures malloc, and returns
// free memory to the system.
//
// malloc has an arena for each thread and keeps freed blocks in them. Short-lived blocks of
// requests between long-lived blocks of caches made the aggregator three times as large as its live
// data. So there are two arenas, large blocks are mapped and unmapped on their own, and free memory
// returns to the system when there is more than the process needs.
#ifndef SONDE_BASE_PROCESS_MEMORY_H
#define SONDE_BASE_PROCESS_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Blocks of at least this size are mapped individually: they return to the system as soon as they
// are freed, and a new one costs a page fault for each 4 KiB. Requests make many blocks of a few
// MiB, so a server sets a larger size.
enum { PROCESS_MEMORY_MAPPED_SMALL = 1 << 20, PROCESS_MEMORY_MAPPED_SERVER = 16 << 20 };

// Call it before the process starts its first thread. No effect if malloc is not the GNU C
// library's.
void process_memory_set_up(size_t mapped_from_bytes);

// Resident memory without mapped files and shared memory; 0 if the kernel does not report it.
size_t process_memory_bytes(void);

// Resident memory including mapped files and shared memory.
size_t process_memory_resident_bytes(void);

// Returns malloc's free memory to the system. Takes about a millisecond for 100 MiB.
void process_memory_give_back(void);

// Keeps a process small although it allocates and frees all the time. malloc keeps freed blocks
// between live ones, so it would grow towards the sum of the largest sizes of all its uses.
// Zero-initialise it; threads share it.
struct process_memory_keeper {
    _Atomic int64_t looked_ns, eased_ns;
    _Atomic size_t least_bytes; // the least amount since memory was last returned
    _Atomic unsigned looks;     // looks since then
};

// returning 16 MiB every 5 s, page faults included, takes 0.2 % of a processor
enum { PROCESS_MEMORY_LOOK_MS = 5000 };

// The least amount may be from a moment of high use, which hides memory that malloc keeps. So it is
// measured anew after this many looks.
enum { PROCESS_MEMORY_LOOKS_MAX = 1 };

// Call it after each piece of work. Once in PROCESS_MEMORY_LOOK_MS it returns memory to the system,
// if the process has `slack_bytes` more than its least, or after PROCESS_MEMORY_LOOKS_MAX looks.
// `now_ns`: CLOCK_MONOTONIC.
void process_memory_keep(struct process_memory_keeper *k, size_t slack_bytes, int64_t now_ns);

enum { PROCESS_MEMORY_EASE_MS = 20 }; // one check takes 5 us

// Keeps a process within its bound: call it after each piece of work, in addition to
// process_memory_keep. Once in PROCESS_MEMORY_EASE_MS it returns memory to the system if the
// process has more than `above_bytes`. Returns true if the process still has more than
// `bound_bytes`, so the caller should drop its caches.
bool process_memory_ease(struct process_memory_keeper *k, size_t above_bytes, size_t bound_bytes,
                         int64_t now_ns);

#endif
