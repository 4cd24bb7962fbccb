// tsuid.h - ids of series.
#ifndef SONDE_ASK_TSUID_H
#define SONDE_ASK_TSUID_H

#include "store/store.h"

enum { TSUID_SIZE = 32 };

// A name for a series that is the same wherever and whenever the metric and the tags (sorted by
// key) are: 128 bits of hash in hexadecimal. OpenTSDB's are longer or shorter by configuration:
// clients take them as they come.
void tsuid_of(char out[TSUID_SIZE], struct str metric, const struct store_label *tags,
              size_t count);

#endif
