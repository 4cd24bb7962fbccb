// forwarding.h - a server on the first node, and the forwarder of another node.
#ifndef SONDE_TEST_WIRE_FORWARDING_H
#define SONDE_TEST_WIRE_FORWARDING_H

#include "proxy.h"
#include "unit/seed.h"
#include "unit/wire/net.h"
#include "wire/forward.h"
#include "wire/forwarder.h"

#include <pthread.h>
#include <sys/socket.h>

enum { SERVED_MAX = 64, REFUSAL_MAX = WIRE_FORWARDER_TEXT_MAX + 16 };

// A hub whose server is the test, and the forwarder of a node.
struct way {
    char folder[64], path[128];
    struct wire_settings settings;
    struct wire_loop *hub_loop, *node_loop;
    struct hub *hub;
    struct proxy *proxy; // between the two, or NULL
    struct wire_forwarder *forwarder;
    pthread_mutex_t lock;
    int served[SERVED_MAX]; // the server's ends, in order of arrival
    int count;
};

void serve(void *user, int fd);

int served_count(struct way *w);

void start_forwarder(struct way *w, const struct wire_settings *settings, int port);

struct way *way_begin(bool through_proxy);

void way_end(struct way *w);

int try_connect(const struct way *w);

void wait_readable(int fd);

// Connects a client; *server is its server's end. Neither blocks.
int connect_in(struct way *w, int *server);

#endif
