// kokkos_calls.c - `sonde run --trace kokkos`: kernels, regions, fences, copies and memory.
//
// A kernel or fence that has begun has a place, whose number is its id for Kokkos: it may end in
// another thread. If all places are taken, its time is not known, and it is counted as uncounted.
// Kernels of GPUs run asynchronously: their time is that of the launch, and the time that the
// program waits for them is that of the fences. sonde asks Kokkos for no additional fences, because
// they would slow the program down.
#include "trace/bounds.h"
#include "trace/counter.h"
#include "trace/kokkos.h"
#include "trace/names.h"
#include "trace/timing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLACES = 1024, // kernels and fences that run at the same time
    NONE = PLACES, // the id of one without a place
    DEPTH_MAX = 64,
};

struct place {
    _Atomic(struct name_cells *) cells; // NULL: free
    uint64_t begin;
};

struct region {
    struct name_cells *cells;
    uint64_t begin;
    struct sonde_span span;
};

struct copy {
    struct name_cells *cells; // NULL: none
    uint64_t begin, size;
};

// Of threads that open regions or copy. Allocated, because a library that is opened at run time has
// few bytes of thread-local storage. Freed when the thread ends.
struct thread {
    struct region stack[DEPTH_MAX];
    unsigned depth; // of regions; those above DEPTH_MAX are not recorded
    struct copy copy;
};

// clang-format off
static struct name_table
    kernels = {.tag = "kernel", .second_tag = "kind", .metrics = {
        {"kokkos_kernels", "", "kernels that have ended", SONDE_COUNTER},
        {"kokkos_kernel_seconds", "seconds",
         "time from the begin of kernels to their end; on GPUs, of the launch", SONDE_COUNTER}}},
    regions = {.tag = "region", .metrics = {
        {"kokkos_regions", "", "regions that have ended", SONDE_COUNTER},
        {"kokkos_region_seconds", "seconds", "time in regions", SONDE_COUNTER}}},
    fences = {.tag = "fence", .metrics = {
        {"kokkos_fences", "", "fences that have ended", SONDE_COUNTER},
        {"kokkos_fence_seconds", "seconds", "time of waiting in fences", SONDE_COUNTER}}},
    copies = {.tag = "from", .second_tag = "to", .metrics = {
        {"kokkos_copies", "", "deep copies that have ended", SONDE_COUNTER},
        {"kokkos_copy_bytes", "bytes", "bytes that deep copies moved", SONDE_COUNTER},
        {"kokkos_copy_seconds", "seconds", "time in deep copies", SONDE_COUNTER}}},
    memory = {.tag = "space", .metrics = {
        {"kokkos_memory_bytes", "bytes", "memory that the program has allocated and not freed",
         SONDE_GAUGE},
        {"kokkos_allocations", "", "allocations", SONDE_COUNTER},
        {"kokkos_allocated_bytes", "bytes", "bytes of all allocations", SONDE_COUNTER}}};
// clang-format on

static bool off = true;
static sonde_handle uncounted;
static struct place places[PLACES];
static _Atomic unsigned next_place;
static __thread struct thread *self;
static pthread_key_t thread_key;

static void free_thread(void *thread)
{
    self = NULL;
    free(thread);
}

static struct thread *this_thread(void)
{
    if (!self && !off) {
        self = calloc(1, sizeof *self);
        pthread_setspecific(thread_key, self);
    }
    return self;
}

// ---- kernels and fences

