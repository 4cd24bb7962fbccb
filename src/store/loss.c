// loss.c - counts data that are not in the file: dropped, waiting for space, retired.
//
// The counts are in the header, because its disk space is reserved from the beginning. On a full
// disk the agent's own counters cannot be stored, and a killed writer can no longer report the data
// in its memory.
#include "store/writer.h"

static void set(uint64_t *at, uint64_t value)
{
    __atomic_store_n(at, value, __ATOMIC_RELAXED);
}

static void write_dropped(struct store *s)
{
    set(&extents_super(&s->file)->dropped, s->dropped.before + s->dropped.noted + s->dropped.here);
}

// Data that waited in the memory of a killed writer are lost.
void loss_opened(struct store *s)
{
    struct superblock *sb = extents_super(&s->file);
    s->dropped.before = sb->dropped + sb->waiting;
    write_dropped(s);
    set(&sb->waiting, 0);
}

void loss_waiting(struct store *s, int64_t more)
{
    struct superblock *sb = extents_super(&s->file);
    set(&sb->waiting, sb->waiting + (uint64_t)more);
}

void loss_of_waiting(struct store *s)
{
    struct superblock *sb = extents_super(&s->file);
    s->dropped.here += sb->waiting;
    write_dropped(s);
    set(&sb->waiting, 0);
}

uint64_t store_waiting(const struct store *s)
{
    return extents_super(&s->file)->waiting;
}

void store_note_dropped(struct store *s, uint64_t dropped)
{
    if (dropped == s->dropped.noted)
        return;
    s->dropped.noted = dropped;
    write_dropped(s);
}
