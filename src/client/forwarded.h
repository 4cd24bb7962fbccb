// forwarded.h - the route to a job's HTTP server from a node other than its first one.
//
// The server listens on the first node, usually only on loopback. On every other node, the relay
// makes a Unix socket in the job's run folder, and forwards the socket's connections to the server
// (wire/forwarder.h). A client needs no token there, and sends none.
#ifndef SONDE_CLIENT_FORWARDED_H
#define SONDE_CLIENT_FORWARDED_H

// Returns the path of the socket in this run folder, malloc'd. NULL: there is no socket, as on the
// first node.
char *forwarded_socket(const char *run_folder);

// Does the same for the job that SONDE_JOB and SONDE_RUN_DIR name.
char *forwarded_socket_of_environment(void);

#endif
