// tsuid.h - ids of time series.
#ifndef SONDE_ASK_TSUID_H
#define SONDE_ASK_TSUID_H

#include "store/store.h"

enum { TSUID_SIZE = 32 };

// The id depends only on the metric and the tags (sorted by key): 128 bits of hash in hexadecimal.
// OpenTSDB's ids are longer or shorter, depending on its configuration, so clients accept any
// length.
void tsuid_of(char out[TSUID_SIZE], struct str metric, const struct store_label *tags,
              size_t count);

#endif
