// nccl_events.c - `sonde run --trace nccl`: collectives and messages between GPUs.
//
// An operation is counted when the program enqueues it. Its time is that of its kernel on the GPU:
// from the first channel that begins to the last one that ends, by the GPU's own clock. It is known
// when all channels have ended. The time includes the waiting for other ranks.
#include "base/clock.h"
#include "trace/bounds.h"
#include "trace/counter.h"
#include "trace/nccl.h"
#include "trace/spin.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMMUNICATORS_MAX = 256, // names and ranks; further ones are "other"
    LABEL_BYTES = 64,
    OPERATIONS = 1024, // on the way at the same time
    CHANNELS_MAX = 64,
};
static const int64_t lost_after_ns =
    INT64_C(60000000000); // then an operation's place is free again

static const char *const functions[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                        "Reduce",    "AllToAll",  "Gather",        "Scatter",
                                        "Send",      "Recv"};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

struct cells {
    _Atomic bool defined;
    sonde_handle calls, bytes, seconds;
    _Atomic unsigned spans;
};

struct communicator {
    char label[LABEL_BYTES], rank[12];
    struct cells cells[FUNCTIONS + 1]; // the last one: "other"
};

struct channel {
    struct operation *operation; // of which it is a part; NULL in the operation itself
    bool running;
    uint64_t gpu_begin, gpu_end;
};

// An operation or its channel is the handle of an event. The operation begins with a channel
// without an operation, so that stop_event knows one from the other.
struct operation {
    struct channel own;
    _Atomic int64_t begin; // ns of the monotonic clock; 0: the place is free
    spin lock;
    bool enqueued;
    uint8_t channels, ended; // their number, and how many have ended
    struct cells *cells;
    const struct communicator *communicator;
    const char *function, *algorithm, *protocol;
    double bytes;
    uint64_t gpu_begin, gpu_end; // 0: not known
    int64_t first, last;         // ns of the monotonic clock, without the GPU's
    struct channel parts[CHANNELS_MAX];
};

static spin adding;
static struct communicator *communicators[COMMUNICATORS_MAX];
static size_t communicator_count;
static struct communicator other = {.label = "other"};
static struct operation operations[OPERATIONS];
static _Atomic unsigned next_operation;
static sonde_handle uncounted, untimed;

// ---- communicators

static struct communicator *find_communicator(const char *label, const char *rank)
{
    for (size_t i = 0; i < communicator_count; i++)
        if (strcmp(communicators[i]->label, label) == 0 &&
            strcmp(communicators[i]->rank, rank) == 0)
            return communicators[i];
    struct communicator *c = communicator_count < COMMUNICATORS_MAX ? calloc(1, sizeof *c) : NULL;
    if (!c)
        return &other;
    snprintf(c->label, sizeof c->label, "%s", label);
    snprintf(c->rank, sizeof c->rank, "%s", rank);
    return communicators[communicator_count++] = c;
}

static int init(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
                int rank, void (*log)(int, unsigned long, const char *, int, const char *, ...))
{
    (void)hash, (void)nodes, (void)log;
    char label[LABEL_BYTES], text[12];
    if (!context || !mask)
        return NCCL_SUCCESS;
    *context = NULL;
    *mask = 0;
    if (trace_is_off())
        return NCCL_SUCCESS;
    if (name && name[0])
        snprintf(label, sizeof label, "%s", name);
    else
        snprintf(label, sizeof label, "size-%d", ranks);
    snprintf(text, sizeof text, "%d", rank);
    spin_lock(&adding);
    if (!untimed) { // it is set last
        uncounted = counter_define("nccl_uncounted", "",
                                   "operations beyond those that can be on the way", NULL, 0);
        untimed =
            counter_define("nccl_untimed", "", "operations whose end NCCL did not report", NULL, 0);
    }
    *context = find_communicator(label, text);
    spin_unlock(&adding);
    *mask = NCCL_COLLECTIVE | NCCL_MESSAGE | NCCL_KERNEL_CHANNEL;
    return NCCL_SUCCESS;
}

static int finalize(void *context)
{
    (void)context; // another communicator with this name adds to the same series
    return NCCL_SUCCESS;
}

