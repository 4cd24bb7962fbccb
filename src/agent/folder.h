// folder.h - the private folder of a run and the socket in it.
#ifndef SONDE_AGENT_FOLDER_H
#define SONDE_AGENT_FOLDER_H

#include "base/error.h"

// Makes the folder (and those above it) with mode 0700. Checks an existing one: it must be a
// folder, our own, and closed to others.
int folder_prepare(const char *path, struct error *e);

// Listens on a Unix stream socket (mode 0600, not blocking). Replaces the socket of a dead agent;
// the socket of a running one is an error (-EADDRINUSE). The descriptor or a negative errno.
int folder_listen(const char *path, struct error *e);

// Listens at the abstract name of the same path, for processes that do not see the folder
// (base/agent_address.h). The descriptor or a negative errno; -EADDRINUSE: another process has the
// name.
int folder_listen_abstract(const char *path);

// Checks a socket that another process has made with folder_listen and handed over: `fd` itself, or
// a negative errno.
int folder_listen_take(int fd, struct error *e);

// Removes the socket's name, unless another agent listens there. The caller has closed the
// listening descriptor.
void folder_unlisten(const char *path);

#endif
