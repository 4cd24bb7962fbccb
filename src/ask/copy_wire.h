// copy_wire.h - COPY: transfers the contents of the nodes' files at one moment into local files.
//
//   request   i64 from_ns, i64 to_ns, and for each existing copy: short host, varint number of the
//             file, short: u8 exact, sums (copy_sums.h)
//   records   short host (the node's), varint number of the file in the node's view, u8 kind, and:
//     'l'  the node is summing the file: nothing
//     'h'  a file begins: u64 version, varint meta: (short key, short value), u8 upon. With upon =
//          1 the records are added to the existing copy, which keeps its definitions; then follow
//          ceil(slices / 8) bytes: slices whose points are kept, and as many bytes: slices whose
//          events are kept
//     'u'  the existing copy is equal, and no more records of this file follow: nothing
//     'm'  metrics: short name, short unit, short help, u8 kind, u8 level
//     's'  a series: varint metric, varint labels: (short key, short value). Metrics and series are
//          counted from 0 in the order of arrival, after the kept ones
//     'p'  points, ascending within a series: varint series, varint count, times, values
//          (numbers.h)
//     'e'  one event, as in EVENTS
//     'z'  the file is complete: u64 metrics, series, points, events of the file, u64 sum of the
//          points, of the events, u32 CRC32C of all records of the file before this one
//
// A node reads one snapshot, so the copy is consistent although the node continues to append. It
// reads in slices, so that its other answers continue. The node sends the points of a file, not its
// blocks: our own store writes the copy, which is an ordinary recording. It gets its final name
// only when it is complete: HOST.sonde, where HOST is the meta "host" of the file (HOST+1.sonde for
// a node's second file, …). Its meta "copied_version" is the version of the original,
// "copied_range" the copied period of time, "copied_from" the name of the node.
//
// The request has the sums of an existing copy, slice by slice. The node computes the sums of its
// own file and sends the slices that differ. The new copy is assembled beside the old one, which
// stays intact until then. Whatever the old copy contained, the new one has the contents of the
// node's file, or does not appear: if its sums differ, the whole file is requested once more.
//
// A copy replaces only an older copy of the same job. Three kinds of recordings stay, and the new
// copy fails with a message: an original, a copy of another job, and a copy of all time if the
// request is for a part of it.
#ifndef SONDE_ASK_COPY_WIRE_H
#define SONDE_ASK_COPY_WIRE_H

#include "ask/hub_ask_all.h"

enum {
    ASK_COPY_POINTS_MAX = 32768, // points in a record
    ASK_COPY_FILES_MAX = 32768,  // files in one folder
    ASK_COPY_RANGE_MAX = 64,     // bytes of the meta "copied_range"
};

// The kind of a record.
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
    ASK_COPY_WHOLE,     // transferred whole
    ASK_COPY_UPDATED,   // only new data was transferred
    ASK_COPY_UNCHANGED, // there was no new data: the existing file stays
};

struct ask_copy_file {
    const char *path;
    struct str host; // the node's name
    enum ask_copy_way way;
    int code;                // 0, or a negative errno
    const char *problem;     // why the file does not exist; NULL: it is complete
    uint64_t points;         // number of transferred points
    uint64_t received_bytes; // bytes of the transferred records
    uint64_t bytes;          // size of the file
};

struct ask_copy_known {
    struct str host;
    uint64_t file;
    bool exact;      // it covers exactly the requested time, so it may stay
    struct str sums; // read it with ask_copy_sums_read
};
struct ask_copy_request {
    int64_t from_ns, to_ns; // the request is for points and events of this time only
    const struct ask_copy_known *known;
    size_t known_count;
};
void ask_copy_request_write(const struct ask_copy_request *m, struct buf *out);
// Decodes a request. The result holds views of `request`; its array is in `arena`. Returns 0,
// -EBADMSG or -ENOMEM.
int ask_copy_request_read(struct str request, struct arena *arena, struct ask_copy_request *out);
// Implements `narrow` of struct ask_question_row.
int ask_copy_request_narrow(struct str request, bool (*is_receiver)(void *user, struct str host),
                            void *user, struct buf *out);

struct ask_copy_progress {
    _Atomic uint64_t files, points, bytes; // number of complete files; received points and bytes
    // grows while existing copies are summed or reused
    _Atomic uint64_t steps;
};
struct ask_copy_options {
    // created with mode 0700 if it is missing; its parent must exist
    const char *folder;
    struct str job;         // only copies of this job are replaced; empty: copies of any job
    int64_t from_ns, to_ns; // 0 and INT64_MAX: all
    struct ask_copy_progress *progress; // counts on from its current values; may be NULL
    // cancel the copying; may be NULL. hub_copy uses the members of `where` instead
    const atomic_bool *cancel;
    const struct work_watch *watch; // likewise
};

// True if a recording is a copy of this job (empty: of any job). A newer copy may replace it.
bool ask_copy_is_of(const struct store_reader *r, struct str job);
// The attribute "copied_range" as a text.
void ask_copy_range_text(int64_t from_ns, int64_t to_ns, char out[ASK_COPY_RANGE_MAX]);

// The receiving end. It turns the mixed records of any number of nodes into files of the folder.
struct ask_copy;
int ask_copy_create(const struct ask_copy_options *options, struct ask_copy **out, struct error *e);
// Makes the request for these nodes (0: all). It contains the sums of existing copies, which this
// function computes. Returns -ENOMEM, or the result of ask_copy_stopped.
int ask_copy_ask(struct ask_copy *c, const struct str *hosts, size_t host_count,
                 struct buf *request, struct error *e);
// Writes the data of a record. Returns -EBADMSG for a damaged record; its file will not appear. If
// a file cannot be written (a full disk), the function gives up this file with a reason and returns
// 0, because the other files continue. After -ENOMEM and -ECANCELED the caller must end the
// operation.
int ask_copy_take(struct ask_copy *c, struct str record, struct error *e);
// Lists the nodes whose files could not be assembled from older copies. The caller requests all
// data of these nodes once more. The list is in `arena`. Returns 0 or -ENOMEM.
int ask_copy_again(struct ask_copy *c, struct arena *arena, const struct str **hosts,
                   size_t *count);
// Lists the complete files and the files that could not be written, sorted by path, in `arena`.
// Removes incomplete files.
int ask_copy_finish(struct ask_copy *c, struct arena *arena, const struct ask_copy_file **out,
                    size_t *count);
void ask_copy_destroy(struct ask_copy *c);

// Copies all files of all nodes. Existing files with the same contents stay; for the other files,
// nodes send new data only. If h is NULL, it copies where->local alone, under the name `host`. Set
// a deadline that suits the size of the data. Request the files of at most some 30 nodes at a time
// (where->hosts), because a store is open for each node meanwhile. *absent gets the nodes that did
// not finish.
struct ask_copied {
    const struct ask_copy_file *files; // in `arena`, as from ask_copy_finish
    size_t count;
    struct hub_absent absent;
};
int hub_copy(struct hub *h, struct str host, const struct ask_copy_options *options,
             const struct hub_where *where, struct arena *arena, struct ask_copied *out,
             struct error *e);

#endif
