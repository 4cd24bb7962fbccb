// hello.h - distinguishes a program with a segment from a text protocol on the agent's socket.
#ifndef SONDE_INGEST_HELLO_H
#define SONDE_INGEST_HELLO_H

#include "ingest/ingest.h"

// Looks at the first bytes of a connection (non-blocking Unix stream socket). Returns
//   0         a HELLO, which it removes from the socket. The caller owns *fds. *pid is the peer's
//             pid according to the kernel. If the peer's pid namespace is not visible here, *pid
//             is a unique negative number. Pass both to ingest_attach(); if it returns
//             -EBUSY (the agent has found the program already), keep the connection as well.
//             Every later byte is a doorbell: discard it, and call ingest_drain(). At the end
//             of the connection call ingest_hangup(in, *pid).
//   -EAGAIN   not enough bytes yet: wait for more
//   -ENOMSG   not a HELLO, so text: the bytes stay on the socket
//   -EPROTO   an invalid HELLO: close the connection
//   -EPROTONOSUPPORT  the HELLO of another version: close the connection, call
//             ingest_warn_version()
//   -EPERM    the peer is another user: close the connection
//   -ENOTCONN the peer has closed the connection
int ingest_receive_hello(int socket, struct ingest_descriptors *fds, pid_t *pid);

// Logs once that programs are linked with another version of libsonde.
void ingest_warn_version(pid_t pid);

#endif
