// fabric.c - a bulk over libfabric: one endpoint, one block of registered memory, one completion
// queue.
//
// libfabric makes progress when it is asked to, by most providers. The loop asks before each sleep,
// and is woken by the completion queue's descriptor where the provider has one. Where it has none
// (shm), and for what no descriptor tells (connections in the making, reads that are late), a timer
// asks while there is something to wait for: 1 ms after something has happened, then twice as long
// each time up to POLL_MAX_MS. Nothing to wait for: no timer. A link with a descriptor has none: it
// wakes when the provider needs it, and where the network reads by itself, never.
//
//   fetch ─▶ waiting (no slot, or the provider says "again") ─▶ slot: fi_read ─▶ completion ─▶ done
//
// A fetch that is given up, or too late, leaves its slot behind until the completion comes: until
// then the network may still write there. Of a node that has lost its power or its cable none comes
// for many minutes (TCP is patient), no call takes back a read, and closing an endpoint in the
// middle of one crashes some providers. So after LOST_MS the endpoint is set aside, with its slots,
// for as long as the process lives, and another one opened, where the reads of the other nodes
// begin again; ASIDE_MAX times, then data go over TCP. Meanwhile one node has a quarter of the
// slots at most, so that others need not wait for it.
#include "wire/fabric.h"
#include "wire/fabric_memory.h"
#include "wire/fabric_objects.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    LANDING_BYTES = WIRE_LANDING_SLOTS * WIRE_LAID_MAX,
    NODE_SLOTS_MAX = WIRE_LANDING_SLOTS / 4,
    QUEUE_SIZE = 64, // completions; there are never more than slots
    TRIES_MAX = 16,  // to find the queue quiet before the loop sleeps
    POLL_MIN_MS = 1,
    POLL_MAX_MS = 16,
    LOST_MS = 1000,
    ASIDE_MAX = 8, // of 4 MiB and an endpoint
};

struct wire_bulk_peer {
    struct fabric *fabric;
    struct wire_bulk_peer *next, **at; // of the fabric's
    char name[WIRE_ADDRESS_MAX];       // its address, as it told us
    fi_addr_t address;                 // FI_ADDR_NOTAVAIL: the provider does not take it
    uint64_t base, key;                // of its window
    unsigned reads;                    // in slots
    bool parted;
};

struct slot {
    struct fi_context2 context;  // first: the provider's; what a completion names
    struct wire_fetch *fetch;    // NULL: free, or lost
    struct wire_bulk_peer *peer; // NULL: free
    int64_t lost_ns;             // when nobody waited for it any more
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
    struct wire_bulk_peer *peers;
    uv_poll_t *poll; // NULL: there is nothing to wait for
    uv_prepare_t *prepare;
    uv_timer_t *timer;
    uint64_t poll_ms;
    bool awaited, timing;
    struct slot *slots; // WIRE_LANDING_SLOTS
    unsigned asides;
    struct wire_fetch *waiting, **last;
};

// What the network may still write to.
struct aside {
    struct fabric_objects o;
    struct slot *slots;
    char *memory;
    struct aside *next;
};
static _Atomic(struct aside *) asides; // for who looks for leaks

static bool is_memory(const struct fabric *f)
{
    return f->info && strcmp(f->info->fabric_attr->prov_name, FABRIC_MEMORY_PROVIDER) == 0;
}

// ---- fetching ----

static void forget_peer(struct wire_bulk_peer *p)
{
    if (!p->parted || p->reads)
        return;
    if (p->fabric->o.av && p->address != FI_ADDR_NOTAVAIL)
        fi_av_remove(p->fabric->o.av, &p->address, 1, 0);
    *p->at = p->next;
    if (p->next)
        p->next->at = p->at;
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
    forget_peer(peer);
}

