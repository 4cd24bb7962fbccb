// stream.h - /sonde/v1/stream: new points of some series as server-sent events, for as long as the client stays.
//
// A stream is a selection and, for each of its series, the time of the last point that was sent. Whoever owns the connection asks it from time to time
// what is new; points that come late, behind one that was sent already, are not sent.
#ifndef SONDE_AGGREGATOR_STREAM_H
#define SONDE_AGGREGATOR_STREAM_H

#include "aggregator/routes.h"

enum {
    STREAMS_MAX = 64,           // at a time (503 past it)
    STREAM_SELECTIONS_MAX = 16, // m= in one request
    STREAM_SERIES_MAX = 10000,  // series in one stream; more are left out, which an event says
    STREAM_POINTS_MAX = 20000,  // in one piece; what is left comes with the next
    STREAM_LOOK_MS = 200,       // between two looks for new points
    STREAM_KEEPALIVE_S = 10,    // a comment when there is nothing new, so that a client that is gone is noticed
};

struct stream;

// Points from now on, or with `since` from that time. -EINVAL, -ENOMEM, -EBUSY: STREAMS_MAX.
int stream_open(struct service *service, const struct request *r, struct stream **out, struct error *e);
void stream_close(struct stream *s);

// What is new since the last call, as events in *out; nothing where there is nothing. One thread at a time. -ENOMEM and what sources_open says.
int stream_next(struct stream *s, struct buf *out, struct error *e);

#endif
