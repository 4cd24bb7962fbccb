// reader.h - declarations that only the files of the reader share.
//
//   reader ── index     the catalog so far                          (index.c; grows only)
//          ── extents  block headers, read once per extent        (view.c)
//          ── events    which blocks of events reach where           (event_index.h)
//          ── trust     what can be believed of a file that no writer has (trust.c)
//          ── view ◀─── snapshots: the blocks and tails at one moment; shared as long as the
//                       extent table stays unchanged
//   snapshot ── cache   time stamps, unpacked parts of cold blocks, tails turned over (cache.c)
//            ── buffers that columns are decoded into (buffers.c)
//            ── cursors (cursor.h)
//
// Nothing here is locked against the writer. Bytes that it may write over meanwhile are copied word
// by word, then the extent's generation is looked at again: if it has changed, the copy is
// discarded (-ESTALE), and the snapshot finds the points again.
#ifndef SONDE_STORE_READER_H
#define SONDE_STORE_READER_H

#include "base/arena.h"
#include "base/map.h"
#include "store/block.h"
#include "store/cold.h"
#include "store/event_index.h"
#include "store/layout.h"
#include "store/map_guard.h"
#include "store/read.h"

#include <pthread.h>

struct mapping {
    struct mapping *next;
    const uint8_t *base;
    size_t size;
    struct map_guard *guard;
};

// The remaining part of a file that another program truncates under the reader. A witness byte
// shows it: the last byte that is not 0. A cut before the witness makes it 0, or its page
// unreadable; a cut after it changes nothing.
enum { WITNESS_UNKNOWN = 256 }; // no byte

struct remains {
    _Atomic uint64_t lost;            // map_guard.h
    _Atomic(const uint8_t *) witness; // in a mapping
    // of the witness at first; WITNESS_UNKNOWN: the witness is not chosen yet
    _Atomic unsigned value;
    _Atomic(const struct mapping *) mapping;
    _Atomic uint64_t file_bytes;
    int fd;
    _Atomic bool grows; // a writer had the file: bytes change
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
    struct store_label *labels; // made when asked for
};

struct set_definition {
    uint32_t count;
    uint32_t *series;
};

struct membership {
    uint32_t set, column;
    struct membership *next;
};

// The catalog so far, under the reader's mutex.
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
    // of the catalog extent being read, in the mapping: has it grown?
    const struct extent_entry *entry;
    uint64_t extent; // the catalog extent being read
    uint64_t read;   // bytes of it
    uint64_t bytes;  // in all
    bool damaged;    // nothing behind the damage can be believed: ids are implied
};

enum { BLOCK_HEAD_INTACT = 1, BLOCK_DATA_INTACT = 2, BLOCK_DAMAGED = 4 };

// A block, known by its header. Shared by views, counted.
struct block_ref {
    struct block_header header;
    const uint8_t *bytes;             // in a mapping
    const struct extent_entry *entry; // of its extent, in a mapping
    struct remains *remains;          // of its file
    uint64_t offset;
    uint64_t number; // of no other block that this process has seen
    uint32_t generation;
    uint32_t refs;                    // under the reader's mutex
    unsigned state;                   // BLOCK_…, atomically
    struct cold_directory *directory; // cold ones, once read; atomically
};

struct extent_blocks {
    uint32_t generation;
    uint64_t offset, read; // bytes looked through
    const struct extent_entry *entry;
    struct block_ref **blocks;
    size_t count, capacity;
};

// How much is believed of what no checksum of its own covers (trust.c).
enum trust { TRUST_WRITER, TRUST_KILLED, TRUST_SYNCED };

struct view_tail {
    enum extent_kind kind;
    uint32_t owner, slot, generation;
    uint64_t sequence, offset, size;
    const uint8_t *bytes;
    const struct extent_entry *entry;
    struct remains *remains;
    bool looked_at; // trust.c: the notes as they were then, and what they say in all and soundly
    struct extent_synced notes[2];
    uint64_t noted, sound;
};

struct time_range {
    int64_t first_ns, last_ns;
};

struct block_list {
    struct block_ref *const *blocks;
    const struct time_range *ranges; // of them: looked through without touching the blocks
    size_t count;
    bool ordered; // each begins after the one before has ended
};

