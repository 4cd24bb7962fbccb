// fabric_library.h - opens libfabric at run time, and chooses the provider that carries data.
// Included by fabric.c.
#ifndef SONDE_WIRE_FABRIC_LIBRARY_H
#define SONDE_WIRE_FABRIC_LIBRARY_H

#include "wire/bulk.h"

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

// The library's exported functions. All other functions belong to its objects.
struct fabric_library {
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
                   const struct fi_info *hints, struct fi_info **info);
    void (*freeinfo)(struct fi_info *info);
    struct fi_info *(*dupinfo)(const struct fi_info *info);
    int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
    const char *(*strerror)(int code);
    uint32_t (*version)(void);
};

// Returns the library, or NULL with a message in e. The library stays open, because providers have
// threads and handlers of their own.
const struct fabric_library *fabric_library_open(struct error *e);

// Chooses a provider. Free the result with library->freeinfo. `provider` is libfabric's name of the
// provider, or NULL for the best available one. `made_for_it` accepts only networks that move data
// by themselves.
int fabric_choose(const struct fabric_library *library, const char *provider, bool made_for_it,
                  enum wire_side side, const char *near, struct fi_info **out, struct error *e);

// Saves the process's signal handlers, because some providers install their own handlers for
// cleaning up. fabric_signals_restore puts the old handlers back.
struct fabric_signals;
struct fabric_signals *fabric_signals_keep(void); // NULL: memory is exhausted
void fabric_signals_restore(struct fabric_signals *s);

#endif
