// fabric_objects.h - what libfabric makes of a provider: an endpoint, the queue of what it has
// done, a table of addresses, and the memory that it may read or write. For fabric.c.
//
// They are closed when no read is under way: closing them in the middle of one crashes some
// providers (tcp;ofi_rxm of libfabric 1.17, with half an answer read).
#ifndef SONDE_WIRE_FABRIC_OBJECTS_H
#define SONDE_WIRE_FABRIC_OBJECTS_H

#include "wire/fabric_library.h"

#include <rdma/fi_domain.h>

struct fabric_objects {
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_cq *cq;
    struct fid_av *av;
    struct fid_ep *ep;
    struct fid_mr *mr;              // NULL: none is needed
    int fd;                         // to wait for completions; -1: there is none
    char address[WIRE_ADDRESS_MAX]; // its own
    size_t address_size;
};

// `queue_size`: completions. A link's memory is read by others, a hub's is read into. *what: the
// step that failed; a code of libfabric's. All zero, and fd -1, where it failed. Each time the
// endpoint has another address.
int fabric_objects_open(struct fabric_objects *o, const struct fabric_library *library,
                        struct fi_info *info, enum wire_side side, size_t queue_size, char *memory,
                        size_t memory_bytes, const char **what);
void fabric_objects_close(struct fabric_objects *o);

#endif
