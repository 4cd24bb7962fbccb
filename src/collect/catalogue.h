// catalogue.h - the rows of catalogue.def by symbol: catalogue_metrics[METRIC_CPU_PERCENT].
//
// For the code that produces the values (src/collect, and src/agent for sonde's own metrics); all
// other code calls collect_find.
#ifndef SONDE_COLLECT_CATALOGUE_H
#define SONDE_COLLECT_CATALOGUE_H

#include "collect/collect.h"

enum metric_symbol {
#define METRIC(symbol, name, kind, unit, level, source, aliases, help) METRIC_##symbol,
#include "collect/catalogue.def"
#undef METRIC
    METRIC_COUNT
};

extern const struct collect_metric catalogue_metrics[METRIC_COUNT];

// The rows of a source are adjacent. Returns their number, with *first as the index of the first
// one; 0 for an unknown source.
size_t catalogue_rows(struct str source, enum metric_symbol *first);

#endif
