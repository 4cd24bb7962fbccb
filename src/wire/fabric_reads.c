// fabric_reads.c - a hub's fetches from its nodes' windows.
//
//   fetch ─▶ waiting (no slot, or the provider says "again") ─▶ slot: fi_read
//         ─▶ completion ─▶ done
//
// A fetch that expires or is given up keeps its slot until the completion comes, because the
// network may still write into the slot. If a node has lost power or its cable, no completion comes
// for many minutes (TCP keeps retrying). Therefore one node gets at most a quarter of the slots,
// and fabric.c replaces the endpoint after LOST_MS.
#include "wire/fabric_internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>

enum {
    NODE_SLOTS_MAX = WIRE_LANDING_SLOTS / 4,
    LOST_MS = 1000,
};

void fabric_forget_peer(struct wire_bulk_peer *p)
{
    if (!p->parted || p->reads)
        return;
    fabric_watch_enter(p->fabric->watch);
    if (p->fabric->o.av && p->address != FI_ADDR_NOTAVAIL)
        fi_av_remove(p->fabric->o.av, &p->address, 1, 0);
    fabric_watch_leave(p->fabric->watch);
    list_remove(&p->of_fabric);
    free(p);
}

static void lose(struct slot *s)
{
    s->fetch = NULL;
    s->lost_ns = clock_monotonic_ns();
}

static void free_slot(struct slot *s)
{
    struct wire_bulk_peer *peer = s->peer;
    s->peer = NULL;
    peer->reads--;
    fabric_forget_peer(peer);
}

bool fabric_complete_read(struct fabric *f)
{
    struct fi_cq_entry entry;
    struct fi_cq_err_entry failure = {0};
    if (!f->o.cq)
        return false;
    fabric_watch_enter(f->watch);
    ssize_t n = fi_cq_read(f->o.cq, &entry, 1);
    ssize_t failures = n == -FI_EAVAIL ? fi_cq_readerr(f->o.cq, &failure, 0) : 0;
    fabric_watch_leave(f->watch);
    int status = 0;
    if (n == -FI_EAVAIL) {
        if (failures <= 0)
            return false;
        entry.op_context = failure.op_context;
        status = -EIO;
    } else if (n <= 0) {
        return false;
    }
    struct slot *s = entry.op_context;
    if (!s || !s->peer)
        return true;
    if (status)
        log_debug("%s: a read has failed: %s", f->bulk.name, f->library->strerror(failure.err));
    const char *data = f->memory + (size_t)(s - f->slots) * WIRE_LAID_MAX;
    struct wire_fetch *fetch = s->fetch;
    // Release the slot after the call, because `done` reads from it.
    s->fetch = NULL;
    if (fetch)
        fetch->done(fetch, status, data);
    free_slot(s);
    return true;
}

static struct slot *find_slot(struct fabric *f)
{
    for (size_t i = 0; i < WIRE_LANDING_SLOTS; i++)
        if (!f->slots[i].peer)
            return &f->slots[i];
    return NULL;
}

bool fabric_begin_read(struct fabric *f)
{
    struct slot *s = find_slot(f);
    LIST_EACH (link, &f->waiting) {
        struct wire_fetch *fetch = LIST_OF(link, struct wire_fetch, waiting);
        if (!s)
            return false;
        size_t slot = (size_t)(s - f->slots);
        if (fetch->peer->reads == NODE_SLOTS_MAX)
            continue;
        ssize_t r = -FI_EADDRNOTAVAIL;
        fabric_watch_enter(f->watch);
        if (f->o.ep && fetch->peer->address != FI_ADDR_NOTAVAIL)
            r = fi_read(f->o.ep, f->memory + slot * WIRE_LAID_MAX, fetch->size,
                        f->o.mr ? fi_mr_desc(f->o.mr) : NULL, fetch->peer->address,
                        fetch->peer->base + fetch->offset, fetch->peer->key, &s->context);
        fabric_watch_leave(f->watch);
        if (r == -FI_EAGAIN) // try again later: the connection to this one node may not be up yet
            continue;
        list_remove(link);
        if (r) {
            log_debug("%s: a read cannot begin: %s", f->bulk.name, f->library->strerror((int)-r));
            fetch->done(fetch, -EIO, NULL);
            return true;
        }
        s->fetch = fetch;
        s->peer = fetch->peer;
        s->peer->reads++;
        fetch->slot = (int)slot;
        return true;
    }
    return false;
}

bool fabric_expire_read(struct fabric *f, int64_t now_ns)
{
    LIST_EACH (link, &f->waiting) {
        struct wire_fetch *fetch = LIST_OF(link, struct wire_fetch, waiting);
        if (now_ns < fetch->deadline_ns)
            continue;
        list_remove(link);
        fetch->done(fetch, -ETIMEDOUT, NULL);
        return true;
    }
    for (size_t i = 0; i < WIRE_LANDING_SLOTS; i++) {
        struct wire_fetch *fetch = f->slots[i].fetch;
        if (!fetch || now_ns < fetch->deadline_ns)
            continue;
        lose(&f->slots[i]);
        fetch->done(fetch, -ETIMEDOUT, NULL);
        return true;
    }
    return false;
}

bool fabric_is_reading(const struct fabric *f)
{
    for (size_t i = 0; i < WIRE_LANDING_SLOTS; i++)
        if (f->slots[i].peer)
            return true;
    return false;
}

void fabric_queue(struct fabric *f, struct wire_fetch *t)
{
    t->slot = -1;
    t->deadline_ns = clock_monotonic_ns() + f->bulk.fetch_timeout_ms * (int64_t)NS_PER_MS;
    list_append(&f->waiting, &t->waiting); // on_prepare starts the read
}

bool fabric_has_lost(const struct fabric *f, int64_t now_ns)
{
    for (size_t i = 0; i < WIRE_LANDING_SLOTS; i++) {
        const struct slot *s = &f->slots[i];
        if (s->peer && !s->fetch && now_ns - s->lost_ns >= LOST_MS * (int64_t)NS_PER_MS)
            return true;
    }
    return false;
}

void fabric_give_up(struct wire_fetch *t)
{
    struct fabric *f = t->peer->fabric;
    if (t->slot >= 0) {
        if (f->slots[t->slot].fetch == t)
            lose(&f->slots[t->slot]);
        return;
    }
    list_remove(&t->waiting);
}

void fabric_release_slots(struct fabric *f, struct slot *slots)
{
    for (size_t i = 0; i < WIRE_LANDING_SLOTS; i++) {
        struct slot *s = &slots[i];
        if (s->fetch)
            fabric_queue(f, s->fetch);
        s->fetch = NULL;
        if (s->peer)
            free_slot(s);
    }
}
