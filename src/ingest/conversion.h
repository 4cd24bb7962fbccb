// conversion.h - from the words of a record to the time that is stored.
//
// Cycle counts become boot time, which never steps, and boot time becomes the time of day (base/clock.h). So:
//
//   - a wall clock that is set, forwards or back, changes the times of what is emitted from then on (from the agent's last look before
//     on, which is at most half a second ago), and nothing else: the distances between points stay what they were;
//   - a time that is given with the point is taken as it is, unless it is more than INGEST_FUTURE_MAX_NS ahead of the wall clock. Then
//     it is put to now and counted (`clamped`): the recording's window is counted back from its newest point, and one program that is
//     ahead would push the data of all others out of it.
//
// Two points of a series at one nanosecond would be one. Within a ring each record is therefore later than the one before; and the rings
// of one program take turns: of every `lanes` nanoseconds (a power of two, at least twice as many as there are rings in use) each has an
// even one for itself; a wall clock that was set back makes them odd. With one thread a time is off by a nanosecond, with eight by
// 16 at most, less than the processors' counters differ. A ring that was for long written faster than one record in `lanes` ns gets ahead of the clock. Where that is more than
// INGEST_FUTURE_MAX_NS the point is lost, and counted.
//
// The same goes for programs that emit into one series: of those that do, each has its turn.
//
// A conversion is plain numbers: whoever has the same ones gets the same times from the same records (rings.c).
#ifndef SONDE_INGEST_CONVERSION_H
#define SONDE_INGEST_CONVERSION_H

#include "base/clock.h"

#define INGEST_FUTURE_MAX_NS ((int64_t)NS_PER_S) // what clocks of one machine or of its neighbours may differ

struct conversion {
    struct clock_map map;
    int64_t start_ns; // of the program, boot time: nothing is earlier
    int64_t now_ns;   // boot time: nothing is later
    int64_t lanes;
    int64_t unit, turn; // programs that emit into the same series: half of a time, modulo `unit`, is `turn`
};

// Whose times are converted.
struct conversion_source {
    bool ticks;   // its times are cycle counts; else the wall clock's
    int64_t lane; // of the ring: even, below `lanes`
};

// Now, by the clock of the source: boot time, or the wall clock.
static inline int64_t conversion_now_ns(const struct conversion *c, const struct conversion_source *from)
{
    return from->ticks ? c->now_ns : clock_map_real_ns(&c->map, c->now_ns);
}

// The time of a word by that clock. One that cannot be is put to the nearest that can, and sets *clamped.
static inline int64_t conversion_clock_ns(const struct conversion *c, const struct conversion_source *from,
                                          uint64_t word, bool *clamped)
{
    int64_t t, first = c->start_ns, last = c->now_ns + INGEST_FUTURE_MAX_NS;
    if (__builtin_expect(from->ticks, 1)) {
        t = clock_map_boot_ns(&c->map, word, last);
    } else {
        // It may be from before the clock was set.
        int64_t offset = c->map.real_minus_boot_ns,
                other = c->map.set_after_ns == INT64_MIN ? offset : c->map.real_minus_boot_before_ns;
        t = (int64_t)word;
        first += offset < other ? offset : other;
        last += offset > other ? offset : other;
    }
    if (__builtin_expect(t >= first && t <= last, 1))
        return t;
    *clamped = true;
    return t < first ? first : conversion_now_ns(c, from);
}

// From that clock to the time of day.
static inline int64_t conversion_real_ns(const struct conversion *c, const struct conversion_source *from,
                                         int64_t clock_ns)
{
    return from->ticks ? clock_map_real_ns(&c->map, clock_ns) : clock_ns;
}

// The time of day for a point: later than *newest (by the clock of the source; the point's becomes it), in the turn of its ring. False: that is too
// far ahead.
static inline bool conversion_distinct_ns(const struct conversion *c, const struct conversion_source *from,
                                          int64_t clock_ns, int64_t *newest, int64_t *out)
{
    int64_t t = (clock_ns & -c->lanes) | from->lane;
    if (__builtin_expect(t <= *newest, 0)) {
        int64_t last = conversion_now_ns(c, from) + INGEST_FUTURE_MAX_NS;
        // The wall clock may be set back, and is followed; so is any clock that nothing can have shown yet.
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
