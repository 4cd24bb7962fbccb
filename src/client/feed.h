// feed.h - new points of a running job as they arrive: its stream (/sonde/v1/stream?format=binary),
// divided into results.
//
// A stream selects a metric, and tags with one value or any. It supports neither patterns nor
// several values nor rates; callers that need these poll with queries.
#ifndef SONDE_CLIENT_FEED_H
#define SONDE_CLIENT_FEED_H

#include "client/origin.h"
#include "client/result.h"

enum { FEED_PIECE_MAX = 256 << 20 }; // bytes; the server's chunks have about 20,000 points

struct feed;

// Makes the path of the stream with the points that the query selects. Returns false if no stream
// can select them, or if memory is exhausted.
bool feed_path(const struct sonde_query *q, struct buf *out);

// The stream begins with the points of the last since_ms. Returns -ENOTSUP for a recording. Does
// not wait for the server.
int feed_open(struct origin *o, const char *path, int since_ms, const struct origin_look *look,
              struct feed **out, struct error *e);
void feed_close(struct feed *f); // NULL is allowed

// Returns the next points. -EAGAIN, without a message: none within timeout_ms. -ECANCELED. Any
// other error ends the stream: those of http_stream_next, and -EBADMSG for damaged data.
int feed_next(struct feed *f, int timeout_ms, struct sonde_result **out, struct error *e);

// Removes the first complete chunk from *rest and returns 1. Returns 0 if it is not complete,
// -EBADMSG if it is too large.
int feed_cut(struct str *rest, struct str *piece);

#endif
