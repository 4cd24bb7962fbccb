// reader.h - declarations that only the files of the reader share.
//
//   reader ── index     the catalog so far, which only grows         (index.c)
//          ── extents  block headers, read once per extent        (view.c)
//          ── events    the time ranges of the blocks of events           (event_index.h)
//          ── trust     the trusted part of a file without a writer (trusted_data.c)
//          ── view ◀─── snapshots: the blocks and tails at one moment; shared as long as the
//                       extent table stays unchanged
//   snapshot ── cache   time stamps, unpacked parts of cold blocks, transposed tails (cache.c)
//            ── buffers that columns are decoded into (buffers.c)
//            ── cursors (cursor.h)
//
// Readers take no lock against the writer. They copy bytes that the writer may overwrite word by
// word, and then check the extent's generation. If it has changed, they discard the copy (-ESTALE),
// and the snapshot finds the points at their new place.
#ifndef SONDE_STORE_READER_H
#define SONDE_STORE_READER_H

#include "base/arena.h"
#include "base/map.h"
#include "store/block.h"
#include "store/cold.h"
#include "store/event_index.h"
#include "store/layout.h"
#include "store/map_guard.h"
#include "store/prefetch.h"
#include "store/read.h"

#include <pthread.h>

struct mapping {
    struct mapping *next;
    const uint8_t *base;
    size_t size;
    struct map_guard *guard;
};

// Detects that another program truncates the file under the reader. The witness is the last byte
// that is not 0. A truncation before the witness makes it 0, or its page unreadable. A truncation
// after it removes only zeros, so it changes nothing.
enum { WITNESS_UNKNOWN = 256 }; // not the value of any byte

struct remains {
    _Atomic uint64_t lost;            // offset of the first lost byte (map_guard.h)
    _Atomic(const uint8_t *) witness; // points into a mapping
    // the witness's original value; WITNESS_UNKNOWN: not chosen yet
    _Atomic unsigned value;
    _Atomic(const struct mapping *) mapping;
    _Atomic uint64_t file_bytes;
    int fd;
    _Atomic bool grows; // the file had a writer, so its bytes change
};

struct id_list {
    uint32_t *ids;
    size_t count, capacity;
};

struct label_pair {
    struct str key, value;
    struct id_list series;
};

struct series {
    uint32_t metric, pair_count;
    uint32_t *pairs;
    struct store_label *labels; // created on first use
};

struct set_definition {
    uint32_t count;
    uint32_t *series;
};

struct membership {
    uint32_t set, column;
    // a singly linked list; a second pointer would double the memory of each series
    struct membership *next;
};

// The catalog so far, protected by the reader's mutex.
struct index {
    struct arena memory;
    struct map meta, metric_ids, pair_ids;
    struct store_metric **metrics;
    struct id_list *metric_series;
    struct label_pair *pairs;
    struct series *series;
    struct membership **memberships;
    struct set_definition *sets;
    size_t metric_count, metric_capacity, pair_count, pair_capacity, series_count, series_capacity,
        set_count, set_capacity;
    // the current catalog extent's entry in the mapping, to detect growth
    const struct extent_entry *entry;
    uint64_t extent; // number of the current catalog extent
    uint64_t read;   // bytes of it that have been read
    uint64_t bytes;  // bytes of all catalog extents
    bool damaged;    // entries after the damage are ignored, because ids follow from their order
};

enum { BLOCK_HEAD_INTACT = 1, BLOCK_DATA_INTACT = 2, BLOCK_DAMAGED = 4 };

// A block, identified by its header. Shared by views, with a reference count.
struct block_ref {
    struct block_header header;
    const uint8_t *bytes;             // in a mapping
    const struct extent_entry *entry; // table entry of its extent, in a mapping
    struct remains *remains;          // of the file that contains it
    uint64_t offset;
    uint64_t number; // unique among all blocks that this process has seen
    uint32_t generation;
    uint32_t refs;                    // protected by the reader's mutex
    unsigned state;                   // flags BLOCK_…, changed atomically
    struct cold_directory *directory; // only of cold blocks, after it was read; changed atomically
    struct block_ref **stripes;       // only of striped blocks: a reference to each stripe
    size_t stripe_count;
};

struct extent_blocks {
    uint32_t generation;
    uint64_t offset, read; // place, and bytes that have been scanned
    const struct extent_entry *entry;
    struct block_ref **blocks;
    size_t count, capacity;
};

// How far the reader trusts data without checksums of their own (trusted_data.c).
enum trust { TRUST_WRITER, TRUST_KILLED, TRUST_SYNCED };

struct view_tail {
    enum extent_kind kind;
    uint32_t owner, slot, generation;
    uint64_t sequence, offset, size;
    const uint8_t *bytes;
    const struct extent_entry *entry;
    struct remains *remains;
    // trusted_data.c: the notes at the last check, the longest noted length, and the longest noted
    // length that is valid
    bool looked_at;
    struct extent_synced notes[2];
    uint64_t noted, sound;
};

