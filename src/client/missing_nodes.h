// missing_nodes.h - the list of nodes that are missing from answers: "n2 (late), n7 (error: this,
// and that)".
#ifndef SONDE_CLIENT_MISSING_NODES_H
#define SONDE_CLIENT_MISSING_NODES_H

#include "base/str.h"

// Adds the nodes of `names` that are not in the list yet. NULL: none.
void missing_nodes_add(struct buf *list, const char *names);

// Returns the number of nodes. NULL: none.
size_t missing_nodes_count(const char *names);

#endif
