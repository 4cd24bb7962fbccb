// fabric.h - a bulk over libfabric, for bulk.c. Left out of a build that has not libfabric's
// headers.
#ifndef SONDE_WIRE_FABRIC_H
#define SONDE_WIRE_FABRIC_H

#include "wire/bulk.h"

// provider: as libfabric calls it; NULL: the best that is there. `made_for_it`: only a network that
// moves data by itself. -ENOENT: no library; -ENODEV: no such provider here; -EIO: it does not
// work.
int fabric_open(struct wire_loop *loop, const char *provider, bool made_for_it, enum wire_side side,
                const char *near, struct wire_bulk **out, struct error *e);

// Whether there is hardware at all for which libfabric is worth loading: its providers look for
// theirs for a tenth of a second.
bool fabric_hardware(void);

// What there is, in words. True: a network that moves data by itself.
bool fabric_describe(char *out, size_t size);

#endif
