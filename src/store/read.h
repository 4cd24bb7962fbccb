// read.h - the time-series database: reading, live or archived.
//
// A reader maps a file read-only. A snapshot is a consistent view of the file at one moment: it
// contains all data that were appended before it was opened, and keeps them whatever the writer
// does meanwhile (except that blocks that retention deletes may become empty). No reader can delay
// the writer. The writer may be in another process, or dead.
//
//   store_reader ── store_snapshot ── store_cursor ── runs of points
//
// If a file is damaged (bad checksums, cut-off files), the reader leaves out the damaged blocks and
// reports them (store_reader_damage). It serves the rest. If a writer died and its machine may have
// crashed, the reader serves only synced data (trusted_data.c), and reports the other data in the
// same way.
#ifndef SONDE_STORE_READ_H
#define SONDE_STORE_READ_H

#include "store/store.h"
#include "store/summary.h"

struct store_reader;
struct store_snapshot;
struct store_cursor;

// Opens a file for reading. If the file is not a sonde file, or of an unknown version, *e has a
// message.
int store_reader_open(const char *path, struct store_reader **out, struct error *e);
void store_reader_close(struct store_reader *r); // close all its snapshots before

// Returns an attribute that the file got when it was created ("host", "job", …), or an empty text.
struct str store_reader_meta(const struct store_reader *r, struct str key);

// LIVE: a writer has the file open now, so it may grow. CLOSED: a writer closed it cleanly.
// CRASHED: its writer did not.
enum store_state { STORE_LIVE, STORE_CLOSED, STORE_CRASHED };
enum store_state store_reader_state(const struct store_reader *r);

struct store_damage {
    uint64_t blocks; // number of damaged blocks, and of other unreadable parts
    uint64_t bytes;  // in these parts
    char first[128]; // place and cause of the first damage
};
void store_reader_damage(const struct store_reader *r, struct store_damage *out);

// The values and events that are not in the file, as its writers have counted them.
struct store_losses {
    // refused or lost for any cause, also data in the memory of a writer that died
    uint64_t dropped;
    uint64_t waiting; // in the memory of the current writer, for lack of disk space
    uint64_t retired; // deleted by retention
};
void store_reader_losses(const struct store_reader *r, struct store_losses *out);

// Opens a snapshot. Any thread may call it; the snapshot belongs to one thread at a time. The call
// is cheap, because the snapshot shares the unchanged parts of the last one. Returns NULL if memory
// is exhausted.
struct store_snapshot *store_snapshot_open(struct store_reader *r);
void store_snapshot_close(struct store_snapshot *s);
// Opens another snapshot of the file, for another thread. It may show later points.
struct store_snapshot *store_snapshot_beside(const struct store_snapshot *s);

enum { STORE_KEPT_BYTES = 128 << 20 };
// Bounds the unpacked data that the snapshot keeps for its next cursors; the default is
// STORE_KEPT_BYTES. The snapshot always keeps the data that a cursor is reading.
void store_snapshot_keep_at_most(struct store_snapshot *s, size_t bytes);

// A file without a name for unpacked data. It takes up to a quarter of the free space of its disk.
// One thread at a time uses it and its snapshots.
struct store_overflow;
struct store_overflow *store_overflow_open(const char *folder); // NULL: impossible in this folder
void store_overflow_close(struct store_overflow *o);            // after its snapshots; may be NULL
// Keeps unpacked data beyond the bound in `o`, not in memory, so the next cursors need not unpack
// them again. Call it before the first cursor.
void store_snapshot_overflow(struct store_snapshot *s, struct store_overflow *o);

// Requests blocks from the disk and does not wait for them, so that cursors need not wait for one
// after the other: those with points in the range, and of a block that fits into one bucket only
// what its summary needs.
struct store_request {
    int64_t from_ns, to_ns;
    int64_t bucket_ns; // 0: every point is needed
    size_t bytes_left; // requests no more
    const void *last;  // NULL at first
};
// Returns false if it requests no more.
bool store_request_series(struct store_request *q, struct store_snapshot *s, uint32_t series);

// The version increases with every append. If two versions are equal, no data were added between
// them.
uint64_t store_snapshot_version(const struct store_snapshot *s);

size_t store_metric_count(const struct store_snapshot *s);
size_t store_series_count(const struct store_snapshot *s);

// Results are valid as long as the snapshot. Ids go from 0 to the count - 1; for other ids the
// result is NULL.
const struct store_metric *store_metric_get(const struct store_snapshot *s, uint32_t metric);

