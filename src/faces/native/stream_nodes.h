// stream_nodes.h - the other nodes' half of a stream: a thread that asks them what is new, for as
// long as the stream is open.
//
//   every look_ms         ─ RECENT (ask/recent_wire.h) ─▶ all nodes      records ─▶ a list that the stream empties
//
// A question asks for the time since the last one and STREAM_OVERLAP_S more; the stream knows what
// it has had already. A node that does not answer within the node deadline is named ("event:
// missing"), left alone for STREAM_RETRY_S, so that it does not delay the others again and again,
// and asked by itself for what was missed when it is back ("event: back"), at most
// STREAM_CATCH_UP_S of it. While the client takes nothing, and STREAM_HELD_MAX bytes wait for it,
// nobody is asked.
#ifndef SONDE_FACES_NATIVE_STREAM_NODES_H
#define SONDE_FACES_NATIVE_STREAM_NODES_H

#include "ask/recent_wire.h"
#include "faces/service.h"

enum {
    STREAM_OVERLAP_S = 2, // points that are written up to so long after their time are in time
    STREAM_RETRY_S = 5,
    STREAM_CATCH_UP_S = 600,
    STREAM_HELD_MAX = 16 << 20,
};

struct stream_nodes;

// `selections` outlive it. -ENOMEM, or why there is no thread.
int stream_nodes_open(struct service *service, const struct ask_selection *selections, size_t count,
                      int64_t from_ns, int look_ms, struct stream_nodes **out, struct error *e);
void stream_nodes_close(struct stream_nodes *n);

// Called behind each look that has brought something, in the thread that looks; no longer once
// stream_nodes_close has returned.
void stream_nodes_on_news(struct stream_nodes *n, void (*woken)(void *user), void *user);

// What has come next: a record of RECENT, or the text of an event. malloc'd; NULL: nothing.
struct stream_news {
    struct stream_news *next;
    bool event;
    size_t size;
    char data[];
};
struct stream_news *stream_nodes_take(struct stream_nodes *n);

#endif
