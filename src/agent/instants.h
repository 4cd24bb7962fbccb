// instants.h - when to sample: at whole multiples of the rate since the epoch, on the wall clock.
//
// So all nodes sample at the same moment, and do not drift. Pure arithmetic on times that the
// caller reads, so tests can play any clock. After a late wake-up, only the newest instant is
// sampled; earlier ones count as skipped. If the clock is set forward, the instants between are
// skipped; if it is set back, instants start anew from its new time.
#ifndef SONDE_AGENT_INSTANTS_H
#define SONDE_AGENT_INSTANTS_H

#include <stdbool.h>
#include <stdint.h>

struct instants {
    int64_t rate_ns;
    int64_t next_ns;  // the next instant
    uint64_t skipped; // instants that went by
};

struct instants instants_from(int64_t now_ns, int64_t rate_ns);

// Whether an instant has come: *instant_ns is it, and `now_ns - *instant_ns` how late it is. If
// not: how long to wait is in *wait_ns (> 0).
bool instants_due(struct instants *i, int64_t now_ns, int64_t *instant_ns, int64_t *wait_ns);

#endif
