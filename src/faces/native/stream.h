// stream.h - /sonde/v1/stream: new points of some series, for as long as the client stays: as
// server-sent events, or (format=binary) as pieces
//
//   u64 size, an answer of so many bytes as of query?format=binary (binary.h); size 0: nothing new, and no answer
//
// for clients that react: they are looked for more often, and get the points as they are, also
// those that JSON has no words for.
//
// A stream is a selection and, for each of its series, the time of the last point that was sent.
// Whoever owns the connection asks it from time to time what is new; points that come late, behind
// one that was sent already, are not sent.
#ifndef SONDE_FACES_NATIVE_STREAM_H
#define SONDE_FACES_NATIVE_STREAM_H

#include "faces/service.h"

enum {
    STREAMS_MAX = 64,           // at a time (503 past it)
    STREAM_SELECTIONS_MAX = 16, // m= in one request
    STREAM_SERIES_MAX = 10000,  // series in one stream; more are left out, which an event says
    STREAM_POINTS_MAX = 20000,  // in one piece; what is left comes with the next
    STREAM_LOOK_MS = 200,       // between two looks for new points
    STREAM_BINARY_LOOK_MS = 80, // with the way from another node within 100 ms
    // a comment when there is nothing new, so that a client that is gone is noticed
    STREAM_KEEPALIVE_S = 10,
};

struct stream;

// Points from now on, or with `since` from that time. -EINVAL, -ENOMEM, -EBUSY: STREAMS_MAX.
int stream_open(struct service *service, const struct request *r, struct stream **out,
                struct error *e);
void stream_close(struct stream *s);

const char *stream_type(const struct stream *s); // Content-Type
int stream_look_ms(const struct stream *s);      // between two calls of stream_next
void stream_say_nothing(const struct stream *s,
                        // that there is nothing new, so that a client knows that it is heard
                        struct buf *out);

// `woken` is called, in another thread, when other nodes have sent something: it need not wait for
// the next look. Once, before stream_next.
void stream_on_news(struct stream *s, void (*woken)(void *user), void *user);

// What is new since the last call, behind what is in *out; nothing where there is nothing. One
// thread at a time. -ENOMEM and what sources_open says.
int stream_next(struct stream *s, struct buf *out, struct error *e);

#endif
