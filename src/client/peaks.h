// peaks.h - the time of the highest point of a series, from the summaries of blocks.
//
// The highest value itself is one query (0all-max). For its time, the range is divided into parts,
// and the part with the value is divided again, until the rest is short enough to read its points.
// A week takes one step. The ends of a range that are not whole parts are searched like a part.
// Parts are searched in the order of time, so of equal points the first one counts.
//
// A search sends three queries or more, so statistics.h reads the points themselves if a row has
// fewer than PEAKS_SEARCH_POINTS_LEAST.
#ifndef SONDE_CLIENT_PEAKS_H
#define SONDE_CLIENT_PEAKS_H

#include "client/client.h"

enum { PEAKS_SEARCH_POINTS_LEAST = 200000 };

// The first time in [from_ns, to_ns] at which the series has a value of at least this; -1: none.
// `series` needs only its metric and tags.
int peak_time(struct sonde_client *c, const struct sonde_series *series, double value,
              int64_t from_ns, int64_t to_ns, int64_t *out_ns, struct error *e);

#endif
