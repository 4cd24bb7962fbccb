// writer.h - declarations that only the files of the writer share.
//
//   append ─▶ tails ─ seal ─▶ hot blocks ─ merge ─▶ cold blocks ─ retain ─▶ gone
//       └──▶ spill (in memory, while there is no space) ─▶ append
#ifndef SONDE_STORE_WRITER_H
#define SONDE_STORE_WRITER_H

#include "base/arena.h"
#include "base/map.h"
#include "store/extents.h"
#include "store/store.h"

#include <errno.h>

enum {
    TAIL_ROWS_MAX = 1024,
    TAIL_ROWS_MIN = 16,        // where memory is short, less
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

// A hot block that waits to be merged.
struct hot_block {
    int slot;
    uint32_t generation, size, rows;
    uint64_t at; // in its extent
    uint64_t sequence, order;
};

struct hot_queue {
    struct hot_block *blocks; // by sequence
    size_t count, capacity;
    size_t most; // that the next merge may take; 0: whatever there is
    uint64_t rows;
};

// The newest rows of a set; the newest points; the newest events.
struct tail {
    int slot;          // EXTENT_NO_SLOT: none yet
    uint32_t used;     // rows, points or bytes
    uint32_t room;     // how many there can be
    uint64_t offset;   // in the file
    uint64_t sequence; // of the block that it will become
    uint32_t checked;  // how much of it `crc` is of
    uint32_t crc;
    uint32_t idle; // syncs since anything was appended
};

struct set {
    const uint32_t *series;
    uint32_t count;
    struct tail tail;
    struct hot_queue hot;
    bool shared; // some of its series are, as of…
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

// How a series is appended.
enum { SERIES_IN_SET = 1, SERIES_SINGLE = 2, SERIES_SHARED = 4 /* in more than one way */ };

// What the catalog may hold at most.
enum catalog_limit {
    LIMIT_METRICS,
    LIMIT_PAIRS,
    LIMIT_SERIES,
    LIMIT_SETS,
    LIMIT_CATALOG_BYTES,
    CATALOG_LIMITS
};

// What an extent of blocks holds, by slot.
struct extent_sum {
    uint64_t live_bytes; // of blocks that nothing replaces
    uint64_t blocks, values;
    int64_t last_ns;
};

// What the options of store_open allow, and the sizes that follow from it.
struct store_limits {
    uint64_t size_bytes;
    int64_t window_ns, sync_interval_ns, close_budget_ns;
    size_t memory_bytes, merge_bytes;
    uint64_t rewrite_bytes; // larger files are closed in place
    uint32_t extent_bytes;  // of an extent of blocks
    uint32_t point_room, event_room;
    uint64_t catalog[CATALOG_LIMITS];
};

// define.c: all metrics, labels, series and sets of the file.
struct store_catalog {
    int slot; // of the extent being filled
    uint64_t sequence;
    bool ended;               // nothing more is written into its last extent
    unsigned limits_reported; // a bit for each enum catalog_limit
    uint64_t extent_bytes;    // retention leaves them out of account
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

// shared.c: the series that are appended in more than one way.
struct store_shared {
    struct shared_series *series;
    uint32_t *index; // by series: its place in `series`
    size_t index_capacity, capacity;
    uint32_t count;
    // Up to here the file held single points when it was opened, of any series.
    int64_t singles_before_ns;
};

struct store_tails {
    struct tail points, events; // that all series share
    uint64_t bytes;             // of all tails
    uint32_t set_count;         // tails of sets
    uint32_t idle_hand;         // the set to look at next for an idle tail
    uint32_t memory_hand;       // the set to look at next for a tail that can give its memory back
};

struct store_blocks {
    int hot_slot, cold_slot; // extents being filled
    uint64_t sequence;
    struct extent_sum *sums; // by slot
    size_t sum_capacity;
    struct hot_queue hot_points; // those of sets are in struct set
    struct merge_job *merge;     // under way
};

// spill.c: what waits for disk space.
struct store_spill {
    struct buf appends; // in their order
    size_t at;          // so much of it has been appended since
    uint64_t values;
    int64_t last_try_ns;
};

// loss.c: the header's count of dropped values, by who dropped them.
struct store_dropped {
    uint64_t before, noted, here; // earlier writers, the caller, this store
};

struct store_sync_state {
    int64_t last_ns;
    unsigned parity; // of the notes in the table (extents.h)
    uint64_t flush;  // io.h; of syncs in the background
    bool under_way;  // such a sync
};

struct store_scratch { // of sealing, kept
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

// seal.c. From a tail to a block: 0 or a negative errno; then the tail is as it was.
int seal_set(struct store *s, uint32_t set);
int seal_points(struct store *s);
int seal_events(struct store *s);
int seal_all(struct store *s);

// Seals the set's tail and gives its extent back, too.
int seal_and_free(struct store *s, uint32_t set);

// Seals tails that have been idle for IDLE_SYNCS syncs, a few at a time.
int seal_idle(struct store *s);

// What the tails may take together.
uint64_t append_tail_limit(const struct store *s);

// Brings rows {t, value[columns]} into order of time into s->scratch.times and s->scratch.values
// (column-major, stride `rows`). Returns how many different time stamps there are, or a negative
// errno.
int seal_sort_rows(struct store *s, const uint8_t *tail, uint32_t rows, uint32_t columns);
bool seal_reserve_rows(struct store *s, size_t rows, size_t values);

// Appends a finished block; in the same change of the table the tail (or NULL) is emptied.
int block_append(struct store *s, const struct buf *block, bool cold, struct tail *emptied);
struct extent_sum *extent_sum(struct store *s, int slot);

// Counts a block that lies at `at` in its extent and that no other replaces. A hot one waits to be
// merged; without memory to note it, it stays hot.
void block_account(struct store *s, const struct block_header *h, int slot, uint64_t at, bool hot);

// merge.c. A step of a merge: a part of a block at most. 1: did something, 0: nothing to do, or a
// negative errno.
enum merge_pace {
    MERGE_LIVE,    // only where there is enough; small parts
    MERGE_CLOSING, // everything, as small as it gets
    MERGE_HURRIED, // everything, fast
};
int merge_step(struct store *s, enum merge_pace pace);
void merge_forget(struct store *s); // abandons a merge in progress; no data are lost
size_t merge_memory(const struct store *s);

// shared.c: of equal time stamps the one appended last.
struct shared_series;
int shared_set(struct store *s, struct set *set); // a new one
int shared_single(struct store *s, uint32_t series, int64_t t_ns);
void shared_opened(struct store *s);
// Before a row is appended: what of it has to be appended singly, too, is.
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

void retain_make_room(struct store *s, uint64_t wanted_bytes); // nothing while closing
void retain_closed(struct store *s);                           // when all is sealed and merged

// loss.c: the header's counts of lost data.
void loss_opened(struct store *s);
void loss_waiting(struct store *s, int64_t more);
void loss_of_waiting(struct store *s); // what waits is given up

// spill.c
int spill_row(struct store *s, uint32_t set, int64_t t_ns, const double *values);
int spill_point(struct store *s, uint32_t series, int64_t t_ns, double value);
int spill_event(struct store *s, struct str record);
// room for entries; after it spill_definition cannot fail
int spill_reserve(struct store *s, size_t bytes);
void spill_definition(struct store *s, struct str entries);
int spill_replay(struct store *s); // 0: all is in the file
void spill_lose(struct store *s);  // counts the rest of it as lost
static inline bool spill_in_use(const struct store *s)
{
    return s->spill.appends.size > 0;
}

// append.c: into the file, never into the spill.
int append_row(struct store *s, uint32_t set, int64_t t_ns, const double *values);
int append_point(struct store *s, uint32_t series, int64_t t_ns, double value);
int append_event(struct store *s, struct str record);
void append_words(uint8_t *to, const void *from, size_t words);

// A failed allocation of file space: counts it, says so once. Returns rc.
int append_space_failed(struct store *s, int rc);

// recover.c: continues the file of the last writer. `crashed`: it did not close; `machine`: and the
// machine went down with it.
int recover_file(struct store *s, bool crashed, bool machine, uint32_t dropped, struct error *e);

// rewrite.c: the file again, without gaps, in place of the old one. 0, or what went wrong: then the
// old one is as it was.
int rewrite_file(struct store *s);

#endif
