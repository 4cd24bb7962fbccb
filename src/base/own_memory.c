#include "base/own_memory.h"

#include <stdio.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum {
    // Setting it also ends malloc's habit of raising it with each large block that is freed.
    MAPPED_FROM_BYTES = 1 << 20,
    TOP_KEPT_BYTES = 1 << 20,
};

void own_memory_set_up(void)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES);
    mallopt(M_TRIM_THRESHOLD, TOP_KEPT_BYTES);
#endif
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

size_t own_memory_bytes(void)
{
    unsigned long long resident, shared;
    read_pages(&resident, &shared);
    return shared < resident ? (size_t)(resident - shared) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

size_t own_memory_resident_bytes(void)
{
    unsigned long long resident, shared;
    read_pages(&resident, &shared);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

void own_memory_give_back(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
