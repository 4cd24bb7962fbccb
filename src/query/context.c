#include "query/context.h"

#include "base/clock.h"

#include <inttypes.h>

void query_context_begin(struct query_context *c, const struct query *q,
                         const struct query_limits *limits, struct arena *arena, struct error *e)
{
    static const struct query_limits none;
    if (!limits)
        limits = &none;
    *c = (struct query_context){
        .q = q,
        .e = e,
        .memory_bytes = limits->memory_bytes ? limits->memory_bytes : QUERY_MEMORY_DEFAULT,
        .series_max = limits->series_max ? limits->series_max : QUERY_SERIES_DEFAULT,
        .points_max = limits->points_max ? limits->points_max : QUERY_POINTS_DEFAULT,
        .exact_max = limits->exact_max ? limits->exact_max : QUERY_EXACT_DEFAULT,
        .deadline_ns = limits->deadline_ns,
        .watch = limits->watch,
        .reservation.watch = limits->watch,
        .cache = limits->cache,
    };
    query_context_results(c, arena);
}

void query_context_results(struct query_context *c, struct arena *arena)
{
    c->result = arena;
    c->result_before = arena->used_bytes;
    c->result_limit = arena->limit_bytes;
}

void query_context_end(struct query_context *c)
{
    arena_free(&c->plan);
    arena_free(&c->group);
    reservation_shrink(&c->reservation, c->result->used_bytes - c->result_before);
    c->result->limit_bytes = c->result_limit;
}

static size_t memory_used(const struct query_context *c)
{
    return c->result->used_bytes - c->result_before + c->plan.used_bytes + c->group.used_bytes +
           c->buffer_bytes;
}

static size_t memory_left(const struct query_context *c)
{
    size_t used = memory_used(c);
    return used < c->memory_bytes ? c->memory_bytes - used : 0;
}

int query_hold(struct query_context *c, size_t bytes)
{
    if (bytes > memory_left(c))
        return query_memory_limit(c);
    return reservation_grow(&c->reservation, memory_used(c) + bytes, c->e);
}

int query_memory_limit(struct query_context *c)
{
    return error_set(c->e, -E2BIG,
                     "The query needs more than %zu MiB (memory limit): ask for fewer series, a "
                     "shorter time or longer intervals",
                     c->memory_bytes >> 20);
}

// Sets and returns the limit of the arena in bytes.
static size_t limit_arena(struct query_context *c, struct arena *arena)
{
    size_t left = memory_left(c), limit = arena->used_bytes + left;
    if (arena == c->result && c->result_limit && limit > c->result_limit)
        limit = c->result_limit;
    arena->limit_bytes = limit ? limit : 1; // 0 would mean no limit
    return limit;
}

// Reserves memory after the arena has grown, which it does in chunks. Reserving afterwards is early
// enough, because untouched memory costs nothing yet.
static bool reserve_taken(struct query_context *c)
{
    int r = reservation_grow(&c->reservation, memory_used(c), c->e);
    c->alloc_error = r ? r : c->alloc_error;
    return r == 0;
}

// Records the reason after the arena failed to give `count` elements of `size` bytes.
static void note_failure(struct query_context *c, const struct arena *arena, size_t limit,
                         size_t count, size_t size)
{
    // The arena does not report whether its limit or the system refused; because of the chunk's
    // header and of rounding, the limit applies a little early.
    size_t wanted, slack = 4096;
    bool over = __builtin_mul_overflow(count, size, &wanted) || arena->used_bytes > limit ||
                wanted > limit - arena->used_bytes || limit - arena->used_bytes - wanted < slack;
    c->alloc_error =
        over ? query_memory_limit(c) : error_set(c->e, -ENOMEM, "no memory for the query");
}

void *query_alloc(struct query_context *c, struct arena *arena, size_t count, size_t size)
{
    size_t limit = limit_arena(c, arena);
    void *p = arena_array(arena, count, size);
    if (p)
        return reserve_taken(c) ? p : NULL;
    note_failure(c, arena, limit, count, size);
    return NULL;
}

bool query_grow(struct query_context *c, struct arena *arena, void *array, size_t *capacity,
                size_t count, size_t needed, size_t each)
{
    size_t limit = limit_arena(c, arena);
    // arena_room asks for at least this
    size_t wanted = needed / 2 < *capacity ? 2 * *capacity : needed;
    if (arena_room(arena, array, capacity, count, needed, each))
        return reserve_taken(c);
    note_failure(c, arena, limit, wanted, each);
    return false;
}

int query_tick(struct query_context *c, size_t work)
{
    c->since_clock += work;
    if (c->since_clock < QUERY_TICK_POINTS)
        return 0;
    c->since_clock = 0;
    int r = c->watch ? c->watch->look(c->watch->user, c->e) : 0;
    if (r)
        return r;
    if (c->deadline_ns && clock_monotonic_ns() > c->deadline_ns)
        return error_set(c->e, -ETIMEDOUT,
                         "The query did not end in time (time limit): ask for fewer series, a "
                         "shorter time or longer intervals");
    return 0;
}

int query_count_points(struct query_context *c, size_t count)
{
    c->points_read += count;
    if (c->points_read > c->points_max)
        return error_set(c->e, -E2BIG,
                         "The query reads more than %" PRIu64
                         " points (points limit): ask for fewer series or a shorter time",
                         c->points_max);
    return query_tick(c, count);
}
