// told.h - what a hub's process is told, on its control descriptor, of the nodes that connect to
// it. For the aggregator and for relays.
//
//   expect HOST,HOST        these nodes should be there, too: named as missing until they come
//   behind RELAY HOST,HOST  so should these, behind that node: missing when it is, unless they come here themselves
//   exclude HOST,HOST       these are no longer nodes of the job
#ifndef SONDE_AGGREGATOR_TOLD_H
#define SONDE_AGGREGATOR_TOLD_H

#include "wire/hub.h"

// Lines of other kinds are left alone.
void hub_told(struct hub *hub, struct str line);

#endif
