// lazy_library.h - loads a shared library when it is first needed, and not at the start of each
// process: libcurl and libmicrohttpd, with the libraries behind them, take 7 ms, and most commands
// need neither. A portable archive contains them; their functions are then linked.
#ifndef SONDE_BASE_LAZY_LIBRARY_H
#define SONDE_BASE_LAZY_LIBRARY_H

#include "base/error.h"

#include <stddef.h>

struct lazy_function {
    const char *name;
    void *to; // the address of a pointer to a function
};

// Loads the library `file` and sets the pointers. The library stays loaded. Returns 0, or -ELIBACC
// with a message.
int lazy_library_load(const char *file, const struct lazy_function *functions, size_t count,
                      struct error *e);

#endif
