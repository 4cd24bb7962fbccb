// store.h - the time-series database: writing.
//
// One file is one node's data. It is a log of sealed, compressed, checksummed blocks and a few
// mapped tails with the newest points in order of arrival. Live and archived data are the same file
// (docs/format.md). The library has no threads of its own: the writer is one thread of one process
// at a time; any number of readers (read.h), in this process or others, read without locks.
//
//   metric ──< series (metric + labels) ──< set (series sampled at one instant, a time stamp a row)
//
// Ids are dense, count from 0 in the order of creation, and hold for the life of the file.
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

// A cell of a row without a value: not stored, never read back. One NaN bit pattern is reserved for
// it; every other NaN is data.
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

// Limits. Definitions over a limit are refused with -E2BIG (names, labels) or -ENOSPC (counts), and
// counted.
enum {
    STORE_NAME_MAX = 255,   // bytes of a metric's name
    STORE_LABELS_MAX = 16,  // of a series
    STORE_KEY_MAX = 128,    // bytes of a label's key
    STORE_VALUE_MAX = 1024, // bytes of a label's value
    STORE_TEXT_MAX = 4096,  // bytes of an annotation, of a help text
    STORE_UNIT_MAX = 32,
    STORE_SET_SERIES_MAX = 4096,
    // Per file. The options can change each.
    STORE_METRICS_MAX_DEFAULT = 1 << 18,
    STORE_PAIRS_MAX_DEFAULT = 8000000, // different label pairs (key and value)
    STORE_SERIES_MAX_DEFAULT = 4000000,
    STORE_SETS_MAX_DEFAULT = 1 << 18,
    // Of the catalog: all names, labels, series and sets of a file. Four million series, each with
    // its own label value, take 140 MB.
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
    // retention by size, without the catalog; 0 = 1 GiB; UINT64_MAX = none
    uint64_t size_limit_bytes;
    // retention by age, relative to the newest point or now (store_tick), whichever is earlier; 0 =
    // none
    int64_t window_ns;
    int64_t sync_interval_ns; // 0 = 5 s
    // Definitions past these limits are refused before any part of them is written. 0 = the
    // default.
    uint32_t metric_limit, pair_limit, series_limit, set_limit;
    // 0 = a quarter of the size limit, between STORE_CATALOG_BYTES_MIN and …_MAX_DEFAULT
    uint64_t catalog_limit_bytes;
    size_t memory_limit_bytes; // of the writer's own memory and live tails; 0 = 256 MiB
    // memory of one merge; 0 = the largest possible merge, some 30 MiB
    size_t merge_limit_bytes;
    // called before a merge; the smaller limit counts; NULL = no further limit
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
    // refuse a path that exists, a symbolic link included (-EEXIST): for folders that others may
    // write to
    bool new_file;
    // system calls, for tests that make them fail (io.h); NULL = the real ones
    const struct store_io *io;
};

struct store;

// Opens `path` for writing: creates it (mode 0600) or continues an existing file, with recovery if
// its last writer was killed (log_info reports the result). *out is NULL on failure. -EBUSY:
// another writer has it.
int store_open(const char *path, const struct store_options *options, struct store **out,
               struct error *e);

// Seals all tails, merges the unmerged blocks (oldest first, within the time in the options; it
// logs how much stays unmerged), cuts the file to its used size, syncs it, and marks it clean. Not
// 0 if appended data are lost or not on disk. Then it retires data beyond the size limit; until
// then the file may be larger by its tails and merged blocks. Frees s whatever it returns.
int store_close(struct store *s, struct error *e);

// Closes the file without sealing, as if the process had been killed, for tests and for a failing
// agent. Frees s.
void store_abandon(struct store *s);

// Returns the metric's id in *id; the same name gives the same id. For an existing metric the first
// definition stays, except that empty units and help texts are filled in. Returns 0, -EINVAL (bad
// name), -E2BIG, -ENOSPC, -ENOMEM. A definition that is refused leaves nothing in the file. The
// store logs the first refused definition for each limit (log_warning), and counts all. While the
// disk is full definitions wait in memory like appends (below) and count like them; readers do not
// see them yet.
int store_define_metric(struct store *s, const struct store_metric *m, uint32_t *id);

// Returns the series' id in *id; the same metric and labels, in any order, give the same id. Label
// keys are like names; a repeated key gives -EINVAL. A label with an empty value is left out.
int store_define_series(struct store *s, uint32_t metric, const struct store_label *labels,
                        size_t count, uint32_t *id);

