#include "store/io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Makes btrfs overwrite data in place. By default, btrfs writes them to another place. On a full
// disk there is no space for that, and a store through the mapping would kill the process. The flag
// works if it is set while the file is empty. Other file systems write in place anyway, and refuse
// the flag.
static void write_in_place(int fd)
{
    struct stat st;
    int flags;
    if (fstat(fd, &st) || st.st_size || ioctl(fd, FS_IOC_GETFLAGS, &flags))
        return;
    flags |= FS_NOCOW_FL;
    flags &= ~FS_COMPR_FL; // compression and this flag exclude each other
    ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

static int real_open(void *user, const char *path, int flags, unsigned mode)
{
    (void)user;
    int fd = open(path, flags | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    if (flags & O_CREAT)
        write_in_place(fd);
    return fd;
}

// Reserves space by writing zeros, on file systems without fallocate, and if a filter of system
// calls forbids fallocate (EPERM, as in containers).
int store_io_write_zeros(int fd, uint64_t offset, uint64_t size)
{
    static const char zeros[65536];
    while (size) {
        size_t piece = size < sizeof zeros ? (size_t)size : sizeof zeros;
        ssize_t n = pwrite(fd, zeros, piece, (off_t)offset);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        offset += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return 0;
}

static int real_reserve(void *user, int fd, uint64_t offset, uint64_t size)
{
    (void)user;
    while (fallocate(fd, 0, (off_t)offset, (off_t)size)) {
        if (errno == EINTR)
            continue;
        bool absent = errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM;
        return absent ? store_io_write_zeros(fd, offset, size) : -errno;
    }
    return 0;
}

static int real_truncate(void *user, int fd, uint64_t size)
{
    (void)user;
    return ftruncate(fd, (off_t)size) ? -errno : 0;
}

static int real_punch(void *user, int fd, uint64_t offset, uint64_t size)
{
    (void)user;
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size)
               ? -errno
               : 0;
}

static int real_sync(void *user, int fd)
{
    (void)user;
    return fdatasync(fd) ? -errno : 0;
}

static int real_map(void *user, int fd, size_t size, uint8_t **out)
{
    (void)user;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    *out = p;
    return 0;
}

static int real_write(void *user, int fd, const void *data, size_t size, uint64_t offset)
{
    (void)user;
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(fd, (const char *)data + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        done += (size_t)n;
    }
    return 0;
}

static int real_rename(void *user, const char *from, const char *to)
{
    (void)user;
    return rename(from, to) ? -errno : 0;
}

// ---- Syncs in the background ----
//
// They use the kernel's asynchronous I/O, not the C library's, which starts threads. *flush is the
// context.

static int real_flush_start(void *user, int fd, uint64_t *flush)
{
    (void)user;
    aio_context_t context = *flush;
    if (!context && syscall(SYS_io_setup, 1, &context))
        return -EOPNOTSUPP;
    *flush = context;
    struct iocb request = {.aio_fildes = (uint32_t)fd, .aio_lio_opcode = IOCB_CMD_FDSYNC},
                *list = &request;
    return syscall(SYS_io_submit, context, 1L, &list) == 1 ? 0 : -EOPNOTSUPP;
}

static int real_flush_result(void *user, uint64_t *flush, bool wait)
{
    (void)user;
    struct io_event event;
    struct timespec now = {0};
    long n;
    do
        n = syscall(SYS_io_getevents, (aio_context_t)*flush, wait ? 1L : 0L, 1L, &event,
                    wait ? NULL : &now);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n == 0 ? -EINPROGRESS : (int)event.res;
}

static void real_flush_free(void *user, uint64_t *flush)
{
    (void)user;
    if (*flush)
        syscall(SYS_io_destroy, (aio_context_t)*flush);
    *flush = 0;
}

const struct store_io store_io_real = {
    .open = real_open,
    .reserve = real_reserve,
    .truncate = real_truncate,
    .punch = real_punch,
    .sync = real_sync,
    .map = real_map,
    .rename = real_rename,
    .write = real_write,
    .flush_start = real_flush_start,
    .flush_result = real_flush_result,
    .flush_free = real_flush_free,
};
