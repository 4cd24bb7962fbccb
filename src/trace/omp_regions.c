// omp_regions.c - `sonde run --trace omp`: parallel regions, and the time that threads wait in
// their barriers.
//
// A region is known by the address that it was called from, and each execution of it by a record in
// a ring of the thread that begins it. The runtime wakes a worker from the barrier at the end of a
// region only for the next region, or at the end of the program. So the thread that ends the region
// writes the time into the record, and the worker counts its wait up to that time when it wakes. A
// worker that wakes after the record has been used again cannot know the time; such waits are
// counted as uncounted.
#include "trace/bounds.h"
#include "trace/counter.h"
#include "trace/omp.h"
#include "trace/spin.h"
#include "trace/timing.h"

#include "sonde.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REGIONS_MAX = 64, // further ones are "other"
    SLOTS = 128,      // of the hash table: at most half full
    THREADS_MAX = 256,
    RECORDS = 64, // executions of regions that a thread has begun last
    LABEL_BYTES = 256,
};
_Static_assert(SLOTS >= 2 * REGIONS_MAX && (SLOTS & (SLOTS - 1)) == 0, "a search always ends");

struct region {
    _Atomic(const void *) code; // NULL: free
    sonde_handle count, seconds, wait_seconds;
};

struct record {
    _Atomic uint64_t serial; // 0: being changed
    _Atomic uint64_t end;    // ticks; 0: the region has not ended
    uint64_t begin;
    _Atomic(struct region *) region;
};

// Never freed: records are read by other threads.
struct thread {
    struct record records[RECORDS];
    unsigned next;
    // The wait that the thread is in.
    struct record *record; // NULL: none
    uint64_t serial, begin;
    unsigned number; // in its team
};

struct waits {
    _Atomic bool defined;
    sonde_handle count, seconds;
};

static const char unknown; // its address stands for a call that the runtime does not know
static struct region regions[SLOTS], other_region;
static unsigned region_count;
static struct waits waits[THREADS_MAX + 1]; // the last one: "other"
static sonde_handle uncounted;
static spin defining;
static _Atomic uint64_t last_serial;
static __thread struct thread *self;

static struct thread *this_thread(void)
{
    if (__builtin_expect(!self, 0))
        self = calloc(1, sizeof *self);
    return self;
}

// ---- regions

// Writes "solver+0x11f3": the file and the address in it, as addr2line takes it.
static void make_label(const void *code, char label[LABEL_BYTES])
{
    Dl_info file;
    const uintptr_t call = (uintptr_t)code - 1; // `code` is the instruction after the call
    if (code == &unknown || !dladdr((const void *)call, &file) || !file.dli_fname ||
        !file.dli_fbase) {
        snprintf(label, LABEL_BYTES, "unknown");
        return;
    }
    const Elf64_Ehdr *header = file.dli_fbase;
    const char *slash = strrchr(file.dli_fname, '/');
    uintptr_t base = header->e_type == ET_EXEC ? 0 : (uintptr_t)file.dli_fbase;
    snprintf(label, LABEL_BYTES, "%.200s+0x%llx", slash ? slash + 1 : file.dli_fname,
             (unsigned long long)(call - base));
}

static void define_region(struct region *region, const char *label)
{
    const struct sonde_tag tags[] = {{"region", label}};
    region->count = counter_define("omp_regions", "", "parallel regions that have ended", tags, 1);
    region->seconds =
        counter_define("omp_region_seconds", "seconds", "time in parallel regions", tags, 1);
    region->wait_seconds =
        counter_define("omp_region_wait_seconds", "seconds",
                       "time in the barriers of parallel regions, of all threads", tags, 1);
}

static size_t slot_of(const void *code)
{
    return ((uintptr_t)code >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

__attribute__((noinline, cold)) static struct region *add_region(const void *code)
{
    struct region *found = NULL;
    spin_lock(&defining);
    for (size_t i = slot_of(code); !found; i++) {
        struct region *region = &regions[i % SLOTS];
        const void *here = atomic_load_explicit(&region->code, memory_order_relaxed);
        if (here == code) {
            found = region;
        } else if (!here) {
            found = region_count < REGIONS_MAX ? region : &other_region;
            if (region_count < REGIONS_MAX) {
                char label[LABEL_BYTES];
                make_label(code, label);
                define_region(region, label);
                region_count++;
                // Release: a thread that reads `code` also reads the handles.
                atomic_store_explicit(&region->code, code, memory_order_release);
            }
        }
    }
    if (found == &other_region && !found->count)
        define_region(found, "other");
    spin_unlock(&defining);
    return found;
}

static struct region *region_of(const void *code)
{
    if (!code)
        code = &unknown;
    for (size_t i = slot_of(code);; i++) {
        struct region *region = &regions[i % SLOTS];
        // Acquire: a region with a code has its handles.
        const void *here = atomic_load_explicit(&region->code, memory_order_acquire);
        if (here == code)
            return region;
        if (!here)
            return add_region(code);
    }
}

static void parallel_begin(union ompt_data *task, const void *frame, union ompt_data *parallel,
                           unsigned requested, int flags, const void *code)
{
    (void)task, (void)frame, (void)requested, (void)flags;
    struct thread *thread = this_thread();
    if (!thread)
        return;
    struct record *record = &thread->records[thread->next++ % RECORDS];
    atomic_store_explicit(&record->serial, 0, memory_order_relaxed);
    // Release fence: a reader of the new `end` or `region` also reads that the serial has changed.
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&record->end, 0, memory_order_relaxed);
    atomic_store_explicit(&record->region, region_of(code), memory_order_relaxed);
    record->begin = timing_now();
    uint64_t serial = 1 + atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed);
    // Release: a thread that reads this serial also reads the region, and an end of 0 or later.
    atomic_store_explicit(&record->serial, serial, memory_order_release);
    parallel->pointer = record;
}

