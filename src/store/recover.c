// recover.c - continues the file of the last writer, however that writer ended.
//
//   closed            nothing to do
//   killed            the file contains exactly the bytes that the writer had written. Tails
//                     must have the checksums that syncs noted. If a block has the number of
//                     a tail, the writer was killed while it sealed the tail: the tail is emptied
//   machine crashed   data that the last sync did not write may have any value. A tail counts up to
//                     the length of a note with a right checksum. Blocks and catalog entries
//                     after the last sync are checked one by one, and cut off at the first bad one
//
// So recovery reads the headers of the blocks, the catalog, and the other data since the last sync.
#include "base/array.h"
#include "base/hash.h"
#include "base/log.h"
#include "store/block.h"
#include "store/catalog.h"
#include "store/event_record.h"
#include "store/writer.h"

#include <errno.h>
#include <stdlib.h>

struct known_block {
    struct block_header h;
    int slot;
    uint64_t at;
};

struct recovery {
    struct known_block *blocks;
    size_t count, capacity;
    uint64_t cut_bytes, lost_tails, live_rows, live_points;
    bool machine;
};

// ---- Catalog ----

static uint32_t noted_used(const struct extent_entry *e)
{
    return e->synced[0].used > e->synced[1].used ? e->synced[0].used : e->synced[1].used;
}

// Returns the length that a sync guarantees. The greater note may belong to a sync that had not
// finished when the machine crashed.
static uint32_t synced_used(const struct extent_entry *e)
{
    return e->synced[0].used < e->synced[1].used ? e->synced[0].used : e->synced[1].used;
}

// Cuts an extent, and the notes of a greater length, because readers would take the contradiction
// for damage (trusted_data.c).
static void cut(struct extent_entry *e, uint64_t used)
{
    for (int i = 0; i < 2; i++)
        if (e->synced[i].used > used)
            __atomic_store_n((uint64_t *)(void *)&e->synced[i], UINT64_C(0), __ATOMIC_RELAXED);
    extent_publish(e, used);
}

static int load_packed(struct store *s, const struct extent_entry *e)
{
    uint8_t *raw;
    size_t size, good;
    int rc = catalog_unpack(s->file.base + e->offset, e->used, &raw, &size);
    if (rc)
        return rc;
    rc = catalog_load_entries(s, (struct str){(const char *)raw, size}, &good);
    free(raw);
    return rc;
}

static int load_extents(struct store *s, struct recovery *r, struct error *e)
{
    for (uint64_t sequence = 1;; sequence++) {
        int slot = EXTENT_NO_SLOT;
        bool more = false;
        for (uint32_t i = 0; i < extents_super(&s->file)->table_count; i++) {
            const struct extent_entry *entry = extent_entry(&s->file, (int)i);
            if (entry->kind != EXTENT_CATALOG && entry->kind != EXTENT_CATALOG_PACKED)
                continue;
            if (entry->sequence == sequence)
                slot = (int)i;
            more = more || entry->sequence > sequence;
        }
        if (slot == EXTENT_NO_SLOT)
            return more ? error_set(e, -EBADMSG,
                                    "%s: a part of its catalog is gone; it can be read as far as "
                                    "it goes, but not continued",
                                    s->path)
                        : 0;
        s->catalog.slot = slot;
        s->catalog.sequence = sequence;
        s->catalog.extent_bytes += extent_entry(&s->file, slot)->size;
        struct extent_entry *entry = extent_entry(&s->file, slot);
        if (entry->used > entry->size)
            entry->used = entry->size;
        size_t good = entry->used;
        int rc = entry->kind == EXTENT_CATALOG_PACKED
                     ? load_packed(s, entry)
                     : catalog_load_entries(
                           s, (struct str){(const char *)s->file.base + entry->offset, entry->used},
                           &good);
        if (rc == -EBADMSG && r->machine && good >= synced_used(entry)) {
            r->cut_bytes += entry->used - good;
            cut(entry, good);
            return 0;
        }
        if (rc)
            return error_set(e, rc,
                             "%s: its catalog is damaged at byte %llu; it can be read as far as it "
                             "goes, but not continued",
                             s->path, (unsigned long long)(entry->offset + good));
    }
}

static int load_catalog(struct store *s, struct recovery *r, struct error *e)
{
    int rc = load_extents(s, r, e);
    if (!rc && s->catalog.slot != EXTENT_NO_SLOT) {
        const struct extent_entry *last = extent_entry(&s->file, s->catalog.slot);
        s->catalog.ended = extent_reserve(&s->file, s->catalog.slot, last->used) != 0;
    }
    return rc;
}