struct view {
    unsigned refs; // under the reader's mutex
    uint64_t table_sequence;
    enum trust trust;
    uint8_t boot_id[16];       // that the file had then
    struct block_ref **blocks; // by kind, owner, number; without those that others replace
    struct time_range *ranges; // of each
    size_t block_count;
    struct block_list points, events;
    struct block_list *sets; // by set
    size_t set_count;
    struct view_tail *tails; // by kind, owner, number; without those that have been sealed
    size_t tail_count;
};

struct store_reader {
    char *path;
    int fd;
    uint8_t boot_id[16]; // of this machine
    pthread_mutex_t mutex;
    struct mapping *mapping; // newest first; older ones stay until the reader is closed
    uint64_t file_bytes;
    struct remains remains;
    bool cut_reported;
    struct index index;
    struct extent_blocks *extents; // by slot
    size_t extent_count;           // those behind the table's count are all 0
    struct view *view;             // the latest
    struct store_damage damage;
    struct map damaged;           // offsets already counted
    pthread_mutex_t events_mutex; // taken before the other
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
    const void *of; // block_ref, view_tail
    uint32_t part;
    enum cache_kind kind;
    unsigned pins;
    size_t bytes, count;
    // int64_t[count], point_record[count], what tail.c makes, or the unpacked part…
    void *data;
    struct codec_table *table; // …that this looks into
};

struct cache {
    struct cache_item **items; // open addressing
    size_t count, capacity, bytes;
};

// buffers.c
enum { BUFFER_LEVELS = 20 };

struct buffers {
    struct buffer *idle[BUFFER_LEVELS];
    size_t idle_bytes;
};

// The points of one series in one block or tail. They lie in the cache, or in buffers of their own.
struct column {
    const int64_t *t;
    const double *v;
    size_t count;
    int64_t *own_t;
    double *own_v;
    struct cache_item *pins[2];
};

// A decoded column of which a cursor needed only a part.
struct cut_column {
    const struct block_ref *block; // NULL: none
    uint32_t series;
    struct column column;
};

enum { CUT_COLUMNS = 2 }; // cut by the start of a range, and by its end

struct view_hold {
    struct view_hold *next;
    struct view *view;
};

struct store_snapshot {
    struct store_reader *reader;
    uint64_t version;
    int64_t newest_ns; // of points there were; later ones are not shown
    size_t metric_count, series_count, set_count;
    struct view *view;
    uint64_t *used;         // of view->tails
    struct view_hold *held; // all views this snapshot has had
    struct arena memory;
    struct cache cache;
    struct buf scratch;
    struct ZSTD_DCtx_s *unzip; // made when first needed
    struct buffers buffers;
    struct cut_column cut[CUT_COLUMNS];
    unsigned next_cut;         // to be replaced
    struct store_cursor *idle; // closed ones, to be opened again
    unsigned idle_count;
    unsigned moves; // how often it had to look again
    uint64_t catalog_bytes;
};

// index.c
int index_update(struct store_reader *r, enum trust trust, const struct extent_entry *table,
                 const struct extent_entry *live, size_t count);
void index_free(struct index *x);

// reader.c. Under the mutex / taking it.
void reader_damaged(struct store_reader *r, uint64_t offset, uint64_t bytes, const char *what);
// The same for data that no sync covers (trust.c). A writer on another machine, or one that is just
// taking the file up, will sync or cut it soon: then it is left out without a word.
void reader_unsure(struct store_reader *r, uint64_t offset, uint64_t bytes);
void reader_report(struct store_reader *r, uint64_t offset, uint64_t bytes, const char *what);
int reader_map(struct store_reader *r, uint64_t size);
// The witness has changed, or is not known: looks whether the file was cut short.
void remains_look(struct remains *x);
// Counts as damage, once, that the file was cut short.
void reader_look_for_cut(struct store_reader *r);

// view.c. Under the mutex. *used gets a malloc'ed array. 0, -EAGAIN: try again, -ENOMEM…
int view_latest(struct store_reader *r, struct view **out, uint64_t **used, uint64_t *version,
                int64_t *newest_ns);
