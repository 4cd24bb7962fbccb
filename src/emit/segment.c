// segment.c - makes the shared memory of segment.h.
#include "base/error.h"
#include "emit/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static int make_memfd(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) // before Linux 6.3
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return emit_high_fd(fd);
}

// Growing a file over RLIMIT_FSIZE would raise SIGXFSZ in a correct program.
static bool size_allowed(size_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           bytes <= limit.rlim_cur;
}

// Maps a file. After mlockall(MCL_FUTURE) the kernel would fill a new mapping with memory at once,
// unless it is inaccessible. So the mapping is first inaccessible, then unlocked, then made
// accessible.
static void *map(int fd, size_t bytes)
{
    if (!size_allowed(bytes) || ftruncate(fd, (off_t)bytes) != 0)
        return NULL;
    void *base = mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED)
        return NULL;
    munlock(base, bytes);
    if (mprotect(base, bytes, PROT_READ | PROT_WRITE) == 0) {
        madvise(base, bytes, MADV_DONTDUMP); // core dumps do not need it
        return base;
    }
    munmap(base, bytes);
    return NULL;
}

// Seals the segment: from here on, only our mapping can write it. If sealing fails, the file's mode
// keeps other users from opening the passed descriptor again for writing.
static bool seal_segment(struct emit_segment *s)
{
    enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
    if (fcntl(s->file.fd, F_ADD_SEALS, SEALS | F_SEAL_FUTURE_WRITE) == 0)
        s->sealed = true;
    else if (errno != EINVAL || fchmod(s->file.fd, S_IRUSR) != 0 ||
             fcntl(s->file.fd, F_ADD_SEALS, SEALS) != 0)
        return false;
    return true;
}

bool emit_reserve(const struct emit_file *f, size_t offset, size_t bytes)
{
    int failed;
    struct emit_interrupts before = emit_disable_interrupts(); // fallocate is a cancellation point
    do
        failed = emit_is_open(f) &&
                         fallocate(f->fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) != 0
                     ? errno
                     : 0;
    while (failed == EINTR);
    emit_restore_interrupts(before);
    // EPERM: a filter of system calls, as in containers, forbids it
    return failed == 0 || failed == EOPNOTSUPP || failed == ENOSYS || failed == EPERM;
}

static bool make_agent_area(struct emit_segment *s, uint32_t slots)
{
    size_t tails = sizeof *s->agent + slots * sizeof s->agent->tails[0];
    s->agent_file.fd = make_memfd(SEGMENT_AGENT_NAME);
    if (s->agent_file.fd < 0)
        return false;
    s->agent = map(s->agent_file.fd, SEGMENT_AGENT_BYTES);
    s->agent_file.inode = emit_inode(s->agent_file.fd);
    return s->agent && emit_reserve(&s->agent_file, 0, tails) &&
           fchmod(s->agent_file.fd, S_IRUSR | S_IWUSR) == 0 &&
           fcntl(s->agent_file.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

int emit_segment_create(struct emit_process *p, struct emit_segment *s, struct error *e)
{
    *s = (struct emit_segment){.file = {.fd = -1}, .agent_file = {.fd = -1}};
    s->file.fd = make_memfd(SEGMENT_NAME);
    if (s->file.fd < 0)
        return error_set(e, -errno, "cannot make shared memory: memfd_create: %s", strerror(errno));
    for (;;) {
        p->at = segment_layout(p->slots, p->ring_bytes);
        s->base = map(s->file.fd, p->at.bytes);
        if (s->base || p->slots / 2 < SEGMENT_SLOTS_MIN)
            break;
        p->slots /= 2;
    }
    s->bytes = p->at.bytes;
    s->file.inode = emit_inode(s->file.fd);
    if (s->base && emit_reserve(&s->file, 0, SEGMENT_PAGE) && seal_segment(s) &&
        make_agent_area(s, p->slots))
        return 0;
    emit_segment_destroy(s);
    return error_set(e, -ENOMEM, "cannot map %zu MiB of shared memory (ulimit -v, -f, -l, -n)",
                     p->at.bytes >> 20);
}

void emit_segment_destroy(struct emit_segment *s)
{
    if (s->base)
        munmap(s->base, s->bytes);
    if (s->agent)
        munmap(s->agent, SEGMENT_AGENT_BYTES);
    emit_close(&s->file);
    emit_close(&s->agent_file);
    s->base = NULL;
    s->agent = NULL;
}
