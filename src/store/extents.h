// extents.h - the writer's side of the file: its mapping, its extent table, and its free ranges.
//
// The file is mapped once, with more than its size, and grows under the mapping. The writer
// reserves disk space before it writes, because a store into a hole of a full disk would kill the
// process (SIGBUS). The free and unused parts of an older file may be holes, which closing the file
// or a sparse copy makes. Pointers into the mapping are valid until the next extent_allocate, which
// may move the mapping. So keep offsets or slots instead.
//
// The writer overwrites synced data only after another sync has written their replacement. So it
// frees such an extent with extent_free_later, and the extent stays in the table until
// extents_synced.
#ifndef SONDE_STORE_EXTENTS_H
#define SONDE_STORE_EXTENTS_H

#include "base/error.h"
#include "store/io.h"
#include "store/layout.h"
#include "store/map_guard.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { EXTENT_NO_SLOT = -1 };

struct extent_gap {
    uint64_t offset, size;
};

struct extents {
    const struct store_io *io;
    int fd;
    uint8_t *base;
    size_t mapped_bytes;
    struct map_guard *guard;
    // the offset from which on another program has truncated the file (map_guard.h)
    _Atomic uint64_t lost;
    uint64_t file_bytes;
    uint64_t reserved_bytes;  // disk space is reserved from `end` to here
    uint64_t inherited_bytes; // free ranges below this offset may be holes
    // by offset, none adjacent to another; without the free space at the end of the file
    struct extent_gap *gaps;
    size_t gap_count, gap_capacity;
    uint64_t gaps_from[64]; // [k]: no gap that begins before it has 2^k bytes
    int *free_slots;        // empty entries of the table
    size_t free_count, free_capacity;
    uint64_t end; // the end of the last extent
    uint64_t used_bytes;
    uint64_t space_limit;   // limit of file_bytes
    uint32_t table_entries; // room that a table gets at least when it moves
    int change_depth;       // nesting depth of extents_begin
    int *pending;           // slots that extents_synced will free
    size_t pending_count, pending_capacity;
    size_t pending_covered; // number of `pending` that the current sync covers
    uint64_t pending_bytes;
};

// Reads the table and finds the free ranges. The file is open, locked, and at least
// LAYOUT_HEADER_BYTES long. Drops entries that overlap or exceed the file (*dropped counts them).
int extents_open(struct extents *x, const struct store_io *io, int fd, uint64_t file_bytes,
                 uint32_t *dropped);
void extents_close(struct extents *x);

// Copies everything to the empty file `fd` and continues there. The old file becomes closed, also
// for readers that have it open. On failure nothing changes.
int extents_move(struct extents *x, int fd);

static inline struct superblock *extents_super(const struct extents *x)
{
    return (struct superblock *)(void *)x->base;
}

static inline struct extent_entry *extents_table(const struct extents *x)
{
    return (struct extent_entry *)(void *)(x->base + extents_super(x)->table_offset);
}

static inline struct extent_entry *extent_entry(const struct extents *x, int slot)
{
    return &extents_table(x)[slot];
}

static inline uint8_t *extent_bytes(const struct extents *x, int slot)
{
    return x->base + extent_entry(x, slot)->offset;
}

// Reserves disk space for an extent of an older file, from `used_bytes` on. The bytes there are
// undefined afterwards. Returns 0 or a negative errno.
int extent_reserve(const struct extents *x, int slot, uint64_t used_bytes);

// Allocates an extent at the lowest place where it fits. Its bytes are undefined, and its `used` is
// 0. Returns the slot, or a negative errno (-ENOSPC, -EDQUOT, -ENOMEM…).
int extent_allocate(struct extents *x, enum extent_kind kind, uint32_t owner, uint64_t sequence,
                    uint64_t size);
void extent_free(struct extents *x, int slot);

// Frees the extent after the next sync. If memory for that is exhausted, the next open frees it.
void extent_free_later(struct extents *x, int slot);
bool extent_is_pending(const struct extents *x, int slot);
// true if a sync has covered some of its bytes
bool extent_is_synced(const struct extents *x, int slot);

// Call these before and after a sync. They free the extents that were passed to extent_free_later
// before the sync began, and none that were passed later.
void extents_sync_begins(struct extents *x);
void extents_synced(struct extents *x);

// Notes the size and checksum of the extent's current contents for the next sync. Syncs alternate
// `parity`, so the note of the last complete sync stays until this one has finished.
void extent_note_sync(struct extents *x, int slot, unsigned parity, uint32_t used, uint32_t crc);

// Reuses the extent for new content of the same owner.
void extent_reuse(struct extents *x, int slot, uint64_t sequence);

// Call these before and after changes that readers must see completely or not at all. They nest.
void extents_begin(struct extents *x);
void extents_end(struct extents *x);

// Release: a reader that reads the new `used` also reads everything before it.
static inline void extent_publish(struct extent_entry *entry, uint64_t used)
{
    __atomic_store_n(&entry->used, used, __ATOMIC_RELEASE);
}

// True if the file still has its length, and every page that was accessed existed. Otherwise *lost
// is the first lost offset.
bool extents_whole(struct extents *x);

// Marks the file as closed in its header, with the checksum of header and table.
void extents_mark_closed(struct extents *x);

// Truncates the file after the last extent.
int extents_trim(struct extents *x);

#endif
