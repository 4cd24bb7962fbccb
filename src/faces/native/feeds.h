// feeds.h - the connections of streams: a thread wakes each stream a few times a second to send new
// points.
#ifndef SONDE_FACES_NATIVE_FEEDS_H
#define SONDE_FACES_NATIVE_FEEDS_H

#include "faces/native/stream.h"
#include "http/library.h"

struct feeds;

// Starts the thread that wakes them. Before each wake-up, `drainer` (may be NULL) brings the files
// up to date, once for all of them.
int feeds_create(struct connections *connections, struct drainer *drainer, struct feeds **out,
                 struct error *e);

// Ends all streams: closes each connection once its client has received the pending data. Refuses
// new streams.
void feeds_stop(struct feeds *f);
void feeds_destroy(struct feeds *f); // call it after the HTTP library has stopped

// Makes the response that sends `stream` over `http`, and takes the stream over. NULL: out of
// memory, and the stream is closed.
struct MHD_Response *feeds_response(struct feeds *f, struct stream *stream,
                                    struct MHD_Connection *http, struct connection *connection);

#endif
