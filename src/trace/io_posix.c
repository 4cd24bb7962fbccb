// io_posix.c - wrappers of the calls on descriptors.
//
// Each wrapper has the name of a libc function, calls the next function of this name, and reports
// the call. Functions with and without 64 in their names (open, open64) are different functions
// here. So this file is compiled without libc's renaming and without its inline functions.
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1
#endif

#include "trace/direct.h"
#include "trace/io.h"
#include "trace/next.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC // libc before 2.34
#define CLOSE_RANGE_CLOEXEC 4U
#endif
int close_range(unsigned from, unsigned to, int flags);
void closefrom(int from);

// clang-format off
#define WRAPPER __attribute__((visibility("default")))
// clang-format on

const char *const io_direct[] = {"open",  "open64",  "openat",  "openat64", "read",
                                 "pread", "pread64", "write",   "pwrite",   "pwrite64",
                                 "close", "fstat",   "fstat64", NULL};

// ---- opening

static bool has_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

// Reads the mode argument, which exists only with some flags.
#define MODE(flags, mode)                   \
    mode_t mode = 0;                        \
    if (has_mode(flags)) {                  \
        va_list arguments;                  \
        va_start(arguments, flags);         \
        mode = va_arg(arguments, unsigned); \
        va_end(arguments);                  \
    }

