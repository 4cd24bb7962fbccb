// fabric.c - a bulk over libfabric: one endpoint, one block of registered memory, one completion queue.
//
// libfabric makes progress when it is asked to, by most providers. The loop asks before each sleep, and is woken by the completion queue's descriptor where the provider has one. Where it has
// none (shm), and for what no descriptor tells (connections in the making, reads that are late), a timer asks while there is something to wait for: 1 ms after
// something has happened, then twice as long each time up to POLL_MAX_MS. Nothing to wait for: no timer. A link with a descriptor has none: it wakes when the
// provider needs it, and where the network reads by itself, never.
//
//   fetch ─▶ waiting (no slot, or the provider says "again") ─▶ slot: fi_read ─▶ completion ─▶ done
//
// A fetch that is given up, or too late, leaves its slot behind until the completion comes: until then the network may still write there.
#include "wire/fabric.h"
#include "wire/fabric_library.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    LANDING_BYTES = WIRE_LANDING_SLOTS * WIRE_LAID_MAX,
    QUEUE_SIZE = 64, // completions; there are never more than slots
    TRIES_MAX = 16,  // to find the queue quiet before the loop sleeps
    POLL_MIN_MS = 1,
    POLL_MAX_MS = 16,
};
static const uint64_t WINDOW_KEY = 1; // where we choose it

struct wire_bulk_peer {
    struct fabric *fabric;
    fi_addr_t address;
    uint64_t base, key; // of its window
    unsigned reads;     // in slots
    bool parted;
};

struct slot {
    struct fi_context2 context;  // first: the provider's; what a completion names
    struct wire_fetch *fetch;    // NULL: free, or given up
    struct wire_bulk_peer *peer; // NULL: free
};

struct fabric {
    struct wire_bulk bulk; // first: the bulk is this
    struct wire_loop *loop;
    const struct fabric_library *library;
    enum wire_side side;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_cq *cq;
    struct fid_av *av;
    struct fid_ep *ep;
    struct fid_mr *mr;
    char *memory; // the window, or the landing
    size_t memory_bytes;
    char address[WIRE_ADDRESS_MAX];
    size_t address_size;
    int fd; // -1: none
    uv_poll_t *poll;
    uv_prepare_t *prepare;
    uv_timer_t *timer;
    uint64_t poll_ms;
    bool awaited, timing;
    struct slot slots[WIRE_LANDING_SLOTS];
    struct wire_fetch *waiting, **last;
};

// ---- fetching ----

static void forget_peer(struct wire_bulk_peer *p)
{
    if (!p->parted || p->reads)
        return;
    fi_av_remove(p->fabric->av, &p->address, 1, 0);
    free(p);
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
    ssize_t n = fi_cq_read(f->cq, &entry, 1);
    int status = 0;
    if (n == -FI_EAVAIL) {
        if (fi_cq_readerr(f->cq, &failure, 0) <= 0)
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

// Begins the next read that can be begun. False: none can. What fails is told at once, and may change the list.
static bool begin_read(struct fabric *f)
{
    struct slot *s = find_slot(f);
    for (struct wire_fetch **at = &f->waiting; s && *at; at = &(*at)->next) {
        struct wire_fetch *fetch = *at;
        size_t slot = (size_t)(s - f->slots);
        ssize_t r = fi_read(f->ep, f->memory + slot * WIRE_LAID_MAX, fetch->size, f->mr ? fi_mr_desc(f->mr) : NULL,
                            fetch->peer->address, fetch->peer->base + fetch->offset, fetch->peer->key, &s->context);
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
        f->slots[i].fetch = NULL;
        fetch->done(fetch, -ETIMEDOUT, NULL);
        return true;
    }
    return false;
}

static bool is_reading(const struct fabric *f)
{
    for (size_t i = 0; i < WIRE_LANDING_SLOTS; i++)
        if (f->slots[i].fetch)
            return true;
    return false;
}

// ---- progress ----

static void on_timer(uv_timer_t *timer);

static void schedule(struct fabric *f, bool happened, bool at_once)
{
    bool busy = (f->awaited && f->fd < 0) || f->waiting || is_reading(f);
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
        struct fid *queue = &f->cq->fid;
        quiet = f->fd < 0 || fi_trywait(f->fabric, &queue, 1) != -FI_EAGAIN;
    }
    int64_t now_ns = clock_monotonic_ns();
    while ((f->waiting || is_reading(f)) && end_late(f, now_ns))
        happened = true;
    schedule(f, happened, !quiet);
}

static void on_timer(uv_timer_t *timer)
{
    struct fabric *f = timer->data;
    f->timing = false;
    f->poll_ms = f->poll_ms < POLL_MAX_MS ? f->poll_ms * 2 : POLL_MAX_MS;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)poll, (void)status, (void)events; // on_prepare looks
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
    buf_short(out, (struct str){f->address, f->address_size});
    buf_u64(out, by_address ? (uint64_t)(uintptr_t)f->memory : 0);
    buf_u64(out, fi_mr_key(f->mr));
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
    if (address.size != f->address_size)
        return false;
    memcpy(&ours, f->address, sizeof ours);
    memcpy(&theirs, address.data, sizeof theirs);
    bool sockets = f->info->addr_format == FI_SOCKADDR || f->info->addr_format == FI_SOCKADDR_IN ||
                   f->info->addr_format == FI_SOCKADDR_IN6;
    return !sockets || ours == theirs;
}

