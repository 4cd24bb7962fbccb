// reach.h - the address of this machine under which another one reaches it.
#ifndef SONDE_LAUNCH_REACH_H
#define SONDE_LAUNCH_REACH_H

#include <arpa/inet.h>
#include <stdbool.h>

enum { REACH_ADDRESS_MAX = INET6_ADDRSTRLEN };

// Finds the source address of packets to `host` (a name or an address), without sending any. False:
// the name does not resolve, or there is no route.
bool reach_address(const char *host, char out[REACH_ADDRESS_MAX]);

#endif