// Takes the next completion. False: there is none.
static bool take_completion(struct fabric *f)
{
    struct fi_cq_entry entry;
    struct fi_cq_err_entry failure = {0};
    if (!f->o.cq)
        return false;
    ssize_t n = fi_cq_read(f->o.cq, &entry, 1);
    int status = 0;
    if (n == -FI_EAVAIL) {
        if (fi_cq_readerr(f->o.cq, &failure, 0) <= 0)
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
    // The slot is free only afterwards: `done` reads from it.
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

static void unqueue(struct fabric *f, struct wire_fetch **at)
{
    struct wire_fetch *fetch = *at;
    *at = fetch->next;
    if (f->last == &fetch->next)
        f->last = at;
    fetch->next = NULL;
}

// Begins the next read that can be begun. False: none can. What fails is told at once, and may
// change the list.
static bool begin_read(struct fabric *f)
{
    struct slot *s = find_slot(f);
    for (struct wire_fetch **at = &f->waiting; s && *at; at = &(*at)->next) {
        struct wire_fetch *fetch = *at;
        size_t slot = (size_t)(s - f->slots);
        if (fetch->peer->reads == NODE_SLOTS_MAX)
            continue;
        ssize_t r = -FI_EADDRNOTAVAIL;
        if (f->o.ep && fetch->peer->address != FI_ADDR_NOTAVAIL)
            r = fi_read(f->o.ep, f->memory + slot * WIRE_LAID_MAX, fetch->size,
                        f->o.mr ? fi_mr_desc(f->o.mr) : NULL, fetch->peer->address,
                        fetch->peer->base + fetch->offset, fetch->peer->key, &s->context);
        if (r == -FI_EAGAIN) // this node's connection is in the making, say; another's is not
            continue;
        unqueue(f, at);
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

// Tells one that is too late. False: none is.
static bool end_late(struct fabric *f, int64_t now_ns)
{
    for (struct wire_fetch **at = &f->waiting; *at; at = &(*at)->next) {
        struct wire_fetch *fetch = *at;
        if (now_ns < fetch->deadline_ns)
            continue;
        unqueue(f, at);
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

static bool is_reading(const struct fabric *f)
{
    for (size_t i = 0; i < WIRE_LANDING_SLOTS; i++)
        if (f->slots[i].peer)
            return true;
    return false;
}

// ---- opened anew ----

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)poll, (void)status, (void)events; // on_prepare looks
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void start_waiting(struct fabric *f)
{
    f->poll = f->o.fd >= 0 ? calloc(1, sizeof *f->poll) : NULL;
    if (f->poll && uv_poll_init(wire_loop_uv(f->loop), f->poll, f->o.fd) == 0) {
        f->poll->data = f;
        uv_poll_start(f->poll, UV_READABLE, on_readable);
    } else {
        free(f->poll);
        f->poll = NULL;
    }
}

static void stop_waiting(struct fabric *f)
{
    if (f->poll)
        uv_close((uv_handle_t *)f->poll, free_handle);
    f->poll = NULL;
}

static void queue(struct fabric *f, struct wire_fetch *t)
{
    t->next = NULL;
    t->slot = -1;
    t->deadline_ns = clock_monotonic_ns() + f->bulk.fetch_timeout_ms * (int64_t)NS_PER_MS;
    *f->last = t;
    f->last = &t->next; // on_prepare begins it
}

static bool has_lost(const struct fabric *f, int64_t now_ns)
{
    for (size_t i = 0; i < WIRE_LANDING_SLOTS; i++) {
        const struct slot *s = &f->slots[i];
        if (s->peer && !s->fetch && now_ns - s->lost_ns >= LOST_MS * (int64_t)NS_PER_MS)
            return true;
    }
    return false;
}

static char *map_memory(const struct fabric *f)
{
    char *memory =
        mmap(NULL, f->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

// False: no memory; all is as it was.
static bool set_aside(struct fabric *f)
{
    struct aside *a = calloc(1, sizeof *a);
    struct slot *slots = calloc(WIRE_LANDING_SLOTS, sizeof *slots);
    char *memory = map_memory(f);
    if (!a || !slots || !memory) {
        free(a);
        free(slots);
        if (memory)
            munmap(memory, f->memory_bytes);
        return false;
    }
    *a = (struct aside){f->o, f->slots, f->memory, atomic_load(&asides)};
    while (!atomic_compare_exchange_weak(&asides, &a->next, a))
        ;
    f->o = (struct fabric_objects){.fd = -1};
    f->slots = slots;
    f->memory = memory;
    f->asides++;
    return true;
}

static void open_anew(struct fabric *f)
{
    const char *what = "";
    struct slot *before = f->slots;
    // shm copies by itself: nothing is under way, and its memory has to go.
    if (is_memory(f)) {
        stop_waiting(f);
        fabric_objects_close(&f->o);
    } else {
        if (f->asides == ASIDE_MAX || !set_aside(f))
            return;
        stop_waiting(f);
    }
    log_info("%s: a read that nobody waits for does not end: opened anew", f->bulk.name);
    for (size_t i = 0; i < WIRE_LANDING_SLOTS; i++) {
        struct slot *s = &before[i];
        if (s->fetch)
            queue(f, s->fetch);
        s->fetch = NULL;
        if (s->peer)
            free_slot(s);
    }
    int r = fabric_objects_open(&f->o, f->library, f->info, f->side, QUEUE_SIZE, f->memory,
                                f->memory_bytes, &what);
    if (r)
        log_warning("%s does not give %s again: %s; data come over TCP", f->bulk.name, what,
                    f->library->strerror(-r));
    for (struct wire_bulk_peer *p = f->peers; p; p = p->next)
        if (!f->o.av || fi_av_insert(f->o.av, p->name, 1, &p->address, 0, NULL) != 1)
            p->address = FI_ADDR_NOTAVAIL;
    start_waiting(f);
}

// ---- progress ----

static void on_timer(uv_timer_t *timer);

static void schedule(struct fabric *f, bool happened, bool at_once)
{
    bool busy = (f->awaited && !f->poll) || f->waiting || is_reading(f);
    uint64_t before_ms = f->poll_ms;
    if (happened)
        f->poll_ms = POLL_MIN_MS;
    if (at_once)
        uv_timer_start(f->timer, on_timer, 0, 0);
    else if (busy && (!f->timing || f->poll_ms < before_ms))
        uv_timer_start(f->timer, on_timer, f->poll_ms, 0);
    else if (!busy && f->timing)
        uv_timer_stop(f->timer);
    f->timing = at_once || busy;
}

static void progress(struct fabric *f)
{
    bool happened = false, quiet = false;
    for (int tries = 0; tries < TRIES_MAX && !quiet; tries++) {
        while (take_completion(f))
            happened = true;
        while (begin_read(f))
            happened = true;
        struct fid *completions = f->poll ? &f->o.cq->fid : NULL;
        quiet = !f->poll || fi_trywait(f->o.fabric, &completions, 1) != -FI_EAGAIN;
    }
    int64_t now_ns = clock_monotonic_ns();
    while ((f->waiting || is_reading(f)) && end_late(f, now_ns))
        happened = true;
    if (is_reading(f) && has_lost(f, now_ns)) {
        open_anew(f);
        happened = true;
    }
    schedule(f, happened, !quiet);
}

static void on_timer(uv_timer_t *timer)
{
    struct fabric *f = timer->data;
    f->timing = false;
    f->poll_ms = f->poll_ms < POLL_MAX_MS ? f->poll_ms * 2 : POLL_MAX_MS;
}

static void on_prepare(uv_prepare_t *prepare)
{
    progress(prepare->data);
}

// ---- the row ----

static struct fabric *of(const struct wire_bulk *b)
{
    return (struct fabric *)(uintptr_t)b;
}

static char *window(struct wire_bulk *b)
{
    return of(b)->memory;
}

static void describe(const struct wire_bulk *b, struct buf *out)
{
    const struct fabric *f = of(b);
    bool by_address = f->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
    buf_short(out, str_of(f->info->fabric_attr->prov_name));
    buf_short(out, (struct str){f->o.address, f->o.address_size});
    buf_u64(out, by_address ? (uint64_t)(uintptr_t)f->memory : 0);
    buf_u64(out, fi_mr_key(f->o.mr));
}

static void awaited(struct wire_bulk *b, bool yes)
{
    of(b)->awaited = yes;
}

// Whether it is an address as ours: the provider takes it apart by itself.
static bool is_like_ours(const struct fabric *f, struct str address)
{
    if (address.size == 0 || address.size > WIRE_ADDRESS_MAX)
        return false;
    if (f->info->addr_format == FI_ADDR_STR)
        return address.data[address.size - 1] == 0;
    sa_family_t ours, theirs;
    if (address.size != f->o.address_size)
        return false;
    memcpy(&ours, f->o.address, sizeof ours);
    memcpy(&theirs, address.data, sizeof theirs);
    bool sockets = f->info->addr_format == FI_SOCKADDR || f->info->addr_format == FI_SOCKADDR_IN ||
                   f->info->addr_format == FI_SOCKADDR_IN6;
    return !sockets || ours == theirs;
}

static int meet(struct wire_bulk *b, struct str description, struct wire_bulk_peer **out,
                struct error *e)
{
    struct fabric *f = of(b);
    *out = NULL;
    struct bytes in = bytes_of(description.data, description.size);
    struct str provider = bytes_short(&in), address = bytes_short(&in);
    uint64_t base = bytes_u64(&in), key = bytes_u64(&in);
    if (in.failed || bytes_left(&in))
        return error_set(e, -EBADMSG, "a damaged description of a window");
    if (!str_eq(provider, str_of(f->info->fabric_attr->prov_name)))
        return error_set(e, -EPROTO, "the node's provider is %.*s, the hub's %s",
                         STR_ARG(str_slice(provider, 0, 40)), f->info->fabric_attr->prov_name);
    if (!is_like_ours(f, address))
        return error_set(e, -EPROTO,
                         "the node's address on the fabric is of another kind than the hub's");
    struct wire_bulk_peer *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(e, -ENOMEM, "no memory for a node");
    *p = (struct wire_bulk_peer){.fabric = f, .base = base, .key = key, .address = FI_ADDR_UNSPEC};
    memcpy(p->name, address.data, address.size);
    int r = f->o.av ? fi_av_insert(f->o.av, p->name, 1, &p->address, 0, NULL) : 0;
    if (r != 1 || p->address == FI_ADDR_NOTAVAIL) {
        free(p);
        return error_set(e, -EIO, "the fabric does not take the node's address");
    }
    p->next = f->peers;
    p->at = &f->peers;
    if (p->next)
        p->next->at = &p->next;
    f->peers = p;
    *out = p;
    return 0;
}

static void part(struct wire_bulk_peer *p)
{
    p->parted = true;
    forget_peer(p);
}

static void fetch(struct wire_fetch *t)
{
    queue(t->peer->fabric, t);
}

static void give_up(struct wire_fetch *t)
{
    struct fabric *f = t->peer->fabric;
    if (t->slot >= 0) {
        if (f->slots[t->slot].fetch == t)
            lose(&f->slots[t->slot]);
        return;
    }
    for (struct wire_fetch **at = &f->waiting; *at; at = &(*at)->next) {
        if (*at == t) {
            unqueue(f, at);
            return;
        }
    }
}

// ---- life ----

static void free_fabric(struct fabric *f)
{
    if (f->slots && is_reading(f) && !is_memory(f))
        set_aside(f);
    fabric_objects_close(&f->o);
    if (is_memory(f))
        // of nodes that were killed, and whose memory we had until now
        fabric_memory_sweep(FABRIC_MEMORY_FOLDER);
    if (f->memory)
        munmap(f->memory, f->memory_bytes);
    if (f->info)
        f->library->freeinfo(f->info);
    // Parted nodes whose reads never completed.
    while (f->peers) {
        struct wire_bulk_peer *p = f->peers;
        f->peers = p->next;
        free(p);
    }
    free(f->slots);
    free(f->prepare);
    free(f->timer);
    free(f);
}

static void stop(void *user)
{
    struct fabric *f = user;
    stop_waiting(f);
    uv_close((uv_handle_t *)f->prepare, free_handle);
    uv_close((uv_handle_t *)f->timer, free_handle);
    f->prepare = NULL;
    f->timer = NULL;
}

static void close_fabric(struct wire_bulk *b)
{
    struct fabric *f = of(b);
    wire_loop_call(f->loop, stop, f);
    free_fabric(f);
}

static const struct wire_bulk_row row = {window, describe, awaited, meet,
                                         part,   fetch,    give_up, close_fabric};

static void start(void *user)
{
    struct fabric *f = user;
    uv_loop_t *uv = wire_loop_uv(f->loop);
    start_waiting(f);
    uv_prepare_init(uv, f->prepare);
    uv_timer_init(uv, f->timer);
    f->prepare->data = f->timer->data = f;
    uv_prepare_start(f->prepare, on_prepare);
}

int fabric_open(struct wire_loop *loop, const char *provider, bool made_for_it, enum wire_side side,
                const char *near, struct wire_bulk **out, struct error *e)
{
    *out = NULL;
    struct fabric *f = calloc(1, sizeof *f);
    if (!f)
        return error_set(e, -ENOMEM, "no memory for a fabric");
    f->bulk.row = &row;
    f->bulk.fetch_timeout_ms = WIRE_FETCH_TIMEOUT_MS;
    f->loop = loop;
    f->side = side;
    f->o.fd = -1;
    f->last = &f->waiting;
    f->poll_ms = POLL_MIN_MS;
    struct fabric_signals *signals = fabric_signals_keep();
    f->library = fabric_library_open(e);
    const char *what = "memory";
    int r = f->library ? fabric_choose(f->library, provider, made_for_it, side, near, &f->info, e)
                       : -ENOENT;
    fabric_signals_restore(signals);
    if (r == 0 && is_memory(f))
        // of who was killed and is started again here, say
        fabric_memory_sweep(FABRIC_MEMORY_FOLDER);
    f->memory_bytes = side == WIRE_HUB ? LANDING_BYTES : WIRE_WINDOW_BYTES;
    f->memory = map_memory(f);
    f->slots = calloc(WIRE_LANDING_SLOTS, sizeof *f->slots);
    int failed = f->memory && f->slots ? 0 : -FI_ENOMEM;
    if (r == 0 && !failed)
        failed = fabric_objects_open(&f->o, f->library, f->info, side, QUEUE_SIZE, f->memory,
                                     f->memory_bytes, &what);
    if (r == 0 && failed)
        r = error_set(e, -EIO, "libfabric's provider %s does not give %s: %s",
                      f->info->fabric_attr->prov_name, what, f->library->strerror(-failed));
    f->prepare = calloc(1, sizeof *f->prepare);
    f->timer = calloc(1, sizeof *f->timer);
    if (r == 0 && (!f->prepare || !f->timer))
        r = error_set(e, -ENOMEM, "no memory for a fabric");
    if (r) {
        free_fabric(f);
        return r;
    }
    snprintf(f->bulk.name, sizeof f->bulk.name, "fabric:%s", f->info->fabric_attr->prov_name);
    wire_loop_call(loop, start, f);
    *out = &f->bulk;
    return 0;
}
