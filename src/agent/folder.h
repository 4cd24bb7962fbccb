// folder.h - the private folder of a run and the socket in it.
#ifndef SONDE_AGENT_FOLDER_H
#define SONDE_AGENT_FOLDER_H

#include "base/error.h"

// Makes the folder (and missing folders above it) with mode 0700. An existing one must be a folder,
// belong to our user, and be closed to others.
int folder_prepare(const char *path, struct error *e);

// Listens on a Unix stream socket (mode 0600, non-blocking). Replaces the socket of a dead agent;
// fails with -EADDRINUSE if an agent listens there. Returns the descriptor or a negative errno.
int folder_listen(const char *path, struct error *e);

// Listens at the abstract name of the same path, for processes that do not see the folder
// (base/agent_address.h). Returns the descriptor or a negative errno; -EADDRINUSE if another
// process has the name.
int folder_listen_abstract(const char *path);

// Checks a socket that another process has made with folder_listen and passed to this one. Returns
// `fd`, or a negative errno.
int folder_listen_take(int fd, struct error *e);

// Removes the socket's name, unless another agent listens there. Close the listening descriptor
// before.
void folder_unlisten(const char *path);

#endif
