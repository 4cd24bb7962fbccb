// extent_blocks.c - the blocks of an extent: reads their headers once, and the headers of the
// stripes in striped blocks.
#include "base/array.h"
#include "store/lock.h"
#include "store/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void block_release(struct block_ref *b)
{
    assert(b->refs);
    if (--b->refs)
        return;
    for (size_t i = 0; i < b->stripe_count; i++)
        block_release(b->stripes[i]);
    free(b->stripes);
    cold_directory_free(b->directory);
    free(b);
}

static void extent_forget(struct extent_blocks *g)
{
    for (size_t i = 0; i < g->count; i++)
        block_release(g->blocks[i]);
    free(g->blocks);
    *g = (struct extent_blocks){0};
}

void extents_free(struct store_reader *r)
{
    for (size_t i = 0; i < r->extent_count; i++)
        extent_forget(&r->extents[i]);
    free(r->extents);
}

// Returns the offset of the next readable header after an unreadable one.
static uint64_t next_header(const uint8_t *base, uint64_t at, uint64_t used)
{
    for (; used - at >= sizeof(struct block_header) && at < used; at += 8) {
        struct block_header h;
        reader_copy_words(&h, base + at, sizeof h);
        if (h.magic == BLOCK_MAGIC && block_header_fits(&h, used - at))
            return at;
    }
    return used;
}

// Returns the end of an extent of blocks. *promised gets the end of the part that syncs guarantee.
// After a crash of the machine, that is the smaller noted length, because the greater one may
// belong to an unfinished sync; otherwise it is `used`. Blocks after `used` exist only if `used`
// was damaged: `used` grows, and a note shows an earlier value (or recovery has cut off invalid
// data).
static uint64_t blocks_end(const struct extent_entry *e, enum trust trust, uint64_t *promised)
{
    uint64_t most = e->synced[0].used, least = e->synced[1].used;
    if (most < least) {
        most = e->synced[1].used;
        least = e->synced[0].used;
    }
    *promised = trust == TRUST_SYNCED ? least : e->used;
    uint64_t end = trust == TRUST_KILLED && e->used < most ? most : e->used;
    return end < e->size ? end : e->size;
}

// Reads a header with a system call. Headers lie far apart. A read costs a third of a page fault,
// which would also map unneeded pages around the header. (If the writer changes the header
// meanwhile, its checksum is wrong either way.)
static bool header_read(const struct store_reader *r, struct block_header *h, const uint8_t *at)
{
    return pread(r->fd, h, sizeof *h, at - r->mapping->base) == (ssize_t)sizeof *h;
}

static uint64_t next_number(void)
{
    static uint64_t last;
    return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static struct block_ref *block_found(struct store_reader *r, const struct extent_blocks *g,
                                     const struct extent_entry *e, uint64_t at,
                                     const struct block_header *h)
{
    struct block_ref *b = malloc(sizeof *b);
    if (b)
        *b = (struct block_ref){
            .header = *h,
            .bytes = r->mapping->base + e->offset + at,
            .entry = g->entry,
            .remains = &r->remains,
            .offset = e->offset + at,
            .number = next_number(),
            .generation = e->generation,
            .refs = 1,
        };
    return b;
}

// Called after an invalid header. True if the writer has retired the extent since the table was
// read, and uses its place for other data. Otherwise the header is damaged.
static bool retired_meanwhile(const struct store_reader *r, const struct extent_blocks *g,
                              const struct extent_entry *e)
{
    // Acquire: the header has been read before the generation is.
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&g->entry->generation, __ATOMIC_RELAXED) != e->generation &&
           map_guard_lost(&r->remains.lost) == MAP_GUARD_NOTHING_LOST;
}

// Reads the stripes of a striped block, which begins at `at` in its extent. After a damaged header,
// all further stripes count as damaged, because the places of their headers are unknown.
static int stripes_read(struct store_reader *r, const struct extent_blocks *g,
                        const struct extent_entry *e, uint64_t at, struct block_ref *striped)
{
    const struct block_header *h = &striped->header;
    striped->stripes = calloc(h->columns, sizeof(struct block_ref *));
    if (!striped->stripes)
        return -ENOMEM;
    uint64_t end = at + h->size;
    at += sizeof *h;
    int64_t before_ns = INT64_MIN;
    while (striped->stripe_count < h->columns) {
        struct block_header stripe;
        if (!header_read(r, &stripe, r->mapping->base + e->offset + at) ||
            !block_stripe_fits(h, &stripe, end - at) ||
            (striped->stripe_count && stripe.first_ns <= before_ns)) {
            if (retired_meanwhile(r, g, e))
                return -EAGAIN;
            reader_damaged(r, e->offset + at, end - at, "the header of a stripe");
            return 0;
        }
        struct block_ref *b = block_found(r, g, e, at, &stripe);
        if (!b)
            return -ENOMEM;
        striped->stripes[striped->stripe_count++] = b;
        before_ns = stripe.last_ns;
        at += stripe.size;
    }
    return 0;
}

static int extent_read(struct store_reader *r, enum trust trust, struct extent_blocks *g,
                       const struct extent_entry *e)
{
    uint64_t promised, used = blocks_end(e, trust, &promised);
    const uint8_t *base = r->mapping->base + e->offset;
    while (g->read < used && used - g->read >= sizeof(struct block_header)) {
        struct block_header h;
        bool fits = header_read(r, &h, base + g->read) && block_header_fits(&h, used - g->read);
        if (g->read >= promised) {
            bool sound = fits && block_intact(&h, base + g->read);
            if (trust == TRUST_SYNCED && !sound)
                reader_unsure(r, e->offset + g->read, used - g->read);
            else if (trust == TRUST_KILLED && sound && !lock_has_writer(r->fd))
                reader_damaged(r, e->offset + g->read, h.size,
                               "the size of the extent with the block");
            if (!sound)
                return 0;
        }
        if (!fits) {
            if (retired_meanwhile(r, g, e))
                return -EAGAIN;
            uint64_t next = next_header(base, g->read + 8, used);
            reader_damaged(r, e->offset + g->read, next - g->read, "a block header");
            g->read = next;
            continue;
        }
        if (!array_room(&g->blocks, &g->capacity, g->count + 1, sizeof *g->blocks))
            return -ENOMEM;
        struct block_ref *b = block_found(r, g, e, g->read, &h);
        int rc = !b ? -ENOMEM : h.flags & BLOCK_STRIPED ? stripes_read(r, g, e, g->read, b) : 0;
        if (rc) {
            if (b)
                block_release(b);
            return rc;
        }
        g->blocks[g->count++] = b;
        g->read += h.size;
    }
    return 0;
}

int extents_update(struct store_reader *r, enum trust trust, const struct extent_entry *table,
                   const struct extent_entry *live, size_t count)
{
    if (!array_room_zeroed(&r->extents, &r->extent_count, count, sizeof *r->extents))
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct extent_entry *e = &table[i];
        struct extent_blocks *g = &r->extents[i];
        // The table may have moved. Blocks must then read their extent's generation in the new
        // table.
        if (e->kind != EXTENT_BLOCKS || g->generation != e->generation || g->offset != e->offset ||
            g->entry != &live[i])
            extent_forget(g);
        if (e->kind != EXTENT_BLOCKS)
            continue;
        g->generation = e->generation;
        g->offset = e->offset;
        g->entry = &live[i];
        int rc = extent_read(r, trust, g, e);
        if (rc)
            return rc;
    }
    return 0;
}
