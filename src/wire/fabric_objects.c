#include "wire/fabric_objects.h"

#include "wire/fabric_memory.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const uint64_t WINDOW_KEY = 1; // if the provider lets us choose it

static void close_fid(struct fid *fid)
{
    if (fid)
        fi_close(fid);
}

#define CLOSE(object) close_fid((object) ? &(object)->fid : NULL)

void fabric_objects_close(struct fabric_objects *o)
{
    struct fabric_signals *signals = fabric_signals_keep();
    CLOSE(o->ep);
    CLOSE(o->mr);
    CLOSE(o->cq);
    CLOSE(o->av);
    CLOSE(o->domain);
    CLOSE(o->fabric);
    fabric_signals_restore(signals);
    *o = (struct fabric_objects){.fd = -1};
}

static int open_queue(struct fabric_objects *o, size_t size)
{
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_FD, .size = size};
    if (fi_cq_open(o->domain, &attr, &o->cq, NULL) == 0 &&
        fi_control(&o->cq->fid, FI_GETWAIT, &o->fd) == 0)
        return 0;
    o->fd = -1;
    CLOSE(o->cq);
    o->cq = NULL;
    attr.wait_obj = FI_WAIT_NONE;
    return fi_cq_open(o->domain, &attr, &o->cq, NULL);
}

static int register_memory(struct fabric_objects *o, int mode, enum wire_side side, char *memory,
                           size_t bytes)
{
    if (side == WIRE_HUB && !(mode & FI_MR_LOCAL))
        return 0;
    // A fork must not detach pages that the network reads or writes.
    madvise(memory, bytes, MADV_DONTFORK);
    int r = fi_mr_reg(o->domain, memory, bytes, side == WIRE_HUB ? FI_READ : FI_REMOTE_READ, 0,
                      WINDOW_KEY, 0, &o->mr, NULL);
    if (r == 0 && mode & FI_MR_ENDPOINT) {
        r = fi_mr_bind(o->mr, &o->ep->fid, 0);
        r = r ? r : fi_mr_enable(o->mr);
    }
    return r;
}

// Gives the memory of the provider shm a name of our own.
static int name_memory(struct fi_info *info)
{
    char name[FABRIC_MEMORY_NAME];
    char *copy = fabric_memory_name(name) == 0 ? strdup(name) : NULL;
    if (!copy)
        return -FI_ENOMEM;
    free(info->src_addr);
    info->src_addr = copy;
    info->src_addrlen = strlen(copy) + 1;
    return 0;
}

static int open_objects(struct fabric_objects *o, const struct fabric_library *library,
                        struct fi_info *info, enum wire_side side, size_t queue_size, char *memory,
                        size_t memory_bytes, const char **what)
{
    struct fi_av_attr table = {.type = info->domain_attr->av_type == FI_AV_MAP ? FI_AV_MAP
                                                                               : FI_AV_TABLE};
    int r = 0;
    if (strcmp(info->fabric_attr->prov_name, FABRIC_MEMORY_PROVIDER) == 0) {
        *what = "a name for its memory";
        r = name_memory(info);
    }
    if (r == 0) {
        *what = "the fabric";
        r = library->fabric(info->fabric_attr, &o->fabric, NULL);
    }
    if (r == 0) {
        *what = "a domain";
        r = fi_domain(o->fabric, info, &o->domain, NULL);
    }
    if (r == 0) {
        *what = "a completion queue";
        r = open_queue(o, queue_size);
    }
    if (r == 0) {
        *what = "an address table";
        r = fi_av_open(o->domain, &table, &o->av, NULL);
    }
    if (r == 0) {
        *what = "an endpoint";
        r = fi_endpoint(o->domain, info, &o->ep, NULL);
        r = r ? r : fi_ep_bind(o->ep, &o->av->fid, 0);
        r = r ? r : fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV);
        r = r ? r : fi_enable(o->ep);
    }
    if (r == 0) {
        *what = "memory";
        r = register_memory(o, info->domain_attr->mr_mode, side, memory, memory_bytes);
    }
    if (r == 0) {
        *what = "its own address";
        o->address_size = sizeof o->address;
        r = fi_getname(&o->ep->fid, o->address, &o->address_size);
    }
    return r;
}

int fabric_objects_open(struct fabric_objects *o, const struct fabric_library *library,
                        struct fi_info *info, enum wire_side side, size_t queue_size, char *memory,
                        size_t memory_bytes, const char **what)
{
    struct fabric_signals *signals = fabric_signals_keep();
    *o = (struct fabric_objects){.fd = -1};
    int r = open_objects(o, library, info, side, queue_size, memory, memory_bytes, what);
    fabric_signals_restore(signals);
    if (r)
        fabric_objects_close(o);
    return r;
}
