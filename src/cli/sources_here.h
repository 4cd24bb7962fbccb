// sources_here.h - the sources of node metrics that work on this machine, and the reasons why
// others do not.
#ifndef SONDE_CLI_SOURCES_HERE_H
#define SONDE_CLI_SOURCES_HERE_H

#include "base/error.h"
#include "base/str.h"

enum { SOURCES_HERE_MAX = 64 };

struct source_here {
    struct str name;
    char missing[256]; // why it has no values, or not all; "" if it has all
    bool gives;        // something
    double core_share; // processor time of a sample, as a fraction of the interval between samples
};

// Samples each source once or twice, like an agent at level 4. Returns their number, or a negative
// errno.
int sources_here(struct source_here out[SOURCES_HERE_MAX], struct error *e);

// Why the catalogue's `source` has no values. If several sources share its rows (GPUs of different
// makers), all their reasons, or "" if one of them works.
void sources_here_reason(const struct source_here *sources, int count, struct str source,
                         struct buf *out);

#endif