struct store_series_info {
    uint32_t metric;
    uint32_t label_count;
    const struct store_label *labels; // sorted by key
};
// Fills *out. Returns false for an unknown id.
bool store_series_get(const struct store_snapshot *s, uint32_t series,
                      struct store_series_info *out);

// Finds the metric with this name. Returns false for an unknown name.
bool store_metric_find(const struct store_snapshot *s, struct str name, uint32_t *metric);

// Returns the ids of a metric's series, ascending, and sets *count. The array is valid as long as
// the snapshot.
const uint32_t *store_metric_series(const struct store_snapshot *s, uint32_t metric, size_t *count);

// Returns the ids of the series with the label key=value, ascending, in the same way.
const uint32_t *store_label_series(const struct store_snapshot *s, struct str key, struct str value,
                                   size_t *count);

// Returns all label keys, or all values of a key: sorted, without duplicates, valid as long as the
// snapshot.
const struct str *store_label_keys(const struct store_snapshot *s, size_t *count);
const struct str *store_label_values(const struct store_snapshot *s, struct str key, size_t *count);

// Returns an upper bound of all time stamps in the file; the last one may be earlier. Reads no
// data.
int64_t store_newest_ns(const struct store_snapshot *s);

// Finds the first and the last time stamp in the file. Returns false if the file has no points.
bool store_time_range(const struct store_snapshot *s, int64_t *first_ns, int64_t *last_ns);

// A run: consecutive points of one series, ascending in time, no two with equal time stamps. Runs
// of a cursor follow each other without overlap.
struct store_run {
    size_t count;
    int64_t first_ns, last_ns; // times of its first and last point
    // The summary covers exactly the points first_ns..last_ns; `nans` of them are NaN.
    bool has_summary;
    uint32_t nans;
    struct store_summary summary;
};

// Opens a cursor for the points of `series` with from_ns ≤ t ≤ to_ns. A run that lies only partly
// in the range has no summary and contains only the points in range. Returns NULL without memory or
// for an unknown series.
struct store_cursor *store_cursor_open(struct store_snapshot *s, uint32_t series, int64_t from_ns,
                                       int64_t to_ns);
void store_cursor_close(struct store_cursor *c);

// The same for callers that keep decoded blocks. A run may be a complete sealed block that the
// range cuts: the caller leaves out the points before from_ns and after to_ns.
struct store_cursor *store_cursor_open_blocks(struct store_snapshot *s, uint32_t series,
                                              int64_t from_ns, int64_t to_ns);

// Moves to the next run without decoding it. Returns 1 and fills *run, 0 at the end, or a negative
// errno.
int store_cursor_next(struct store_cursor *c, struct store_run *run);

// Decodes the points of the run that store_cursor_next has just returned, into arrays that are
// valid until the next call on this cursor. Damaged and retired points are left out and counted as
// damage. So *count may be smaller than run->count, even 0.
int store_cursor_points(struct store_cursor *c, const int64_t **t_ns, const double **values,
                        size_t *count);

// If the run that was just returned consists of exactly the series' points in one sealed block,
// returns a number for this block; 0 for other runs, and for those that decode as fast as a cache
// finds them. The number is unique in this process, and the block never changes. Call it again
// after store_cursor_points: 0 then means that other blocks provided the points.
uint64_t store_cursor_block(const struct store_cursor *c);

// Finds the last point at or before `at_ns`; returns false if the series has none. Used for the
// "latest value" and the point before a range.
bool store_point_before(struct store_snapshot *s, uint32_t series, int64_t at_ns, int64_t *t_ns,
                        double *value);

// Calls `each` with the events that touch [from, to], sorted by start time. The event is valid
// during the call. The callback returns false to stop.
typedef bool store_event_fn(const struct store_event *event, void *user);
int store_events(struct store_snapshot *s, int64_t from_ns, int64_t to_ns, store_event_fn *each,
                 void *user);

// True if a span has no end of its own: it is still running, or its process ended before it.
bool store_span_is_unfinished(const struct store_event *event);

// A selection of events. Zero-initialised except for the range, it selects all events that touch
// the range.
struct store_event_selection {
    int64_t from_ns, to_ns;
    // bits 1 << kind; 0: all kinds. Blocks without such events are read only once
    unsigned kinds;
    struct str name; // text of the events; empty: any
    bool unfinished; // only spans without an end of their own (store_span_is_unfinished)
    // only the earliest so many events, which also bounds the memory; 0: all
    size_t most;
};
int store_events_find(struct store_snapshot *s, const struct store_event_selection *selection,
                      store_event_fn *each, void *user);

#endif
