// conversion.h - converts the time words of a record to the time for the store.
//
// Cycle counts become boot time, which never steps. Boot time becomes the time of day
// (base/clock.h). Two rules follow:
//
//   - If the wall clock is set, forwards or back, only the times of later points change: points
//     that the agent had not read yet (it reads the rings at least twice a second). Distances
//     between points stay the same.
//   - A given time is stored unchanged, unless it is more than INGEST_FUTURE_MAX_NS ahead of the
//     wall clock. The agent then replaces it with now and counts it (`clamped`).
//
// The store keeps one value a series and nanosecond, so each point needs a time of its own:
//
//   - Within a ring, each record gets a later time than the record before it.
//   - The rings of a program take turns: each owns one even nanosecond of every `lanes` nanoseconds
//     (a power of two, at least twice the number of rings in use). Programs that define the same
//     series take turns in the same way (turns.c).
//   - The offset to the time of day is even at first. It becomes odd when the wall clock is set
//     back, so a repeated moment has two sets of nanoseconds.
//
// The error: with one ring a time is off by 1 ns, with eight rings by at most 16 ns, less than the
// difference between the counters of two processors. A program that writes more than one record per
// `lanes` ns for a long time gets ahead of the clock. The agent drops and counts a point that would
// be more than INGEST_FUTURE_MAX_NS ahead.
//
// A conversion is plain data: the same conversion gives the same times in any process (rings.c
// repeats the conversion of a dead agent).
#ifndef SONDE_INGEST_CONVERSION_H
#define SONDE_INGEST_CONVERSION_H

#include "base/clock.h"

#define INGEST_FUTURE_MAX_NS \
    ((int64_t)NS_PER_S) // difference to expect between the clocks of a machine and its neighbours

struct conversion {
    struct clock_map map;
    int64_t start_ns; // start of the program, boot time: lower bound of all times
    int64_t now_ns;   // boot time: upper bound of all times
    int64_t lanes;
    // the turn of this program among the programs that define the same series: half of each stored
    // time, modulo `unit`, is `turn`
    int64_t unit, turn;
};

// Returns false for numbers with which the arithmetic below could overflow. A program may have
// written such numbers.
static inline bool conversion_sane(const struct conversion *c)
{
    const int64_t limit = INT64_C(1) << 61;
    const int64_t numbers[] = {c->start_ns, c->now_ns, c->map.real_minus_boot_ns,
                               c->map.real_minus_boot_before_ns, c->map.before_until_ns};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i] < -limit || numbers[i] > limit)
            return false;
    return true;
}

// The ring whose times are converted.
struct conversion_source {
    bool ticks;   // the ring's times are cycle counts; if false, they are times of day
    int64_t lane; // lane of the ring: even, below `lanes`
};

// Returns the current time of the source's clock: boot time, or the wall clock.
static inline int64_t conversion_now_ns(const struct conversion *c,
                                        const struct conversion_source *from)
{
    return from->ticks ? c->now_ns : clock_map_real_ns(&c->map, c->now_ns);
}

// Converts a time word to the time of the source's clock. An impossible time becomes the nearest
// possible one, and sets *clamped.
static inline int64_t conversion_clock_ns(const struct conversion *c,
                                          const struct conversion_source *from, uint64_t word,
                                          bool *clamped)
{
    int64_t t, first = c->start_ns, last = c->now_ns + INGEST_FUTURE_MAX_NS;
    if (__builtin_expect(from->ticks, 1)) {
        t = clock_map_boot_ns(&c->map, word, last);
    } else {
        // The time may be from a moment before the clock was set.
        int64_t offset = c->map.real_minus_boot_ns, other = c->map.set_after_ns == INT64_MIN
                                                                ? offset
                                                                : c->map.real_minus_boot_before_ns;
        t = (int64_t)word;
        first += offset < other ? offset : other;
        last += offset > other ? offset : other;
    }
    if (__builtin_expect(t >= first && t <= last, 1))
        return t;
    *clamped = true;
    return t < first ? first : conversion_now_ns(c, from);
}

// Converts a time of the source's clock to the time of day.
static inline int64_t conversion_real_ns(const struct conversion *c,
                                         const struct conversion_source *from, int64_t clock_ns)
{
    return from->ticks ? clock_map_real_ns(&c->map, clock_ns) : clock_ns;
}

// Makes the time of day for a point: later than *newest, in the turn of its ring. *newest is a time
// of the source's clock, which this function updates. Returns false if the time would be too far
// ahead.
static inline bool conversion_distinct_ns(const struct conversion *c,
                                          const struct conversion_source *from, int64_t clock_ns,
                                          int64_t *newest, int64_t *out)
{
    int64_t t = (clock_ns & -c->lanes) | from->lane;
    if (__builtin_expect(t <= *newest, 0)) {
        int64_t last = conversion_now_ns(c, from) + INGEST_FUTURE_MAX_NS;
        // If the wall clock was set back, the newest time follows it. The same holds for a newest
        // time that the clock cannot have shown yet.
        if ((from->ticks || *newest - t < NS_PER_MS) && *newest <= last) {
            t = (*newest & -c->lanes) + c->lanes + from->lane;
            if (t > last)
                return false;
        }
    }
    *newest = t;
    *out = conversion_real_ns(c, from, t);
    return true;
}

#endif
