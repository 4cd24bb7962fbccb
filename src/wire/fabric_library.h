// fabric_library.h - opens libfabric at run time and chooses the provider that carries data. For
// fabric.c.
#ifndef SONDE_WIRE_FABRIC_LIBRARY_H
#define SONDE_WIRE_FABRIC_LIBRARY_H

#include "wire/bulk.h"

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

// The functions of the library that are called by name; all others are functions of its objects.
struct fabric_library {
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
                   const struct fi_info *hints, struct fi_info **info);
    void (*freeinfo)(struct fi_info *info);
    struct fi_info *(*dupinfo)(const struct fi_info *info);
    int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
    const char *(*strerror)(int code);
    uint32_t (*version)(void);
};

// Returns NULL with words in e if it cannot be opened. It stays open, because providers have
// threads and handlers of their own.
const struct fabric_library *fabric_library_open(struct error *e);

// Chooses a provider; free the result with library->freeinfo. provider: libfabric's name, or NULL
// for the best available. `made_for_it`: only networks that move data by themselves.
int fabric_choose(const struct fabric_library *library, const char *provider, bool made_for_it,
                  enum wire_side side, const char *near, struct fi_info **out, struct error *e);

// Keeps the process's signal handlers, because some providers install handlers of their own for
// cleaning up. Restoring puts the old handlers back.
struct fabric_signals;
struct fabric_signals *fabric_signals_keep(void); // NULL without memory
void fabric_signals_restore(struct fabric_signals *s);

#endif
