// fabric.h - a bulk over libfabric, for bulk.c. Builds without libfabric's headers leave it out.
#ifndef SONDE_WIRE_FABRIC_H
#define SONDE_WIRE_FABRIC_H

#include "wire/bulk.h"

// provider: libfabric's name; NULL: the best available. `made_for_it`: only a network that moves
// data by itself. Returns -ENOENT without the library, -ENODEV without such a provider, -EIO if it
// does not work.
int fabric_open(struct wire_loop *loop, const char *provider, bool made_for_it, enum wire_side side,
                const char *near, struct wire_bulk **out, struct error *e);

// Whether the machine has any hardware that justifies loading libfabric, because its providers
// search for theirs for a tenth of a second.
bool fabric_hardware(void);

// Describes the available networks. Returns true if one moves data by itself.
bool fabric_describe(char *out, size_t size);

#endif
