#include "store/extents.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/search.h"
#include "store/lock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAP_MIN_BYTES = 64 << 20, GROW_BYTES = 64 << 10, WORD_BYTES = 8 };

// ---- Free space ----

static bool gap_insert(struct extents *x, size_t at, uint64_t offset, uint64_t size)
{
    if (!array_room(&x->gaps, &x->gap_capacity, x->gap_count + 1, sizeof *x->gaps))
        return false;
    assert(at <= x->gap_count);
    memmove(x->gaps + at + 1, x->gaps + at, (x->gap_count - at) * sizeof *x->gaps);
    x->gaps[at] = (struct extent_gap){offset, size};
    x->gap_count++;
    return true;
}

static void gap_remove(struct extents *x, size_t at)
{
    assert(at < x->gap_count);
    memmove(x->gaps + at, x->gaps + at + 1, (x->gap_count - at - 1) * sizeof *x->gaps);
    x->gap_count--;
}

// Returns the first gap that begins at `offset` or later.
static size_t gap_at(const struct extents *x, uint64_t offset)
{
    size_t i;
    SEARCH_FIRST(i, x->gap_count, x->gaps[i].offset >= offset);
    return i;
}

static unsigned size_class(uint64_t size)
{
    return 63 - (unsigned)__builtin_clzll(size);
}

static void give_back(struct extents *x, uint64_t offset, uint64_t size)
{
    size_t at = gap_at(x, offset);
    bool joins_left = at && x->gaps[at - 1].offset + x->gaps[at - 1].size == offset;
    bool joins_right = at < x->gap_count && offset + size == x->gaps[at].offset;
    if (joins_left && joins_right) {
        x->gaps[at - 1].size += size + x->gaps[at].size;
        gap_remove(x, at);
        at--;
    } else if (joins_left) {
        x->gaps[--at].size += size;
    } else if (joins_right) {
        x->gaps[at].offset = offset;
        x->gaps[at].size += size;
    } else if (!gap_insert(x, at, offset, size)) {
        return; // without memory for the gap, the next open finds it again
    }
    for (unsigned k = 0; k <= size_class(x->gaps[at].size); k++)
        if (x->gaps_from[k] > x->gaps[at].offset)
            x->gaps_from[k] = x->gaps[at].offset;
    if (x->gaps[at].offset + x->gaps[at].size == x->end) {
        x->end = x->gaps[at].offset;
        if (x->end < x->inherited_bytes)
            x->reserved_bytes = x->end;
        gap_remove(x, at);
    }
}

// Maps the file `fd` in place of the current mapping.
static int map_anew(struct extents *x, int fd, size_t size)
{
    uint8_t *base;
    int rc = x->io->map(x->io->user, fd, size, &base);
    if (rc)
        return rc;
    struct map_guard *guard = map_guard_add(base, size, PROT_READ | PROT_WRITE, fd, &x->lost);
    if (!guard) {
        munmap(base, size);
        return -ENOMEM;
    }
    map_guard_remove(x->guard);
    if (x->base)
        munmap(x->base, x->mapped_bytes);
    x->base = base;
    x->mapped_bytes = size;
    x->guard = guard;
    return 0;
}

static int grow_mapping(struct extents *x, uint64_t needed)
{
    if (needed <= x->mapped_bytes)
        return 0;
    size_t size = x->mapped_bytes ? x->mapped_bytes : MAP_MIN_BYTES;
    while (size < needed)
        size *= 2;
    return map_anew(x, x->fd, size);
}

int extents_move(struct extents *x, int fd)
{
    int rc = extents_whole(x) ? x->io->reserve(x->io->user, fd, 0, x->end) : -ESTALE;
    if (!rc) {
        const struct store_io *io = x->io->write ? x->io : &store_io_real;
        rc = io->write(io->user, fd, x->base, x->end, 0);
    }
    if (!rc)
        rc = x->io->sync(x->io->user, fd);
    if (!rc && !extents_whole(x))
        rc = -ESTALE; // truncated while it was copied
    if (rc)
        return rc;
    struct superblock *old = extents_super(x);
    // Release: a reader that reads LAYOUT_CLOSED here reads everything that was appended.
    __atomic_store_n(&old->state, LAYOUT_CLOSED, __ATOMIC_RELEASE);
    rc = map_anew(x, fd, x->mapped_bytes);
    if (rc) {
        __atomic_store_n(&old->state, LAYOUT_LIVE, __ATOMIC_RELEASE);
        return rc;
    }
    close(x->fd);
    x->fd = fd;
    x->file_bytes = x->reserved_bytes = x->end;
    x->inherited_bytes = 0;
    return 0;
}

