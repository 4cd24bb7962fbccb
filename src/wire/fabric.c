// fabric.c - a bulk over libfabric: one endpoint, one block of registered memory, one completion
// queue.
//
// With most providers, libfabric makes progress only when it is polled. The loop polls before each
// sleep; the completion queue's descriptor wakes it if the provider has one. A timer polls for
// providers without a descriptor (shm), and for events without one (connections being set up, late
// reads): 1 ms after an event, then after twice the time at each poll, up to POLL_MAX_MS. When the
// bulk waits for no event, no timer runs. A link with a descriptor needs no timer, because the
// provider wakes it when necessary. A network that reads memory by itself never needs to wake it.
//
// A read that was given up may never complete (fabric_reads.c). No call cancels a read, and closing
// an endpoint during a read crashes some providers. Therefore the hub keeps the old endpoint and
// its slots until the process ends. It opens a new endpoint, where the reads of the other nodes
// restart. After the hub has done this ASIDE_MAX times, data go over TCP.
#include "wire/fabric.h"
#include "wire/fabric_internal.h"
#include "wire/fabric_memory.h"

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
    QUEUE_SIZE = 64, // number of completions; there is at most one for each slot
    TRIES_MAX = 16,  // polls until the queue counts as empty, and the loop sleeps
    POLL_MIN_MS = 1,
    POLL_MAX_MS = 16,
    ASIDE_MAX = 8, // number of old endpoints that are kept, with 4 MiB each
};

// Memory that the network may still write to.
struct aside {
    struct fabric_objects o;
    struct slot *slots;
    char *memory;
    struct aside *next; // a stack without a lock
};
static _Atomic(struct aside *) asides; // keeps them reachable for leak checkers

static bool is_memory(const struct fabric *f)
{
    return f->info && strcmp(f->info->fabric_attr->prov_name, FABRIC_MEMORY_PROVIDER) == 0;
}

// ---- replaced endpoints ----

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)poll, (void)status, (void)events; // on_prepare polls
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