static int meet(struct wire_bulk *b, struct str description, struct wire_bulk_peer **out, struct error *e)
{
    struct fabric *f = of(b);
    *out = NULL;
    struct bytes in = bytes_of(description.data, description.size);
    struct str provider = bytes_short(&in), address = bytes_short(&in);
    uint64_t base = bytes_u64(&in), key = bytes_u64(&in);
    if (in.failed || bytes_left(&in))
        return error_set(e, -EBADMSG, "a damaged description of a window");
    if (!str_eq(provider, str_of(f->info->fabric_attr->prov_name)))
        return error_set(e, -EPROTO, "the node's provider is %.*s, the hub's %s", STR_ARG(str_slice(provider, 0, 40)),
                         f->info->fabric_attr->prov_name);
    if (!is_like_ours(f, address))
        return error_set(e, -EPROTO, "the node's address on the fabric is of another kind than the hub's");
    char room[WIRE_ADDRESS_MAX] = {0};
    memcpy(room, address.data, address.size);
    struct wire_bulk_peer *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(e, -ENOMEM, "no memory for a node");
    *p = (struct wire_bulk_peer){.fabric = f, .base = base, .key = key, .address = FI_ADDR_UNSPEC};
    int r = fi_av_insert(f->av, room, 1, &p->address, 0, NULL);
    if (r != 1 || p->address == FI_ADDR_NOTAVAIL) {
        free(p);
        return error_set(e, -EIO, "the fabric does not take the node's address");
    }
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
    struct fabric *f = t->peer->fabric;
    t->next = NULL;
    t->slot = -1;
    t->deadline_ns = clock_monotonic_ns() + f->bulk.fetch_timeout_ms * (int64_t)NS_PER_MS;
    *f->last = t;
    f->last = &t->next; // on_prepare begins it
}