static int grow_file(struct extents *x, uint64_t needed)
{
    if (needed <= x->reserved_bytes)
        return 0;
    uint64_t size = (needed + GROW_BYTES - 1) / GROW_BYTES * GROW_BYTES;
    if (size > x->space_limit)
        return -ENOSPC;
    // A truncated file must not grow: zeros would replace the lost data.
    if (!extents_whole(x))
        return -ESTALE;
    int rc = grow_mapping(x, size);
    if (!rc)
        rc = x->io->reserve(x->io->user, x->fd, x->reserved_bytes, size - x->reserved_bytes);
    if (rc)
        return rc;
    x->reserved_bytes = size;
    x->file_bytes = size > x->file_bytes ? size : x->file_bytes;
    return 0;
}

// Finds the lowest gap that is large enough. If the search skips small gaps of the same size class,
// the next search of this class begins after them.
static int take_space(struct extents *x, uint64_t size, uint64_t *offset)
{
    unsigned class = size_class(size);
    bool first = true;
    for (size_t i = gap_at(x, x->gaps_from[class]); i < x->gap_count; i++) {
        struct extent_gap *gap = &x->gaps[i];
        if (first && gap->size >> class) {
            x->gaps_from[class] = gap->offset;
            first = false;
        }
        if (gap->size < size)
            continue;
        int rc = gap->offset < x->inherited_bytes
                     ? x->io->reserve(x->io->user, x->fd, gap->offset, size)
                     : 0;
        if (rc)
            return rc;
        *offset = gap->offset;
        gap->offset += size;
        gap->size -= size;
        if (!gap->size)
            gap_remove(x, i);
        return 0;
    }
    if (first)
        x->gaps_from[class] = x->end;
    int rc = grow_file(x, x->end + size);
    if (rc)
        return rc;
    *offset = x->end;
    x->end += size;
    return 0;
}

// ---- The table ----

void extents_begin(struct extents *x)
{
    if (x->change_depth++)
        return;
    struct superblock *sb = extents_super(x);
    __atomic_store_n(&sb->table_sequence, sb->table_sequence + 1, __ATOMIC_RELAXED);
    // Release: the odd number is seen before any change of the table.
    __atomic_thread_fence(__ATOMIC_RELEASE);
    store_io_step(x->io, "table begins");
}

void extents_end(struct extents *x)
{
    assert(x->change_depth > 0);
    if (--x->change_depth)
        return;
    struct superblock *sb = extents_super(x);
    store_io_step(x->io, "table");
    // Release: all changes of the table are seen before the even number.
    __atomic_store_n(&sb->table_sequence, sb->table_sequence + 1, __ATOMIC_RELEASE);
    store_io_step(x->io, "table done");
}

// Readers copy entries word by word while they change.
static void write_entry(struct extent_entry *to, const struct extent_entry *from)
{
    uint64_t words[sizeof *to / 8];
    memcpy(words, from, sizeof words);
    uint64_t *at = (uint64_t *)(void *)to;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        __atomic_store_n(&at[i], words[i], __ATOMIC_RELAXED);
}

static int grow_table(struct extents *x)
{
    uint32_t old_capacity = extents_super(x)->table_capacity;
    uint32_t capacity = old_capacity * 2 > x->table_entries ? old_capacity * 2 : x->table_entries;
    uint64_t offset;
    int rc = take_space(x, (uint64_t)capacity * sizeof(struct extent_entry), &offset);
    if (rc)
        return rc;
    struct superblock *sb = extents_super(x);
    struct extent_entry *table = (struct extent_entry *)(void *)(x->base + offset);
    memset(table, 0, capacity * sizeof *table);
    memcpy(table, extents_table(x), old_capacity * sizeof *table);
    // Without the table all data are lost. So the table is written to disk before the header points
    // to it, and the header is written before the old table becomes invalid. (If a sync fails here,
    // the next one reports it.) Tables rarely move: a new file has room for the extents that its
    // size limit allows (store.c), and each further table is twice as large as the one before.
    x->io->sync(x->io->user, x->fd);
    struct extent_entry *old = extents_table(x);
    extents_begin(x);
    __atomic_store_n(&sb->table_offset, offset, __ATOMIC_RELAXED);
    __atomic_store_n(&sb->table_capacity, capacity, __ATOMIC_RELAXED);
    extents_end(x);
    // Sync before the change begins, because readers wait for the end of a change, and should not
    // wait for the disk. The writer changes nothing else meanwhile.
    x->io->sync(x->io->user, x->fd);
    // Readers that check generations in the old table must see that they have changed. The place of
    // the old table stays unused until the file is opened again; otherwise readers might read other
    // data there.
    for (uint32_t i = 0; i < old_capacity; i++)
        __atomic_store_n(&old[i].generation, old[i].generation + 1, __ATOMIC_RELAXED);
    return 0;
}

