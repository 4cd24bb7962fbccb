// skew.c - a preloaded library with faults of a host or a process:
//
//   SKEW_MS=250          its clock is 250 ms ahead
//   DIE_COPYING=FILE     while FILE exists, a process that is about to copy from the memory of
//                        another one removes FILE and is killed
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long a[6];
    va_list list;
    va_start(list, number);
    for (size_t i = 0; i < sizeof a / sizeof *a; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    const char *file = number == SYS_process_vm_readv ? getenv("DIE_COPYING") : NULL;
    if (file && unlink(file) == 0)
        kill(getpid(), SIGKILL);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

EXPORTED int clock_gettime(clockid_t id, struct timespec *t)
{
    const char *skew = getenv("SKEW_MS");
    int r = (int)syscall(SYS_clock_gettime, id, t);
    if (r == 0 && id == CLOCK_REALTIME && skew) {
        long ns = t->tv_nsec + atol(skew) % 1000 * 1000000;
        t->tv_sec += atol(skew) / 1000 + ns / 1000000000;
        t->tv_nsec = ns % 1000000000;
    }
    return r;
}
