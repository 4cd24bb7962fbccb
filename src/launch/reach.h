// reach.h - the address of this machine under which another one reaches it.
#ifndef SONDE_LAUNCH_REACH_H
#define SONDE_LAUNCH_REACH_H

#include <arpa/inet.h>
#include <stdbool.h>

enum { REACH_ADDRESS_MAX = INET6_ADDRSTRLEN };

// The address from which packets to `host` (a name or a number) go out; nothing is sent. False: its
// name says nothing here, or there is no way to it.
bool reach_address(const char *host, char out[REACH_ADDRESS_MAX]);

#endif
