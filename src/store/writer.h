// writer.h - declarations that only the files of the writer share.
//
//   append ─▶ tails ─ seal ─▶ hot blocks ─ merge ─▶ cold blocks ─ retain ─▶ gone
//       └──▶ spill (in memory, while the disk is full) ─▶ append
#ifndef SONDE_STORE_WRITER_H
#define SONDE_STORE_WRITER_H

#include "base/arena.h"
#include "base/map.h"
#include "store/extents.h"
#include "store/store.h"

#include <errno.h>

enum {
    TAIL_ROWS_MAX = 1024,
    TAIL_ROWS_MIN = 16,        // fewer rows if memory is short
    TAIL_VALUES_MAX = 1 << 17, // sealing this many values takes about half a millisecond
    TAIL_POINTS_MAX = 65536,
    TAIL_POINTS_MIN = 1024,
    TAIL_EVENT_BYTES_MAX = 256 << 10,
    TAIL_EVENT_BYTES_MIN = 64 << 10, // the longest event takes a third of this
    BLOCK_EXTENT_BYTES_MAX = 1 << 20,
    BLOCK_EXTENT_BYTES_MIN = 64 << 10,
    CATALOG_EXTENT_BYTES = 16 << 10,
    CATALOG_EXTENT_BYTES_MAX = 4 << 20,
};

// A hot block that waits for merging.
struct hot_block {
    int slot;
    uint32_t generation, size, rows;
    uint64_t at; // offset within its extent
    uint64_t sequence, order;
};

struct hot_queue {
    struct hot_block *blocks; // sorted by sequence
    size_t count, capacity;
    size_t most; // limit of the next merge's blocks; 0: no limit
    uint64_t rows;
    bool dense; // the last cold block of this queue took many bytes a value (merge.c)
};

// The newest rows of a set, the newest single points, or the newest events.
struct tail {
    int slot;          // EXTENT_NO_SLOT: it has no extent yet
    uint32_t used;     // rows, points or bytes
    uint32_t room;     // its capacity in rows, points or bytes
    uint64_t offset;   // in the file
    uint64_t sequence; // number of the block that it will become
    uint32_t checked;  // length of the part that `crc` covers
    uint32_t crc;
    uint32_t idle; // number of syncs since the last append
};

struct set {
    const uint32_t *series;
    uint32_t count;
    struct tail tail;
    struct hot_queue hot;
    bool shared; // whether some of its series are shared, as of this count…
    uint32_t shared_seen;
};

struct metric {
    bool has_unit, has_help;
};

// The key of a series: metric, number of pairs, pairs.
struct series_key {
    uint32_t metric, count;
    uint32_t pairs[STORE_LABELS_MAX];
};

enum { SERIES_IN_SET = 1, SERIES_SINGLE = 2, SERIES_SHARED = 4 /* in more than one way */ };

// The limits of the catalog.
enum catalog_limit {
    LIMIT_METRICS,
    LIMIT_PAIRS,
    LIMIT_SERIES,
    LIMIT_SETS,
    LIMIT_CATALOG_BYTES,
    CATALOG_LIMITS
};

// The contents of an extent of blocks; an array by slot.
struct extent_sum {
    uint64_t live_bytes; // bytes of blocks that no other block replaces
    uint64_t blocks, values;
    int64_t last_ns;
};

// The options of store_open, and the sizes derived from them.
struct store_limits {
    uint64_t size_bytes;
    int64_t window_ns, sync_interval_ns, close_budget_ns;
    size_t memory_bytes;
    size_t merge_most_bytes, merge_bytes; // memory limit of any merge, and of the next one
    size_t (*merge_room)(void *user);     // store.h
    void *user;
    uint64_t rewrite_bytes; // larger files are closed in place
    uint32_t extent_bytes;  // size of an extent of blocks
    uint32_t point_room, event_room;
    uint64_t catalog[CATALOG_LIMITS];
};

