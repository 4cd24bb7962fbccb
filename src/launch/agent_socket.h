// agent_socket.h - the socket that programs find the agent at, kept by the process that starts agents: connections wait in its
// queue, with what they hand over, while one agent has ended and the next one does not run yet.
#ifndef SONDE_LAUNCH_AGENT_SOCKET_H
#define SONDE_LAUNCH_AGENT_SOCKET_H

#include "base/error.h"

// Listens at `path`. A descriptor that can be handed to children, or a negative errno with words.
int agent_socket_open(const char *path, struct error *e);

// No agent will be started any more: closes *fd and sets it to -1. Connections are refused as soon as the agent that runs has
// closed its copy, too. Idempotent.
void agent_socket_close(int *fd);

// The same where no agent runs: takes the name away, too.
void agent_socket_refuse(int *fd, const char *path);

#endif
