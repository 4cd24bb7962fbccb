// agent_socket.h - the socket through which programs reach the agent. The process that starts
// agents keeps it open, so that connections wait in its queue, with the descriptors that programs
// pass, between two agents.
#ifndef SONDE_LAUNCH_AGENT_SOCKET_H
#define SONDE_LAUNCH_AGENT_SOCKET_H

#include "base/error.h"

// Listens at `path`. Returns a descriptor that can be handed to children, or a negative errno with
// a message.
int agent_socket_open(const char *path, struct error *e);

// Called when no more agents will be started: closes *fd and sets it to -1. The kernel refuses
// connections as soon as the running agent has closed its copy, too. Idempotent.
void agent_socket_close(int *fd);

// The same when no agent runs: also removes the socket's name.
void agent_socket_refuse(int *fd, const char *path);

#endif