static size_t function_of(const char *name)
{
    size_t i = 0;
    while (i < FUNCTIONS && (!name || strcmp(name, functions[i]) != 0))
        i++;
    return i;
}

__attribute__((noinline, cold)) static void define(struct cells *cells,
                                                   const struct communicator *c, const char *op)
{
    const struct sonde_tag tags[] = {{"op", op}, {"comm", c->label}, {"comm_rank", c->rank}};
    size_t count = c == &other ? 2 : 3;
    cells->calls =
        counter_define("nccl_calls", "", "operations of GPUs that were enqueued", tags, count);
    cells->bytes = counter_define("nccl_bytes", "bytes",
                                  "bytes that operations of GPUs were called with", tags, count);
    cells->seconds = counter_define(
        "nccl_seconds", "seconds",
        "time of operations on the GPU, waiting for other ranks included", tags, count);
    // Release: a thread that reads `defined` also reads the handles.
    atomic_store_explicit(&cells->defined, true, memory_order_release);
}

static struct cells *cells_of(struct communicator *c, size_t function)
{
    struct cells *cells = &c->cells[function];
    // Acquire: if the cells are defined, their handles are set.
    if (__builtin_expect(!atomic_load_explicit(&cells->defined, memory_order_acquire), 0)) {
        spin_lock(&adding);
        define(cells, c, function < FUNCTIONS ? functions[function] : "other");
        spin_unlock(&adding);
    }
    return cells;
}

// ---- operations

// NCCL names types by their bits: ncclFloat16, ncclFloat8e4m3.
static double bytes_of(const char *type, size_t count)
{
    const char *digits = type ? strpbrk(type, "123456789") : NULL;
    size_t bytes = digits ? strtoul(digits, NULL, 10) / 8 : 0;
    return (double)count * (double)bytes;
}

// Records the end of an operation. The caller holds its lock; the place becomes free.
static void complete(struct operation *o)
{
    bool gpu = o->gpu_begin && o->gpu_end >= o->gpu_begin;
    int64_t took = gpu ? (int64_t)(o->gpu_end - o->gpu_begin) : o->last - o->first;
    sonde_add(o->cells->seconds, (double)took / 1e9);
    if (trace_may_span(&o->cells->spans, SPANS_MAX)) {
        // The thread of NCCL that notices the end does so at most some ms later.
        int64_t end = clock_realtime_ns() - (clock_monotonic_ns() - o->last);
        char bytes[24];
        snprintf(bytes, sizeof bytes, "%.0f", o->bytes);
        const struct sonde_tag tags[] = {{"comm", o->communicator->label},
                                         {"bytes", bytes},
                                         {"comm_rank", o->communicator->rank},
                                         {"algorithm", o->algorithm},
                                         {"protocol", o->protocol}};
        size_t count = 2;
        if (o->communicator != &other)
            count++;
        if (count == 3 && o->algorithm && o->protocol)
            count += 2;
        sonde_span_at(o->function, end - took, end, tags, count);
    }
    // Release: the next user of the place writes after this one has read.
    atomic_store_explicit(&o->begin, 0, memory_order_release);
}

// Takes a place that is free, or whose operation NCCL has not ended for a minute. Returns NULL if
// there is none.
static struct operation *take_place(void)
{
    int64_t now = clock_monotonic_ns();
    for (unsigned tries = 0; tries < OPERATIONS; tries++) {
        unsigned number = atomic_fetch_add_explicit(&next_operation, 1, memory_order_relaxed);
        struct operation *o = &operations[number % OPERATIONS];
        int64_t begin = atomic_load_explicit(&o->begin, memory_order_relaxed);
        if (begin && now - begin < lost_after_ns)
            continue;
        // Acquire: this user of the place writes after the last one has read.
        if (!atomic_compare_exchange_strong_explicit(&o->begin, &begin, now, memory_order_acquire,
                                                     memory_order_relaxed))
            continue;
        if (begin)
            sonde_add(untimed, 1);
        return o;
    }
    return NULL;
}

