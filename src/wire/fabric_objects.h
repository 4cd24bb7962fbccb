// fabric_objects.h - libfabric's objects for a provider: an endpoint, its completion queue, a table
// of addresses, and the registered memory. Included by fabric.c.
//
// Close them only while no read is in progress: closing them during a read crashes some providers
// (tcp;ofi_rxm of libfabric 1.17, with half an answer read).
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
    struct fid_mr *mr;              // NULL: the provider needs none
    int fd;                         // descriptor to wait for completions; -1: the provider has none
    char address[WIRE_ADDRESS_MAX]; // our own
    size_t address_size;
};

// Opens the objects; each time the endpoint has another address. `queue_size` is the number of
// completions. A link registers its memory for reads by others; a hub registers its memory as the
// target of its own reads. On failure, the function returns a code of libfabric, sets *what to the
// failed step, and leaves *o all zero except fd = -1.
int fabric_objects_open(struct fabric_objects *o, const struct fabric_library *library,
                        struct fi_info *info, enum wire_side side, size_t queue_size, char *memory,
                        size_t memory_bytes, const char **what);
void fabric_objects_close(struct fabric_objects *o);

#endif
