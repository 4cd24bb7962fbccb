// node_lines.h - parses the lines about nodes that an aggregator or a relay gets on its control
// descriptor.
//
//   expect HOST,HOST        expect these nodes, too; they are missing until they connect
//   behind RELAY HOST,HOST  expect these nodes behind this relay; without it they are missing
//                           unless they connect directly
//   exclude HOST,HOST       these nodes have left the job
#ifndef SONDE_AGGREGATOR_NODE_LINES_H
#define SONDE_AGGREGATOR_NODE_LINES_H

#include "wire/hub.h"

// Ignores lines of other kinds.
void node_lines_take(struct hub *hub, struct str line);

#endif
