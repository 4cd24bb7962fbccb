// context.h - the state of a running query: its limits, its memory, the number of points read so
// far.
//
// Memory comes from three arenas and some buffers that share one bound: `result` (the caller's: the
// results), `plan` (the selection: lives as long as the query), `group` (emptied after each group
// of series), and the buffers that all series use in turn (points.h).
#ifndef SONDE_QUERY_CONTEXT_H
#define SONDE_QUERY_CONTEXT_H

#include "base/reservation.h"
#include "query/query.h"

#include <errno.h>

enum {
    QUERY_MEMORY_DEFAULT = 256 << 20, // bytes
    QUERY_SERIES_DEFAULT = 1000000,
    QUERY_POINTS_DEFAULT = 100000000,
    QUERY_EXACT_DEFAULT = 4096, // series
    QUERY_TICK_POINTS = 4096,   // points or equivalent work between two checks of the clock
};

// Learns of the progress of a query (ahead.h).
struct query_selected;
struct query_observer {
    void (*reached)(void *user, const struct query_selected *series); // is read next
    void (*missed)(void *user, size_t points); // the cache lacks a block of so many points
    void *user;
};

struct query_context {
    const struct query *q;
    struct error *e;
    // other nodes' partials join the groups, so this node does not know all series of a group
    bool shared;
    struct arena *result;
    struct arena plan, group;
    size_t result_before, result_limit; // size and limit of the caller's arena before the query
    size_t memory_bytes, buffer_bytes;
    uint64_t series_max, points_max;
    size_t exact_max;
    int64_t deadline_ns;
    const struct work_watch *watch;
    struct reservation reservation; // made in `watch`
    struct query_cache *cache;
    const struct query_observer *observer; // NULL: none
    uint64_t points_read, points_from_summaries, series_read;
    size_t since_clock;
    int alloc_error;
    const int64_t *last_times; // time stamps of the series that was added to the result last
    size_t last_count;
};

// Results go to `arena`. Every call needs a query_context_end.
void query_context_begin(struct query_context *c, const struct query *q,
                         const struct query_limits *limits, struct arena *arena, struct error *e);
// Switches the results to `arena`. Call it before any result is allocated.
void query_context_results(struct query_context *c, struct arena *arena);
// The memory of the results stays reserved until the caller's request ends.
void query_context_end(struct query_context *c);

// Allocates `count` elements of `size` bytes in one of the three arenas. Returns NULL and sets c->e
// when the memory limit is reached.
void *query_alloc(struct query_context *c, struct arena *arena, size_t count, size_t size);

// Makes room for `needed` elements in an array of `count` in one of the three arenas (arena_room).
// On failure returns false and sets c->e like query_alloc.
bool query_grow(struct query_context *c, struct arena *arena, void *array, size_t *capacity,
                size_t count, size_t needed, size_t each);
static inline bool query_room(struct query_context *c, struct arena *arena, void *array,
                              size_t *capacity, size_t count, size_t needed, size_t each)
{
    return needed <= *capacity || query_grow(c, arena, array, capacity, count, needed, each);
}

// The error of a failed query_alloc or query_room: -E2BIG, -ENOMEM, or the watch's error.
static inline int query_alloc_failed(const struct query_context *c)
{
    return c->alloc_error < 0 ? c->alloc_error : -ENOMEM;
}

// Call it before using `bytes` more. Returns -E2BIG past the limit, or the watch's error.
int query_hold(struct query_context *c, size_t bytes);

// Reports in c->e that the memory limit is reached; returns -E2BIG.
int query_memory_limit(struct query_context *c);

// Call it after `work` points or equivalent work. Returns -ETIMEDOUT once the deadline has passed,
// or the watch's error.
int query_tick(struct query_context *c, size_t work);

// Call it before decoding `count` points. Returns -E2BIG past the limit, otherwise like query_tick.
int query_count_points(struct query_context *c, size_t count);

#endif
