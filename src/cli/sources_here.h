// sources_here.h - which sources of node metrics give something on this machine, and why the others
// do not.
#ifndef SONDE_CLI_SOURCES_HERE_H
#define SONDE_CLI_SOURCES_HERE_H

#include "base/error.h"
#include "base/str.h"

enum { SOURCES_HERE_MAX = 64 };

struct source_here {
    struct str name;
    char missing[256]; // why it gives nothing, or not all that it could; "" when it does
    bool gives;        // something
    double core_share; // processor time of one sample over the time between two
};

// Asks each source once or twice, as an agent at level 4 does. How many there are, or a negative
// errno.
int sources_here(struct source_here out[SOURCES_HERE_MAX], struct error *e);

// Why the catalogue's `source` gives nothing: of several that share its rows (GPUs of different
// makers) all reasons, or "" when one gives something.
void sources_here_reason(const struct source_here *sources, int count, struct str source,
                         struct buf *out);

#endif
