// hello.h - how the agent's socket distinguishes a program with a segment from a text protocol.
#ifndef SONDE_INGEST_HELLO_H
#define SONDE_INGEST_HELLO_H

#include "ingest/ingest.h"

// Looks at the first bytes of a connection (non-blocking Unix stream socket). Returns
//   0         a HELLO, which is removed from the socket; *fds are the caller's, *pid is the peer's
//             according to the kernel. A peer in a pid namespace that we cannot see has none: *pid
//             is then a unique negative number. Pass both to ingest_attach(); if that returns
//             -EBUSY (the agent has found the program already), the connection is good as well.
//             Every later byte is a doorbell: discard it, and call ingest_drain(). At the end
//             of the connection call ingest_hangup(in, *pid).
//   -EAGAIN   not enough bytes yet: wait for more
//   -ENOMSG   something else, which is left on the socket: text
//   -EPROTO   begins like a HELLO, but is invalid: close the connection
//   -EPROTONOSUPPORT  the HELLO of another version: close the connection, call
//             ingest_warn_version()
//   -EPERM    the peer is another user: close the connection
//   -ENOTCONN the peer has closed the connection
int ingest_receive_hello(int socket, struct ingest_descriptors *fds, pid_t *pid);

// Logs once that programs are linked with another version of libsonde.
void ingest_warn_version(pid_t pid);

#endif
