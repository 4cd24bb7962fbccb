// duration.h - "30s", "2h": a count and a unit, as OpenTSDB writes them.
#ifndef SONDE_QUERY_DURATION_H
#define SONDE_QUERY_DURATION_H

#include "base/str.h"

// Units: 'a' milliseconds (written "ms"), s, m, h, d, w, n (30 days), y (365 days). The whole of
// `text` must be digits and a unit; the count is at least 1. Returns false otherwise.
bool query_duration_parse(struct str text, int64_t *count, char *unit);

// Converts to ns; returns false on overflow.
bool query_duration_ns(int64_t count, char unit, int64_t *ns);

#endif
