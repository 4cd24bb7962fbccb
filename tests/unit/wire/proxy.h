// proxy.h - a bad network between a link and its hub: forwards bytes, holds them back, or cuts the
// connections.
#ifndef SONDE_TESTS_WIRE_PROXY_H
#define SONDE_TESTS_WIRE_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct proxy;

// Listens on a port of its own (proxy_port) and forwards each connection to 127.0.0.1:port, in a
// thread of its own.
struct proxy *proxy_start(int port);
int proxy_port(const struct proxy *p);
void proxy_stop(struct proxy *p);

void proxy_stall(struct proxy *p, bool stalled); // bytes wait, connections stay: a partition
void proxy_cut(struct proxy *p);                 // all connections, now
void proxy_slice(struct proxy *p, int bytes);    // forwards this many at a time; 0: as they arrive
void proxy_flip(
    struct proxy *p,
    // changes the byte at this offset of the link's data on the next connection; 0: none
    uint64_t at);

#endif