static void give_up(struct wire_fetch *t)
{
    struct fabric *f = t->peer->fabric;
    if (t->slot >= 0) {
        if (f->slots[t->slot].fetch == t)
            f->slots[t->slot].fetch = NULL;
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

static void close_fid(struct fid *fid)
{
    if (fid)
        fi_close(fid);
}

#define CLOSE(object) close_fid((object) ? &(object)->fid : NULL)

static void free_fabric(struct fabric *f)
{
    // Parted nodes whose reads never completed.
    for (size_t i = 0; i < WIRE_LANDING_SLOTS; i++)
        if (f->slots[i].peer)
            free_slot(&f->slots[i]);
    struct fabric_signals *signals = fabric_signals_keep();
    CLOSE(f->ep);
    CLOSE(f->mr);
    CLOSE(f->cq);
    CLOSE(f->av);
    CLOSE(f->domain);
    CLOSE(f->fabric);
    fabric_signals_restore(signals);
    if (f->memory)
        munmap(f->memory, f->memory_bytes);
    if (f->info)
        f->library->freeinfo(f->info);
    free(f->poll);
    free(f->prepare);
    free(f->timer);
    free(f);
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void stop(void *user)
{
    struct fabric *f = user;
    if (f->poll)
        uv_close((uv_handle_t *)f->poll, free_handle);
    uv_close((uv_handle_t *)f->prepare, free_handle);
    uv_close((uv_handle_t *)f->timer, free_handle);
    f->poll = NULL;
    f->prepare = NULL;
    f->timer = NULL;
}

static void close_fabric(struct wire_bulk *b)
{
    struct fabric *f = of(b);
    wire_loop_call(f->loop, stop, f);
    free_fabric(f);
}

static const struct wire_bulk_row row = {window, describe, awaited, meet, part, fetch, give_up, close_fabric};

static void start(void *user)
{
    struct fabric *f = user;
    uv_loop_t *uv = wire_loop_uv(f->loop);
    if (f->poll && uv_poll_init(uv, f->poll, f->fd) == 0) {
        f->poll->data = f;
        uv_poll_start(f->poll, UV_READABLE, on_readable);
    } else {
        free(f->poll);
        f->poll = NULL;
        f->fd = -1;
    }
    uv_prepare_init(uv, f->prepare);
    uv_timer_init(uv, f->timer);
    f->prepare->data = f->timer->data = f;
    uv_prepare_start(f->prepare, on_prepare);
}

static int open_queue(struct fabric *f)
{
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_FD, .size = QUEUE_SIZE};
    f->fd = -1;
    if (fi_cq_open(f->domain, &attr, &f->cq, NULL) == 0 && fi_control(&f->cq->fid, FI_GETWAIT, &f->fd) == 0)
        return 0;
    f->fd = -1;
    CLOSE(f->cq);
    f->cq = NULL;
    attr.wait_obj = FI_WAIT_NONE;
    return fi_cq_open(f->domain, &attr, &f->cq, NULL);
}

static int open_memory(struct fabric *f)
{
    int mode = f->info->domain_attr->mr_mode;
    f->memory_bytes = f->side == WIRE_HUB ? LANDING_BYTES : WIRE_WINDOW_BYTES;
    f->memory = mmap(NULL, f->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f->memory == MAP_FAILED) {
        f->memory = NULL;
        return -FI_ENOMEM;
    }
    if (f->side == WIRE_HUB && !(mode & FI_MR_LOCAL))
        return 0;
    // A forked child must not tear pages away that the network reads or writes.
    madvise(f->memory, f->memory_bytes, MADV_DONTFORK);
    int r = fi_mr_reg(f->domain, f->memory, f->memory_bytes, f->side == WIRE_HUB ? FI_READ : FI_REMOTE_READ, 0,
                      WINDOW_KEY, 0, &f->mr, NULL);
    if (r == 0 && mode & FI_MR_ENDPOINT) {
        r = fi_mr_bind(f->mr, &f->ep->fid, 0);
        r = r ? r : fi_mr_enable(f->mr);
    }
    return r;
}

// *what: the step that failed.
static int open_objects(struct fabric *f, const char **what)
{
    struct fi_av_attr table = {.type = f->info->domain_attr->av_type == FI_AV_MAP ? FI_AV_MAP : FI_AV_TABLE};
    *what = "the fabric";
    int r = f->library->fabric(f->info->fabric_attr, &f->fabric, NULL);
    if (r == 0) {
        *what = "a domain";
        r = fi_domain(f->fabric, f->info, &f->domain, NULL);
    }
    if (r == 0) {
        *what = "a completion queue";
        r = open_queue(f);
    }
    if (r == 0) {
        *what = "an address table";
        r = fi_av_open(f->domain, &table, &f->av, NULL);
    }
    if (r == 0) {
        *what = "an endpoint";
        r = fi_endpoint(f->domain, f->info, &f->ep, NULL);
        r = r ? r : fi_ep_bind(f->ep, &f->av->fid, 0);
        r = r ? r : fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV);
        r = r ? r : fi_enable(f->ep);
    }
    if (r == 0) {
        *what = "memory";
        r = open_memory(f);
    }
    if (r == 0) {
        *what = "its own address";
        f->address_size = sizeof f->address;
        r = fi_getname(&f->ep->fid, f->address, &f->address_size);
    }
    return r;
}

int fabric_open(struct wire_loop *loop, const char *provider, bool made_for_it, enum wire_side side, const char *near,
                struct wire_bulk **out, struct error *e)
{
    *out = NULL;
    struct fabric *f = calloc(1, sizeof *f);
    if (!f)
        return error_set(e, -ENOMEM, "no memory for a fabric");
    f->bulk.row = &row;
    f->bulk.fetch_timeout_ms = WIRE_FETCH_TIMEOUT_MS;
    f->loop = loop;
    f->side = side;
    f->fd = -1;
    f->last = &f->waiting;
    f->poll_ms = POLL_MIN_MS;
    struct fabric_signals *signals = fabric_signals_keep();
    f->library = fabric_library_open(e);
    const char *what = "";
    int r = f->library ? fabric_choose(f->library, provider, made_for_it, side, near, &f->info, e) : -ENOENT;
    int failed = r ? 0 : open_objects(f, &what);
    fabric_signals_restore(signals);
    if (failed)
        r = error_set(e, -EIO, "libfabric's provider %s does not give %s: %s", f->info->fabric_attr->prov_name, what,
                      f->library->strerror(-failed));
    f->prepare = calloc(1, sizeof *f->prepare);
    f->timer = calloc(1, sizeof *f->timer);
    f->poll = f->fd >= 0 ? calloc(1, sizeof *f->poll) : NULL;
    if (r == 0 && (!f->prepare || !f->timer || (f->fd >= 0 && !f->poll)))
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
