// node_lines.h - parses the lines about nodes that a hub's process gets on its control descriptor.
// For the aggregator and for relays.
//
//   expect HOST,HOST        expect these nodes, too: missing until they connect
//   behind RELAY HOST,HOST  expect these nodes behind that relay: missing if it is, unless they
//                           connect directly
//   exclude HOST,HOST       these are no longer nodes of the job
#ifndef SONDE_AGGREGATOR_NODE_LINES_H
#define SONDE_AGGREGATOR_NODE_LINES_H

#include "wire/hub.h"

// Ignores lines of other kinds.
void node_lines_take(struct hub *hub, struct str line);

#endif
