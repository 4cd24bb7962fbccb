// source_address.h - the address under which another machine reaches this one.
#ifndef SONDE_LAUNCH_SOURCE_ADDRESS_H
#define SONDE_LAUNCH_SOURCE_ADDRESS_H

#include <arpa/inet.h>
#include <stdbool.h>

enum { SOURCE_ADDRESS_MAX = INET6_ADDRSTRLEN };

// Finds the source address of packets to `host` (a name or an address), without sending any.
// Returns false if the name does not resolve, or there is no route.
bool source_address(const char *host, char out[SOURCE_ADDRESS_MAX]);

#endif
