// dragon_port.h - the port that unchanged programs of Dragon put points to, on each node of a job.
#ifndef SONDE_AGGREGATOR_DRAGON_PORT_H
#define SONDE_AGGREGATOR_DRAGON_PORT_H

#include "aggregator/aggregator.h"

// A server on the loopback address that takes points for the agent at `agent_socket`, and does
// nothing else. `listen_fd`: a socket that listens already, else 0 and `port`. NULL if it cannot
// start: a warning says why, as telemetry goes on without it. aggregator_stop() ends it.
struct aggregator *dragon_port_start(int listen_fd, int port, const char *agent_socket);

#endif
