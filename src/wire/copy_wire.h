// copy_wire.h - COPY: what nodes' files hold at one moment, as files of our own.
//
//   request   i64 from_ns, i64 to_ns, varint files that are there already, each: short host, u64 version
//   records   short host (the node's), varint number of the file in the node's view, u8 kind, and:
//               'h'  u64 version, varint meta: (short key, short value)        a file begins
//               'u'  nothing                                                  it is the one that is there already: nothing more comes of it
//               'm'  short name, short unit, short help, u8 kind, u8 level     metrics, and
//               's'  varint metric, varint labels: (short key, short value)   series, counted from 0 in the order in which they come
//               'p'  varint series, varint count, times, values (numbers.h)    points, ascending within a series
//               'e'  as in EVENTS: one event
//               'z'  u64 metrics, series, points, events, u32 CRC32C of all records of the file before it: it is whole
//
// A node reads one snapshot, so what comes is consistent however much is appended meanwhile; it is read in slices, so that its other answers go on.
// The points of a file travel, not its blocks: the copy is written by our own store, and is a recording like any other. It appears under its name when it is
// whole: HOST.sonde (of a node's second file HOST+1.sonde, …), never half of it. Its meta "copied_version" and
// "copied_range" say which state of the original, and which time of it, it has.
#ifndef SONDE_WIRE_COPY_WIRE_H
#define SONDE_WIRE_COPY_WIRE_H

#include "wire/hub.h"

enum {
    WIRE_COPY_POINTS_MAX = 65536, // a record
    WIRE_COPY_FILES_MAX = 32768,  // in one folder
};

struct wire_copy_file {
    const char *path;
    struct str host;
    bool unchanged; // since the last time
    uint64_t points;
};

struct wire_copy_known {
    struct str host;
    uint64_t version;
};
struct wire_copy_request {
    int64_t from_ns, to_ns; // points and events of this time only
    const struct wire_copy_known *known;
    size_t known_count;
};
void wire_copy_request_write(const struct wire_copy_request *m, struct buf *out);
int wire_copy_request_read(struct str request, struct arena *arena, struct wire_copy_request *out);

// The receiving end: records of any number of nodes, mixed, into files of `folder` (made where it is not there, mode 0700).
struct wire_copy;
int wire_copy_create(const char *folder, int64_t from_ns, int64_t to_ns, struct wire_copy **out, struct error *e);
// -EBADMSG: damaged; the file that it is of will not appear. Other failures (a full disk) end the copying.
int wire_copy_take(struct wire_copy *c, struct str record, struct error *e);
// The files that became whole, sorted by path, in `arena`. What is not whole is removed.
int wire_copy_finish(struct wire_copy *c, struct arena *arena, const struct wire_copy_file **out, size_t *count);
void wire_copy_destroy(struct wire_copy *c);

// All at once: every node's files into `folder`; of all time when from_ns is 0 and to_ns INT64_MAX. Files that are there, and have the state that the node's has, stay.
// Give it a deadline that suits the size of the data, and at most some 100 nodes at a time (where->hosts): each has an open store meanwhile. Nodes that did not finish are in *absent.
int hub_copy(struct hub *h, const char *folder, int64_t from_ns, int64_t to_ns, const struct hub_where *where,
             struct arena *arena, const struct wire_copy_file **out, size_t *count, struct hub_absent *absent,
             struct error *e);

#endif
