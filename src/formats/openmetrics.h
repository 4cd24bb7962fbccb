// openmetrics.h - writes the parts of OpenMetrics' text.
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

// Returns the name of a metric's family; it ends without _total. `taken` has the families of the
// text so far; if the name is taken, a hash of the metric's own name is appended. The result lives
// in the arena; its data is NULL without memory.
struct str openmetrics_family(struct str metric, bool counter, struct map *taken,
                              struct arena *arena);

// Writes the lines above the first value of a family.
void openmetrics_add_head(struct buf *out, struct str family, bool counter, struct str unit,
                          struct str help);

// Writes the label name of a key: characters that a label name cannot have become _.
void openmetrics_add_label_name(struct buf *out, struct str key);

// Writes {key="value",…}, or nothing without labels. If several keys get the same name, _ is
// appended to the later ones; their order identifies them.
enum { OPENMETRICS_LABELS_MAX = 64 }; // further labels are left out
void openmetrics_add_labels(struct buf *out, const struct openmetrics_label *labels, size_t count);

void openmetrics_add_escaped(struct buf *out, struct str text); // for help texts and label values
void openmetrics_add_value(struct buf *out, double value);

#endif
