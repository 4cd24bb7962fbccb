// descriptors.h - passes descriptors to another process, with a message over a Unix socket
// (SCM_RIGHTS).
#ifndef SONDE_BASE_DESCRIPTORS_H
#define SONDE_BASE_DESCRIPTORS_H

#include <stddef.h>
#include <sys/types.h>

enum { DESCRIPTORS_MAX = 8 }; // in one message

// Sends one message with `count` descriptors. `flags` and result are those of sendmsg(2).
ssize_t descriptors_send(int socket, const void *data, size_t size, const int *fds, size_t count,
                         int flags);

// Receives one message. The descriptors, close-on-exec, are the caller's; the kernel closes those
// beyond DESCRIPTORS_MAX, and those beyond the limit of this process. `flags` and result are those
// of recvmsg(2); on failure *count is 0.
ssize_t descriptors_receive(int socket, void *data, size_t size, int fds[DESCRIPTORS_MAX],
                            size_t *count, int flags);

void descriptors_close(const int *fds, size_t count);

#endif