void view_release(struct view *v);
void block_release(struct block_ref *b);
void extents_free(struct store_reader *r);

// trust.c. Under the mutex. What can be believed of a tail that says it holds `used` rows, points
// or bytes of `unit` bytes each.
enum trust trust_of(const struct store_reader *r);
uint64_t trust_tail(struct store_reader *r, enum trust trust, struct view_tail *t, uint64_t unit,
                    uint64_t used);
void trust_note(struct extent_synced to[2], const struct extent_entry *entry);

// snapshot.c: moves the snapshot to the current state of the file, because data that it needs are
// gone.
int snapshot_move(struct store_snapshot *s);

// column.c. Copies that hold while the writer goes on.
void reader_copy_words(void *to, const uint8_t *from, size_t bytes);
// Behind a copy of bytes of a block or tail: 0: they are what they were; -ESTALE: the writer has
// put something else there; -EBADMSG: the file was cut short, and they or what says so are gone.
int block_standing(const struct block_ref *b);
int tail_standing(const struct view_tail *t);

// Checksums, once: 0, -ESTALE, -EBADMSG (counted), -ENOMEM.
int block_check(struct store_reader *r, struct block_ref *b, bool data);

// A stable copy of some of a block's bytes in s->scratch, valid until the next: NULL with *rc set.
const uint8_t *block_copy(struct store_snapshot *s, struct block_ref *b, size_t from, size_t size,
                          int *rc);

// What a block says of one column or series: 0, -ENOENT, -ESTALE, -EBADMSG, -ENOMEM.
int block_lookup(struct store_snapshot *s, struct block_ref *b, uint32_t column_or_series,
                 struct block_entry *out);

// The points that an entry speaks of. On failure *out holds nothing.
int block_load(struct store_snapshot *s, struct block_ref *b, const struct block_entry *e,
               struct column *out);
void column_free(struct store_snapshot *s, struct column *c); // leaves it empty
// Takes the column over; gives it back if it is one of the last that were cut.
void column_keep_cut(struct store_snapshot *s, const struct block_ref *b, uint32_t series,
                     struct column *c);
bool column_take_cut(struct store_snapshot *s, const struct block_ref *b, uint32_t series,
                     struct column *out);
void columns_free_cut(struct store_snapshot *s);

// Exactly `size` bytes out of a frame. 0, -EBADMSG, -ENOMEM.
int column_unpack(struct store_snapshot *s, uint8_t *out, size_t size, const uint8_t *frame,
                  size_t frame_size);

// A cold block's directory (shared, stays with the block), and one of its parts, unpacked: pinned.
int cold_directory_of(struct store_snapshot *s, struct block_ref *b, struct cold_directory **out);
int cold_part(struct store_snapshot *s, struct block_ref *b, uint32_t number,
              struct cache_item **pin);

// tail.c. The points of a column of the set whose tail it is, of a series in a tail of points: 0,
// -ESTALE, -ENOMEM.
int tail_column(struct store_snapshot *s, size_t tail, uint32_t columns, uint32_t column,
                struct column *out);
int tail_series(struct store_snapshot *s, size_t tail, uint32_t series, struct column *out);
// The time stamps of the rows of a set's tail, ascending: pinned. Likewise.
int tail_times(struct store_snapshot *s, size_t tail, uint32_t columns, struct cache_item **pin);
const int64_t *tail_times_of(const struct cache_item *pin, size_t *count);

// cursor.c. Those that the snapshot keeps.
void cursors_free(struct store_snapshot *s);

// buffers.c. Places for so many 8-byte words; NULL: no memory, or more than any column has. What is
// given back may be NULL.
void *buffer_take(struct buffers *all, size_t words);
void buffer_give(struct buffers *all, void *words);
size_t buffer_words(void *words); // there is room for
void buffers_free(struct buffers *all);

// cache.c. NULL: not there. What is found or added is pinned.
struct cache_item *cache_find(struct cache *c, enum cache_kind kind, const void *of, uint32_t part);
// takes data and table over, whatever happens
struct cache_item *cache_add(struct cache *c, struct cache_item item);
void cache_unpin(struct cache_item *item);
void cache_free(struct cache *c);

#endif
