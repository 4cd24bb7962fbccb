// fabric_internal.h - shared by fabric.c (the bulk's functions, lifetime and progress) and
// fabric_reads.c (fetches).
#ifndef SONDE_WIRE_FABRIC_INTERNAL_H
#define SONDE_WIRE_FABRIC_INTERNAL_H

#include "base/list.h"
#include "wire/fabric_objects.h"
#include "wire/fabric_watch.h"

#include <rdma/fi_endpoint.h>

struct wire_bulk_peer {
    struct fabric *fabric;
    struct list_link of_fabric;
    char name[WIRE_ADDRESS_MAX]; // the address that the node sent
    fi_addr_t address;           // FI_ADDR_NOTAVAIL: the provider rejected the address
    uint64_t base, key;          // base and key of the node's window
    unsigned reads;              // number of slots with a read from this node
    bool parted;
};

struct slot {
    struct fi_context2 context;  // the first member, for the provider; a completion refers to it
    struct wire_fetch *fetch;    // NULL: unused, or given up
    struct wire_bulk_peer *peer; // NULL: unused
    int64_t lost_ns;             // time when the fetch was given up
};

struct fabric {
    struct wire_bulk bulk; // the first member: the bulk is the fabric
    struct wire_loop *loop;
    const struct fabric_library *library;
    enum wire_side side;
    struct fi_info *info;
    struct fabric_objects o;
    struct fabric_watch *watch; // only for the provider shm
    char *memory;               // the window or the landing
    size_t memory_bytes;
    struct list_link peers;
    uv_poll_t *poll; // NULL: the provider has no descriptor
    uv_prepare_t *prepare;
    uv_timer_t *timer;
    uint64_t poll_ms;
    bool awaited, timing;
    bool described;     // to a hub; only for a link
    struct slot *slots; // WIRE_LANDING_SLOTS
    unsigned asides;
    struct list_link waiting; // fetches, oldest first
};

// Queues a fetch, which a later fabric_begin_read starts.
void fabric_queue(struct fabric *f, struct wire_fetch *fetch);
void fabric_give_up(struct wire_fetch *fetch); // implements give_up of struct wire_bulk_row

// Handles the next completion. Returns false if there is none.
bool fabric_complete_read(struct fabric *f);

// Starts the next read that can start. Returns false if none can. If a read fails to start, `done`
// is called at once, and may change the list.
bool fabric_begin_read(struct fabric *f);

// Times out one expired fetch; returns false if there is none.
bool fabric_expire_read(struct fabric *f, int64_t now_ns);

bool fabric_is_reading(const struct fabric *f);

// True if a read that was given up is so late that it will probably never complete.
bool fabric_has_lost(const struct fabric *f, int64_t now_ns);

// Handles the slots of a replaced endpoint: queues their fetches again, and releases their nodes.
void fabric_release_slots(struct fabric *f, struct slot *slots);

// Frees a disconnected node as soon as no read from it is in progress.
void fabric_forget_peer(struct wire_bulk_peer *p);

#endif
