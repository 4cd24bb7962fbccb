// io.h - the system calls with which the store changes files, so that tests can make the n-th one
// fail.
//
// All other changes go through the mapping, which shares its pages with `write`. `step` is called
// before and after each publication. If a test copies the file at this moment, the copy is the file
// that a kill would leave.
#ifndef SONDE_STORE_IO_H
#define SONDE_STORE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store_io {
    void *user;
    // All functions return 0 (open: a descriptor) or a negative errno.
    int (*open)(void *user, const char *path, int flags, unsigned mode);
    // Reserves disk space for a part of the file, and extends the file if it ends before the part's
    // end. The content of the part is undefined afterwards.
    int (*reserve)(void *user, int fd, uint64_t offset, uint64_t size);
    int (*truncate)(void *user, int fd, uint64_t size);
    int (*punch)(void *user, int fd, uint64_t offset,
                 uint64_t size);     // frees the disk space of a part, which then reads as zeros
    int (*sync)(void *user, int fd); // returns once data and size are on disk
    int (*map)(void *user, int fd, size_t size, uint8_t **out); // shared, writable
    int (*rename)(void *user, const char *from, const char *to);
    // Writes all bytes to a place where the file already has space. The store uses it for blocks,
    // because writing through the mapping would cause a page fault for every new page, which takes
    // the kernel four times as long. May be NULL. If it fails for another reason than lack of
    // space, the store writes through the mapping.
    int (*write)(void *user, int fd, const void *data, size_t size, uint64_t offset);
    // A sync in the background. flush_start returns 0, or -EOPNOTSUPP if only `sync` works here.
    // *flush is initially 0, and private to these functions. flush_result returns -EINPROGRESS
    // (never with `wait`), otherwise the result of the sync. Both may be NULL.
    int (*flush_start)(void *user, int fd, uint64_t *flush);
    int (*flush_result)(void *user, uint64_t *flush, bool wait);
    void (*flush_free)(void *user, uint64_t *flush); // waits for a flush in progress
    void (*step)(void *user, const char *what);      // may be NULL
};

extern const struct store_io store_io_real;

// Reserves disk space by writing zeros, on file systems that cannot reserve it.
int store_io_write_zeros(int fd, uint64_t offset, uint64_t size);

static inline void store_io_step(const struct store_io *io, const char *what)
{
    if (io->step)
        io->step(io->user, what);
}

#endif