static void note_free_slot(struct extents *x, int slot)
{
    if (array_room(&x->free_slots, &x->free_capacity, x->free_count + 1, sizeof *x->free_slots))
        x->free_slots[x->free_count++] = slot;
    // Without memory for the slot, the next open finds it again.
}

static int free_slot(struct extents *x)
{
    struct superblock *sb = extents_super(x);
    if (x->free_count)
        return x->free_slots[x->free_count - 1];
    if (sb->table_count == sb->table_capacity) {
        int rc = grow_table(x);
        if (rc)
            return rc;
        sb = extents_super(x);
    }
    return (int)sb->table_count;
}

static void set_entry(struct extents *x, int slot, struct extent_entry content)
{
    struct superblock *sb = extents_super(x);
    content.check = extent_entry_check(&content);
    extents_begin(x);
    write_entry(extent_entry(x, slot), &content);
    if ((uint32_t)slot >= sb->table_count)
        __atomic_store_n(&sb->table_count, (uint32_t)slot + 1, __ATOMIC_RELAXED);
    extents_end(x);
}

int extent_allocate(struct extents *x, enum extent_kind kind, uint32_t owner, uint64_t sequence,
                    uint64_t size)
{
    size = (size + LAYOUT_ALIGNMENT - 1) / LAYOUT_ALIGNMENT * LAYOUT_ALIGNMENT;
    int slot = free_slot(x);
    if (slot < 0)
        return slot;
    uint64_t offset;
    int rc = take_space(x, size, &offset);
    if (rc)
        return rc;
    x->used_bytes += size;
    x->free_count -= x->free_count && x->free_slots[x->free_count - 1] == slot;
    set_entry(x, slot,
              (struct extent_entry){
                  .kind = kind,
                  .generation = extent_entry(x, slot)->generation + 1,
                  .owner = owner,
                  .offset = offset,
                  .size = size,
                  .sequence = sequence,
              });
    return slot;
}

int extent_reserve(const struct extents *x, int slot, uint64_t used_bytes)
{
    const struct extent_entry *e = extent_entry(x, slot);
    return used_bytes < e->size
               ? x->io->reserve(x->io->user, x->fd, e->offset + used_bytes, e->size - used_bytes)
               : 0;
}

void extent_free(struct extents *x, int slot)
{
    const struct extent_entry old = *extent_entry(x, slot);
    set_entry(x, slot,
              (struct extent_entry){.kind = EXTENT_EMPTY, .generation = old.generation + 1});
    x->used_bytes -= old.size;
    note_free_slot(x, slot);
    give_back(x, old.offset, old.size);
}

