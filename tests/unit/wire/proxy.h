// proxy.h - a bad network between a link and its hub: passes bytes on, or holds them back, or cuts
// the connections.
#ifndef SONDE_TESTS_WIRE_PROXY_H
#define SONDE_TESTS_WIRE_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct proxy;

// Listens on a port of its own (proxy_port) and connects each who comes to 127.0.0.1:port. A thread
// of its own.
struct proxy *proxy_start(int port);
int proxy_port(const struct proxy *p);
void proxy_stop(struct proxy *p);

void proxy_stall(struct proxy *p, bool stalled); // bytes wait, connections stay: a partition
void proxy_cut(struct proxy *p);                 // all connections, now
void proxy_slice(struct proxy *p, int bytes);    // so many at a time; 0: as they come
void proxy_flip(
    struct proxy *p,
    // the byte that many bytes into what comes from the link on the next connection is changed; 0:
    // none
    uint64_t at);

#endif
