// roctx_ranges.c - `sonde run --trace roctx`: ranges and marks of ROCTX.
//
// ROCTX is a library of functions (libroctx64, librocprofiler-sdk-roctx) without an interface for
// tools. Ours come before them in the dynamic linker's order, and call them, so that a profiler of
// AMD records the same ranges. Without ROCTX' library, they are its functions.
#include "trace/names.h"
#include "trace/next.h"
#include "trace/ranges.h"

#include <pthread.h>

#define ROCTX_API __attribute__((visibility("default")))

// The declarations of ROCTX.
ROCTX_API void roctxMarkA(const char *text);
ROCTX_API int roctxRangePushA(const char *text);
ROCTX_API int roctxRangePop(void);
ROCTX_API uint64_t roctxRangeStartA(const char *text);
ROCTX_API void roctxRangeStop(uint64_t id);

// Set in the ids that we give out, if we have recorded the range.
#define OURS (UINT64_C(1) << 63)

// clang-format off
static struct name_table
    ranges = {.tag = "range", .metrics = {
        {"roctx_ranges", "", "ranges that have ended", SONDE_COUNTER},
        {"roctx_range_seconds", "seconds", "time from the begin of ranges to their end",
         SONDE_COUNTER}}},
    marks = {.tag = "mark", .metrics = {
        {"roctx_marks", "", "marks", SONDE_COUNTER}}};
// clang-format on

static const struct ranges_tool tool = {&ranges, &marks, "roctx_uncounted"};
static bool on;
// The ids by which ROCTX knows the ranges in our places.
static _Atomic uint64_t next_ids[RANGES_PLACES];

static void begin_recording(void)
{
    on = ranges_begin_recording(&tool);
}

static bool is_on(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin_recording);
    return on;
}

void roctxMarkA(const char *text)
{
    NEXT(roctxMarkA)
    if (is_on())
        ranges_mark(NULL, text);
    if (next)
        next(text);
}

int roctxRangePushA(const char *text)
{
    NEXT(roctxRangePushA)
    int depth = is_on() ? ranges_push(NULL, text) : -1;
    return next ? next(text) : depth;
}

int roctxRangePop(void)
{
    NEXT(roctxRangePop)
    int depth = is_on() ? ranges_pop(NULL) : -1;
    return next ? next() : depth;
}

uint64_t roctxRangeStartA(const char *text)
{
    NEXT(roctxRangeStartA)
    uint64_t theirs = next ? next(text) : 0, own = is_on() ? ranges_start(NULL, text) : 0;
    if (!own)
        return theirs;
    atomic_store_explicit(&next_ids[own % RANGES_PLACES], theirs, memory_order_relaxed);
    return own | OURS;
}

void roctxRangeStop(uint64_t id)
{
    NEXT(roctxRangeStop)
    uint64_t theirs = id;
    if (id & OURS && is_on()) {
        // The program has passed the id on to this thread, so its place is complete.
        theirs = atomic_load_explicit(&next_ids[id % RANGES_PLACES], memory_order_relaxed);
        ranges_stop(id & ~OURS);
    }
    if (next)
        next(theirs);
}
