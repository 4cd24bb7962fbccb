// recent_wire.h - RECENT: the points of the last seconds, for clients that follow growing series
// (/sonde/v1/stream).
//
//   request   i64 window_ns, i64 from_ns, varint selections, each: short metric, short its other
//             name (empty: none), varint tags: (short key, short value)
//   records   points of one series, ascending: short host (the node's), varint selection, u8 kind,
//             short unit, varint labels: (short key, short value), varint count, times, values
//             (numbers.h)
//
// The window ends at the node's newest point, or now, whichever is earlier: its length is relative,
// so differences between clocks do not matter. The client requests overlapping windows and
// remembers the last point of each series, so it misses no point that is written within the
// overlap. Series without new points since from_ns cost next to nothing.
#ifndef SONDE_ASK_RECENT_WIRE_H
#define SONDE_ASK_RECENT_WIRE_H

#include "ask/question.h"
#include "base/arena.h"
#include "base/bytes.h"
#include "store/store.h"

enum {
    ASK_RECENT_SELECTIONS_MAX = 16,
    ASK_RECENT_TAGS_MAX = 16,     // tags of each selection
    ASK_RECENT_POINTS_MAX = 4096, // points in a record
};

struct ask_selection {
    struct str metric, other;
    // a series must have all of these tags; the value "*" matches any value
    const struct store_label *tags;
    size_t tag_count;
};
struct ask_recent_request {
    int64_t window_ns, from_ns; // no points before from_ns
    const struct ask_selection *selections;
    size_t selection_count;
};
void ask_recent_request_write(const struct ask_recent_request *m, struct buf *out);
int ask_recent_request_read(struct str request, struct arena *arena,
                            struct ask_recent_request *out);

struct ask_recent {
    struct str host;
    size_t selection;
    enum store_kind kind;
    struct str unit;
    const struct store_label *labels;
    size_t label_count, count;
    const int64_t *t_ns;
    const double *values;
};
// Reads a record into `arena`; texts are views of the record. Returns 0, -EBADMSG or -ENOMEM.
int ask_recent_read(struct str record, struct arena *arena, struct ask_recent *out);

#endif
