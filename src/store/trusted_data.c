// trusted_data.c - decides which data of a file without a writer can be trusted.
//
// Sealed blocks and catalog entries have checksums. The data in tails, which were appended last,
// have none. After its writer was killed, the file holds exactly the bytes that it had written.
// After a crash of the machine, it holds only the bytes that were on disk, possibly `used` without
// its rows. Each sync therefore notes the length of a tail and the checksum of that part
// (docs/format.md), and a reader trusts the same part of a tail that recover.c would keep, without
// writing:
//
//   writer on this node all
//   killed, same boot   all, if the notes are valid; otherwise up to a valid one
//   another boot id     up to a valid note: the machine crashed, or the file is from another
//                       machine, which may have crashed
#include "base/hash.h"
#include "store/lock.h"
#include "store/reader.h"

enum trust trust_of(const struct store_reader *r)
{
    const struct superblock *sb = (const struct superblock *)(const void *)r->mapping->base;
    // Acquire: the state is read before the boot id and the table.
    if (__atomic_load_n(&sb->state, __ATOMIC_ACQUIRE) != LAYOUT_LIVE)
        return TRUST_WRITER;
    if (memcmp(sb->boot_id, r->boot_id, sizeof r->boot_id))
        return TRUST_SYNCED;
    return lock_has_writer(r->fd) ? TRUST_WRITER : TRUST_KILLED;
}

void trust_note(struct extent_synced to[2], const struct extent_entry *entry)
{
    for (int i = 0; i < 2; i++) {
        // Acquire: the note is read before the bytes that its checksum covers.
        uint64_t note =
            __atomic_load_n((const uint64_t *)(const void *)&entry->synced[i], __ATOMIC_ACQUIRE);
        memcpy(&to[i], &note, sizeof note);
    }
}

// Returns the length of the longest valid note. *noted gets the length of the longest note.
static uint64_t sound(const struct view_tail *t, uint64_t unit, uint64_t *noted)
{
    uint64_t good = 0;
    *noted = 0;
    for (int i = 0; i < 2; i++) {
        const struct extent_synced *n = &t->notes[i];
        *noted = n->used > *noted ? n->used : *noted;
        if (n->used > good && n->used <= t->size / unit &&
            crc32c(0, t->bytes, n->used * unit) == n->crc)
            good = n->used;
    }
    return good;
}

uint64_t trust_tail(struct store_reader *r, enum trust trust, struct view_tail *t, uint64_t unit,
                    uint64_t used)
{
    if (trust == TRUST_WRITER)
        return used;
    struct extent_synced now[2];
    trust_note(now, t->entry);
    if (!t->looked_at || memcmp(now, t->notes, sizeof now)) {
        memcpy(t->notes, now, sizeof now);
        t->looked_at = true;
        t->sound = sound(t, unit, &t->noted);
    }
    bool holds = t->sound == t->noted && used >= t->noted;
    if (trust == TRUST_KILLED && holds)
        return used;
    // the rows without a valid note; or, if all notes are valid, the noted rows beyond `used`
    uint64_t most = used > t->noted ? used : t->noted, unsure = most - t->sound;
    uint64_t at = t->offset + (unsure ? t->sound : used) * unit;
    // A writer that is just opening the file checks its tails itself.
    if (trust == TRUST_KILLED && !lock_has_writer(r->fd))
        reader_damaged(r, at, (unsure ? unsure : most - used) * unit, "what was not sealed yet");
    else if (trust == TRUST_SYNCED && unsure)
        reader_unsure(r, at, unsure * unit);
    return t->sound;
}