static void *start_operation(struct communicator *c, const char *name, double bytes,
                             uint8_t channels, const char *algorithm, const char *protocol)
{
    size_t function = function_of(name);
    struct cells *cells = cells_of(c, function);
    sonde_add(cells->calls, 1);
    sonde_add(cells->bytes, bytes);
    struct operation *o = take_place();
    if (!o) {
        sonde_add(uncounted, 1);
        return NULL;
    }
    spin_lock(&o->lock);
    o->own = (struct channel){0};
    o->enqueued = false;
    o->channels = channels < CHANNELS_MAX ? channels : CHANNELS_MAX;
    o->ended = 0;
    o->cells = cells;
    o->communicator = c;
    o->function = function < FUNCTIONS ? functions[function] : "other";
    o->algorithm = algorithm;
    o->protocol = protocol;
    o->bytes = bytes;
    o->gpu_begin = o->gpu_end = 0;
    o->first = o->last = 0;
    for (size_t i = 0; i < CHANNELS_MAX; i++)
        o->parts[i] = (struct channel){.operation = o};
    spin_unlock(&o->lock);
    return o;
}

static bool is_operation(const void *parent)
{
    const char *first = (const char *)operations, *at = parent;
    return at >= first && at < first + sizeof operations &&
           (size_t)(at - first) % sizeof *operations == 0;
}

static void *start_channel(void *parent, uint8_t number, uint64_t gpu_ns)
{
    struct operation *o = is_operation(parent) ? parent : NULL;
    if (!o || number >= CHANNELS_MAX)
        return NULL;
    spin_lock(&o->lock);
    struct channel *part = &o->parts[number];
    bool known = atomic_load_explicit(&o->begin, memory_order_relaxed) && part->operation;
    if (known) {
        part->running = true;
        part->gpu_begin = gpu_ns;
        part->gpu_end = 0;
        if (!o->first)
            o->first = clock_monotonic_ns();
        if (gpu_ns && (!o->gpu_begin || gpu_ns < o->gpu_begin))
            o->gpu_begin = gpu_ns;
    }
    spin_unlock(&o->lock);
    return known ? part : NULL;
}

static int start_event(void *context, void **handle, struct nccl_description *event)
{
    if (!handle)
        return NCCL_SUCCESS;
    *handle = NULL;
    if (!context || !event)
        return NCCL_SUCCESS;
    if (event->type == NCCL_COLLECTIVE)
        *handle = start_operation(context, event->collective.function,
                                  bytes_of(event->collective.datatype, event->collective.count),
                                  event->collective.channels, event->collective.algorithm,
                                  event->collective.protocol);
    else if (event->type == NCCL_MESSAGE)
        *handle = start_operation(context, event->message.function,
                                  bytes_of(event->message.datatype, event->message.count),
                                  event->message.channels, NULL, NULL);
    else if (event->type == NCCL_KERNEL_CHANNEL)
        *handle = start_channel(event->parent, event->kernel_channel.channel,
                                event->kernel_channel.gpu_ns);
    return NCCL_SUCCESS;
}

static int record_event_state(void *handle, int state, union nccl_state_arguments *arguments)
{
    struct channel *part = handle;
    if (part && part->operation && state == NCCL_KERNEL_CHANNEL_STOP && arguments)
        part->gpu_end = arguments->kernel_channel.gpu_ns;
    return NCCL_SUCCESS;
}

static void end_channel(struct operation *o, struct channel *part)
{
    part->running = false;
    o->ended++;
    o->last = clock_monotonic_ns();
    if (part->gpu_end > o->gpu_end)
        o->gpu_end = part->gpu_end;
}

static int stop_event(void *handle)
{
    struct channel *part = handle;
    if (!part)
        return NCCL_SUCCESS;
    struct operation *o = part->operation ? part->operation : handle;
    spin_lock(&o->lock);
    if (!part->operation)
        o->enqueued = true;
    else if (part->running)
        end_channel(o, part);
    if (o->enqueued && o->ended && o->ended >= o->channels &&
        atomic_load_explicit(&o->begin, memory_order_relaxed))
        complete(o);
    spin_unlock(&o->lock);
    return NCCL_SUCCESS;
}

const struct nccl_profiler ncclProfiler_v4 = {
    .name = "sonde",
    .init = init,
    .start_event = start_event,
    .stop_event = stop_event,
    .record_event_state = record_event_state,
    .finalize = finalize,
};
