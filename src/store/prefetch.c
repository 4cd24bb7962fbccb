#include "store/prefetch.h"

#include <fcntl.h>
#include <stdatomic.h>

static const uint64_t run_max = 1 << 20;
// Longer gaps end a run. So reading the directories alone, of blocks of the usual size, is a run.
static const uint64_t gap_max = 256 << 10;

static void request(int fd, uint64_t from, uint64_t to)
{
    posix_fadvise(fd, (off_t)from, (off_t)(to - from), POSIX_FADV_WILLNEED);
}

void prefetch_bytes(struct prefetch *p, int fd, uint64_t offset, uint64_t size)
{
    uint64_t from = atomic_load_explicit(&p->from, memory_order_relaxed);
    uint64_t to = atomic_load_explicit(&p->to, memory_order_relaxed);
    uint64_t end = offset + size, run = to - from;
    if (offset >= from && end <= to)
        return;
    if (offset < from || offset > to + gap_max || !run) {
        request(fd, offset, end);
        atomic_store_explicit(&p->from, offset, memory_order_relaxed);
    } else if (run < run_max) {
        end = end > to + run ? end : to + run;
        request(fd, to, end);
    }
    atomic_store_explicit(&p->to, end, memory_order_relaxed);
}
