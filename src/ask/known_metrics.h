// known_metrics.h - the names of metrics that queries have found on any node of the job.
//
// When a node leaves the job, its metrics leave, too. A dashboard that shows one of them then gets
// an empty answer instead of an error, because the name is not a mistake.
#ifndef SONDE_ASK_KNOWN_METRICS_H
#define SONDE_ASK_KNOWN_METRICS_H

#include "base/str.h"

// names of at most STORE_NAME_MAX bytes: 1 MiB; further names are not remembered
enum { KNOWN_METRICS_MAX = 4096 };

struct known_metrics;

struct known_metrics *known_metrics_create(void); // NULL: out of memory
void known_metrics_destroy(struct known_metrics *k);

// Thread-safe.
void known_metrics_add(struct known_metrics *k, struct str name);
bool known_metrics_has(struct known_metrics *k, struct str name);

#endif
