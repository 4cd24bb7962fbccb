// feed.h - new points of a running job as they come: its stream (/sonde/v1/stream?format=binary),
// cut into answers.
//
// A stream follows a metric, and tags with their values or any. It cannot choose by patterns or
// several values, and it makes no rates: who wants that asks.
#ifndef SONDE_CLIENT_FEED_H
#define SONDE_CLIENT_FEED_H

#include "client/origin.h"
#include "client/result.h"

enum { FEED_PIECE_MAX = 256 << 20 }; // bytes; the server's pieces are of some 20,000 points

struct feed;

// The path of the stream that gives what the query selects; false: none does (or there is no
// memory).
bool feed_path(const struct sonde_query *q, struct buf *out);

// Points of the last since_ms, and those that come. -ENOTSUP: of a recording. Does not wait for the
// server.
int feed_open(struct origin *o, const char *path, int since_ms, const struct origin_look *look,
              struct feed **out, struct error *e);
void feed_close(struct feed *f); // NULL is allowed

// The next ones. -EAGAIN, without words: none, for timeout_ms. -ECANCELED. Anything else is its
// end, as of http_stream_next; -EBADMSG: it is damaged.
int feed_next(struct feed *f, int timeout_ms, struct sonde_result **out, struct error *e);

// Takes the first piece off what has come: 1. 0: it is not all there. -EBADMSG: it is too large.
int feed_cut(struct str *rest, struct str *piece);

#endif
