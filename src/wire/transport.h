// transport.h - carries bytes from one process to another: connect, listen, send, receive, close.
//
// A channel connects two ends with an ordered stream of bytes in both directions; large pieces may
// go outside it (bulk.h). It knows nothing of frames. All calls and all events happen in the loop's
// thread. Each transport is a table of functions; tests/unit/wire/test_wire_transport.c tests all
// of them.
#ifndef SONDE_WIRE_TRANSPORT_H
#define SONDE_WIRE_TRANSPORT_H

#include "wire/loop.h"

#include "base/str.h"

struct wire_channel;
struct wire_listener;

struct wire_channel_events {
    void (*opened)(void *user);                    // only for a channel that `connect` has made
    void (*received)(void *user, struct str data); // valid during the call
    void (*sent)(void *user); // all queued bytes are sent; `send` may call it, too
    // by the other end (0) or a fault (negative errno); no event follows
    void (*closed)(void *user, int why);
};

typedef void wire_accept_fn(void *user, struct wire_channel *channel);

struct wire_transport {
    const char *name;

    // Accepts connections on `address` (numeric; NULL: all addresses) and *port (0: any unused
    // port, which it stores in *port). A new channel has no events: `accepted` must call
    // wire_channel_events_set or wire_channel_close before it returns.
    int (*listen)(struct wire_loop *loop, const char *address, int *port, wire_accept_fn *accepted,
                  void *user, struct wire_listener **out, struct error *e);

    // Like `listen`, with a socket that listens already. The listener takes it over, also on
    // failure.
    int (*listen_at)(struct wire_loop *loop, int fd, int *port, wire_accept_fn *accepted,
                     void *user, struct wire_listener **out, struct error *e);

    // Begins to connect; `opened` or `closed` reports the result.
    int (*connect)(struct wire_loop *loop, const char *host, int port,
                   const struct wire_channel_events *events, void *user, struct wire_channel **out,
                   struct error *e);

    void (*stop_listening)(struct wire_listener *listener);
    void (*events_set)(struct wire_channel *c, const struct wire_channel_events *events,
                       void *user);

    // Takes over `data` (malloc'd) and sends it after all earlier data. Never blocks; queues what
    // cannot go out yet.
    void (*send)(struct wire_channel *c, char *data, size_t size);
    size_t (*queued)(const struct wire_channel *c); // number of queued bytes

    // Frees the channel. Data that the kernel has not accepted yet are lost. May be called from any
    // event; no event follows.
    void (*close)(struct wire_channel *c);
};

extern const struct wire_transport wire_tcp;

#endif
