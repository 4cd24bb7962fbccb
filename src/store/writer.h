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
    TAIL_ROWS_MIN = 16,        // smaller if memory is short
    TAIL_VALUES_MAX = 1 << 17, // sealing that many takes about half a millisecond
    TAIL_POINTS_MAX = 65536,
    TAIL_POINTS_MIN = 1024,
    TAIL_EVENT_BYTES_MAX = 256 << 10,
    TAIL_EVENT_BYTES_MIN = 64 << 10, // the longest event takes a third of it
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
    struct hot_block *blocks; // by sequence
    size_t count, capacity;
    size_t most; // limit of the next merge; 0: no limit
    uint64_t rows;
    bool dense; // the last cold block made of it took much space (merge.c)
};

// The newest rows of a set, the newest points, or the newest events.
struct tail {
    int slot;          // EXTENT_NO_SLOT: none yet
    uint32_t used;     // rows, points or bytes
    uint32_t room;     // its capacity in rows, points or bytes
    uint64_t offset;   // in the file
    uint64_t sequence; // of the block that it will become
    uint32_t checked;  // length of the part that `crc` covers
    uint32_t crc;
    uint32_t idle; // number of syncs since the last append
};

struct set {
    const uint32_t *series;
    uint32_t count;
    struct tail tail;
    struct hot_queue hot;
    bool shared; // some of its series are shared, by the count at that time…
    uint32_t shared_seen;
};

struct metric {
    bool has_unit, has_help;
};

// Canonical key of a series: metric, number of pairs, pairs.
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

// The contents of an extent of blocks, by slot.
struct extent_sum {
    uint64_t live_bytes; // of blocks that no other block replaces
    uint64_t blocks, values;
    int64_t last_ns;
};

// The options of store_open, and the sizes derived from them.
struct store_limits {
    uint64_t size_bytes;
    int64_t window_ns, sync_interval_ns, close_budget_ns;
    size_t memory_bytes;
    size_t merge_most_bytes, merge_bytes; // limit of any merge; of the next one
    size_t (*merge_room)(void *user);     // store.h
    void *user;
    uint64_t rewrite_bytes; // larger files are closed in place
    uint32_t extent_bytes;  // of an extent of blocks
    uint32_t point_room, event_room;
    uint64_t catalog[CATALOG_LIMITS];
};

// define.c: all metrics, labels, series and sets of the file.
struct store_catalog {
    int slot; // of the extent being filled
    uint64_t sequence;
    bool ended;               // its last extent takes no more entries
    unsigned limits_reported; // bits of enum catalog_limit
    uint64_t extent_bytes;    // excluded from retention's count
    struct arena names;       // keys of the maps
    struct buf key_scratch;   // of a label pair
    struct map metric_ids, pair_ids, set_ids;
    size_t host_count; // pairs of the label `host`
    struct metric *metrics;
    size_t metric_capacity;
    struct set *sets;
    size_t set_capacity;
    // Series: open addressing over ids; keys one after another in `names`.
    uint32_t *series_slots; // id + 1
    size_t series_slot_count;
    const uint32_t **series_keys;
    uint8_t *series_use; // SERIES_…
    size_t series_capacity;
};

// shared_series.c: the series that are appended in more than one way.
struct store_shared {
    struct shared_series *series;
    uint32_t *index; // by series: its place in `series`
    size_t index_capacity, capacity;
    uint32_t count;
    // Points up to this time may be single points from before the file was opened, of any series.
    int64_t singles_before_ns;
};

struct store_tails {
    struct tail points, events; // shared by all series
    uint64_t bytes;             // of all tails in the file
    uint32_t set_count;         // tails of sets
    uint32_t idle_hand;         // the next set to check for an idle tail
    uint32_t memory_hand;       // the next set to check for a tail that can release memory
};

struct store_blocks {
    int hot_slot, cold_slot; // extents being filled
    uint64_t sequence;
    struct extent_sum *sums; // by slot
    size_t sum_capacity;
    struct hot_queue hot_points; // queues of sets are in struct set
    struct merge_job *merge;     // in progress
};

// spill.c: data that wait for disk space.
struct store_spill {
    struct buf appends; // in order of arrival
    size_t at;          // length of the part already moved into the file
    uint64_t values;
    int64_t last_try_ns;
};

// loss.c: the header's count of dropped values, by source.
struct store_dropped {
    uint64_t before, noted, here; // earlier writers, the caller, this store
};