// ---- Blocks ----

static int note_block(struct recovery *r, const struct block_header *h, int slot, uint64_t at)
{
    if (!array_room(&r->blocks, &r->capacity, r->count + 1, sizeof *r->blocks))
        return -ENOMEM;
    r->blocks[r->count++] = (struct known_block){*h, slot, at};
    return 0;
}

static int find_blocks(struct store *s, struct recovery *r, int slot)
{
    struct extent_entry *e = extent_entry(&s->file, slot);
    const uint8_t *base = s->file.base + e->offset;
    struct extent_sum *sum = extent_sum(s, slot);
    if (!sum)
        return -ENOMEM;
    *sum = (struct extent_sum){.last_ns = INT64_MIN};
    if (e->used > e->size)
        e->used = e->size;
    if (!r->machine && e->used < noted_used(e) && noted_used(e) <= e->size) {
        // `used` only grows, and a sync has noted a greater value. The blocks' own checksums
        // decide.
        log_warning("%s: the extent at byte %llu says that it holds %llu bytes, but a sync saw "
                    "%u: these are read",
                    s->path, (unsigned long long)e->offset, (unsigned long long)e->used,
                    noted_used(e));
        extent_publish(e, noted_used(e));
    }
    for (uint64_t at = 0; e->used - at >= sizeof(struct block_header);) {
        struct block_header h;
        memcpy(&h, base + at, sizeof h);
        bool fits = block_header_fits(&h, e->used - at);
        if (!fits || (r->machine && at >= synced_used(e) && !block_intact(&h, base + at))) {
            // No promise covers data after the last sync. Bad data before it are damage, which
            // readers will report.
            if (!r->machine || at < synced_used(e)) {
                at = block_next(base, at + 8, e->used);
                continue;
            }
            r->cut_bytes += e->used - at;
            cut(e, at);
            break;
        }
        int rc = note_block(r, &h, slot, at);
        if (rc)
            return rc;
        at += h.size;
    }
    return 0;
}

static int by_number(const void *a, const void *b)
{
    return block_by_number(&((const struct known_block *)a)->h,
                           &((const struct known_block *)b)->h);
}

// True if a writer can have made this hot block from a tail. Other hot blocks are never merged,
// because their sizes would determine the memory of a merge.
static bool from_tail(const struct store *s, const struct block_header *h)
{
    return h->kind == BLOCK_POINTS
               ? h->rows <= TAIL_POINTS_MAX
               : h->rows <= TAIL_ROWS_MAX && h->columns == s->catalog.sets[h->owner].count;
}

static void account(struct store *s, struct recovery *r)
{
    if (r->count)
        qsort(r->blocks, r->count, sizeof *r->blocks, by_number);
    const struct known_block *wide = NULL;
    for (size_t i = 0; i < r->count; i++) {
        const struct known_block *b = &r->blocks[i];
        const struct block_header *h = &b->h;
        struct extent_sum *sum = &s->blocks.sums[b->slot];
        if (h->kind != BLOCK_EVENTS && h->last_ns > s->newest_ns)
            s->newest_ns = h->last_ns;
        if (h->kind == BLOCK_POINTS && h->last_ns > s->shared.singles_before_ns)
            s->shared.singles_before_ns = h->last_ns;
        if (h->last_ns > sum->last_ns)
            sum->last_ns = h->last_ns;
        bool known = h->kind != BLOCK_SET || h->owner < s->stats.sets;
        struct tail *t = h->kind == BLOCK_POINTS   ? &s->tails.points
                         : h->kind == BLOCK_EVENTS ? &s->tails.events
                         : known                   ? &s->catalog.sets[h->owner].tail
                                                   : NULL;
        if (t && h->sequence_last >= t->sequence)
            t->sequence = h->sequence_last + 1;
        bool covered = wide && block_covers(&wide->h, h) &&
                       block_intact(&wide->h, extent_bytes(&s->file, wide->slot) + wide->at);
        if (covered)
            continue;
        wide = b;
        bool hot = known && h->kind != BLOCK_EVENTS && !(h->flags & BLOCK_COLD) && from_tail(s, h);
        block_account(s, h, b->slot, b->at, hot);
    }
}

static bool is_sealed(const struct recovery *r, const struct store *s, enum block_kind kind,
                      uint32_t owner, uint64_t sequence)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct known_block *b = &r->blocks[i];
        if (b->h.kind == kind && b->h.owner == owner && b->h.sequence_first <= sequence &&
            b->h.sequence_last >= sequence &&
            block_intact(&b->h, extent_bytes(&s->file, b->slot) + b->at))
            return true;
    }
    return false;
}

