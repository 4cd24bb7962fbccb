// retain.c - old blocks make room: whole segments, oldest first.
//
// A segment is as old as the newest point in it. Hot and cold blocks lie in segments of their own, so neither keeps the other.
#include "store/writer.h"

static int oldest_segment(const struct store *s)
{
    int oldest = EXTENT_NO_SLOT;
    for (uint32_t i = 0; i < extents_super(&s->file)->table_count; i++) {
        if (extent_entry(&s->file, (int)i)->kind != SEGMENT_BLOCKS || (int)i == s->hot_slot ||
            ((int)i == s->cold_slot && !s->sums[i].blocks) || extent_is_pending(&s->file, (int)i))
            continue;
        if (oldest == EXTENT_NO_SLOT || s->sums[i].last_ns < s->sums[oldest].last_ns)
            oldest = (int)i;
    }
    return oldest;
}

void retain(struct store *s, uint64_t wanted_bytes)
{
    for (;;) {
        uint64_t used = s->file.used_bytes - s->file.pending_bytes;
        bool too_large = used + wanted_bytes > s->size_limit_bytes;
        if (!too_large && !s->window_ns)
            return;
        int slot = oldest_segment(s);
        if (slot == EXTENT_NO_SLOT)
            return;
        const struct segment_sum *sum = &s->sums[slot];
        bool too_old =
            s->window_ns && s->newest_ns >= INT64_MIN + s->window_ns && sum->last_ns < s->newest_ns - s->window_ns;
        if (!too_large && !too_old)
            return;
        s->stats.retired_blocks += sum->blocks;
        s->stats.retired_values += sum->values;
        s->stats.blocks -= sum->blocks;
        if (slot == s->cold_slot)
            s->cold_slot = EXTENT_NO_SLOT; // where merging lags behind, what it has done is the oldest
        extent_free(&s->file, slot);
    }
}
