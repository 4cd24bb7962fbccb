// retain.c - old blocks make room: whole segments, oldest first.
#include "store/block.h"
#include "store/writer.h"

struct segment_age {
    uint64_t blocks, values;
    int64_t last_ns;
};

static struct segment_age age_of(const struct store *s, int slot)
{
    const struct segment_entry *e = extent_entry(&s->file, slot);
    struct segment_age age = {.last_ns = INT64_MIN};
    for (uint64_t at = 0; at + sizeof(struct block_header) <= e->used;) {
        struct block_header h;
        memcpy(&h, s->file.base + e->offset + at, sizeof h);
        if (!block_header_fits(&h, e->used - at))
            break;
        age.blocks++;
        age.values += h.values;
        if (h.last_ns > age.last_ns)
            age.last_ns = h.last_ns;
        at += h.size;
    }
    return age;
}

void retain(struct store *s)
{
    for (;;) {
        int oldest = EXTENT_NO_SLOT;
        for (uint32_t i = 0; i < extents_super(&s->file)->table_count; i++) {
            const struct segment_entry *e = extent_entry(&s->file, (int)i);
            if (e->kind == SEGMENT_BLOCKS && (int)i != s->block_slot &&
                (oldest == EXTENT_NO_SLOT || e->sequence < extent_entry(&s->file, oldest)->sequence))
                oldest = (int)i;
        }
        if (oldest == EXTENT_NO_SLOT)
            return;
        struct segment_age age = age_of(s, oldest);
        bool too_old =
            s->window_ns && s->newest_ns > INT64_MIN + s->window_ns && age.last_ns < s->newest_ns - s->window_ns;
        if (!too_old && s->file.used_bytes <= s->size_limit_bytes)
            return;
        s->stats.retired_blocks += age.blocks;
        s->stats.retired_values += age.values;
        s->stats.blocks -= age.blocks;
        extent_free(&s->file, oldest);
    }
}
