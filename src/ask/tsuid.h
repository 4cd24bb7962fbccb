// tsuid.h - identifiers of time series (OpenTSDB's TSUIDs).
#ifndef SONDE_ASK_TSUID_H
#define SONDE_ASK_TSUID_H

#include "store/store.h"

enum { TSUID_SIZE = 32 };

// Writes the id of a series: 128 bits of a hash, in hexadecimal. It depends only on the metric and
// the tags (sorted by key). OpenTSDB's ids are longer or shorter, depending on its configuration,
// so clients accept any length.
void tsuid_of(char out[TSUID_SIZE], struct str metric, const struct store_label *tags,
              size_t count);

#endif
