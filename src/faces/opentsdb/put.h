// put.h - sends points and annotations from HTTP or telnet to the agent, which owns the store.
//
//   body (JSON) ── put_parse_* ── struct put_point each ── put_lines
//   ── "put name time value tag=value" ── agent_send ── agent
//
// An invalid point is rejected here with OpenTSDB's message; one that the agent rejects, with the
// agent's message.
#ifndef SONDE_FACES_OPENTSDB_PUT_H
#define SONDE_FACES_OPENTSDB_PUT_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

enum {
    PUT_POINTS_MAX = 100000,     // in one body (413)
    PUT_TAGS_MAX = 16,           // of one point
    PUT_ANNOTATIONS_MAX = 10000, // in one body (413)
    PUT_ANSWER_TIMEOUT_S = 10,   // timeout for the agent's answer about the points (500 above it)
};

struct put_point {
    struct str line;    // without the newline; empty if `refused` is set
    struct str refused; // the reason; empty: not refused so far
    struct str json;    // the point as received
};

struct put_batch {
    struct put_point *points;
    size_t count;
};

// Parses OpenTSDB's body: a point, or an array of points. -EINVAL: invalid JSON, -E2BIG:
// PUT_POINTS_MAX.
int put_parse_opentsdb(struct str body, struct arena *arena, struct put_batch *out,
                       struct error *e);

// Parses Dragon's body: {"dps":[{"metric","value","tags"},…],"timestamp":seconds}. Tags are
// optional.
int put_parse_dragon(struct str body, struct arena *arena, struct put_batch *out, struct error *e);

// Appends the tags of the series with that tsuid to a line, " k=v k2=v2" (escape.h); false: no such
// series.
typedef bool put_series_tags_fn(void *user, struct str tsuid, struct buf *line);

// Parses OpenTSDB's annotation, or an array of them:
// {"startTime","description","notes","custom":{k:v},"endTime","tsuid"}. Notes and end times become
// tags with those names, a tsuid becomes the tags of its series.
int put_parse_annotations(struct str body, put_series_tags_fn *series_tags, void *user,
                          struct arena *arena, struct put_batch *out, struct error *e);

// Sends the valid points to the agent at `socket_path` and waits for its answer. A point that the
// agent rejects gets the reason in `refused`. The agent gives reasons only for the first 100;
// *failed counts all. -EIO: the agent does not run, or does not answer.
int put_send(const char *socket_path, struct put_batch *batch, struct arena *arena, size_t *failed,
             struct error *e);

#endif
