// put.h - points and annotations that come over HTTP or telnet, on their way to the agent, which
// owns the store.
//
//   body (JSON) ── put_parse_* ── struct put_point each ── put_lines ── "put name time value tag=value" ── agent_send ── agent
//
// A point that is wrong by itself is refused here with OpenTSDB's words; what the agent refuses
// comes back with the agent's.
#ifndef SONDE_FACES_OPENTSDB_PUT_H
#define SONDE_FACES_OPENTSDB_PUT_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

enum {
    PUT_POINTS_MAX = 100000,     // in one body (413)
    PUT_TAGS_MAX = 16,           // of one point
    PUT_ANNOTATIONS_MAX = 10000, // in one body (413)
    PUT_ANSWER_TIMEOUT_S = 10,   // for the agent to take them and say what it thinks (500 past it)
};

struct put_point {
    struct str line;    // without the newline; empty when `refused` says why
    struct str refused; // empty: good so far
    struct str json;    // the point as it came
};

struct put_batch {
    struct put_point *points;
    size_t count;
};

// OpenTSDB's body: a point, or an array of them. -EINVAL: no JSON, -E2BIG: PUT_POINTS_MAX.
int put_parse_opentsdb(struct str body, struct arena *arena, struct put_batch *out,
                       struct error *e);

// Dragon's: {"dps":[{"metric","value","tags"},…],"timestamp":seconds}. Tags may be left out.
int put_parse_dragon(struct str body, struct arena *arena, struct put_batch *out, struct error *e);

// Adds the tags of the series of that tsuid to a line, " k=v k2=v2" (escape.h); false: there is
// none.
typedef bool put_series_tags_fn(void *user, struct str tsuid, struct buf *line);

// OpenTSDB's annotation, or an array of them:
// {"startTime","description","notes","custom":{k:v},"endTime","tsuid"}. Notes and end times become
// tags of those names, a tsuid the tags of its series.
int put_parse_annotations(struct str body, put_series_tags_fn *series_tags, void *user,
                          struct arena *arena, struct put_batch *out, struct error *e);

// Hands the good points to the agent at `socket_path` and waits for its word on them; what it
// refuses gets its words in `refused`. Of more than 100 that it refuses the later ones are not
// named: *failed counts them, too. -EIO: the agent is not there, or does not answer.
int put_send(const char *socket_path, struct put_batch *batch, struct arena *arena, size_t *failed,
             struct error *e);

#endif
