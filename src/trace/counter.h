// counter.h - defines the series that the tracing libraries add to.
#ifndef SONDE_TRACE_COUNTER_H
#define SONDE_TRACE_COUNTER_H

#include <sonde.h>

// Defines a metric of level 1. Equal names and tags give the same handle.
static inline sonde_handle series_define(const char *name, const char *unit, const char *help,
                                         enum sonde_kind kind, const struct sonde_tag *tags,
                                         size_t count)
{
    const struct sonde_metric metric = {.name = name,
                                        .unit = unit,
                                        .help = help,
                                        .kind = kind,
                                        .level = 1,
                                        .tags = tags,
                                        .tag_count = count};
    return sonde_define(&metric);
}

static inline sonde_handle counter_define(const char *name, const char *unit, const char *help,
                                          const struct sonde_tag *tags, size_t count)
{
    return series_define(name, unit, help, SONDE_COUNTER, tags, count);
}

#endif