static void begin(struct name_table *table, const char *name, const char *kind, uint64_t *id)
{
    if (!id)
        return;
    *id = NONE;
    if (off)
        return;
    struct name_cells *cells = names_find(table, name, kind);
    for (unsigned tries = 0; tries < PLACES; tries++) {
        unsigned number = atomic_fetch_add_explicit(&next_place, 1, memory_order_relaxed) % PLACES;
        struct place *place = &places[number];
        struct name_cells *free_place = NULL;
        // Acquire: the time that the last user of the place has read is not the one set below.
        if (!atomic_compare_exchange_strong_explicit(&place->cells, &free_place, cells,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        *id = number;
        place->begin = timing_now();
        return;
    }
    sonde_add(uncounted, 1);
}

static void end(const struct name_table *table, uint64_t id)
{
    if (off || id >= PLACES)
        return;
    struct place *place = &places[id];
    struct name_cells *cells = atomic_load_explicit(&place->cells, memory_order_relaxed);
    // The end of something else, or a second end.
    if (!cells ||
        (cells != &table->other && (cells < table->slots || cells >= table->slots + NAMES_SLOTS)))
        return;
    double seconds = timing_seconds_since(place->begin);
    // Release: the next user of the place sets its time after this one has read it. If two threads
    // end the same kernel, one of them counts it.
    if (!atomic_compare_exchange_strong_explicit(&place->cells, &cells, NULL, memory_order_release,
                                                 memory_order_relaxed))
        return;
    sonde_add(cells->metrics[0], 1);
    sonde_add(cells->metrics[1], seconds);
}

void kokkosp_begin_parallel_for(const char *name, uint32_t device, uint64_t *id)
{
    (void)device;
    begin(&kernels, name, "for", id);
}

void kokkosp_begin_parallel_reduce(const char *name, uint32_t device, uint64_t *id)
{
    (void)device;
    begin(&kernels, name, "reduce", id);
}

void kokkosp_begin_parallel_scan(const char *name, uint32_t device, uint64_t *id)
{
    (void)device;
    begin(&kernels, name, "scan", id);
}

void kokkosp_begin_fence(const char *name, uint32_t device, uint64_t *id)
{
    (void)device;
    begin(&fences, name, NULL, id);
}

void kokkosp_end_parallel_for(uint64_t id)
{
    end(&kernels, id);
}

void kokkosp_end_parallel_reduce(uint64_t id)
{
    end(&kernels, id);
}

void kokkosp_end_parallel_scan(uint64_t id)
{
    end(&kernels, id);
}

void kokkosp_end_fence(uint64_t id)
{
    end(&fences, id);
}

// ---- regions

static const char *name_of(const struct name_cells *cells)
{
    const char *name = atomic_load_explicit(&cells->name, memory_order_relaxed);
    return name ? name : "other";
}

void kokkosp_push_profile_region(const char *name)
{
    struct thread *thread = this_thread();
    if (off || !thread || thread->depth++ >= DEPTH_MAX)
        return;
    struct region *region = &thread->stack[thread->depth - 1];
    struct name_cells *cells = names_find(&regions, name, NULL);
    *region = (struct region){.cells = cells};
    if (trace_may_span(&cells->spans, SPANS_MAX)) {
        const struct sonde_span *around = thread->depth > 1 ? &region[-1].span : NULL;
        region->span =
            sonde_span_open(name_of(cells), NULL, 0, around && around->id ? around : NULL);
    }
    region->begin = timing_now();
}

void kokkosp_pop_profile_region(void)
{
    struct thread *thread = this_thread();
    if (off || !thread || !thread->depth || --thread->depth >= DEPTH_MAX)
        return;
    const struct region *region = &thread->stack[thread->depth];
    sonde_add(region->cells->metrics[0], 1);
    sonde_add(region->cells->metrics[1], timing_seconds_since(region->begin));
    if (region->span.id)
        sonde_span_close(&region->span, name_of(region->cells), NULL, 0);
}

// ---- copies and memory

// The name of a memory space. Kokkos passes an array, which need not end with a 0.
static struct name_cells *cells_of(struct name_table *table, const struct kokkos_space *space,
                                   const char *second)
{
    char name[sizeof space->name + 1];
    memcpy(name, space->name, sizeof space->name);
    name[sizeof space->name] = 0;
    return names_find(table, name, second);
}

void kokkosp_begin_deep_copy(struct kokkos_space to, const char *to_label, const void *to_data,
                             struct kokkos_space from, const char *from_label,
                             const void *from_data, uint64_t size)
{
    (void)to_label, (void)to_data, (void)from_label, (void)from_data;
    struct thread *thread = this_thread();
    if (off || !thread)
        return;
    // The name in the table of memory lives as long as the process.
    const char *target = name_of(cells_of(&memory, &to, NULL));
    thread->copy = (struct copy){cells_of(&copies, &from, target), timing_now(), size};
}

void kokkosp_end_deep_copy(void)
{
    struct thread *thread = this_thread();
    struct copy *copy = thread ? &thread->copy : NULL;
    if (off || !copy || !copy->cells)
        return;
    sonde_add(copy->cells->metrics[0], 1);
    sonde_add(copy->cells->metrics[1], (double)copy->size);
    sonde_add(copy->cells->metrics[2], timing_seconds_since(copy->begin));
    copy->cells = NULL;
}

void kokkosp_allocate_data(struct kokkos_space space, const char *label, const void *data,
                           uint64_t size)
{
    (void)label, (void)data;
    if (off)
        return;
    const struct name_cells *cells = cells_of(&memory, &space, NULL);
    sonde_add(cells->metrics[0], (double)size);
    sonde_add(cells->metrics[1], 1);
    sonde_add(cells->metrics[2], (double)size);
}

void kokkosp_deallocate_data(struct kokkos_space space, const char *label, const void *data,
                             uint64_t size)
{
    (void)label, (void)data;
    if (!off)
        sonde_add(cells_of(&memory, &space, NULL)->metrics[0], -(double)size);
}

// ---- the library

void kokkosp_request_tool_settings(uint32_t count, struct kokkos_settings *settings)
{
    if (count && settings)
        settings->requires_global_fencing = false;
}

void kokkosp_init_library(int sequence, uint64_t version, uint32_t devices, void *info)
{
    (void)sequence, (void)version, (void)devices, (void)info;
    off = trace_is_off() || pthread_key_create(&thread_key, free_thread) != 0;
    if (!off)
        uncounted = counter_define("kokkos_uncounted", "",
                                   "kernels and fences beyond the number that can run at the same "
                                   "time",
                                   NULL, 0);
}

void kokkosp_finalize_library(void)
{
    off = true;
}