// define.c: all metrics, labels, series and sets of the file.
struct store_catalog {
    int slot; // slot of the extent that is being filled
    uint64_t sequence;
    bool ended;               // the last extent takes no more entries
    unsigned limits_reported; // bits of enum catalog_limit
    uint64_t extent_bytes;    // bytes of its extents, which retention does not count
    struct arena names;       // keys of the maps
    struct buf key_scratch;   // of a label pair
    struct map metric_ids, pair_ids, set_ids;
    size_t host_count; // number of values of the label `host`
    struct metric *metrics;
    size_t metric_capacity;
    struct set *sets;
    size_t set_capacity;
    // The hash table of series: open addressing over ids. The keys lie one after another in
    // `names`.
    uint32_t *series_slots; // id + 1
    size_t series_slot_count;
    const uint32_t **series_keys;
    uint8_t *series_use; // SERIES_…
    size_t series_capacity;
};

// shared_series.c: the series that are appended in more than one way.
struct store_shared {
    struct shared_series *series;
    uint32_t *index; // place in `series` of each series
    size_t index_capacity, capacity;
    uint32_t count;
    // Up to this time, any series may have single points from before the file was opened.
    int64_t singles_before_ns;
};

struct store_tails {
    struct tail points, events; // shared by all series
    uint64_t bytes;             // bytes of all tails in the file
    uint32_t set_count;         // number of tails of sets
    uint32_t idle_hand;         // the next set whose tail is checked for being idle
    uint32_t memory_hand;       // the next set whose tail is checked for memory to release
};

struct store_blocks {
    int hot_slot, cold_slot; // slots of the extents that are being filled
    uint64_t sequence;
    struct extent_sum *sums; // by slot
    size_t sum_capacity;
    struct hot_queue hot_points; // queues of sets are in struct set
    struct merge_job *merge;     // the merge in progress
};

// spill.c: data that wait for disk space.
struct store_spill {
    struct buf appends; // in order of arrival
    size_t at;          // bytes of `appends` that have been moved into the file
    uint64_t values;
    int64_t last_try_ns;
};

// From loss.c: the header's count of dropped values, by source.
struct store_dropped {
    uint64_t before, noted, here; // dropped by earlier writers, by the caller, by this store
};

struct store_sync_state {
    int64_t last_ns;
    unsigned parity; // parity of the notes in the table (extents.h)
    uint64_t flush;  // context of background syncs (io.h)
    bool under_way;  // a background sync is running
};

struct store_scratch { // memory for sealing, kept for reuse
    int64_t *times;
    double *values;
    size_t time_capacity, value_capacity;
    struct point_record *points;
    struct buf block;
};

struct store {
    struct extents file;
    char *path;
    const struct store_io *io;
    struct store_stats stats;
    int64_t newest_ns;
    int64_t now_ns; // the wall clock at the last tick; INT64_MAX before the first
    bool closing;
    struct {
        bool space, unlink, sync, cut;
    } reported; // each is logged once
    struct store_limits limits;
    struct store_catalog catalog;
    struct store_shared shared;
    struct store_tails tails;
    struct store_blocks blocks;
    struct store_spill spill;
    struct store_dropped dropped;
    struct store_sync_state sync;
    struct store_scratch scratch;
};

// From store.c: counts the data that a truncation has destroyed, and logs them once.
static inline bool writer_is_cut(const struct store *s)
{
    return atomic_load_explicit(&s->file.lost, memory_order_relaxed) != MAP_GUARD_NOTHING_LOST;
}

static inline bool writer_space_error(int rc)
{
    return rc == -ENOSPC || rc == -EDQUOT || rc == -EFBIG;
}

// define.c
int catalog_load_entries(struct store *s, struct str entries, size_t *good);
int catalog_make_room(struct store *s, size_t bytes);    // reserves space in the file
void catalog_write(struct store *s, struct str entries); // writes into this space
int catalog_meta(struct store *s, const struct store_label *meta, size_t count);
void catalog_forget(struct store *s);

// From seal.c. Seals a tail into a block. Returns 0, or a negative errno; then the tail is
// unchanged.
int seal_set(struct store *s, uint32_t set);
int seal_points(struct store *s);
int seal_events(struct store *s);
int seal_all(struct store *s);

// Seals the set's tail and frees its extent.
int seal_and_free(struct store *s, uint32_t set);

// Seals a few of the tails that have been idle for IDLE_SYNCS syncs.
int seal_idle(struct store *s);

