// fabric.h - a bulk over libfabric, for bulk.c. Builds without libfabric's headers leave it out.
#ifndef SONDE_WIRE_FABRIC_H
#define SONDE_WIRE_FABRIC_H

#include "wire/bulk.h"

// provider: libfabric's name; NULL: the best available one. `made_for_it` accepts only a network
// that moves data by itself. Returns 0, -ENOENT (no library), -ENODEV (no such provider), -EIO (the
// provider does not work) or another negative errno.
int fabric_open(struct wire_loop *loop, const char *provider, bool made_for_it, enum wire_side side,
                const char *near, struct wire_bulk **out, struct error *e);

// True if the machine has hardware that justifies loading libfabric. The library's providers search
// for their hardware for a tenth of a second.
bool fabric_hardware(void);

// Describes the available networks. Returns true if one moves data by itself.
bool fabric_describe(char *out, size_t size);

#endif
