// instants.h - computes when to sample: at whole multiples of the rate since the epoch, on the wall
// clock.
//
// So all nodes sample at the same moment, and do not drift. The functions compute only with times
// that the caller passes, so tests can simulate any clock. After a late wake-up, only the newest
// instant is sampled; earlier ones count as skipped. If the clock is set forward, the instants in
// between are skipped. If it is set back, instants continue from the new time.
#ifndef SONDE_AGENT_INSTANTS_H
#define SONDE_AGENT_INSTANTS_H

#include <stdbool.h>
#include <stdint.h>

struct instants {
    int64_t rate_ns;
    int64_t next_ns;  // the next instant
    uint64_t skipped; // number of skipped instants
};

struct instants instants_from(int64_t now_ns, int64_t rate_ns);

// Returns true if an instant is due. *instant_ns is then its time, and `now_ns - *instant_ns` its
// delay. Otherwise *wait_ns (> 0) is the time until the next one.
bool instants_due(struct instants *i, int64_t now_ns, int64_t *instant_ns, int64_t *wait_ns);

#endif
