// copy_wire.h - COPY: what nodes' files hold at one moment, as files of our own.
//
//   request   i64 from_ns, i64 to_ns, files that are there already, each: short host, varint number of the file, short: u8 exact, sums (copy_sums.h)
//   records   short host (the node's), varint number of the file in the node's view, u8 kind, and:
//               'l'  nothing                                                  it is being looked through
//               'h'  u64 version, varint meta: (short key, short value),       a file begins
//                    u8 upon: 1: what follows goes upon the copy that is there, of which the definitions are kept, and
//                             ceil(slices / 8) bytes: whose points, so many: whose events are
//               'u'  nothing                                                  it is the one that is there already: nothing more comes of it
//               'm'  short name, short unit, short help, u8 kind, u8 level     metrics, and
//               's'  varint metric, varint labels: (short key, short value)   series, counted from 0 in the order in which they come, behind those that are kept
//               'p'  varint series, varint count, times, values (numbers.h)    points, ascending within a series
//               'e'  as in EVENTS: one event
//               'z'  u64 metrics, series, points, events that are in it, u64 sum of the points, of the events, u32 CRC32C of all records of the file
//                    before it: it is whole
//
// A node reads one snapshot, so what comes is consistent however much is appended meanwhile; it is
// read in slices, so that its other answers go on. The points of a file travel, not its blocks: the
// copy is written by our own store, and is a recording like any other. It appears under its name
// when it is whole: HOST.sonde, where HOST is what the file itself says (its meta "host"; of a
// node's second file HOST+1.sonde, …), never half of it. Its meta "copied_version" and
// "copied_range" say which state of the original, and which time of it, it has, "copied_from" how
// the node was called.
//
// Of a copy that is there the node is told what it holds, slice by slice; it looks through its own
// file in the same way and sends the slices that differ. The new copy is put together beside the
// old one, which stays whole until then. Whatever the old one was, the new one holds what the
// node's file holds, or is not there: when its sums turn out to be others, it is asked for once
// more, whole.
//
// A copy takes the place of an older copy of the same job, and of nothing else: a recording that is
// no copy, another job's, or a copy of all time where only some of it is asked for, stays, and the
// new one fails in words.
#ifndef SONDE_ASK_COPY_WIRE_H
#define SONDE_ASK_COPY_WIRE_H

#include "ask/hub_ask_all.h"

enum {
    ASK_COPY_POINTS_MAX = 65536, // a record
    ASK_COPY_FILES_MAX = 32768,  // in one folder
    ASK_COPY_RANGE_MAX = 64,     // bytes of "copied_range"
};

// Of a record.
enum copy_kind {
    COPY_KIND_EVENT = 'e',
    COPY_KIND_HEAD = 'h',
    COPY_KIND_LOOK = 'l',
    COPY_KIND_METRIC = 'm',
    COPY_KIND_POINTS = 'p',
    COPY_KIND_SERIES = 's',
    COPY_KIND_UNCHANGED = 'u',
    COPY_KIND_TAIL = 'z',
};

enum ask_copy_way {
    ASK_COPY_WHOLE,     // all of it came
    ASK_COPY_UPDATED,   // what was new came
    ASK_COPY_UNCHANGED, // nothing was new: the file that was there stays
};

struct ask_copy_file {
    const char *path;
    struct str host; // as the node is called
    enum ask_copy_way way;
    int code;            // 0, or the negative errno of the problem
    const char *problem; // NULL: the file is whole. Else why it is not there
    uint64_t points;     // that travelled
    uint64_t came;       // bytes that travelled: of records
    uint64_t bytes;      // of the file
};

struct ask_copy_known {
    struct str host;
    uint64_t file;
    bool exact;      // it is of the time that is asked for, and of no more: it may stay
    struct str sums; // ask_copy_sums_read
};
struct ask_copy_request {
    int64_t from_ns, to_ns; // points and events of this time only
    const struct ask_copy_known *known;
    size_t known_count;
};
void ask_copy_request_write(const struct ask_copy_request *m, struct buf *out);
// Views of the request; the array is in `arena`. -EBADMSG, -ENOMEM.
int ask_copy_request_read(struct str request, struct arena *arena, struct ask_copy_request *out);
// struct ask_question_row's.
int ask_copy_request_narrow(struct str request, bool (*wants)(void *user, struct str host),
                            void *user, struct buf *out);

struct ask_copy_progress {
    _Atomic uint64_t files, points, bytes; // that are whole; that have come
    // grows while copies that are there are looked through, or taken over
    _Atomic uint64_t steps;
};
struct ask_copy_options {
    // made where it is not there, mode 0700; what is above it has to be there
    const char *folder;
    struct str job;                     // whose copies are replaced; empty: any job's
    int64_t from_ns, to_ns;             // 0 and INT64_MAX: all
    struct ask_copy_progress *progress; // goes on from what is in it; may be NULL
    // who may want an end; may be NULL. hub_copy takes those of `where`
    const atomic_bool *cancel;
    const struct work_watch *watch; // likewise
};

// Whether a recording is a copy of this job's (empty: any's), which a newer one may replace.
bool ask_copy_is_of(const struct store_reader *r, struct str job);
// "copied_range".
void ask_copy_range_text(int64_t from_ns, int64_t to_ns, char out[ASK_COPY_RANGE_MAX]);

// The receiving end: records of any number of nodes, mixed, into files of the folder.
struct ask_copy;
int ask_copy_create(const struct ask_copy_options *options, struct ask_copy **out, struct error *e);
// What these nodes are to be asked (0: all): says what of them is there already, for which that is
// looked through. -ENOMEM; or who wants an end.
int ask_copy_ask(struct ask_copy *c, const struct str *hosts, size_t host_count,
                 struct buf *request, struct error *e);
// -EBADMSG: damaged; the file that it is of will not appear. A file that cannot be written (a full
// disk) is given up, with a reason, and the others go on: 0. -ENOMEM ends the copying, and so does
// who wants an end.
int ask_copy_take(struct ask_copy *c, struct str record, struct error *e);
// Nodes a file of which could not be put together from what was there: to be asked once more, for
// all of it. In `arena`; -ENOMEM.
int ask_copy_again(struct ask_copy *c, struct arena *arena, const struct str **hosts,
                   size_t *count);
// The files that became whole and those that could not be written, sorted by path, in `arena`. What
// is not whole is removed.
int ask_copy_finish(struct ask_copy *c, struct arena *arena, const struct ask_copy_file **out,
                    size_t *count);
void ask_copy_destroy(struct ask_copy *c);

// All at once: every node's files. Files that are there, and hold what the node's hold, stay; of
// the others what is new comes. h NULL: where->local alone, which is called `host`. Give it a
// deadline that suits the size of the data, and at most some 30 nodes at a time (where->hosts):
// each has an open store meanwhile. Nodes that did not finish are in *absent.
struct ask_copied {
    const struct ask_copy_file *files; // in `arena`, as ask_copy_finish has them
    size_t count;
    struct hub_absent absent;
};
int hub_copy(struct hub *h, struct str host, const struct ask_copy_options *options,
             const struct hub_where *where, struct arena *arena, struct ask_copied *out,
             struct error *e);

#endif
