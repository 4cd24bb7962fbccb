// ring.c - the hot paths: points, rows and cells.
//
// A point costs one comparison with `limit`, a reading of the clock, three stores, and the store of
// `head` that publishes them. `limit` is the smallest of three limits. So one comparison answers
// three questions: whether the ring has room, whether the record fits before the ring's end, and
// whether it is time to check for an agent that sleeps or has gone. A thread without a ring uses
// emit_no_ring, whose limit is
// 0. emit_room() handles all rare cases.
#include "emit/ring.h"

#include "sonde.h"

#include <string.h>

enum {
    POINT_BYTES = 24,
    // approximate interval at which an emitting thread checks for the agent, so that it connects
    // again after the agent was restarted
    LOOK_MS = 100,
    STEP_MIN = 64, // bytes; a check takes as long as emitting some points
    STEP_MAX = 8192,
    RESERVE_LEAST = 2 * SEGMENT_PAGE,
    RESERVE_MOST = SEGMENT_RING_MIN,
};

_Static_assert(SEGMENT_MISSING_BITS == SONDE_MISSING_BITS, "a value that is missing");

// Returns the number of bytes to write before the next check. A slow ring checks at every record.
static uint64_t next_step(struct ring *r)
{
    uint32_t now_ms = (uint32_t)(clock_read_ns(CLOCK_MONOTONIC_COARSE) / NS_PER_MS);
    if (now_ms - r->looked_ms >= LOOK_MS)
        r->step = 0;
    else if (r->step < STEP_MAX)
        r->step = r->step < STEP_MIN ? STEP_MIN : r->step * 2;
    r->looked_ms = now_ms;
    return r->step;
}

// Reserves memory for the first `end` bytes of the ring's data. Each step doubles what is reserved,
// up to RESERVE_MOST bytes, so that a program that emits little has little memory. Returns false if
// memory is exhausted.
static bool reserve_data(struct emit_process *p, const struct ring *r, uint64_t end)
{
    uint64_t *reserved = &p->ring_reserved[r->index];
    size_t data = (size_t)((const char *)r - p->base) + SLOT_DATA;
    while (*reserved < end && *reserved <= r->mask) {
        uint64_t step = *reserved < RESERVE_LEAST  ? RESERVE_LEAST
                        : *reserved < RESERVE_MOST ? *reserved
                                                   : RESERVE_MOST;
        if (!emit_reserve(&p->segment.file, data + *reserved, step))
            return false;
        *reserved += step;
    }
    return true;
}

__attribute__((noinline, cold)) struct ring *emit_room(size_t bytes, uint64_t points)
{
    struct emit_process *p = &emit_process;
    struct ring *r = emit_ring(points);
    if (!r)
        return NULL;
    uint64_t size = r->mask + 1;
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    // Acquire: the agent has read the bytes before its tail, so they may be overwritten.
    uint64_t tail = atomic_load_explicit(&p->agent->tails[r->index].bytes, memory_order_acquire);
    uint64_t used = head - tail <= size ? head - tail : size;
    uint64_t to_end = size - (head & r->mask);
    uint64_t pad = to_end < bytes ? to_end : 0;
    if (used >= size / 2)
        emit_bell(p);
    else
        emit_connection_tend(p);
    if (size - used < pad + bytes || !reserve_data(p, r, head + pad + bytes)) {
        atomic_store_explicit(&r->dropped,
                              atomic_load_explicit(&r->dropped, memory_order_relaxed) + points,
                              memory_order_relaxed);
        r->limit = head;
        return NULL;
    }
    if (pad) {
        *emit_data(r, head) = segment_word(SEGMENT_PAD, 0, pad / 8, 0);
        head += pad;
        emit_publish(r, head);
        to_end = size;
    }
    uint64_t mark = head + next_step(r);
    uint64_t limit = tail + size;
    if (limit > head + to_end)
        limit = head + to_end;
    if (p->ring_reserved[r->index] < size && limit > p->ring_reserved[r->index])
        limit = p->ring_reserved[r->index];
    r->limit = limit > mark ? mark : limit;
    if (r->limit < head + bytes)
        r->limit = head + bytes;
    return r;
}

