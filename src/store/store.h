// store.h - the time-series database: writing.
//
// One file holds one node's data. It is a log of sealed, compressed, checksummed blocks, with a few
// mapped tails for the newest points in order of arrival. Live and archived data are the same file
// (docs/format.md). The library has no threads of its own. One thread of one process at a time is
// the writer. Any number of readers (read.h), in this process or others, read without locks.
//
//   metric ──< series (metric + labels) ──< set (series sampled at one instant, a time stamp a row)
//
// Ids count from 0 in the order of creation, without gaps, and never change in a file.
//
// Appended data are in the mapped file when the call returns: kill -9 loses nothing. A crash of the
// machine loses at most the data since the last sync. A call that refuses data (over a limit, too
// old, no memory) returns an error and counts it.
#ifndef SONDE_STORE_STORE_H
#define SONDE_STORE_STORE_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

// Marks a cell of a row that has no value. It is never stored, and readers never return it. One NaN
// bit pattern is reserved for it; every other NaN is data.
#define STORE_MISSING_BITS UINT64_C(0x7ff8736f6e646500)

static inline double store_missing(void)
{
    uint64_t bits = STORE_MISSING_BITS;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline bool store_is_missing(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits == STORE_MISSING_BITS;
}

// Limits. A definition above a limit is refused with -E2BIG (names, labels) or -ENOSPC (counts),
// and counted.
enum {
    STORE_NAME_MAX = 255,   // bytes of a metric's name
    STORE_LABELS_MAX = 16,  // labels of a series
    STORE_KEY_MAX = 128,    // bytes of a label's key
    STORE_VALUE_MAX = 1024, // bytes of a label's value
    STORE_TEXT_MAX = 4096,  // bytes of an annotation or a help text
    STORE_UNIT_MAX = 32,
    STORE_SET_SERIES_MAX = 4096,
    // Limits of a file, which options can change.
    STORE_METRICS_MAX_DEFAULT = 1 << 18,
    STORE_PAIRS_MAX_DEFAULT = 8000000, // different label pairs (key and value)
    STORE_SERIES_MAX_DEFAULT = 4000000,
    STORE_SETS_MAX_DEFAULT = 1 << 18,
    // Limits of the catalog, which has all names, labels, series and sets of a file. Four million
    // series, each with its own label value, take 140 MB.
    STORE_CATALOG_BYTES_MIN = 1 << 20,
    STORE_CATALOG_BYTES_MAX_DEFAULT = 256 << 20,
    // limit of any file, because a reader unpacks the catalog in one piece
    STORE_CATALOG_BYTES_MAX = 1 << 30,
};

enum store_kind { STORE_GAUGE = 0, STORE_COUNTER = 1 };

struct store_label {
    struct str key, value;
};

struct store_metric {
    struct str name; // [A-Za-z0-9_./:-] and letters (bytes ≥ 0x80), not empty
    struct str unit; // "bytes", "percent"; may be empty
    struct str help; // one sentence; may be empty
    enum store_kind kind;
    uint8_t level; // 0..4
};

struct store_options {
    // retention by size, without the catalog; 0 = 1 GiB; UINT64_MAX = no limit
    uint64_t size_limit_bytes;
    // retention by age, relative to the newest point or to the time of store_tick, whichever is
    // earlier; 0 = no limit
    int64_t window_ns;
    int64_t sync_interval_ns; // 0 = 5 s
    // Definitions past these limits are refused before any part of them is written. 0 = the
    // default.
    uint32_t metric_limit, pair_limit, series_limit, set_limit;
    // 0 = a quarter of the size limit, between STORE_CATALOG_BYTES_MIN and …_MAX_DEFAULT
    uint64_t catalog_limit_bytes;
    size_t memory_limit_bytes; // limit of the writer's own memory and the live tails; 0 = 256 MiB
    // memory of one merge; 0 = the largest possible merge, some 30 MiB
    size_t merge_limit_bytes;
    // called before a merge; the smaller of the two limits counts; NULL = no further limit
    size_t (*merge_room)(void *user);
    void *user;
    // attributes of the file: host, job, version, …; written when it is created
    const struct store_label *meta;
    size_t meta_count;
    // time limit for merges in store_close; 0 = 5 s, INT64_MAX = until the file is as small as
    // possible
    int64_t close_budget_ns;
    // larger files are closed in place instead of rewritten; 0 = 256 MiB
    uint64_t rewrite_limit_bytes;
    // refuse an existing path, also a symbolic link (-EEXIST): for folders where others may write
    bool new_file;
    // system calls; tests replace them to make them fail (io.h); NULL = the real ones
    const struct store_io *io;
};

struct store;

// Opens `path` for writing: creates it (mode 0600), or continues an existing file. If the last
// writer was killed, it recovers the file (log_info reports the result). *out is NULL on failure.
// Returns -EBUSY if another writer has the file open.
int store_open(const char *path, const struct store_options *options, struct store **out,
               struct error *e);

// Seals all tails, merges the unmerged blocks (oldest first, within the time in the options; it
// logs how much stays unmerged), truncates the file to its used size, syncs it, and marks it as
// closed. Finally it deletes data above the size limit; until then the file may exceed the limit by
// its tails and merged blocks. Returns 0 unless appended data are lost or not on disk. Frees s in
// any case.
int store_close(struct store *s, struct error *e);

// Closes the file without sealing, as if the process had been killed. For tests, and for an agent
// that fails. Frees s.
void store_abandon(struct store *s);

// Returns the metric's id in *id; the same name gives the same id. For an existing metric the first
// definition stays, except that empty units and help texts are filled in. Returns 0, -EINVAL (bad
// name), -E2BIG, -ENOSPC or -ENOMEM. A refused definition leaves nothing in the file. The store
// logs the first refused definition of each limit (log_warning), and counts all. While the disk is
// full, definitions wait in memory like appends (below) and count like them; readers do not see
// them yet.
int store_define_metric(struct store *s, const struct store_metric *m, uint32_t *id);

// Returns the series' id in *id; the same metric and labels, in any order, give the same id. Label
// keys are like names; a repeated key gives -EINVAL. A label with an empty value is left out.
int store_define_series(struct store *s, uint32_t metric, const struct store_label *labels,
                        size_t count, uint32_t *id);

// Returns the number of values of the label `host` so far. Takes no time, so it can be called
// often.
size_t store_host_count(const struct store *s);

// Defines a set of series; the same series in the same order give the same id. A series may be in
// several sets, but only once in each set (-EINVAL), because a row has one cell for it.
int store_define_set(struct store *s, const uint32_t *series, size_t count, uint32_t *id);

// Time stamps are ns since the epoch, in any order. If a series gets two points with one time
// stamp, the last one wins, also if the series is in several sets, or in a set and appended singly.
// (This costs 24 bytes for each cell that is not newer than the series' single points and its
// points in other sets. When retention deletes such data, the older point may become visible for a
// moment.) A row's cells may be store_missing().
//
// Returns 0, -ERANGE (older than the window; counted), -ENOSPC (no space left; counted, and logged
// once with log_warning) or -EINVAL (unknown id). While the disk is full, appends wait in memory,
// where readers do not see them yet. When they take half the memory limit, further appends return
// -ENOSPC.
int store_append_row(struct store *s, uint32_t set, int64_t t_ns, const double *values);
int store_append(struct store *s, uint32_t series, int64_t t_ns, double value);

struct store_point {
    int64_t t_ns;
    double value;
    uint32_t series;
};

// Appends many points of many series at once. *refused (may be NULL) gets the number of refused
// points. Returns 0 if all were appended.
int store_append_points(struct store *s, const struct store_point *points, size_t count,
                        size_t *refused);

enum store_event_kind { STORE_SPAN = 0, STORE_ANNOTATION = 1 };

// Tag of a span that was still open when its process ended. The end of the span is then the end of
// the process.
#define STORE_UNFINISHED_TAG "unfinished"
// The key of the tag that a span of a collective has: its members wait for each other. The value
// names the communicator.
#define STORE_COLLECTIVE_TAG "comm"

// A span (a name, a start, an end, tags) or an annotation (an instant, a text, tags).
struct store_event {
    enum store_event_kind kind;
    // annotation: end == start; span without an end: end = INT64_MAX
    int64_t start_ns, end_ns;
    struct str text;     // name of a span, or text of an annotation
    uint64_t id, parent; // only of spans: unique within the file, 0 = none
    const struct store_label *labels;
    size_t label_count;
};

// Appends an event. A span may be appended when it begins (end INT64_MAX), and again with the same
// id when it ends. The last record counts.
int store_append_event(struct store *s, const struct store_event *event);

// Does the periodic work: sync, retention, sealing of idle tails, merging. Call it a few times a
// second. Each call takes at most some five milliseconds. It continues where the last one stopped,
// and syncs in the background (if the kernel cannot do that, the call waits for the disk). Only
// appends that waited for space move into the file all at once. Returns 0 or a negative errno,
// which it has logged once.
int store_tick(struct store *s, int64_t now_ns);

// Returns the number of values and events that wait in memory for disk space. Takes no time, so it
// can be called often.
uint64_t store_waiting(const struct store *s);

// Stores in the header how many values and events the caller has dropped since it opened the store,
// for any cause, including those that the store refused. The header's space is always reserved. The
// store adds the data that waited in memory and were lost.
void store_note_dropped(struct store *s, uint64_t dropped);

// Continues in a new file at `path`, which must not exist, because the old file's file system has
// no space. Copies the old file at once; the old file stays, but is no longer used. On failure
// nothing changes.
int store_move(struct store *s, const char *path, struct error *e);

// True if another program has truncated the file, or the disk cannot deliver a part of it, as far
// as store_tick or an access has noticed. The values in this part are lost (stats.lost_values).
// From then on, the store refuses every append and definition with -ESTALE and counts them, and
// store_close only releases memory. The caller should open another file.
bool store_is_cut(const struct store *s);

// Seals all tails now.
int store_seal(struct store *s);

// Returns 0 after all appended data are on disk, or a negative errno with a message.
int store_sync(struct store *s, struct error *e);

struct store_stats {
    uint64_t points, rows, events; // appended by this writer
    uint64_t refused_old, refused_space, refused_limit, refused_invalid;
    uint64_t metrics, pairs, series, sets, blocks;
    uint64_t catalog_bytes; // size of all definitions, unpacked
    uint64_t retired_blocks, retired_values;
    uint64_t file_bytes, used_bytes, memory_bytes;
    uint64_t sync_errors, space_errors;
    uint64_t merged_values; // values that this writer has merged into cold blocks
    uint64_t hot_values;    // values in blocks that wait for a merge
    uint64_t lost_values;   // values beyond the new end of a truncated file
    uint64_t damaged_tails; // tails with a wrong checksum when the file was opened
};

void store_get_stats(const struct store *s, struct store_stats *out);

#endif
