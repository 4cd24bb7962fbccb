// ring.h - room in this thread's ring. Internal to src/emit.
#ifndef SONDE_EMIT_RING_H
#define SONDE_EMIT_RING_H

#include "base/clock.h"
#include "emit/process.h"

// Returns this thread's ring with room for `bytes` after its head, in one piece (a multiple of 8,
// at most a record). NULL: the ring is full, or the thread has none, and `points` are counted as
// dropped.
struct ring *emit_room(size_t bytes, uint64_t points);

// True if the known room of this thread's ring is enough.
static inline bool emit_has_room(const struct ring *r, size_t bytes)
{
    return atomic_load_explicit(&r->head, memory_order_relaxed) + bytes <= r->limit;
}

// Like emit_room, but takes the slow path only if the known room is not enough.
static inline struct ring *emit_room_if_needed(size_t bytes, uint64_t points)
{
    struct ring *r = emit_self;
    return emit_has_room(r, bytes) ? r : emit_room(bytes, points);
}

static inline uint64_t emit_time(const struct ring *r)
{
    return __builtin_expect(r->ticks, 1) ? clock_ticks() : (uint64_t)clock_realtime_ns();
}

// Release: an agent that reads the new head also reads the whole record before it.
static inline void emit_publish(struct ring *r, uint64_t head)
{
    atomic_store_explicit(&r->head, head, memory_order_release);
}

// Returns the number of members of a group, or 0 if the handle is not a group.
unsigned emit_group_members(uint32_t group);

#endif
