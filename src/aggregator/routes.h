// routes.h - the table of all routes (http/routes.h), of all faces.
#ifndef SONDE_AGGREGATOR_ROUTES_H
#define SONDE_AGGREGATOR_ROUTES_H

#include "http/routes.h"

const struct route *routes_all(size_t *count);

// Implements `admits` of struct site for the server for Dragon's programs. Admits only the paths
// that these programs use, and only requests of our own user on this machine.
bool routes_admit_dragon(const struct route *route, struct request *r, struct answer *a);

#endif