void extent_reuse(struct extents *x, int slot, uint64_t sequence)
{
    struct extent_entry entry = *extent_entry(x, slot);
    entry.generation++;
    entry.sequence = sequence;
    entry.used = 0;
    memset(entry.synced, 0, sizeof entry.synced);
    set_entry(x, slot, entry);
    // Release: the new generation is seen before the first byte of the new content.
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

void extent_free_later(struct extents *x, int slot)
{
    if (!array_room(&x->pending, &x->pending_capacity, x->pending_count + 1, sizeof *x->pending))
        return;
    x->pending[x->pending_count++] = slot;
    x->pending_bytes += extent_entry(x, slot)->size;
}

bool extent_is_pending(const struct extents *x, int slot)
{
    for (size_t i = 0; i < x->pending_count; i++)
        if (x->pending[i] == slot)
            return true;
    return false;
}

bool extent_is_synced(const struct extents *x, int slot)
{
    const struct extent_entry *e = extent_entry(x, slot);
    return e->synced[0].used || e->synced[1].used;
}

void extents_sync_begins(struct extents *x)
{
    x->pending_covered = x->pending_count;
}

void extents_synced(struct extents *x)
{
    size_t covered = x->pending_covered;
    x->pending_covered = 0;
    for (size_t i = 0; i < covered; i++) {
        x->pending_bytes -= extent_entry(x, x->pending[i])->size;
        extent_free(x, x->pending[i]);
    }
    x->pending_count -= covered;
    if (x->pending_count)
        memmove(x->pending, x->pending + covered, x->pending_count * sizeof *x->pending);
}

void extent_note_sync(struct extents *x, int slot, unsigned parity, uint32_t used, uint32_t crc)
{
    uint64_t *at = (uint64_t *)(void *)&extent_entry(x, slot)->synced[parity & 1];
    __atomic_store_n(at, (uint64_t)crc << 32 | used, __ATOMIC_RELAXED);
}

// ---- Opening ----

struct taken {
    uint64_t offset, size;
    int slot; // EXTENT_NO_SLOT for header and table
};

static int by_offset(const void *a, const void *b)
{
    const struct taken *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void drop_entry(struct extents *x, int slot, uint32_t *dropped)
{
    struct extent_entry *entry = extent_entry(x, slot);
    struct extent_entry empty = {.generation = entry->generation + 1};
    empty.check = extent_entry_check(&empty);
    *entry = empty;
    ++*dropped;
}

static bool overlaps(const struct taken *t, uint64_t offset, uint64_t size)
{
    return t->offset < offset + size && offset < t->offset + t->size;
}

// True if an entry is empty, or its extent lies in the file and overlaps neither the header nor the
// table.
static bool entry_sound(const struct extent_entry *e, uint64_t file_bytes,
                        const struct taken *fixed, size_t fixed_count)
{
    if (e->check != extent_entry_check(e) || e->kind >= EXTENT_KINDS)
        return false;
    if (e->kind == EXTENT_EMPTY)
        return true;
    bool inside = e->size && extent_entry_lies_in(e, file_bytes);
    for (size_t i = 0; inside && i < fixed_count; i++)
        inside = !overlaps(&fixed[i], e->offset, e->size);
    return inside;
}

// True if the table is at a place where a writer puts it: in the header, or in an extent after it.
static bool table_sound(const struct superblock *sb, uint64_t file_bytes)
{
    uint64_t bytes = (uint64_t)sb->table_capacity * sizeof(struct extent_entry);
    bool in_header = sb->table_offset == sizeof *sb && sb->table_capacity <= LAYOUT_INLINE_ENTRIES;
    bool behind = sb->table_offset >= LAYOUT_HEADER_BYTES && sb->table_offset <= file_bytes &&
                  bytes <= file_bytes - sb->table_offset && sb->table_offset % 8 == 0;
    return (in_header || behind) && sb->table_count <= sb->table_capacity;
}

static int find_gaps(struct extents *x, struct taken *taken, size_t count, uint32_t *dropped)
{
    qsort(taken, count, sizeof *taken, by_offset);
    for (size_t i = 0; i < count; i++) {
        const struct taken *t = &taken[i];
        if (t->offset < x->end && t->slot != EXTENT_NO_SLOT) {
            drop_entry(x, t->slot, dropped);
            continue;
        }
        if (t->slot != EXTENT_NO_SLOT)
            x->used_bytes += t->size;
        if (t->offset > x->end && !gap_insert(x, x->gap_count, x->end, t->offset - x->end))
            return -ENOMEM;
        // A packed catalog can have any size, but words are read aligned from the next extent.
        uint64_t end = (t->offset + t->size + WORD_BYTES - 1) / WORD_BYTES * WORD_BYTES;
        if (end > x->end)
            x->end = end;
    }
    return 0;
}

// Reserves disk space for the unused entries of the table, which may be a hole. Without space, the
// table ends before the hole. (Reserving a range that has all of its space can fail on a full disk,
// so look for a hole first.)
static int reserve_table(struct extents *x)
{
    struct superblock *sb = extents_super(x);
    const uint64_t entry = sizeof(struct extent_entry);
    uint64_t unused = sb->table_offset + sb->table_count * entry,
             end = sb->table_offset + sb->table_capacity * entry;
    if (sb->table_offset < LAYOUT_HEADER_BYTES || unused == end)
        return 0;
    off_t found = lseek(x->fd, (off_t)unused, SEEK_HOLE);
    uint64_t hole = found < 0 ? unused : (uint64_t)found;
    if (hole >= end)
        return 0;
    int rc = x->io->reserve(x->io->user, x->fd, unused, end - unused);
    if (rc != -ENOSPC && rc != -EDQUOT)
        return rc;
    __atomic_store_n(&sb->table_capacity, (uint32_t)((hole - sb->table_offset) / entry),
                     __ATOMIC_RELAXED);
    return 0;
}

int extents_open(struct extents *x, const struct store_io *io, int fd, uint64_t file_bytes,
                 uint32_t *dropped)
{
    *x = (struct extents){.io = io,
                          .fd = fd,
                          .file_bytes = file_bytes,
                          .space_limit = UINT64_MAX,
                          .lost = MAP_GUARD_NOTHING_LOST};
    int rc = grow_mapping(x, file_bytes);
    if (rc)
        return rc;
    struct superblock *sb = extents_super(x);
    *dropped = 0;
    if (!table_sound(sb, file_bytes))
        return -EBADMSG;
    // A writer that died during a change may have left one half-written entry, which holds no data
    // yet.
    bool half_done = sb->table_sequence & 1;
    if (half_done) // release: readers see the dead writer's changes before the even number
        __atomic_store_n(&sb->table_sequence, sb->table_sequence + 1, __ATOMIC_RELEASE);
    struct taken *taken = malloc(((size_t)sb->table_count + 2) * sizeof *taken);
    if (!taken)
        return -ENOMEM;
    extents_begin(x);
    int reserved = reserve_table(x);
    size_t count = 0;
    taken[count++] = (struct taken){0, LAYOUT_HEADER_BYTES, EXTENT_NO_SLOT};
    if (sb->table_offset >= LAYOUT_HEADER_BYTES)
        taken[count++] = (struct taken){
            sb->table_offset, sb->table_capacity * sizeof(struct extent_entry), EXTENT_NO_SLOT};
    const size_t fixed_count = count;
    for (uint32_t i = 0; i < sb->table_count; i++) {
        const struct extent_entry *entry = extent_entry(x, (int)i);
        if (extent_entry_is_new(entry))
            continue;
        if (entry_sound(entry, file_bytes, taken, fixed_count)) {
            if (entry->kind != EXTENT_EMPTY)
                taken[count++] = (struct taken){entry->offset, entry->size, (int)i};
            continue;
        }
        drop_entry(x, (int)i, dropped);
        *dropped -= half_done;
        half_done = false;
    }
    rc = find_gaps(x, taken, count, dropped);
    x->reserved_bytes = x->inherited_bytes = x->end;
    extents_end(x);
    for (uint32_t i = sb->table_count; i-- > 0;)
        if (extent_entry(x, (int)i)->kind == EXTENT_EMPTY)
            note_free_slot(x, (int)i);
    free(taken);
    return rc ? rc : reserved;
}

void extents_close(struct extents *x)
{
    map_guard_remove(x->guard);
    if (x->base)
        munmap(x->base, x->mapped_bytes);
    free(x->gaps);
    free(x->free_slots);
    free(x->pending);
    *x = (struct extents){.fd = -1, .lost = MAP_GUARD_NOTHING_LOST};
}

bool extents_whole(struct extents *x)
{
    struct stat st;
    if (!fstat(x->fd, &st) && (uint64_t)st.st_size < x->file_bytes)
        map_guard_lose(&x->lost, (uint64_t)st.st_size);
    return map_guard_lost(&x->lost) == MAP_GUARD_NOTHING_LOST;
}

void extents_mark_closed(struct extents *x)
{
    struct superblock *sb = extents_super(x), closed = *sb;
    closed.state = LAYOUT_CLOSED;
    sb->closed_crc = superblock_closed_crc(&closed, extents_table(x));
    // Release: a reader that reads LAYOUT_CLOSED also reads its checksum.
    __atomic_store_n(&sb->state, LAYOUT_CLOSED, __ATOMIC_RELEASE);
}

int extents_trim(struct extents *x)
{
    if (x->end >= x->file_bytes)
        return 0;
    int rc = x->io->truncate(x->io->user, x->fd, x->end);
    if (!rc)
        x->file_bytes = x->reserved_bytes = x->end;
    return rc;
}