// ---- Tails ----

// Returns the trusted length of a tail after the machine crashed.
static uint32_t believed(struct recovery *r, const struct extent_entry *e, const uint8_t *bytes,
                         uint64_t unit)
{
    uint32_t best = 0;
    bool noted = false;
    for (int i = 0; i < 2; i++) {
        const struct extent_synced *n = &e->synced[i];
        noted = noted || n->used;
        if (n->used > best && n->used <= e->size / unit &&
            crc32c(0, bytes, n->used * unit) == n->crc)
            best = n->used;
    }
    r->lost_tails += noted && !best;
    return best;
}

// Returns the trusted length of a tail after its writer was killed. A killed process leaves exactly
// the bytes that it had written, so the tail must match the notes of the syncs. If it does not,
// bytes or `used` were damaged later. The tail then counts up to the length of a note whose
// checksum is right; the rest cannot be verified.
static uint32_t undamaged(struct store *s, const struct extent_entry *e, const uint8_t *bytes,
                          uint64_t unit, uint32_t used)
{
    uint32_t good = 0, noted = 0;
    for (int i = 0; i < 2; i++) {
        const struct extent_synced *n = &e->synced[i];
        noted = n->used > noted ? n->used : noted;
        if (n->used > good && n->used <= e->size / unit &&
            crc32c(0, bytes, n->used * unit) == n->crc)
            good = n->used;
    }
    if (good == noted && used >= noted)
        return used;
    s->stats.damaged_tails++;
    log_warning("%s: unsealed data at byte %llu is damaged: %u of %u %s are intact", s->path,
                (unsigned long long)e->offset, good, used > noted ? used : noted,
                unit == 1 ? "bytes of events" : "rows or points");
    return good;
}

// Returns the length of the leading complete event records. A writer never publishes a part of a
// record, so any other bytes are damage.
static uint32_t sound_events(struct store *s, const struct extent_entry *e, const uint8_t *bytes,
                             uint32_t used)
{
    struct bytes in = bytes_of(bytes, used);
    struct store_event event;
    struct store_label labels[STORE_LABELS_MAX];
    while (event_next(&in, &event, labels) > 0)
        continue;
    uint32_t good = (uint32_t)(in.at - bytes);
    if (good < used) {
        s->stats.damaged_tails++;
        log_warning("%s: unsealed events at byte %llu are damaged: %u of %u bytes are kept",
                    s->path, (unsigned long long)e->offset, good, used);
    }
    return good;
}

static int64_t time_at(const uint8_t *bytes, enum extent_kind kind, uint64_t unit, uint64_t i)
{
    int64_t t;
    memcpy(&t, bytes + i * unit + (kind == EXTENT_POINT_TAIL ? 8 : 0), sizeof t);
    return t;
}