struct time_range {
    int64_t first_ns, last_ns;
};

struct block_list {
    struct block_ref *const *blocks;
    // time ranges of the blocks, so that a search need not access the blocks
    const struct time_range *ranges;
    size_t count;
    bool ordered; // each block begins after the end of the block before
};
// Returns the index of the first ordered block with data at or after from_ns.
size_t block_list_from(const struct block_list *l, int64_t from_ns);

struct view {
    unsigned refs; // protected by the reader's mutex
    uint64_t table_sequence;
    enum trust trust;
    uint8_t boot_id[16];       // boot id in the file when the view was made
    struct block_ref **blocks; // sorted by kind, owner, number; without replaced blocks
    struct time_range *ranges; // time range of each block
    size_t block_count;
    struct block_list points, events;
    struct block_list *sets; // of each set
    size_t set_count;
    struct view_tail *tails; // sorted by kind, owner, number; without tails that have been sealed
    size_t tail_count;
};

struct store_reader {
    char *path;
    int fd;
    uint8_t boot_id[16]; // of this machine
    pthread_mutex_t mutex;
    struct mapping *mapping; // newest first; older mappings stay until the reader is closed
    uint64_t file_bytes;
    struct remains remains;
    bool cut_reported;
    struct index index;
    struct prefetch prefetch;
    struct extent_blocks *extents; // of each slot
    size_t extent_count;           // entries beyond the table's count are all 0
    struct view *view;             // the latest
    struct store_damage damage;
    struct map damaged;           // offsets of damage that has been counted
    pthread_mutex_t events_mutex; // locked before the other mutex
    struct event_index events;
};

enum cache_kind {
    CACHE_TIMES,
    CACHE_PART,
    CACHE_POINT_TAIL,
    CACHE_TAIL_TIMES,
    CACHE_TAIL_STRIP,
    CACHE_SET_SEEN
};

struct cache_item {
    const void *of; // the block_ref or view_tail that the item belongs to
    uint32_t part;
    enum cache_kind kind;
    unsigned pins;
    size_t bytes, count;
    // int64_t[count], point_record[count], tail.c's data, or the unpacked part (count bytes)…
    void *data;
    struct codec_table *table; // …whose columns this table reads
    bool in_overflow;          // `data` is in the overflow; without a user, `table` may be NULL
};

struct cache {
    struct cache_item **items; // hash table with open addressing
    size_t count, capacity, bytes, bytes_max;
    struct store_overflow *overflow; // NULL: none
};

// buffers.c
enum { BUFFER_LEVELS = 21 };

struct buffers {
    struct buffer *idle[BUFFER_LEVELS];
    size_t idle_bytes;
};

// The points of one series in one block or tail. The cache owns them, or the column has buffers of
// its own.
struct column {
    const int64_t *t;
    const double *v;
    size_t count;
    int64_t *own_t;
    double *own_v;
    struct cache_item *pins[2];
};

// A decoded column of which a cursor used only a part.
struct cut_column {
    const struct block_ref *block; // NULL: none
    uint32_t series;
    struct column column;
};

enum { CUT_COLUMNS = 2 }; // one that the start of a range has cut, one that its end has cut

struct view_hold {
    struct view_hold *next;
    struct view *view;
};

struct store_snapshot {
    struct store_reader *reader;
    uint64_t version;
    // newest time of a point when the snapshot was opened; later points are not shown
    int64_t newest_ns;
    size_t metric_count, series_count, set_count;
    struct view *view;
    uint64_t *used;         // lengths of view->tails
    struct view_hold *held; // all views that this snapshot has used
    struct arena memory;
    struct cache cache;
    struct buf scratch;
    struct buffers buffers;
    struct cut_column cut[CUT_COLUMNS];
    unsigned next_cut;         // index of the cut column that is replaced next
    struct store_cursor *idle; // closed cursors, kept for reuse
    unsigned idle_count;
    unsigned moves; // number of moves to a later view
    uint64_t catalog_bytes;
};

// index.c
int index_update(struct store_reader *r, enum trust trust, const struct extent_entry *table,
                 const struct extent_entry *live, size_t count);
void index_free(struct index *x);

// From reader.c. The first function is called with the mutex held; the second one locks it.
void reader_damaged(struct store_reader *r, uint64_t offset, uint64_t bytes, const char *what);
// Counts damage in data that no sync covers (trusted_data.c). If a writer on another machine writes
// the file, or a writer is just opening it, it will soon sync or cut these data. The reader then
// leaves them out and counts no damage.
void reader_unsure(struct store_reader *r, uint64_t offset, uint64_t bytes);
void reader_report(struct store_reader *r, uint64_t offset, uint64_t bytes, const char *what);
int reader_map(struct store_reader *r, uint64_t size);
// Called if the witness has changed or is unknown: checks whether the file was truncated.
void remains_look(struct remains *x);
// Counts a truncated file as damage, once.
void reader_look_for_cut(struct store_reader *r);

