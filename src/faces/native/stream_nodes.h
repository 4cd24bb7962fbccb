// stream_nodes.h - the other nodes' part of a stream: a thread that requests new points from them
// while the stream is open.
//
//   every look_ms   ─ RECENT (ask/recent_wire.h) ─▶ all nodes
//                   ◀─ records: into a list that the stream empties
//
// A request covers the time since the previous one plus STREAM_OVERLAP_S; the stream removes
// duplicates. If a node does not answer within the node deadline, the stream announces it ("event:
// missing"), and asks it again only after STREAM_RETRY_S, so that it does not delay the others each
// time. When it answers again ("event: back"), a separate request gets the points that were missed,
// at most STREAM_CATCH_UP_S. While STREAM_HELD_MAX bytes wait for a slow client, the thread
// requests nothing.
#ifndef SONDE_FACES_NATIVE_STREAM_NODES_H
#define SONDE_FACES_NATIVE_STREAM_NODES_H

#include "ask/recent_wire.h"
#include "base/list.h"
#include "faces/service.h"

enum {
    // points that are written at most this much later than their time still count as new
    STREAM_OVERLAP_S = 2,
    STREAM_RETRY_S = 5,
    STREAM_CATCH_UP_S = 600,
    STREAM_HELD_MAX = 16 << 20,
};

struct stream_nodes;

// `selections` must outlive it. Returns 0, -ENOMEM, or the error of starting the thread.
int stream_nodes_open(struct service *service, const struct ask_selection *selections, size_t count,
                      int64_t from_ns, int look_ms, struct stream_nodes **out, struct error *e);
void stream_nodes_close(struct stream_nodes *n);

// Calls `woken` in the thread after each answer with data; never after stream_nodes_close.
void stream_nodes_on_news(struct stream_nodes *n, void (*woken)(void *user), void *user);

// The next received item: a record of RECENT, or the text of an event. malloc'ed; NULL: none.
struct stream_news {
    struct list_link in_nodes;
    bool event;
    size_t size;
    char data[];
};
struct stream_news *stream_nodes_take(struct stream_nodes *n);

#endif
