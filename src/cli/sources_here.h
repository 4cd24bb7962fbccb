// sources_here.h - finds the sources of node metrics that work on this machine, and the reasons why
// others do not.
#ifndef SONDE_CLI_SOURCES_HERE_H
#define SONDE_CLI_SOURCES_HERE_H

#include "base/error.h"
#include "base/str.h"

enum { SOURCES_HERE_MAX = 64 };

struct source_here {
    struct str name;
    char missing[256]; // the reason why it has no values, or not all; "" if it has all
    bool gives;        // it has at least some values
    double core_share; // processor time of a sample, as a fraction of the interval between samples
};

// Samples each source once or twice, like an agent at level 4. Returns the number of sources, or a
// negative errno.
int sources_here(struct source_here out[SOURCES_HERE_MAX], struct error *e);

// Finds the reason why the catalogue's `source` has no values. If several sources share its rows
// (GPUs of different makers), the text has all their reasons, or is "" if one of them works.
void sources_here_reason(const struct source_here *sources, int count, struct str source,
                         struct buf *out);

#endif
