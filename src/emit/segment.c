// segment.c - makes the shared memory of segment.h.
#include "base/error.h"
#include "emit/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

static int make_memfd(void)
{
    int fd = memfd_create(SEGMENT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) // before Linux 6.3
        fd = memfd_create(SEGMENT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return emit_high_fd(fd);
}

// Growing a file over RLIMIT_FSIZE would raise SIGXFSZ in a program that did nothing wrong.
static bool size_allowed(size_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

// In a program that has called mlockall(MCL_FUTURE) a new mapping is filled with memory at once, unless it cannot be touched. So it is made
// like that, released from the lock, and opened then.
static void *map(int fd, size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED)
        return NULL;
    munlock(base, bytes);
    if (mprotect(base, bytes, PROT_READ | PROT_WRITE) == 0)
        return base;
    munmap(base, bytes);
    return NULL;
}

char *emit_segment_create(struct emit_process *p, int *fd_out, struct error *e)
{
    int fd = make_memfd();
    if (fd < 0) {
        error_set(e, -errno, "cannot make shared memory: memfd_create: %s", strerror(errno));
        return NULL;
    }
    void *base = NULL;
    for (;;) {
        p->at = segment_layout(p->slots, p->ring_bytes);
        if (size_allowed(p->at.bytes) && ftruncate(fd, (off_t)p->at.bytes) == 0)
            base = map(fd, p->at.bytes);
        if (base || p->slots / 2 < SEGMENT_SLOTS_MIN)
            break;
        p->slots /= 2;
    }
    if (!base || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        error_set(e, -ENOMEM, "cannot map %zu MiB of shared memory (ulimit -v, -f, -l)", p->at.bytes >> 20);
        if (base)
            munmap(base, p->at.bytes);
        close(fd);
        return NULL;
    }
    madvise(base, p->at.bytes, MADV_DONTDUMP); // a core dump has no use for it
    *fd_out = fd;
    return base;
}
