// skew.c - a preloaded library with faults of a host or a process:
//
//   SKEW_MS=250          its clock is 250 ms ahead
//   DIE_COPYING=FILE     while FILE exists, a process that is about to copy from the memory of
//                        another one removes FILE and is killed
#include "../common/next_syscall.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED long syscall(long number, ...)
{
    long a[SYSCALL_ARGUMENTS];
    va_list list;
    va_start(list, number);
    syscall_arguments(list, a);
    va_end(list);
    const char *file = number == SYS_process_vm_readv ? getenv("DIE_COPYING") : NULL;
    if (file && unlink(file) == 0)
        kill(getpid(), SIGKILL);
    return next_syscall(number, a);
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
