// next.h - finds the function that a wrapper replaces.
#ifndef SONDE_TRACE_NEXT_H
#define SONDE_TRACE_NEXT_H

#include <dlfcn.h>

// Declares `next`, the function of this name in the libraries after ours. It is looked up at the
// first call, because constructors of other libraries may call it before our constructors have run.
// Threads that look it up at the same time get the same result.
#define NEXT(name)                  \
    static __typeof__(&name) next;  \
    if (__builtin_expect(!next, 0)) \
        next = (__typeof__(&name))dlsym(RTLD_NEXT, #name);

#endif