// From view.c, called with the mutex held. *used gets a malloc'ed array. Returns 0, -EAGAIN (try
// again), -ENOMEM…
int view_latest(struct store_reader *r, struct view **out, uint64_t **used, uint64_t *version,
                int64_t *newest_ns);
void view_release(struct view *v);
void block_release(struct block_ref *b);

// From extent_blocks.c, called with the mutex held. Reads the headers of blocks that are new since
// the last call. `table` is a copy of the entries at `live`. Returns 0, -EAGAIN (the table has
// changed) or -ENOMEM.
int extents_update(struct store_reader *r, enum trust trust, const struct extent_entry *table,
                   const struct extent_entry *live, size_t count);
void extents_free(struct store_reader *r);

// From trusted_data.c, called with the mutex held. trust_tail returns the trusted part of a tail of
// `used` rows, points or bytes, which take `unit` bytes each.
enum trust trust_of(const struct store_reader *r);
uint64_t trust_tail(struct store_reader *r, enum trust trust, struct view_tail *t, uint64_t unit,
                    uint64_t used);
void trust_note(struct extent_synced to[2], const struct extent_entry *entry);

// From snapshot.c. Moves the snapshot to the current state of the file, because data that it needs
// are no longer at their places.
int snapshot_move(struct store_snapshot *s);

// From column.c. Copies words that the writer may be changing.
void reader_copy_words(void *to, const uint8_t *from, size_t bytes);
// Checks a copy of bytes of a block or tail. Returns 0 if the bytes still belonged to the block.
// Returns -ESTALE if the writer has reused the place, and -EBADMSG if the file was truncated and
// the bytes, or the means to check them, are lost.
int block_standing(const struct block_ref *b);
int tail_standing(const struct view_tail *t);

// Verifies the checksums once. Returns 0, -ESTALE, -EBADMSG (which it counts as damage) or -ENOMEM.
int block_check(struct store_reader *r, struct block_ref *b, bool data);

// Makes a stable copy of a part of a block in s->scratch, valid until the next copy. On failure
// returns NULL and sets *rc.
const uint8_t *block_copy(struct store_snapshot *s, struct block_ref *b, size_t from, size_t size,
                          int *rc);

// Finds a block's entry for one column or series. Returns 0, -ENOENT, -ESTALE, -EBADMSG or -ENOMEM.
int block_lookup(struct store_snapshot *s, struct block_ref *b, uint32_t column_or_series,
                 struct block_entry *out);

// Loads the points of an entry. On failure *out is empty.
int block_load(struct store_snapshot *s, struct block_ref *b, const struct block_entry *e,
               struct column *out);
void column_free(struct store_snapshot *s, struct column *c); // leaves it empty
// Keeps the column if it is one of the last that were cut, otherwise frees it.
void column_keep_cut(struct store_snapshot *s, const struct block_ref *b, uint32_t series,
                     struct column *c);
bool column_take_cut(struct store_snapshot *s, const struct block_ref *b, uint32_t series,
                     struct column *out);
void columns_free_cut(struct store_snapshot *s);

// The directory of a cold block (shared; the block owns it), and one of its parts, unpacked and
// pinned.
int cold_directory_of(struct store_snapshot *s, struct block_ref *b, struct cold_directory **out);
int cold_part(struct store_snapshot *s, struct block_ref *b, uint32_t number,
              struct cache_item **pin);

// From tail.c. Return the points of a column in a set's tail, or of a series in a tail of points.
// Return 0, -ESTALE or -ENOMEM.
int tail_column(struct store_snapshot *s, size_t tail, uint32_t columns, uint32_t column,
                struct column *out);
int tail_series(struct store_snapshot *s, size_t tail, uint32_t series, struct column *out);
// Finds the time stamps of the rows in a set's tail, ascending and pinned. Returns the same codes.
int tail_times(struct store_snapshot *s, size_t tail, uint32_t columns, struct cache_item **pin);
const int64_t *tail_times_of(const struct cache_item *pin, size_t *count);

// cursor.c. Frees the snapshot's idle cursors.
void cursors_free(struct store_snapshot *s);

// From buffers.c. Takes a buffer of this many 8-byte words. Returns NULL if memory is exhausted, or
// for more words than a column can have. buffer_give accepts NULL.
void *buffer_take(struct buffers *all, size_t words);
void buffer_give(struct buffers *all, void *words);
size_t buffer_words(void *words); // capacity of a buffer
void buffers_free(struct buffers *all);

// From cache.c. Returns NULL if the cache does not have the item. Items that were found or added
// are pinned.
struct cache_item *cache_find(struct cache *c, enum cache_kind kind, const void *of, uint32_t part);
// takes ownership of data and table, also on failure
struct cache_item *cache_add(struct cache *c, struct cache_item item);
void cache_unpin(struct cache_item *item);
// True if another part of this size belongs into the overflow.
bool cache_is_full(const struct cache *c, size_t bytes);
// Opens the table of an unpacked part again. Returns 0, -EBADMSG or -ENOMEM.
int cache_open_table(struct cache *c, struct cache_item *item);
void cache_free(struct cache *c);

#endif
