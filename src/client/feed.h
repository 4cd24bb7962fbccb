// feed.h - new points of a running job as they arrive: reads the job's stream
// (/sonde/v1/stream?format=binary), and divides it into results.
//
// A stream selects a metric, and for each tag one value or any value. It supports no patterns, no
// lists of values and no rates; callers that need these poll with queries.
#ifndef SONDE_CLIENT_FEED_H
#define SONDE_CLIENT_FEED_H

#include "client/origin.h"
#include "client/result.h"

enum { FEED_PIECE_MAX = 256 << 20 }; // bytes; the server's chunks have about 20,000 points

struct feed;

// Makes the path of the stream with the points that the query selects. Returns false if no stream
// can select them, or if memory is exhausted.
bool feed_path(const struct sonde_query *q, struct buf *out);

// Opens a stream, which begins with the points of the last since_ms. Returns -ENOTSUP for a
// recording. Does not wait for the server.
int feed_open(struct origin *o, const char *path, int since_ms, const struct origin_look *look,
              struct feed **out, struct error *e);
void feed_close(struct feed *f); // NULL is allowed

// Returns the next points. Returns -EAGAIN, without a message, if none arrive within timeout_ms;
// -ECANCELED; or another error, which ends the stream: an error of http_stream_next, or -EBADMSG
// for damaged data.
int feed_next(struct feed *f, int timeout_ms, struct sonde_result **out, struct error *e);

// Takes the first complete chunk from *rest. Returns 1, 0 if the chunk is not complete, or -EBADMSG
// if it is too large.
int feed_cut(struct str *rest, struct str *piece);

#endif