__attribute__((noinline, cold)) static void point_slow(sonde_handle metric, double value)
{
    if (emit_room(POINT_BYTES, 1))
        sonde_put_point(metric, value);
}

void sonde_put_point(sonde_handle metric, double value)
{
    struct ring *r = emit_self;
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    if (__builtin_expect(head + POINT_BYTES > r->limit, 0)) {
        point_slow(metric, value);
        return;
    }
    uint64_t *word = emit_data(r, head);
    word[0] = segment_word(SEGMENT_POINT, 0, POINT_BYTES / 8, metric);
    word[1] = emit_time(r);
    memcpy(&word[2], &value, sizeof value);
    emit_publish(r, head + POINT_BYTES);
}

void sonde_put_point_at(sonde_handle metric, double value, int64_t time_ns)
{
    struct ring *r = emit_room_if_needed(POINT_BYTES, 1);
    if (!r)
        return;
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint64_t *word = emit_data(r, head);
    word[0] = segment_word(SEGMENT_POINT, SEGMENT_TIME_NS, POINT_BYTES / 8, metric);
    word[1] = (uint64_t)time_ns;
    memcpy(&word[2], &value, sizeof value);
    emit_publish(r, head + POINT_BYTES);
}

static void put_row(sonde_handle group, const double *values, unsigned flags, int64_t time_ns)
{
    unsigned count = emit_group_members(group);
    size_t bytes = 16 + 8 * (size_t)count;
    struct ring *r = count ? emit_room_if_needed(bytes, count) : NULL;
    if (!r)
        return;
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint64_t *word = emit_data(r, head);
    word[0] = segment_word(SEGMENT_ROW, flags, bytes / 8, group);
    word[1] = flags ? (uint64_t)time_ns : emit_time(r);
    memcpy(&word[2], values, 8 * (size_t)count);
    emit_publish(r, head + bytes);
}

void sonde_put_row(sonde_handle group, const double *values)
{
    put_row(group, values, 0, 0);
}

void sonde_put_row_at(sonde_handle group, const double *values, int64_t time_ns)
{
    put_row(group, values, SEGMENT_TIME_NS, time_ns);
}

// ---- Cells ----

// Returns the new end of the cells. It grows a page at a time, because the agent reads up to it,
// and must not touch unwritten pages.
static uint32_t cells_end_for(sonde_handle metric)
{
    enum { CELLS_A_PAGE = SEGMENT_PAGE / 8 };
    return (metric / CELLS_A_PAGE + 1) * CELLS_A_PAGE;
}

// Returns false for NaN and infinities, because a sum that becomes one of them never changes again.
static inline bool is_finite(double sum)
{
    return sum - sum == 0;
}

__attribute__((noinline, cold)) static void refuse_amount(void)
{
    atomic_fetch_add_explicit(&emit_process.header->dropped, 1, memory_order_relaxed);
}

static bool reserve_cells(struct emit_process *p, size_t area, uint32_t from, uint32_t end)
{
    return emit_reserve(&p->segment.file, area + from * sizeof(double),
                        (end - from) * sizeof(double));
}

// Adds to the cells that all threads without a slot share.
static void add_to_common(struct emit_process *p, sonde_handle metric, double amount)
{
    uint32_t end = cells_end_for(metric),
             known = atomic_load_explicit(&p->header->common_end, memory_order_relaxed);
    if (known < end && !reserve_cells(p, p->at.common, known, end)) {
        refuse_amount();
        return;
    }
    // Release: the memory of these cells is reserved before an agent reads up to `end`.
    while (known < end &&
           !atomic_compare_exchange_weak_explicit(&p->header->common_end, &known, end,
                                                  memory_order_release, memory_order_relaxed))
        ;
    _Atomic uint64_t *cell = (_Atomic uint64_t *)(void *)(p->base + p->at.common) + metric;
    uint64_t before = atomic_load_explicit(cell, memory_order_relaxed), after;
    do {
        double sum;
        memcpy(&sum, &before, sizeof sum);
        sum += amount;
        if (!is_finite(sum)) {
            refuse_amount();
            return;
        }
        memcpy(&after, &sum, sizeof after);
    } while (!atomic_compare_exchange_weak_explicit(cell, &before, after, memory_order_relaxed,
                                                    memory_order_relaxed));
}

