// fabric_library.h - libfabric, opened at run time, and which of its providers carries data. For
// fabric.c.
#ifndef SONDE_WIRE_FABRIC_LIBRARY_H
#define SONDE_WIRE_FABRIC_LIBRARY_H

#include "wire/bulk.h"

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

// What is called of the library by name; all else are functions of its objects.
struct fabric_library {
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
                   const struct fi_info *hints, struct fi_info **info);
    void (*freeinfo)(struct fi_info *info);
    struct fi_info *(*dupinfo)(const struct fi_info *info);
    int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
    const char *(*strerror)(int code);
    uint32_t (*version)(void);
};

// NULL: it cannot be opened; words in e. It stays open: providers have threads and handlers of
// their own.
const struct fabric_library *fabric_library_open(struct error *e);

// The provider that is meant, free with library->freeinfo. provider: a name of libfabric's, or
// NULL: the best that is there. `made_for_it`: only networks that move data by themselves.
int fabric_choose(const struct fabric_library *library, const char *provider, bool made_for_it,
                  enum wire_side side, const char *near, struct fi_info **out, struct error *e);

// Some providers handle signals, to tidy up. Whose process it is handles its own: what was there is
// put back.
struct fabric_signals;
struct fabric_signals *fabric_signals_keep(void); // NULL: no memory
void fabric_signals_restore(struct fabric_signals *s);

#endif
