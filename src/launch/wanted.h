// wanted.h - the collectors that are wanted now (wire/collector_line.h): kept by whoever starts
// agents, so that one that is started later, or again, is told all of them. A restart of the
// command changes nothing: when it asks for them again, the new ones take the places of the old.
#ifndef SONDE_LAUNCH_WANTED_H
#define SONDE_LAUNCH_WANTED_H

#include "base/error.h"
#include "base/str.h"
#include "wire/collector_line.h"

struct wanted {
    char *lines[COLLECTORS_MAX]; // "NAME …", owned; NULL: none. Zero-initialise it
};

// Takes what stands behind the verb: "NAME …" or "NAME". 0, or with words -E2BIG: COLLECTORS_MAX,
// -EINVAL: no name, -ENOMEM.
int wanted_take(struct wanted *c, struct str wanted, struct error *e);

// Calls tell with each of them, as it was taken.
void wanted_tell(const struct wanted *c, void (*tell)(void *user, const char *wanted), void *user);

void wanted_free(struct wanted *c);

#endif
