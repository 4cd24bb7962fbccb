// fabric_internal.h - shared by fabric.c (the row, its life and its progress) and fabric_reads.c
// (what is being fetched).
#ifndef SONDE_WIRE_FABRIC_INTERNAL_H
#define SONDE_WIRE_FABRIC_INTERNAL_H

#include "base/list.h"
#include "wire/fabric_objects.h"

#include <rdma/fi_endpoint.h>

struct wire_bulk_peer {
    struct fabric *fabric;
    struct list_link of_fabric;
    char name[WIRE_ADDRESS_MAX]; // its address, as it told us
    fi_addr_t address;           // FI_ADDR_NOTAVAIL: the provider does not take it
    uint64_t base, key;          // of its window
    unsigned reads;              // in slots
    bool parted;
};

struct slot {
    struct fi_context2 context;  // first: the provider's; what a completion names
    struct wire_fetch *fetch;    // NULL: free, or lost
    struct wire_bulk_peer *peer; // NULL: free
    int64_t lost_ns;             // when its fetch was given up
};

struct fabric {
    struct wire_bulk bulk; // first: the bulk is this
    struct wire_loop *loop;
    const struct fabric_library *library;
    enum wire_side side;
    struct fi_info *info;
    struct fabric_objects o;
    char *memory; // the window, or the landing
    size_t memory_bytes;
    struct list_link peers;
    uv_poll_t *poll; // NULL: the provider has no descriptor
    uv_prepare_t *prepare;
    uv_timer_t *timer;
    uint64_t poll_ms;
    bool awaited, timing;
    struct slot *slots; // WIRE_LANDING_SLOTS
    unsigned asides;
    struct list_link waiting; // fetches, oldest first
};

// Queues a fetch, which the next fabric_begin_read begins.
void fabric_queue(struct fabric *f, struct wire_fetch *fetch);
void fabric_give_up(struct wire_fetch *fetch); // of struct wire_bulk_row

// Takes the next completion. False: there is none.
bool fabric_complete_read(struct fabric *f);

// Begins the next read that can begin. False: none can. A read that fails ends at once, and its end
// may change the list.
bool fabric_begin_read(struct fabric *f);

// Times out one expired fetch. False: there is none.
bool fabric_expire_read(struct fabric *f, int64_t now_ns);

bool fabric_is_reading(const struct fabric *f);

// Whether a read that was given up has not ended for so long that it probably never does.
bool fabric_has_lost(const struct fabric *f, int64_t now_ns);

// The slots of an endpoint that is replaced: their fetches are queued again, their nodes released.
void fabric_release_slots(struct fabric *f, struct slot *slots);

// Frees a node that has parted and of which nothing is being read.
void fabric_forget_peer(struct wire_bulk_peer *p);

#endif
