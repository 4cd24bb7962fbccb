// names.h - series of a tracing library whose tag is a name that the program gives: a kernel, a
// communicator. A table finds the handles of a name without a lock.
#ifndef SONDE_TRACE_NAMES_H
#define SONDE_TRACE_NAMES_H

#include <sonde.h>
#include <stdatomic.h>
#include <stddef.h>

enum {
    NAMES_MAX = 256,   // of a table; further names are "other"
    NAMES_SLOTS = 512, // at most half full, so that a search ends soon
    NAMES_BYTES = 200, // of a longer name, only the beginning counts
    NAMES_METRICS = 4,
};

struct name_cells {
    _Atomic(const char *) name; // NULL: free
    const char *second;         // as in the lookup
    sonde_handle metrics[NAMES_METRICS];
    _Atomic unsigned spans; // the spans that a library has recorded for the name
};

// Constant: what the cells of a table are.
struct name_metric {
    const char *name, *unit, *help; // name NULL: the end
    enum sonde_kind kind;
};

struct name_table {
    const char *tag, *second_tag; // second_tag NULL: none
    struct name_metric metrics[NAMES_METRICS];
    _Atomic unsigned count; // above NAMES_MAX: `other` has its handles
    struct name_cells slots[NAMES_SLOTS], other;
};

// Returns the cells of a name (NULL: "unknown"). `second`, the value of the second tag, is a
// constant or lives as long as the process. Threads may call it at the same time.
struct name_cells *names_find(struct name_table *table, const char *name, const char *second);

// The same, but NULL for a name that the table does not have yet.
struct name_cells *names_known(struct name_table *table, const char *name, const char *second);

#endif
