// feeds.h - streams on their connections: each is asked for news a few times a second, and sleeps
// in between.
#ifndef SONDE_FACES_NATIVE_FEEDS_H
#define SONDE_FACES_NATIVE_FEEDS_H

#include "faces/native/stream.h"

#include <microhttpd.h>

struct feeds;

// Starts the thread that wakes them. Before it does, `drainer` (may be NULL) brings the files up to
// date, once for all of them.
int feeds_create(struct connections *connections, struct drainer *drainer, struct feeds **out,
                 struct error *e);

// Ends all streams: their connections are closed as soon as they have taken what they have. No new
// ones from then on.
void feeds_stop(struct feeds *f);
void feeds_destroy(struct feeds *f); // after the HTTP library has stopped

// The response that sends `stream` over `http`; takes the stream over. NULL: no memory, the stream
// is closed.
struct MHD_Response *feeds_response(struct feeds *f, struct stream *stream,
                                    struct MHD_Connection *http, struct connection *connection);

#endif
