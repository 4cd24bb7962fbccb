// transport.h - how bytes get from one process to another: connect, listen, send, receive, close.
//
// The connection of two ends; large pieces may go beside it (bulk.h). A channel is an ordered
// stream of bytes both ways. It knows nothing of frames. All calls and all events are in the loop's
// thread. Transports are rows of this struct; the test suite tests/unit/wire/test_wire_transport.c
// runs over each.
#ifndef SONDE_WIRE_TRANSPORT_H
#define SONDE_WIRE_TRANSPORT_H

#include "wire/loop.h"

#include "base/str.h"

struct wire_channel;
struct wire_listener;

struct wire_channel_events {
    void (*opened)(void *user);                    // of one that was connected
    void (*received)(void *user, struct str data); // valid during the call
    void (*sent)(void *user);                      // all that was queued is out; also within `send`
    // the other end (0) or a fault (negative errno); no event comes after it
    void (*closed)(void *user, int why);
};

typedef void wire_accept_fn(void *user, struct wire_channel *channel);

struct wire_transport {
    const char *name;

    // Takes connections on `address` (a number; NULL = all) and `port` (0 = any that is free, *port
    // is set). Each channel comes without events: wire_channel_events_set before the call returns,
    // or wire_channel_close.
    int (*listen)(struct wire_loop *loop, const char *address, int *port, wire_accept_fn *accepted,
                  void *user, struct wire_listener **out, struct error *e);

    // The same on a socket that listens already; it belongs to the listener then, also on failure.
    int (*listen_at)(struct wire_loop *loop, int fd, int *port, wire_accept_fn *accepted,
                     void *user, struct wire_listener **out, struct error *e);

    // Begins to connect; `opened` or `closed` says how it went.
    int (*connect)(struct wire_loop *loop, const char *host, int port,
                   const struct wire_channel_events *events, void *user, struct wire_channel **out,
                   struct error *e);

    void (*stop_listening)(struct wire_listener *listener);
    void (*events_set)(struct wire_channel *c, const struct wire_channel_events *events,
                       void *user);

    // Takes `data` (malloc'd) and sends it behind what was sent before. Never blocks; what cannot
    // go out yet is queued.
    void (*send)(struct wire_channel *c, char *data, size_t size);
    size_t (*queued)(const struct wire_channel *c); // bytes

    // Frees the channel; what the kernel has not taken yet is lost. No event comes after it. In any
    // event, too.
    void (*close)(struct wire_channel *c);
};

extern const struct wire_transport wire_tcp;

#endif
