// hello.h - how the agent's socket tells a program with a segment from a text protocol.
#ifndef SONDE_INGEST_HELLO_H
#define SONDE_INGEST_HELLO_H

#include <sys/types.h>

// Looks at the first bytes of a connection (non-blocking Unix stream socket). Returns
//   0        it was a HELLO and is taken off the socket; *segment_fd is the caller's, *pid the peer's as the kernel says it
//            (0: in a pid namespace that we cannot see). Pass both to ingest_attach(). Every byte that comes later is a doorbell: read
//            and throw it away, and call ingest_drain(). The end of the connection: ingest_hangup(in, *pid).
//   -ENOMSG  something else, which is left on the socket: text
//   -EAGAIN  nothing has come yet
//   -EPROTO  began like a HELLO and is none, or of another version: close the connection
//   -EPERM   the peer is another user: close the connection
//   -ENOTCONN the peer has gone
int ingest_receive_hello(int socket, int *segment_fd, pid_t *pid);

#endif
