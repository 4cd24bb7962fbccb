// ranges.h - named ranges and marks of programs, as NVTX and ROCTX have them: cells for each name,
// spans, annotations.
//
// Functions may be called from any thread, in any order. An end without a begin, or with a number
// that was not given out, is not recorded.
//
// The cost of a range: two readings of the clock (20 ns), a hash of its name, two additions to
// cells of libsonde; two spans more for the first 10,000 of a name. Memory: 11 KiB for each thread
// that pushes ranges, 64 KiB for ranges that threads share, at most 64 domains.
#ifndef SONDE_TRACE_RANGES_H
#define SONDE_TRACE_RANGES_H

#include "trace/names.h"

#include <stdbool.h>
#include <stdint.h>

enum { RANGES_PLACES = 1024 }; // of ranges that have started and not ended

// The series of a library. `ranges` has two metrics: the number of ranges and their time; `marks`
// has one, their number.
struct ranges_tool {
    struct name_table *ranges, *marks;
    const char *uncounted; // the metric of ranges that found no place
};

// Returns false if nothing is recorded; the other functions must not be called then. Called once.
bool ranges_begin_recording(const struct ranges_tool *tool);

// Returns the handle of a domain; NULL, as of calls without a domain, if it has no name. Other
// handles are those of calls without a domain.
void *ranges_domain(const char *name);

// Texts may be NULL. The depth of the range in its domain, from 0 on; negative without memory.
int ranges_push(const void *domain, const char *text);
// The depth of the range that has ended; negative if none was open.
int ranges_pop(const void *domain);

// Starts a range that may end in another thread. Returns its id, or 0 if no place is free. The id
// modulo RANGES_PLACES is the index of the range's place.
uint64_t ranges_start(const void *domain, const char *text);
void ranges_stop(uint64_t id);

void ranges_mark(const void *domain, const char *text);

#endif
