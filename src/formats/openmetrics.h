// openmetrics.h - the parts of OpenMetrics' text.
//
//   # HELP cpu_user_seconds Processor time in programs, over all processors.
//   # TYPE cpu_user_seconds counter
//   # UNIT cpu_user_seconds seconds
//   cpu_user_seconds_total{host="node1"} 12.5 1356998400.123
//
// OpenMetrics' names may contain only [A-Za-z0-9_:]; other characters become _.
#ifndef SONDE_FORMATS_OPENMETRICS_H
#define SONDE_FORMATS_OPENMETRICS_H

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"

struct openmetrics_label {
    struct str key, value;
};

// The name of a metric's family: for counters without _total. `taken` has the families of the text;
// if the name is taken, a hash of the metric's own name is added. Lives in the arena; data NULL: no
// memory.
struct str openmetrics_family(struct str metric, bool counter, struct map *taken,
                              struct arena *arena);

// The lines above the first value of a family.
void openmetrics_add_head(struct buf *out, struct str family, bool counter, struct str unit,
                          struct str help);

// The name of a label for a key: characters that it cannot have become _.
void openmetrics_add_label_name(struct buf *out, struct str key);

// {key="value",…}; nothing without labels. If several keys get the same name, _ is appended to the
// later ones; their order identifies them.
enum { OPENMETRICS_LABELS_MAX = 64 }; // the rest is left out
void openmetrics_add_labels(struct buf *out, const struct openmetrics_label *labels, size_t count);

void openmetrics_add_escaped(struct buf *out, struct str text); // of help and labels' values
void openmetrics_add_value(struct buf *out, double value);

#endif
