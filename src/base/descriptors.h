// descriptors.h - room for descriptors; passes them to another process, with a message over a Unix
// socket (SCM_RIGHTS).
#ifndef SONDE_BASE_DESCRIPTORS_H
#define SONDE_BASE_DESCRIPTORS_H

#include <stddef.h>
#include <sys/types.h>

// Makes room for `count` descriptors, if the process may have so many. Linux enlarges the table in
// steps, at 64 descriptors for the first time. If the process has threads by then, the open that
// needs the room waits for all processors (synchronize_rcu), some 10 ms. So call it before the
// first thread starts.
enum { DESCRIPTORS_USUAL = 1024 }; // of a program that serves others
void descriptors_prepare(int count);

enum { DESCRIPTORS_MAX = 8 }; // descriptors in one message

// Sends one message with `count` descriptors. `flags` and the result are those of sendmsg(2).
ssize_t descriptors_send(int socket, const void *data, size_t size, const int *fds, size_t count,
                         int flags);

// Receives one message. The caller owns the received descriptors, which are close-on-exec. The
// kernel closes further descriptors beyond DESCRIPTORS_MAX or the limit of this process. `flags`
// and the result are those of recvmsg(2); on failure *count is 0.
ssize_t descriptors_receive(int socket, void *data, size_t size, int fds[DESCRIPTORS_MAX],
                            size_t *count, int flags);

void descriptors_close(const int *fds, size_t count);

#endif
