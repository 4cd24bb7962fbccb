// peaks.h - finds the time of a series' highest point from the summaries of blocks.
//
// The highest value itself is one query (0all-max). To find its time, the range is divided into
// parts, and the part that contains the value is divided again, until the rest is short enough to
// read its points. A week takes one step. The ends of a range that are not whole parts are searched
// like a part. Parts are searched in order of time, so the first of several equal points counts.
//
// A search sends at least three queries. So if a row has fewer points than
// PEAKS_SEARCH_POINTS_LEAST, statistics.h reads the points themselves.
#ifndef SONDE_CLIENT_PEAKS_H
#define SONDE_CLIENT_PEAKS_H

#include "client/client.h"

enum { PEAKS_SEARCH_POINTS_LEAST = 200000 };

// Returns the first time in [from_ns, to_ns] at which the series has a value of at least `value`;
// -1: none. `series` needs only its metric and tags.
int peak_time(struct sonde_client *c, const struct sonde_series *series, double value,
              int64_t from_ns, int64_t to_ns, int64_t *out_ns, struct error *e);

#endif
