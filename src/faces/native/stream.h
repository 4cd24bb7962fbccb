// stream.h - /sonde/v1/stream: sends new points of some series as long as the client stays
// connected: as server-sent events, or (format=binary) as chunks
//
//   u64 size, then that many bytes of an answer like query?format=binary (binary.h); size 0: no new
//   points, and no answer
//
// Binary streams are for clients that react: they check for new points more often, and send exact
// values, including those that JSON cannot express.
//
// A stream has a selection and, for each of its series, the time of the last sent point. The
// connection's owner calls stream_next repeatedly. Points that arrive late, with a time before the
// last sent one, are not sent.
#ifndef SONDE_FACES_NATIVE_STREAM_H
#define SONDE_FACES_NATIVE_STREAM_H

#include "faces/service.h"

enum {
    STREAMS_MAX = 64,           // open at the same time (503 above it)
    STREAM_SELECTIONS_MAX = 16, // m= in one request
    // series in one stream; further ones are left out, and an event says so
    STREAM_SERIES_MAX = 10000,
    STREAM_POINTS_MAX = 20000,  // in one chunk; the rest comes in the next one
    STREAM_LOOK_MS = 200,       // interval of the checks for new points
    STREAM_BINARY_LOOK_MS = 80, // within 100 ms, including the transfer from another node
    // interval of comments when there is nothing else to send, so that a client that has gone is
    // noticed
    STREAM_KEEPALIVE_S = 10,
};

struct stream;

// Opens a stream that begins with new points, or with `since` at that time. -EINVAL, -ENOMEM,
// -EBUSY: STREAMS_MAX.
int stream_open(struct service *service, const struct request *r, struct stream **out,
                struct error *e);
void stream_close(struct stream *s);

const char *stream_type(const struct stream *s); // Content-Type
int stream_look_ms(const struct stream *s);      // between two calls of stream_next
// Writes that there are no new points, so that a client knows that its stream is alive.
void stream_say_nothing(const struct stream *s, struct buf *out);

// Registers `woken`, which is called in another thread when other nodes have sent data, so that the
// owner need not wait for the next check. Call it once, before stream_next.
void stream_on_news(struct stream *s, void (*woken)(void *user), void *user);

// Appends the new points since the last call to *out; nothing if there are none. One thread at a
// time. -ENOMEM, and the errors of sources_open.
int stream_next(struct stream *s, struct buf *out, struct error *e);

#endif
