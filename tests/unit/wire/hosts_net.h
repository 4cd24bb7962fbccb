// hosts_net.h - nodes whose stores have series of several hosts.
#ifndef SONDE_TEST_WIRE_HOSTS_NET_H
#define SONDE_TEST_WIRE_HOSTS_NET_H

#include "ask/lists_wire.h"
#include "ask/recent_wire.h"
#include "store/store.h"
#include "unit/wire/net.h"
#include "wire/host_set.h"
#include "wire/session.h"

enum { NODES = 3, MANY = WIRE_HOST_SET_MAX + 1 };

struct node {
    char host[8], path[96];
    struct store *store;
    struct store_reader *reader;
    struct wire_source source;
    struct wire_link *link;
};

struct net {
    char folder[64];
    struct wire_settings settings;
    struct wire_loop *loop;
    struct hub *root, *relay;
    struct node nodes[NODES]; // n1, n2, n3
};

struct got {
    int code;
    size_t series;    // number in the result
    char asked[64];   // "n1 n3": nodes that the root asked, not counting the relay's children
    char missing[64]; // nodes that did not answer, in the same form
    struct arena arena;
    struct query_result result;
};

// Adds a point; `host` empty: without a host.
void put(struct node *n, const char *metric, const char *host, double value);

void connect_node(struct net *net, int i, struct hub *to, struct hub *children);

// root ─┬─ n1        or with a tree   root ─┬─ n1
//       ├─ n2                               └─ n2, a relay ─── n3
//       └─ n3
struct net *make_net(bool tree);

void free_net(struct net *net);

struct got ask_plan(struct net *net, const struct query *q);

struct got ask(struct net *net, const char *m);

void expect(struct net *net, const char *m, const char *asked, size_t series, const char *missing);

// Waits until all have announced their hosts; until then all are asked.
void await_told(struct net *net);

#endif