// The number of values of the label `host` so far. Costs nothing, so it can be called often.
size_t store_host_count(const struct store *s);

// Defines a set of series; the same series in the same order give the same id. A series may be in
// several sets, but only once in each (-EINVAL): a row has one cell for it.
int store_define_set(struct store *s, const uint32_t *series, size_t count, uint32_t *id);

// Time stamps are ns since the epoch, in any order. Of two points of a series at one time stamp the
// one appended last wins, also if a series is in several sets, or in a set and appended singly.
// (This costs 24 bytes for each cell that is not newer than the series' single points and its
// points in other sets. When retention deletes such data, the older point may show for a moment.) A
// row's cells may be store_missing().
//
// Returns 0; -ERANGE: older than the window (counted); -ENOSPC: no space left (counted, logged once
// with log_warning); -EINVAL: unknown id. While the disk is full, appends wait in memory, where
// readers do not see them yet; -ENOSPC begins when they take half the memory limit.
int store_append_row(struct store *s, uint32_t set, int64_t t_ns, const double *values);
int store_append(struct store *s, uint32_t series, int64_t t_ns, double value);

struct store_point {
    int64_t t_ns;
    double value;
    uint32_t series;
};

// The same for many points of many series at once; *refused (may be NULL) is the number of refused
// points. Returns 0 if all were appended.
int store_append_points(struct store *s, const struct store_point *points, size_t count,
                        size_t *refused);

enum store_event_kind { STORE_SPAN = 0, STORE_ANNOTATION = 1 };

// The tag of a span that its process left open when it ended; the span's end is that of the
// process.
#define STORE_UNFINISHED_TAG "unfinished"

// A span (a name, a start and an end, tags) or an annotation (one instant, a text, tags).
struct store_event {
    enum store_event_kind kind;
    // end == start in an annotation; end = INT64_MAX in a span that was never ended
    int64_t start_ns, end_ns;
    struct str text;     // the span's name, the annotation's text
    uint64_t id, parent; // spans: unique within the file, 0 = none
    const struct store_label *labels;
    size_t label_count;
};

// A span may be appended when it begins (end INT64_MAX) and again, with the same id, when it ends:
// the last one counts.
int store_append_event(struct store *s, const struct store_event *event);

// Does the periodic work: sync, retention, sealing of idle tails, merging. Call it a few times a
// second. Each call is bounded to some five milliseconds: it continues where the last one stopped,
// and a sync runs in the background (if the kernel cannot do that, the call waits for the disk).
// Only appends that waited for space move into the file all at once. Returns 0 or a negative errno
// (already logged once).
int store_tick(struct store *s, int64_t now_ns);

// The number of values and events that wait in memory for disk space. Costs nothing, so it can be
// called often.
uint64_t store_waiting(const struct store *s);

// Notes in the header of the file, which never lacks space, how many values and events the caller
// has dropped since it opened the store, for any cause, including those that the store refused. The
// store adds those that waited in memory and were lost.
void store_note_dropped(struct store *s, uint64_t dropped);

// Continues in a new file at `path`, which must not exist: for a file system without space. Copies
// the old file in one go; the old file stays, but is no longer used. On failure nothing changes.
int store_move(struct store *s, const char *path, struct error *e);

// Whether another program has truncated the file, or the disk cannot deliver a part of it, as
// store_tick or an access has found. The values of that part are lost (stats.lost_values). The
// store refuses every append and definition with -ESTALE and counts them, and store_close only
// releases memory. The caller opens another file.
bool store_is_cut(const struct store *s);

// Seals all tails now.
int store_seal(struct store *s);

// Returns once everything appended so far is on disk.
int store_sync(struct store *s, struct error *e);

struct store_stats {
    uint64_t points, rows, events; // appended by this writer
    uint64_t refused_old, refused_space, refused_limit, refused_invalid;
    uint64_t metrics, pairs, series, sets, blocks;
    uint64_t catalog_bytes; // of all definitions, unpacked
    uint64_t retired_blocks, retired_values;
    uint64_t file_bytes, used_bytes, memory_bytes;
    uint64_t sync_errors, space_errors;
    uint64_t merged_values; // into cold blocks, by this writer
    uint64_t hot_values;    // in blocks that wait for merging
    uint64_t lost_values;   // beyond the new end of a truncated file
    uint64_t damaged_tails; // found at opening: unsealed data whose checksum was wrong
};

void store_get_stats(const struct store *s, struct store_stats *out);

#endif
