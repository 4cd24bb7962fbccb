// dragon_port.h - the port to which unchanged programs of Dragon put points, on each node of a job.
#ifndef SONDE_AGGREGATOR_DRAGON_PORT_H
#define SONDE_AGGREGATOR_DRAGON_PORT_H

#include "aggregator/aggregator.h"

// Starts a server on the loopback address that takes points for the agent at `agent_socket`, and
// does nothing else. `listen_fd` is a listening socket, or 0 to listen on `port`. Returns NULL with
// a warning if it cannot start, because telemetry goes on without it. aggregator_stop() stops it.
struct aggregator *dragon_port_start(int listen_fd, int port, const char *agent_socket);

#endif
