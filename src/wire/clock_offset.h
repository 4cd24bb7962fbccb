// clock_offset.h - how far another machine's clock is from ours, from pings.
//
//   hub    t1 ───────────────▶            t4         offset = ((t2 - t1) + (t3 - t4)) / 2, theirs minus ours
//   link          t2 ─ t3 ───────────────▶           error  ≤ ((t4 - t1) - (t3 - t2)) / 2: half the round trip
//
// Of the last pings the one with the shortest round trip counts: queues only ever make it longer.
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

// Ignores what cannot be (an answer before its question).
void clock_offset_add(struct clock_offset *c, int64_t t1, int64_t t2, int64_t t3, int64_t t4);

// False: nothing is known yet. The true offset lies in *offset_ns ± *error_ns, drift since the
// sample aside.
bool clock_offset_get(const struct clock_offset *c, int64_t *offset_ns, int64_t *error_ns);

#endif
