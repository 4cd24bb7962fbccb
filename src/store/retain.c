// retain.c - deletes old blocks to make room: whole extents, oldest first.
//
// An extent is as old as the newest point in it. Hot blocks and cold blocks lie in different
// extents, so blocks of one kind never keep those of the other kind in the file.
//
// The catalog is never deleted, and does not count towards the limit. It has a limit of its own
// (define.c), so names never displace data.
//
// While a writer closes a file, tails become blocks and hot blocks become cold ones, and for a
// while the file holds both forms. During this time only the final size counts, and nothing is
// deleted before that size is known. Until then the file exceeds the limit by at most its tails and
// the cold blocks (a quarter of the limit, and less than the hot blocks took).
#include "store/writer.h"

static int oldest_extent(const struct store *s)
{
    int oldest = EXTENT_NO_SLOT;
    for (uint32_t i = 0; i < extents_super(&s->file)->table_count; i++) {
        if (extent_entry(&s->file, (int)i)->kind != EXTENT_BLOCKS || (int)i == s->blocks.hot_slot ||
            ((int)i == s->blocks.cold_slot && !s->blocks.sums[i].blocks) ||
            extent_is_pending(&s->file, (int)i))
            continue;
        if (oldest == EXTENT_NO_SLOT || s->blocks.sums[i].last_ns < s->blocks.sums[oldest].last_ns)
            oldest = (int)i;
    }
    return oldest;
}

static void retire(struct store *s, int slot)
{
    const struct extent_sum *sum = &s->blocks.sums[slot];
    s->stats.retired_blocks += sum->blocks;
    s->stats.retired_values += sum->values;
    s->stats.blocks -= sum->blocks;
    struct superblock *sb = extents_super(&s->file);
    __atomic_store_n(&sb->retired, sb->retired + sum->values, __ATOMIC_RELAXED);
    if (slot == s->blocks.cold_slot)
        s->blocks.cold_slot =
            EXTENT_NO_SLOT; // if merging lags behind, the merged blocks are the oldest
    extent_free(&s->file, slot);
}

void retain_make_room(struct store *s, uint64_t needed_bytes)
{
    if (s->closing)
        return;
    for (;;) {
        uint64_t used = s->file.used_bytes - s->file.pending_bytes - s->catalog.extent_bytes;
        bool too_large = used + needed_bytes > s->limits.size_bytes;
        if (!too_large && !s->limits.window_ns)
            return;
        int slot = oldest_extent(s);
        if (slot == EXTENT_NO_SLOT)
            return;
        const struct extent_sum *sum = &s->blocks.sums[slot];
        bool too_old = sum->last_ns < retain_window_start(s);
        if (!too_large && !too_old)
            return;
        retire(s, slot);
    }
}

// Returns the size that the closed file will have without the catalog. Replaced blocks do not
// count.
static uint64_t live_bytes(const struct store *s)
{
    uint64_t bytes = LAYOUT_HEADER_BYTES;
    for (uint32_t i = 0; i < extents_super(&s->file)->table_count; i++) {
        const struct extent_entry *e = extent_entry(&s->file, (int)i);
        if (e->kind == EXTENT_BLOCKS)
            bytes += s->blocks.sums[i].live_bytes;
    }
    return bytes;
}

void retain_closed(struct store *s)
{
    int slot;
    while (live_bytes(s) > s->limits.size_bytes && (slot = oldest_extent(s)) != EXTENT_NO_SLOT)
        retire(s, slot);
}
