// next_syscall.h - for programs and preloaded libraries whose own syscall() replaces libc's.
#ifndef TESTS_COMMON_NEXT_SYSCALL_H
#define TESTS_COMMON_NEXT_SYSCALL_H

#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>

enum { SYSCALL_ARGUMENTS = 6 };

static inline void syscall_arguments(va_list list, long a[SYSCALL_ARGUMENTS])
{
    for (size_t i = 0; i < SYSCALL_ARGUMENTS; i++)
        a[i] = va_arg(list, long);
}

static inline long next_syscall(long number, const long a[SYSCALL_ARGUMENTS])
{
    static long (*next)(long, ...);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#endif
