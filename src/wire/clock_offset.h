// clock_offset.h - estimates the offset of another machine's clock from pings.
//
//   hub    t1 ───────────────▶            t4      offset = ((t2 - t1) + (t3 - t4)) / 2: the link's
//   link          t2 ─ t3 ───────────────▶        clock minus the hub's
//                                                 error ≤ ((t4 - t1) - (t3 - t2)) / 2: half the
//                                                 round trip
//
// Of the last pings, only the one with the shortest round trip counts, because queues only lengthen
// a round trip.
#ifndef SONDE_WIRE_CLOCK_OFFSET_H
#define SONDE_WIRE_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

enum { CLOCK_OFFSET_SAMPLES = 16 };

struct clock_offset {
    struct {
        int64_t offset_ns, round_ns;
    } samples[CLOCK_OFFSET_SAMPLES];
    uint64_t count;
};

// Adds a ping. Ignores impossible times (a response before its request).
void clock_offset_add(struct clock_offset *c, int64_t t1, int64_t t2, int64_t t3, int64_t t4);

// Returns false without a sample. The true offset lies within *offset_ns ± *error_ns, apart from
// drift since the sample.
bool clock_offset_get(const struct clock_offset *c, int64_t *offset_ns, int64_t *error_ns);

#endif
