// hello.h - how the agent's socket tells a program with a segment from a text protocol.
#ifndef SONDE_INGEST_HELLO_H
#define SONDE_INGEST_HELLO_H

#include "ingest/ingest.h"

// Looks at the first bytes of a connection (non-blocking Unix stream socket). Returns
//   0         it was a HELLO and is taken off the socket; *fds are the caller's, *pid is the peer's
//             according to the kernel. A peer in a pid namespace that we cannot see has none: *pid
//             is then a unique negative number. Pass both to ingest_attach(); if that returns
//             -EBUSY (the agent has found the program already), the connection is good as well.
//             Every byte that comes later is a doorbell: read and throw away what there is, and call ingest_drain(). At the end
//             of the connection call ingest_hangup(in, *pid).
//   -EAGAIN   nothing has come yet: wait for more
//   -ENOMSG   something else, which is left on the socket: text
//   -EPROTO   began like a HELLO and is none: close the connection
//   -EPROTONOSUPPORT  the HELLO of another version: close the connection, call ingest_warn_version()
//   -EPERM    the peer is another user: close the connection
//   -ENOTCONN the peer has gone
int ingest_receive_hello(int socket, struct ingest_descriptors *fds, pid_t *pid);

// Logs once that programs are linked with another version of libsonde.
void ingest_warn_version(pid_t pid);

#endif