struct store_sync_state {
    int64_t last_ns;
    unsigned parity; // of the notes in the table (extents.h)
    uint64_t flush;  // io.h; of syncs in the background
    bool under_way;  // a background sync is running
};

struct store_scratch { // of sealing, kept for reuse
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

// store.c: counts the data that a cut has destroyed, and logs them once.
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
int catalog_make_room(struct store *s, size_t bytes);    // in the file
void catalog_write(struct store *s, struct str entries); // into that room
int catalog_meta(struct store *s, const struct store_label *meta, size_t count);
void catalog_forget(struct store *s);

// seal.c. Seals a tail into a block. Returns 0, or a negative errno and leaves the tail unchanged.
int seal_set(struct store *s, uint32_t set);
int seal_points(struct store *s);
int seal_events(struct store *s);
int seal_all(struct store *s);

// Seals the set's tail and frees its extent.
int seal_and_free(struct store *s, uint32_t set);

// Seals tails that have been idle for IDLE_SYNCS syncs, a few at a time.
int seal_idle(struct store *s);

// The memory limit of all tails together.
uint64_t append_tail_limit(const struct store *s);

// Brings rows {t, value[columns]} into order of time into s->scratch.times and s->scratch.values
// (column-major, stride `rows`). Returns the number of different time stamps, or a negative errno.
int seal_sort_rows(struct store *s, const uint8_t *tail, uint32_t rows, uint32_t columns);
bool seal_reserve_rows(struct store *s, size_t rows, size_t values);

// Appends a finished block and, in the same change of the table, empties the tail (may be NULL).
int block_append(struct store *s, const struct buf *block, bool cold, struct tail *emptied);
struct extent_sum *extent_sum(struct store *s, int slot);

// Counts a block at `at` in its extent that no other block replaces. Queues a hot one for merging;
// without memory for that, it stays hot.
void block_account(struct store *s, const struct block_header *h, int slot, uint64_t at, bool hot);

// merge.c. Does a step of a merge: at most a part of a block. Returns 1 after work, 0 without work,
// or a negative errno.
enum merge_pace {
    MERGE_LIVE,    // only queues that are long enough; small parts
    MERGE_CLOSING, // everything, as small as possible
    MERGE_HURRIED, // everything, fast
};
int merge_step(struct store *s, enum merge_pace pace);
void merge_forget(struct store *s); // abandons a merge in progress; no data are lost
size_t merge_memory(const struct store *s);

// shared_series.c: at equal time stamps the point appended last wins.
struct shared_series;
int shared_set(struct store *s, struct set *set); // for a new set
int shared_single(struct store *s, uint32_t series, int64_t t_ns);
void shared_opened(struct store *s);
// Called before a row is appended: also appends overriding cells as single points.
int shared_row(struct store *s, uint32_t set, int64_t t_ns, const double *values);
void shared_free(struct store *s);
size_t shared_memory(const struct store *s);

// retain.c: the oldest time that the file keeps. The newest point may lie ahead of the clock, or
// the clock was set back.
static inline int64_t retain_window_start(const struct store *s)
{
    int64_t end = s->newest_ns < s->now_ns ? s->newest_ns : s->now_ns;
    return s->limits.window_ns && end >= INT64_MIN + s->limits.window_ns ? end - s->limits.window_ns
                                                                         : INT64_MIN;
}

void retain_make_room(struct store *s, uint64_t wanted_bytes); // no effect while closing
void retain_closed(struct store *s); // once all data are sealed and merged

// loss.c: the header's counts of lost data.
void loss_opened(struct store *s);
void loss_waiting(struct store *s, int64_t more);
void loss_of_waiting(struct store *s); // gives up the waiting data

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

// append.c: appends to the file, never to the spill.
int append_row(struct store *s, uint32_t set, int64_t t_ns, const double *values);
int append_point(struct store *s, uint32_t series, int64_t t_ns, double value);
int append_event(struct store *s, struct str record);
void append_words(uint8_t *to, const void *from, size_t words);

// Counts a failed allocation of file space and logs the first one. Returns rc.
int append_space_failed(struct store *s, int rc);

// recover.c: continues the file of the last writer. `crashed`: that writer did not close it;
// `machine`: because the machine crashed.
int recover_file(struct store *s, bool crashed, bool machine, uint32_t dropped, struct error *e);

// rewrite.c: replaces the file by a copy without gaps. Returns 0, or a negative errno with the old
// file unchanged.
int rewrite_file(struct store *s);

#endif