static char *map_memory(const struct fabric *f)
{
    char *memory =
        mmap(NULL, f->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

// Puts the endpoint and its memory on the list of old ones. If memory is exhausted, changes nothing
// and returns false.
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

static void close_objects(struct fabric *f)
{
    fabric_watch_enter(f->watch);
    fabric_objects_close(&f->o);
    fabric_watch_leave(f->watch);
}

static bool insert_address(struct fabric *f, struct wire_bulk_peer *p)
{
    fabric_watch_enter(f->watch);
    bool inserted = f->o.av && fi_av_insert(f->o.av, p->name, 1, &p->address, 0, NULL) == 1;
    fabric_watch_leave(f->watch);
    return inserted;
}

// Opens an endpoint in place of one that is closed or set aside.
static void reopen(struct fabric *f)
{
    const char *what = "";
    int r = fabric_objects_open(&f->o, f->library, f->info, f->side, QUEUE_SIZE, f->memory,
                                f->memory_bytes, &what);
    if (r)
        log_warning("%s does not give %s again: %s; data come over TCP", f->bulk.name, what,
                    f->library->strerror(-r));
    LIST_EACH (link, &f->peers) {
        struct wire_bulk_peer *p = LIST_OF(link, struct wire_bulk_peer, of_fabric);
        if (!insert_address(f, p))
            p->address = FI_ADDR_NOTAVAIL;
    }
    start_waiting(f);
}

static void open_anew(struct fabric *f)
{
    struct slot *before = f->slots;
    // The provider shm copies without requests, so no read is in progress. Its memory must be
    // released.
    if (is_memory(f)) {
        stop_waiting(f);
        close_objects(f);
    } else {
        if (f->asides == ASIDE_MAX || !set_aside(f))
            return;
        stop_waiting(f);
    }
    log_info("%s: a cancelled read does not complete: the endpoint is opened again", f->bulk.name);
    fabric_release_slots(f, before);
    reopen(f);
}

// ---- polling ----

static void on_timer(uv_timer_t *timer);

static void schedule(struct fabric *f, bool happened, bool at_once)
{
    bool busy = (f->awaited && !f->poll) || !list_empty(&f->waiting) || fabric_is_reading(f);
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
        while (fabric_complete_read(f))
            happened = true;
        while (fabric_begin_read(f))
            happened = true;
        struct fid *completions = f->poll ? &f->o.cq->fid : NULL;
        quiet = !f->poll || fi_trywait(f->o.fabric, &completions, 1) != -FI_EAGAIN;
    }
    int64_t now_ns = clock_monotonic_ns();
    while ((!list_empty(&f->waiting) || fabric_is_reading(f)) && fabric_expire_read(f, now_ns))
        happened = true;
    if (fabric_is_reading(f) && fabric_has_lost(f, now_ns)) {
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

// ---- functions of the bulk ----

static struct fabric *of(const struct wire_bulk *b)
{
    return (struct fabric *)(uintptr_t)b;
}

static char *window(struct wire_bulk *b)
{
    return of(b)->memory;
}

// With the provider shm, each hub gets memory of its own: the last one may have been killed while
// it held the lock of this memory.
static void renew_memory(struct fabric *f)
{
    stop_waiting(f);
    close_objects(f);
    reopen(f);
}

static void describe(struct wire_bulk *b, struct buf *out)
{
    struct fabric *f = of(b);
    if (f->described && is_memory(f))
        renew_memory(f);
    f->described = true;
    bool by_address = f->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
    buf_short(out, str_of(f->info->fabric_attr->prov_name));
    buf_short(out, (struct str){f->o.address, f->o.address_size});
    buf_u64(out, by_address ? (uint64_t)(uintptr_t)f->memory : 0);
    buf_u64(out, f->o.mr ? fi_mr_key(f->o.mr) : 0);
}

static void awaited(struct wire_bulk *b, bool yes)
{
    of(b)->awaited = yes;
}

// True if an address has the format of our own address. The provider parses addresses without
// checks.
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
    if (!insert_address(f, p) || p->address == FI_ADDR_NOTAVAIL) {
        free(p);
        return error_set(e, -EIO, "the fabric does not take the node's address");
    }
    list_prepend(&f->peers, &p->of_fabric);
    *out = p;
    return 0;
}

static void part(struct wire_bulk_peer *p)
{
    p->parted = true;
    fabric_forget_peer(p);
}

static void fetch(struct wire_fetch *t)
{
    fabric_queue(t->peer->fabric, t);
}

// ---- lifetime ----

static void free_fabric(struct fabric *f)
{
    if (f->slots && fabric_is_reading(f) && !is_memory(f))
        set_aside(f);
    close_objects(f);
    fabric_watch_close(f->watch);
    if (is_memory(f))
        // Removes files of killed nodes, whose memory this process had mapped until now.
        fabric_memory_sweep(FABRIC_MEMORY_FOLDER);
    if (f->memory)
        munmap(f->memory, f->memory_bytes);
    if (f->info)
        f->library->freeinfo(f->info);
    // Free peers that have disconnected, and whose reads never completed.
    for (struct list_link *link; (link = list_take_first(&f->peers));)
        free(LIST_OF(link, struct wire_bulk_peer, of_fabric));
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

static const struct wire_bulk_row row = {window, describe, awaited,        meet,
                                         part,   fetch,    fabric_give_up, close_fabric};

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
    list_init(&f->peers);
    list_init(&f->waiting);
    f->poll_ms = POLL_MIN_MS;
    struct fabric_signals *signals = fabric_signals_keep();
    f->library = fabric_library_open(e);
    const char *what = "memory";
    int r = f->library ? fabric_choose(f->library, provider, made_for_it, side, near, &f->info, e)
                       : -ENOENT;
    fabric_signals_restore(signals);
    if (r == 0 && is_memory(f)) {
        // for example the files of a killed predecessor on this machine
        fabric_memory_sweep(FABRIC_MEMORY_FOLDER);
        f->watch = fabric_watch_open(FABRIC_LOOK_MS);
    }
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
