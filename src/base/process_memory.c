#include "base/process_memory.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { ARENAS = 2 };        // the C library's default is one per thread
enum { TOP_MAX = 8 << 20 }; // free bytes kept at the end of an arena
enum { PAGE_BYTES_MIN = 4096 };

void process_memory_set_up(size_t mapped_from_bytes)
{
    (void)mapped_from_bytes;
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, ARENAS);
    mallopt(M_MMAP_THRESHOLD,
            // after this call, malloc no longer raises the threshold whenever such a block is freed
            (int)mapped_from_bytes);
    mallopt(M_TRIM_THRESHOLD, (int)(mapped_from_bytes < TOP_MAX ? mapped_from_bytes : TOP_MAX));
#endif
}

void process_memory_touch(void *block, size_t bytes)
{
    // volatile: compilers remove writes to a block that nothing reads
    for (size_t i = 0; i < bytes; i += PAGE_BYTES_MIN)
        ((volatile char *)block)[i] = 0;
}

void process_memory_prepare(size_t bytes)
{
    void *block = malloc(bytes);
    if (block)
        process_memory_touch(block, bytes);
    free(block);
}

static void read_pages(unsigned long long *resident, unsigned long long *shared)
{
    unsigned long long all;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f || fscanf(f, "%llu %llu %llu", &all, resident, shared) != 3)
        *resident = *shared = 0;
    if (f)
        fclose(f);
}

size_t process_memory_bytes(void)
{
    unsigned long long resident, shared;
    read_pages(&resident, &shared);
    return shared < resident ? (size_t)(resident - shared) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

size_t process_memory_resident_bytes(void)
{
    unsigned long long resident, shared;
    read_pages(&resident, &shared);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

void process_memory_give_back(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

void process_memory_keep(struct process_memory_keeper *k, size_t slack_bytes, int64_t now_ns)
{
    int64_t before_ns = atomic_load(&k->looked_ns);
    if (before_ns && now_ns - before_ns < PROCESS_MEMORY_LOOK_MS * (int64_t)NS_PER_MS)
        return;
    if (!atomic_compare_exchange_strong(&k->looked_ns, &before_ns, now_ns))
        return; // another thread is checking
    size_t own = process_memory_bytes(), least = atomic_load(&k->least_bytes);
    if (own < least)
        atomic_store(&k->least_bytes, least = own);
    if (own - least < slack_bytes && atomic_fetch_add(&k->looks, 1) < PROCESS_MEMORY_LOOKS_MAX)
        return; // not at the first check: until memory has been returned, the least amount is 0
    atomic_store(&k->looks, 0);
    process_memory_give_back();
    atomic_store(&k->least_bytes, process_memory_bytes());
}

bool process_memory_ease(struct process_memory_keeper *k, size_t above_bytes, size_t bound_bytes,
                         int64_t now_ns)
{
    int64_t before_ns = atomic_load(&k->eased_ns);
    if (now_ns - before_ns < PROCESS_MEMORY_EASE_MS * (int64_t)NS_PER_MS ||
        !atomic_compare_exchange_strong(&k->eased_ns, &before_ns, now_ns))
        return false;
    if (process_memory_bytes() <= above_bytes)
        return false;
    process_memory_give_back();
    return process_memory_bytes() > bound_bytes;
}
