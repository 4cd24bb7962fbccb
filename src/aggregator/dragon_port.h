// dragon_port.h - the port on each node of a job where unmodified programs of Dragon put points.
#ifndef SONDE_AGGREGATOR_DRAGON_PORT_H
#define SONDE_AGGREGATOR_DRAGON_PORT_H

#include "aggregator/aggregator.h"

// Starts a server on the loopback address that accepts points for the agent at `agent_socket`, and
// has no other function. `listen_fd` is a listening socket; 0: listen on `port`. If the server
// cannot start, it logs a warning and returns NULL, because the job goes on without it.
// aggregator_stop() stops the server.
struct aggregator *dragon_port_start(int listen_fd, int port, const char *agent_socket);

#endif
