// direct.h - system calls without libc.
//
// After a system call, a processor with the kernel's protection of return addresses (AMD's "safe
// RET") predicts no return, so each function between the kernel and the program takes 15 ns. A
// wrapper that calls libc's read adds such a function. A wrapper that makes the system call itself
// adds none. It does so only where both are the same:
//
//   - the next function is libc's own: no further library wraps it;
//   - libc's function is no cancellation point, because the process has only ever had one thread,
//     and this thread has not called pthread_cancel for itself.
#ifndef SONDE_TRACE_DIRECT_H
#define SONDE_TRACE_DIRECT_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

// Whether the process has only ever had one thread. Libraries without the variable (glibc before
// 2.32, musl) always say no.
extern char __libc_single_threaded __attribute__((weak));

static inline bool has_one_thread(void)
{
    return &__libc_single_threaded && __libc_single_threaded;
}

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__ILP32__)

extern _Atomic bool direct_is_allowed; // false: the next functions have to be called

static inline void direct_forbid(void)
{
    atomic_store_explicit(&direct_is_allowed, false, memory_order_relaxed);
}

// Allows direct calls if the next functions of all `names` are libc's. NULL ends the names.
void direct_begin(const char *const names[]);

static inline bool direct_is_possible(void)
{
    bool is_allowed = atomic_load_explicit(&direct_is_allowed, memory_order_relaxed);
    return __builtin_expect(is_allowed && has_one_thread(), 1);
}

// Returns a negative error number if the call fails.
static inline long direct_result(long number, long first, long second, long third, long fourth)
{
    register long r10 __asm__("r10") = fourth;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}

#else // returns are predicted, or a system call has another form than libc's function

static inline void direct_begin(const char *const names[])
{
    (void)names;
}

static inline void direct_forbid(void)
{
}

static inline bool direct_is_possible(void)
{
    return false;
}

static inline long direct_result(long number, long first, long second, long third, long fourth)
{
    (void)number, (void)first, (void)second, (void)third, (void)fourth;
    return -ENOSYS;
}

#endif

// Returns what libc's function returns, and sets errno as it does.
static inline long direct_call(long number, long first, long second, long third, long fourth)
{
    long result = direct_result(number, first, second, third, fourth);
    if (__builtin_expect(result >= 0, 1))
        return result;
    errno = (int)-result;
    return -1;
}

// `number` is that of read, write, pread64 or pwrite64.
static inline long direct_moves(long number, int fd, const void *data, size_t size, long at)
{
    return direct_call(number, fd, (long)data, (long)size, at);
}

static inline int direct_open(int folder, const char *path, int flags, unsigned mode)
{
    return (int)direct_call(SYS_openat, folder, (long)path, flags, (long)mode);
}

// `info` is libc's struct stat, which is the kernel's where direct calls are possible. Returns
// false if the call fails, and leaves errno alone.
static inline bool direct_stat(int fd, void *info)
{
    return direct_result(SYS_fstat, fd, (long)info, 0, 0) == 0;
}

static inline int direct_close(int fd)
{
    return (int)direct_call(SYS_close, fd, 0, 0, 0);
}

#endif