// Returns the memory limit of all tails together.
uint64_t append_tail_limit(const struct store *s);

// Sorts rows {t, value[columns]} by time into s->scratch.times and s->scratch.values (column-major,
// stride `rows`). Returns the number of different time stamps, or a negative errno.
int seal_sort_rows(struct store *s, const uint8_t *tail, uint32_t rows, uint32_t columns);
bool seal_reserve_rows(struct store *s, size_t rows, size_t values);

// Appends a finished block and, in the same change of the table, empties the tail (may be NULL).
int block_append(struct store *s, const struct buf *block, bool cold, struct tail *emptied);
struct extent_sum *extent_sum(struct store *s, int slot);

// Counts a block at `at` in its extent that no other block replaces. Queues a hot block for
// merging; if memory is exhausted, it stays hot.
void block_account(struct store *s, const struct block_header *h, int slot, uint64_t at, bool hot);

// From merge.c. Does a step of a merge: at most a part of a block. Returns 1 if it has worked, 0 if
// there was no work, or a negative errno.
enum merge_pace {
    MERGE_LIVE,    // merges only queues that are long enough, into small parts
    MERGE_CLOSING, // merges all queues, as small as possible
    MERGE_HURRIED, // merges all queues, fast
};
int merge_step(struct store *s, enum merge_pace pace);
void merge_forget(struct store *s); // abandons a merge in progress; no data are lost
size_t merge_memory(const struct store *s);

// From shared_series.c: at equal time stamps the point that was appended last wins.
struct shared_series;
int shared_set(struct store *s, struct set *set); // call it for a new set
int shared_single(struct store *s, uint32_t series, int64_t t_ns);
void shared_opened(struct store *s);
// Call it before a row is appended. If a cell must override older points, it also appends the cell
// as a single point.
int shared_row(struct store *s, uint32_t set, int64_t t_ns, const double *values);
void shared_free(struct store *s);
size_t shared_memory(const struct store *s);

// From retain.c: returns the oldest time that the file keeps. The newest point may be ahead of the
// clock, or the clock may have been set back.
static inline int64_t retain_window_start(const struct store *s)
{
    int64_t end = s->newest_ns < s->now_ns ? s->newest_ns : s->now_ns;
    return s->limits.window_ns && end >= INT64_MIN + s->limits.window_ns ? end - s->limits.window_ns
                                                                         : INT64_MIN;
}

void retain_make_room(struct store *s, uint64_t needed_bytes); // no effect while closing
void retain_closed(struct store *s); // call it after all data are sealed and merged

// From loss.c: the header's counts of lost data.
void loss_opened(struct store *s);
void loss_waiting(struct store *s, int64_t more);
void loss_of_waiting(struct store *s); // counts the waiting data as lost

// spill.c
int spill_row(struct store *s, uint32_t set, int64_t t_ns, const double *values);
int spill_point(struct store *s, uint32_t series, int64_t t_ns, double value);
int spill_event(struct store *s, struct str record);
// room for entries; after it spill_definition cannot fail
int spill_reserve(struct store *s, size_t bytes);
void spill_definition(struct store *s, struct str entries);
int spill_replay(struct store *s); // 0: all data are in the file
void spill_lose(struct store *s);  // counts the remaining data as lost
static inline bool spill_in_use(const struct store *s)
{
    return s->spill.appends.size > 0;
}

// From append.c: appends to the file, never to the spill.
int append_row(struct store *s, uint32_t set, int64_t t_ns, const double *values);
int append_point(struct store *s, uint32_t series, int64_t t_ns, double value);
int append_event(struct store *s, struct str record);
void append_words(uint8_t *to, const void *from, size_t words);

// Counts a failed allocation of file space, and logs the first one. Returns rc.
int append_space_failed(struct store *s, int rc);

// From recover.c: continues the file of the last writer. `crashed`: that writer did not close the
// file. `machine`: the reason was a crash of the machine.
int recover_file(struct store *s, bool crashed, bool machine, uint32_t dropped, struct error *e);

// From rewrite.c: replaces the file by a copy without gaps. Returns 0, or a negative errno; then
// the old file is unchanged.
int rewrite_file(struct store *s);

#endif