#define OPEN(name)                                                               \
    WRAPPER int name(const char *path, int flags, ...)                           \
    {                                                                            \
        NEXT(name)                                                               \
        MODE(flags, mode)                                                        \
        uint64_t begin = io_begin_open();                                        \
        int fd = direct_is_possible() ? direct_open(AT_FDCWD, path, flags, mode) \
                                      : next(path, flags, mode);                 \
        io_opened(fd, begin);                                                    \
        return fd;                                                               \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                           \
    WRAPPER int name(int folder, const char *path, int flags, ...)             \
    {                                                                          \
        NEXT(name)                                                             \
        MODE(flags, mode)                                                      \
        uint64_t begin = io_begin_open();                                      \
        int fd = direct_is_possible() ? direct_open(folder, path, flags, mode) \
                                      : next(folder, path, flags, mode);       \
        io_opened(fd, begin);                                                  \
        return fd;                                                             \
    }
OPENAT(openat)
OPENAT(openat64)

// A wrapper of a call that opens a file. `declared` are its parameters, `passed` the arguments.
#define OPENS(name, declared, passed)     \
    WRAPPER int name declared             \
    {                                     \
        NEXT(name)                        \
        uint64_t begin = io_begin_open(); \
        int fd = next passed;             \
        io_opened(fd, begin);             \
        return fd;                        \
    }
OPENS(creat, (const char *path, mode_t mode), (path, mode))
OPENS(creat64, (const char *path, mode_t mode), (path, mode))
OPENS(mkstemp, (char *path), (path))
OPENS(mkstemp64, (char *path), (path))
OPENS(mkostemp, (char *path, int flags), (path, flags))
OPENS(mkostemp64, (char *path, int flags), (path, flags))

// Programs that were compiled with _FORTIFY_SOURCE call these functions.
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
OPENS(__open_2, (const char *path, int flags), (path, flags))
OPENS(__open64_2, (const char *path, int flags), (path, flags))
OPENS(__openat_2, (int folder, const char *path, int flags), (folder, path, flags))
OPENS(__openat64_2, (int folder, const char *path, int flags), (folder, path, flags))

// ---- reading and writing

// A wrapper of a call on the descriptor `fd` that returns a number of bytes. `call` makes it.
#define MOVES_BY(op, name, declared, passed, call) \
    WRAPPER ssize_t name declared                  \
    {                                              \
        NEXT(name)                                 \
        uint64_t begin = io_begin(fd);             \
        if (!begin)                                \
            return next passed;                    \
        ssize_t bytes = call;                      \
        io_count(fd, op, bytes, begin);            \
        return bytes;                              \
    }
#define MOVES(op, name, declared, passed) MOVES_BY(op, name, declared, passed, next passed)
// `at` is 0 for calls without a position.
#define MOVES_DIRECTLY(op, name, number, declared, passed, at) \
    MOVES_BY(op, name, declared, passed,                       \
             direct_is_possible() ? direct_moves(number, fd, data, size, at) : next passed)
typedef const struct iovec parts;
MOVES_DIRECTLY(IO_READ, read, SYS_read, (int fd, void *data, size_t size), (fd, data, size), 0)
MOVES_DIRECTLY(IO_READ, pread, SYS_pread64, (int fd, void *data, size_t size, off_t at),
               (fd, data, size, at), at)
MOVES_DIRECTLY(IO_READ, pread64, SYS_pread64, (int fd, void *data, size_t size, off64_t at),
               (fd, data, size, at), at)
MOVES(IO_READ, readv, (int fd, parts *to, int count), (fd, to, count))
MOVES(IO_READ, preadv, (int fd, parts *to, int count, off_t at), (fd, to, count, at))
MOVES(IO_READ, preadv64, (int fd, parts *to, int count, off64_t at), (fd, to, count, at))
MOVES(IO_READ, preadv2, (int fd, parts *to, int count, off_t at, int flags),
      (fd, to, count, at, flags))
MOVES(IO_READ, preadv64v2, (int fd, parts *to, int count, off64_t at, int flags),
      (fd, to, count, at, flags))
MOVES_DIRECTLY(IO_WRITE, write, SYS_write, (int fd, const void *data, size_t size),
               (fd, data, size), 0)
MOVES_DIRECTLY(IO_WRITE, pwrite, SYS_pwrite64, (int fd, const void *data, size_t size, off_t at),
               (fd, data, size, at), at)
MOVES_DIRECTLY(IO_WRITE, pwrite64, SYS_pwrite64,
               (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at), at)
MOVES(IO_WRITE, writev, (int fd, parts *from, int count), (fd, from, count))
MOVES(IO_WRITE, pwritev, (int fd, parts *from, int count, off_t at), (fd, from, count, at))
MOVES(IO_WRITE, pwritev64, (int fd, parts *from, int count, off64_t at), (fd, from, count, at))
MOVES(IO_WRITE, pwritev2, (int fd, parts *from, int count, off_t at, int flags),
      (fd, from, count, at, flags))
MOVES(IO_WRITE, pwritev64v2, (int fd, parts *from, int count, off64_t at, int flags),
      (fd, from, count, at, flags))

ssize_t __read_chk(int fd, void *to, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *to, size_t size, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *to, size_t size, off64_t at, size_t room);
MOVES(IO_READ, __read_chk, (int fd, void *to, size_t size, size_t room), (fd, to, size, room))
MOVES(IO_READ, __pread_chk, (int fd, void *to, size_t size, off_t at, size_t room),
      (fd, to, size, at, room))
MOVES(IO_READ, __pread64_chk, (int fd, void *to, size_t size, off64_t at, size_t room),
      (fd, to, size, at, room))

// A wrapper of a call that moves bytes from one descriptor to another. It counts as a read of one
// and a write of the other, each with the whole time.
#define COPIES(name, declared, passed)                             \
    WRAPPER ssize_t name declared                                  \
    {                                                              \
        NEXT(name)                                                 \
        uint64_t begin = io_begin(from), begin_too = io_begin(to); \
        ssize_t bytes = next passed;                               \
        io_count(from, IO_READ, bytes, begin);                     \
        io_count(to, IO_WRITE, bytes, begin_too);                  \
        return bytes;                                              \
    }
COPIES(sendfile, (int to, int from, off_t *at, size_t size), (to, from, at, size))
COPIES(sendfile64, (int to, int from, off64_t *at, size_t size), (to, from, at, size))
COPIES(copy_file_range,
       (int from, off64_t *from_at, int to, off64_t *to_at, size_t size, unsigned flags),
       (from, from_at, to, to_at, size, flags))

#define SYNCS(name)                      \
    WRAPPER int name(int fd)             \
    {                                    \
        NEXT(name)                       \
        uint64_t begin = io_begin(fd);   \
        int result = next(fd);           \
        io_count(fd, IO_SYNC, 0, begin); \
        return result;                   \
    }
SYNCS(fsync)
SYNCS(fdatasync)

// ---- closing and duplicating

WRAPPER int close(int fd)
{
    NEXT(close)
    uint64_t begin = io_begin(fd);
    struct io_cells *mount = io_forget(fd);
    int result = direct_is_possible() ? direct_close(fd) : next(fd);
    io_closed(mount, begin);
    return result;
}

WRAPPER int dup2(int fd, int to)
{
    NEXT(dup2)
    if (fd != to)
        io_forget(to);
    return next(fd, to);
}

WRAPPER int dup3(int fd, int to, int flags)
{
    NEXT(dup3)
    io_forget(to);
    return next(fd, to, flags);
}

WRAPPER int close_range(unsigned from, unsigned to, int flags)
{
    NEXT(close_range)
    if (!(flags & (int)CLOSE_RANGE_CLOEXEC))
        io_forget_range(from, to);
    if (next)
        return next(from, to, flags);
    // libc does not have the function, so the program has found this wrapper with dlsym
    errno = ENOSYS;
    return -1;
}

WRAPPER void closefrom(int from)
{
    NEXT(closefrom)
    io_forget_range(from > 0 ? (unsigned)from : 0, UINT_MAX);
    if (next)
        next(from);
}

// The system call fstat takes 50 ns less than newfstatat, which glibc 2.33 to 2.38 make. A filter
// of system calls may allow only the latter, so if fstat fails, libc makes its own call. Without
// direct calls, a call on a descriptor whose kind is known is passed on by a jump.
#define STATS(name, type, look_at)                                                     \
    WRAPPER int name(int fd, struct type *info)                                        \
    {                                                                                  \
        NEXT(name)                                                                     \
        bool direct = next && direct_is_possible();                                    \
        if (next && !direct && io_state(fd) != IO_UNKNOWN)                             \
            return next(fd, info);                                                     \
        if (!direct || !direct_stat(fd, info)) {                                       \
            int result = next ? next(fd, info) : look_at(fd, "", info, AT_EMPTY_PATH); \
            if (result != 0)                                                           \
                return result;                                                         \
        }                                                                              \
        if (io_state(fd) == IO_UNKNOWN)                                                \
            io_learn(fd, info->st_dev, info->st_ino, info->st_mode);                   \
        return 0;                                                                      \
    }
STATS(fstat, stat, fstatat)
STATS(fstat64, stat64, fstatat64)

// ---- calls after which system calls cannot be made directly

WRAPPER int pthread_cancel(pthread_t thread)
{
    NEXT(pthread_cancel)
    direct_forbid();
    return next(thread);
}

// ---- jumps, by which a signal handler may leave the accounting

#define JUMPS(name)                                                    \
    WRAPPER __attribute__((noreturn)) void name(jmp_buf to, int value) \
    {                                                                  \
        NEXT(name)                                                     \
        io_abandon();                                                  \
        next(to, value);                                               \
        __builtin_unreachable();                                       \
    }
void __longjmp_chk(jmp_buf to, int value); // programs that were compiled with _FORTIFY_SOURCE
JUMPS(longjmp)
JUMPS(_longjmp)
JUMPS(siglongjmp)
JUMPS(__longjmp_chk)

// ---- calls that end a program without running destructors

WRAPPER void _exit(int code)
{
    NEXT(_exit)
    io_abandon();
    io_forget_range(0, UINT_MAX);
    next(code);
    __builtin_unreachable();
}

WRAPPER void _Exit(int code)
{
    _exit(code);
}

// If it fails, the kinds of the descriptors are looked up again at their next calls.
#define BECOMES(name, declared, passed) \
    WRAPPER int name declared           \
    {                                   \
        NEXT(name)                      \
        io_forget_range(0, UINT_MAX);   \
        return next passed;             \
    }
typedef char *const words[];
BECOMES(execve, (const char *path, words arguments, words variables), (path, arguments, variables))
BECOMES(execv, (const char *path, words arguments), (path, arguments))
BECOMES(execvp, (const char *path, words arguments), (path, arguments))
BECOMES(execvpe, (const char *path, words arguments, words variables), (path, arguments, variables))