static int take_tail(struct store *s, struct recovery *r, int slot)
{
    struct extent_entry *e = extent_entry(&s->file, slot);
    enum extent_kind kind = (enum extent_kind)e->kind;
    bool set = kind == EXTENT_SET_TAIL;
    if (set && e->owner >= s->stats.sets) {
        // the set was defined after the last sync, and was lost when the machine crashed
        extent_free(&s->file, slot);
        return 0;
    }
    struct tail *t = set                         ? &s->catalog.sets[e->owner].tail
                     : kind == EXTENT_POINT_TAIL ? &s->tails.points
                                                 : &s->tails.events;
    uint64_t unit = set ? (s->catalog.sets[e->owner].count + 1) * UINT64_C(8)
                    : kind == EXTENT_POINT_TAIL ? sizeof(struct point_record)
                                                : 1;
    const uint8_t *bytes = s->file.base + e->offset;
    uint64_t room = e->size / unit, most = set                         ? TAIL_ROWS_MAX
                                           : kind == EXTENT_POINT_TAIL ? TAIL_POINTS_MAX
                                                                       : UINT32_MAX;
    room = room < most ? room : most;
    uint32_t used = r->machine
                        ? believed(r, e, bytes, unit)
                        : undamaged(s, e, bytes, unit, (uint32_t)(e->used < room ? e->used : room));
    if (kind == EXTENT_EVENT_TAIL)
        used = sound_events(s, e, bytes, used);
    enum block_kind block = set                         ? BLOCK_SET
                            : kind == EXTENT_POINT_TAIL ? BLOCK_POINTS
                                                        : BLOCK_EVENTS;
    if (!used || (e->sequence < t->sequence && is_sealed(r, s, block, e->owner, e->sequence))) {
        extent_free(&s->file, slot);
        return 0;
    }
    if (t->slot != EXTENT_NO_SLOT) {
        // There are two tails of one owner: the older one was full, and the block that was made of
        // it is lost. They come here in order (recover()).
        int rc = set                         ? seal_set(s, e->owner)
                 : kind == EXTENT_POINT_TAIL ? seal_points(s)
                                             : seal_events(s);
        if (rc)
            return rc;
        e = extent_entry(&s->file, slot);
        if (t->slot != EXTENT_NO_SLOT) {
            s->tails.bytes -= extent_entry(&s->file, t->slot)->size;
            s->tails.set_count -= set;
            extent_free(&s->file, t->slot);
        }
    }
    for (uint32_t i = 0; kind != EXTENT_EVENT_TAIL && i < used; i++) {
        int64_t at = time_at(s->file.base + e->offset, kind, unit, i);
        s->newest_ns = at > s->newest_ns ? at : s->newest_ns;
        if (kind == EXTENT_POINT_TAIL && at > s->shared.singles_before_ns)
            s->shared.singles_before_ns = at;
    }
    cut(e, used);
    if (extent_reserve(&s->file, slot, used * unit))
        room = used; // the tail is full; the next append seals it, which also needs space
    *t = (struct tail){.slot = slot,
                       .used = used,
                       .room = (uint32_t)room,
                       .offset = e->offset,
                       .sequence = e->sequence};
    s->tails.bytes += e->size;
    s->tails.set_count += set;
    r->live_rows += set ? used : 0;
    r->live_points += kind == EXTENT_POINT_TAIL ? used : 0;
    return 0;
}

struct tail_place {
    uint64_t sequence;
    int slot;
};

static int by_sequence(const void *a, const void *b)
{
    const struct tail_place *x = a, *y = b;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static int take_tails(struct store *s, struct recovery *r)
{
    uint32_t n = extents_super(&s->file)->table_count;
    struct tail_place *places = malloc((n + 1) * sizeof *places);
    if (!places)
        return -ENOMEM;
    size_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct extent_entry *e = extent_entry(&s->file, (int)i);
        if (e->kind >= EXTENT_SET_TAIL && e->kind <= EXTENT_EVENT_TAIL)
            places[count++] = (struct tail_place){e->sequence, (int)i};
    }
    qsort(places, count, sizeof *places, by_sequence);
    int rc = 0;
    for (size_t i = 0; !rc && i < count; i++)
        rc = take_tail(s, r, places[i].slot);
    free(places);
    return rc;
}

int recover_file(struct store *s, bool crashed, bool machine, uint32_t dropped, struct error *e)
{
    struct recovery r = {.machine = machine};
    int rc = load_catalog(s, &r, e);
    if (rc)
        return rc;
    for (uint32_t i = 0; !rc && i < extents_super(&s->file)->table_count; i++) {
        const struct extent_entry *entry = extent_entry(&s->file, (int)i);
        if (entry->kind == EXTENT_BLOCKS)
            rc = find_blocks(s, &r, (int)i);
        if (entry->kind == EXTENT_BLOCKS && entry->sequence > s->blocks.sequence)
            s->blocks.sequence = entry->sequence;
    }
    if (!rc)
        account(s, &r);
    if (!rc)
        rc = take_tails(s, &r);
    free(r.blocks);
    if (rc)
        return error_set(e, rc, "cannot continue %s: %s", s->path, strerror(-rc));
    shared_opened(s);
    struct superblock *sb = extents_super(&s->file);
    __atomic_store_n(&sb->newest_ns, s->newest_ns, __ATOMIC_RELAXED);
    if (crashed)
        log_info("%s: the last writer %s; %llu blocks, %llu series, %llu unsealed rows and %llu "
                 "points are there%s",
                 s->path, machine ? "went down with its machine" : "was killed",
                 (unsigned long long)s->stats.blocks, (unsigned long long)s->stats.series,
                 (unsigned long long)r.live_rows, (unsigned long long)r.live_points,
                 machine ? "" : "; nothing is lost");
    if (r.cut_bytes || r.lost_tails || dropped)
        log_warning("%s: %llu bytes written after the last sync were not on disk, %llu tails and "
                    "%u extents could not be read",
                    s->path, (unsigned long long)r.cut_bytes, (unsigned long long)r.lost_tails,
                    dropped);
    return 0;
}