__attribute__((noinline, cold)) static void add_slow(sonde_handle metric, double amount)
{
    struct emit_process *p = &emit_process;
    struct ring *r = emit_ring(0);
    // Acquire: the definition of a valid handle is complete.
    if (!emit_on() || metric >= atomic_load_explicit(&p->cells_end, memory_order_acquire))
        return;
    if (!r) {
        add_to_common(p, metric, amount);
        return;
    }
    uint32_t end = cells_end_for(metric),
             known = atomic_load_explicit(&r->cells_end, memory_order_relaxed);
    if (end > known) {
        if (!reserve_cells(p, (size_t)((char *)r - p->base) + SLOT_CELLS, known, end)) {
            refuse_amount();
            return;
        }
        // Release: the memory of these cells is reserved before an agent reads up to `end`.
        atomic_store_explicit(&r->cells_end, end, memory_order_release);
    }
    sonde_cell_add(metric, amount);
}

void sonde_cell_add(sonde_handle metric, double amount)
{
    struct ring *r = emit_self;
    if (__builtin_expect(metric >= atomic_load_explicit(&r->cells_end, memory_order_relaxed), 0)) {
        add_slow(metric, amount);
        return;
    }
    // No other thread writes this cell, and an aligned double is stored in one piece. So volatile
    // is enough for the agent to see it.
    volatile double *cell = (volatile double *)(void *)((char *)r + SLOT_CELLS) + metric;
    double sum = *cell + amount;
    if (__builtin_expect(!is_finite(sum), 0))
        refuse_amount();
    else
        *cell = sum;
}

__attribute__((noinline, cold)) static bool set_slow(sonde_handle metric)
{
    // Acquire: the memory of a valid handle's gauge is reserved.
    return emit_on() &&
           metric < atomic_load_explicit(&emit_process.cells_end, memory_order_acquire);
}

void sonde_cell_set(sonde_handle metric, double value)
{
    struct emit_process *p = &emit_process;
    if (__builtin_expect(metric >= atomic_load_explicit(&p->cells_end, memory_order_relaxed), 0) &&
        !set_slow(metric))
        return;
    uint64_t bits, missing;
    double none = sonde_missing();
    memcpy(&bits, &value, sizeof bits);
    memcpy(&missing, &none, sizeof missing);
    _Atomic uint64_t *cell = (_Atomic uint64_t *)(void *)(p->base + p->at.gauges) + metric;
    atomic_store_explicit(cell, bits ^ missing, memory_order_relaxed);
}

uint64_t sonde_dropped(void)
{
    struct emit_process *p = &emit_process;
    if (!emit_on())
        return 0;
    uint64_t sum = atomic_load_explicit(&p->header->dropped, memory_order_relaxed);
    // Acquire: these rings have been laid out.
    uint32_t used = atomic_load_explicit(&p->header->slots_used, memory_order_acquire);
    for (uint32_t i = 0; i < used; i++) {
        struct ring *r = (struct ring *)(void *)(p->base + p->at.slots + p->at.slot_bytes * i);
        sum += atomic_load_explicit(&r->dropped, memory_order_relaxed);
    }
    return sum + emit_undelivered_values(p);
}

int sonde_level(void)
{
    return emit_on() ? emit_process.level : 0;
}

const char *sonde_version(void)
{
    return SONDE_VERSION;
}
