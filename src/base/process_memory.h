// process_memory.h - the process's own memory, without mapped files: configures malloc, and returns
// free memory to the system.
//
// malloc has an arena for each thread, and keeps freed blocks in the arenas. Because short-lived
// blocks of requests lay between long-lived blocks of caches, the aggregator became three times as
// large as its live data. So malloc has two arenas here, and maps and unmaps large blocks
// individually. Free memory that the process does not need returns to the system.
#ifndef SONDE_BASE_PROCESS_MEMORY_H
#define SONDE_BASE_PROCESS_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// malloc maps blocks of at least this size individually. They return to the system as soon as they
// are freed, and a new block costs a page fault for each 4 KiB. Requests make many blocks of a few
// MiB, so a server sets a larger size.
enum { PROCESS_MEMORY_MAPPED_SMALL = 1 << 20, PROCESS_MEMORY_MAPPED_SERVER = 16 << 20 };

// Call it before the process starts its first thread. It has no effect if malloc is not that of the
// GNU C library.
void process_memory_set_up(size_t mapped_from_bytes);

// Writes to each page of a new block, so that later accesses cost no page faults.
void process_memory_touch(void *block, size_t bytes);

// Takes memory from the system, and frees it in malloc: the next blocks of this thread, or of all
// threads, cost neither page faults nor system calls.
void process_memory_prepare(size_t bytes);

// Returns the resident memory without mapped files and shared memory, or 0 if the kernel does not
// report it.
size_t process_memory_bytes(void);

// Returns the resident memory with mapped files and shared memory.
size_t process_memory_resident_bytes(void);

// Returns malloc's free memory to the system. Takes about a millisecond for 100 MiB.
void process_memory_give_back(void);

// Keeps a process small although it allocates and frees all the time. malloc keeps freed blocks
// between live ones, so without this the process would grow towards the sum of the largest sizes of
// all its uses. Zero-initialise it; threads share it.
struct process_memory_keeper {
    _Atomic int64_t looked_ns, eased_ns;
    _Atomic size_t least_bytes; // the least amount since memory was last returned to the system
    _Atomic unsigned looks;     // number of checks since then
};

// returning 16 MiB every 5 s, page faults included, takes 0.2 % of a processor
enum { PROCESS_MEMORY_LOOK_MS = 5000 };

// If the least amount was measured in a moment of high use, it hides memory that malloc keeps. So
// it is measured again after this many checks.
enum { PROCESS_MEMORY_LOOKS_MAX = 1 };

// Call it after each piece of work. Once in PROCESS_MEMORY_LOOK_MS it returns memory to the system
// if the process has `slack_bytes` more than its least amount, or after PROCESS_MEMORY_LOOKS_MAX
// checks. `now_ns` is a time of CLOCK_MONOTONIC.
void process_memory_keep(struct process_memory_keeper *k, size_t slack_bytes, int64_t now_ns);

enum { PROCESS_MEMORY_EASE_MS = 20 }; // one check takes 5 us

// Keeps a process within its bound: call it after each piece of work, in addition to
// process_memory_keep. Once in PROCESS_MEMORY_EASE_MS it returns memory to the system if the
// process has more than `above_bytes`. Returns true if the process still has more than
// `bound_bytes`, so the caller should drop its caches.
bool process_memory_ease(struct process_memory_keeper *k, size_t above_bytes, size_t bound_bytes,
                         int64_t now_ns);

#endif