static void parallel_end(union ompt_data *parallel, union ompt_data *task, int flags,
                         const void *code)
{
    (void)task, (void)flags, (void)code;
    struct record *record = parallel->pointer;
    if (!record)
        return;
    struct region *region = atomic_load_explicit(&record->region, memory_order_relaxed);
    sonde_add(region->count, 1);
    sonde_add(region->seconds, timing_seconds_since(record->begin));
    // Release: a thread that reads this end also reads this region's serial, not an older one.
    atomic_store_explicit(&record->end, timing_now(), memory_order_release);
}

// ---- barriers

static void implicit_task(int endpoint, union ompt_data *parallel, union ompt_data *task,
                          unsigned team, unsigned number, int flags)
{
    (void)parallel, (void)team;
    if (endpoint == OMPT_BEGIN && (flags & OMPT_TASK_IMPLICIT))
        task->value = number;
}

__attribute__((noinline, cold)) static void define_waits(unsigned number)
{
    char text[16] = "other";
    if (number < THREADS_MAX)
        snprintf(text, sizeof text, "%u", number);
    const struct sonde_tag tags[] = {{"thread", text}};
    spin_lock(&defining);
    struct waits *w = &waits[number];
    w->count =
        counter_define("omp_barrier_waits", "", "times that threads entered a barrier", tags, 1);
    w->seconds =
        counter_define("omp_barrier_seconds", "seconds", "time of threads in barriers", tags, 1);
    // Release: a thread that reads `defined` also reads the handles.
    atomic_store_explicit(&w->defined, true, memory_order_release);
    spin_unlock(&defining);
}

static bool is_barrier(int kind)
{
    return (kind >= OMPT_BARRIER && kind <= OMPT_BARRIER_EXPLICIT) ||
           (kind >= OMPT_BARRIER_IMPLICIT_WORKSHARE && kind <= OMPT_BARRIER_TEAMS);
}

// The seconds from the begin of the wait to now, or to the end of the region if that was earlier.
// Negative: the end of the region is no longer known.
static double waited_seconds(const struct thread *thread, const struct region **region)
{
    const struct record *record = thread->record;
    double until_now = timing_seconds_since(thread->begin);
    // Acquire: the serial below is that of this end, or a newer one.
    uint64_t end = atomic_load_explicit(&record->end, memory_order_acquire);
    *region = atomic_load_explicit(&record->region, memory_order_relaxed);
    // Acquire fence: the serial is read after what it stands for.
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&record->serial, memory_order_relaxed) != thread->serial)
        return -1;
    if (end <= thread->begin) // 0: the region goes on
        return end ? 0 : until_now;
    double since_end = timing_seconds_since(end);
    return until_now > since_end ? until_now - since_end : 0;
}

static void end_wait(struct thread *thread)
{
    const struct region *region = NULL;
    double seconds = waited_seconds(thread, &region);
    thread->record = NULL;
    if (seconds < 0) {
        sonde_add(uncounted, 1);
        return;
    }
    unsigned number = thread->number < THREADS_MAX ? thread->number : THREADS_MAX;
    // Acquire: if the thread's waits are defined, their handles are set.
    if (__builtin_expect(!atomic_load_explicit(&waits[number].defined, memory_order_acquire), 0))
        define_waits(number);
    sonde_add(waits[number].count, 1);
    sonde_add(waits[number].seconds, seconds);
    sonde_add(region->wait_seconds, seconds);
}

static void sync_region_wait(int kind, int endpoint, union ompt_data *parallel,
                             union ompt_data *task, const void *code)
{
    (void)code;
    struct thread *thread = is_barrier(kind) ? this_thread() : NULL;
    if (!thread)
        return;
    if (endpoint == OMPT_END) {
        if (thread->record)
            end_wait(thread);
        return;
    }
    struct record *record = parallel ? parallel->pointer : NULL;
    if (!record) // a barrier outside of regions
        return;
    thread->record = record;
    // Acquire: the record's region and end belong to this serial or a newer one.
    thread->serial = atomic_load_explicit(&record->serial, memory_order_acquire);
    thread->number = task ? (unsigned)task->value : 0;
    thread->begin = timing_now();
}

// ---- the runtime

static int initialize(ompt_lookup lookup, int device, union ompt_data *tool)
{
    (void)device, (void)tool;
    static const struct {
        int number;
        ompt_function function;
    } callbacks[] = {
        {OMPT_PARALLEL_BEGIN, (ompt_function)parallel_begin},
        {OMPT_PARALLEL_END, (ompt_function)parallel_end},
        {OMPT_IMPLICIT_TASK, (ompt_function)implicit_task},
        {OMPT_SYNC_REGION_WAIT, (ompt_function)sync_region_wait},
    };
    ompt_set_callback set = (ompt_set_callback)lookup("ompt_set_callback");
    for (size_t i = 0; set && i < sizeof callbacks / sizeof *callbacks; i++)
        set(callbacks[i].number, callbacks[i].function);
    uncounted = counter_define("omp_uncounted_waits", "",
                               "waits at the end of regions, of threads that were idle for many "
                               "regions afterwards",
                               NULL, 0);
    return set != NULL;
}

static void finalize(union ompt_data *tool)
{
    (void)tool;
}

struct ompt_tool *ompt_start_tool(unsigned version, const char *runtime)
{
    static struct ompt_tool tool = {initialize, finalize, {0}};
    (void)version, (void)runtime;
    return trace_is_off() ? NULL : &tool;
}
