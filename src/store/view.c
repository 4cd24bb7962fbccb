// view.c - lists the blocks and tails of the file at one moment.
//
// The extent table is copied between two reads of its sequence number. If both are equal and even,
// the writer has allocated, sealed and freed nothing in between. While the number is unchanged, the
// view is unchanged, too: only `used` of the tails grows.
#include "base/array.h"
#include "store/lock.h"
#include "store/reader.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TABLE_TRIES = 2000, TABLE_ENTRIES_MAX = 1 << 22 };

// ---- The table ----

struct table {
    struct extent_entry *entries; // malloc'ed
    const struct extent_entry *live;
    uint32_t count;
    uint64_t sequence, version;
    int64_t newest_ns;
};

static const struct superblock *super_of(const struct store_reader *r)
{
    return (const struct superblock *)(const void *)r->mapping->base;
}

// Returns 0, or -EAGAIN if the table has changed meanwhile.
static int copy_table_once(struct store_reader *r, struct table *t, bool any)
{
    const struct superblock *sb = super_of(r);
    // Acquire: the table is read after its number.
    t->sequence = __atomic_load_n(&sb->table_sequence, __ATOMIC_ACQUIRE);
    if (t->sequence & 1 && !any)
        return -EAGAIN;
    uint64_t offset = __atomic_load_n(&sb->table_offset, __ATOMIC_RELAXED);
    t->count = __atomic_load_n(&sb->table_count, __ATOMIC_RELAXED);
    struct stat st;
    if (fstat(r->fd, &st))
        return -errno;
    uint64_t size = (uint64_t)st.st_size, bytes = t->count * sizeof(struct extent_entry);
    int rc = reader_map(r, size);
    if (rc)
        return rc;
    sb = super_of(r);
    if (t->count > TABLE_ENTRIES_MAX || offset > size || bytes > size - offset || offset % 8)
        return -EBADMSG;
    free(t->entries);
    t->entries = malloc(bytes + sizeof *t->entries);
    if (!t->entries)
        return -ENOMEM;
    t->live = (const struct extent_entry *)(const void *)(r->mapping->base + offset);
    // Acquire: each `used` below is at least as new as this version.
    t->version = __atomic_load_n(&sb->version, __ATOMIC_ACQUIRE);
    t->newest_ns = __atomic_load_n(&sb->newest_ns, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < t->count; i++) {
        // Acquire: the bytes before `used` are read after it.
        uint64_t used = __atomic_load_n(&t->live[i].used, __ATOMIC_ACQUIRE);
        reader_copy_words(&t->entries[i], (const uint8_t *)&t->live[i], sizeof *t->entries);
        t->entries[i].used = used;
    }
    // Acquire: the table has been read before its number is read again.
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return any || __atomic_load_n(&sb->table_sequence, __ATOMIC_RELAXED) == t->sequence ? 0
                                                                                        : -EAGAIN;
}

static int copy_table(struct store_reader *r, struct table *t)
{
    int rc = -EAGAIN;
    for (int i = 0; i < TABLE_TRIES && (rc == -EAGAIN || rc == -EBADMSG); i++) {
        // A writer that was killed in the middle of a change has left the number odd for good.
        bool any = i % 16 == 15 && !lock_has_writer(r->fd);
        if (i)
            sched_yield();
        rc = copy_table_once(r, t, any);
        // A writer that has just opened the file has changed the table meanwhile.
        if (!rc && any && lock_has_writer(r->fd))
            rc = -EAGAIN;
        if (rc == -EBADMSG && any)
            break;
    }
    return rc;
}

static bool entry_sound(const struct store_reader *r, const struct extent_entry *e)
{
    return extent_entry_is_new(e) ||
           (e->check == extent_entry_check(e) && extent_entry_lies_in(e, r->file_bytes));
}

// ---- The view ----

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_number(const void *a, const void *b)
{
    return block_by_number(&(*(struct block_ref *const *)a)->header,
                           &(*(struct block_ref *const *)b)->header);
}

static int by_owner(const void *a, const void *b)
{
    const struct view_tail *x = a, *y = b;
    if (x->kind != y->kind)
        return compare(x->kind, y->kind);
    return x->owner != y->owner ? compare(x->owner, y->owner) : compare(x->sequence, y->sequence);
}

static bool sound_whole(struct store_reader *r, struct block_ref *b)
{
    // The mutex is held, so the function that reads the block counts the damage later.
    (void)r;
    return block_check(NULL, b, true) == 0;
}

// Removes the blocks whose numbers a wider, valid block covers.
static void drop_replaced(struct store_reader *r, struct view *v)
{
    size_t kept = 0;
    struct block_ref *wide = NULL;
    for (size_t i = 0; i < v->block_count; i++) {
        struct block_ref *b = v->blocks[i];
        if (wide && block_covers(&wide->header, &b->header) && sound_whole(r, wide)) {
            block_release(b);
            continue;
        }
        wide = b;
        v->blocks[kept++] = b;
    }
    v->block_count = kept;
}

static void list_owners(struct view *v)
{
    v->points = v->events = (struct block_list){0};
    memset(v->sets, 0, v->set_count * sizeof *v->sets);
    for (size_t i = 0; i < v->block_count; i++)
        v->ranges[i] =
            (struct time_range){v->blocks[i]->header.first_ns, v->blocks[i]->header.last_ns};
    for (size_t i = 0; i < v->block_count;) {
        const struct block_header *h = &v->blocks[i]->header;
        size_t n = 1;
        while (i + n < v->block_count && v->blocks[i + n]->header.kind == h->kind &&
               (h->kind != BLOCK_SET || v->blocks[i + n]->header.owner == h->owner))
            n++;
        struct block_list list = {v->blocks + i, v->ranges + i, n, true};
        for (size_t k = 1; k < n; k++)
            list.ordered &= list.ranges[k - 1].last_ns < list.ranges[k].first_ns;
        if (h->kind == BLOCK_POINTS)
            v->points = list;
        else if (h->kind == BLOCK_EVENTS)
            v->events = list;
        else if (h->owner < v->set_count)
            v->sets[h->owner] = list;
        i += n;
    }
}

// Replaces each striped block by its stripes.
static int show_stripes(struct view *v)
{
    size_t striped = 0, more = 0;
    for (size_t i = 0; i < v->block_count; i++) {
        striped += (v->blocks[i]->header.flags & BLOCK_STRIPED) != 0;
        more += v->blocks[i]->stripe_count;
    }
    if (!striped)
        return 0;
    size_t room = v->block_count + more + 1, count = 0;
    struct block_ref **blocks = malloc(room * sizeof(struct block_ref *));
    struct time_range *ranges = realloc(v->ranges, room * sizeof *ranges);
    v->ranges = ranges ? ranges : v->ranges;
    if (!blocks || !ranges) {
        free(blocks);
        return -ENOMEM;
    }
    for (size_t i = 0; i < v->block_count; i++) {
        struct block_ref *b = v->blocks[i];
        if (!(b->header.flags & BLOCK_STRIPED)) {
            blocks[count++] = b;
            continue;
        }
        for (size_t k = 0; k < b->stripe_count; k++) {
            b->stripes[k]->refs++;
            blocks[count++] = b->stripes[k];
        }
        block_release(b);
    }
    free(v->blocks);
    v->blocks = blocks;
    v->block_count = count;
    list_owners(v);
    return 0;
}

static struct block_list blocks_of(const struct view *v, enum extent_kind kind, uint32_t owner)
{
    if (kind == EXTENT_POINT_TAIL)
        return v->points;
    if (kind == EXTENT_EVENT_TAIL)
        return v->events;
    return owner < v->set_count ? v->sets[owner] : (struct block_list){0};
}

static bool sealed(struct store_reader *r, const struct view *v, const struct view_tail *t)
{
    struct block_list l = blocks_of(v, t->kind, t->owner);
    for (size_t i = l.count; i-- > 0 && l.blocks[i]->header.sequence_last >= t->sequence;)
        if (l.blocks[i]->header.sequence_first <= t->sequence && sound_whole(r, l.blocks[i]))
            return true;
    return false;
}

static int view_build(struct store_reader *r, const struct table *t, struct view *v)
{
    size_t blocks = 0;
    for (size_t i = 0; i < r->extent_count; i++)
        blocks += r->extents[i].count;
    v->set_count = r->index.set_count;
    v->blocks = malloc((blocks + 1) * sizeof(struct block_ref *));
    v->ranges = malloc((blocks + 1) * sizeof *v->ranges);
    v->sets = calloc(v->set_count + 1, sizeof *v->sets);
    v->tails = malloc(((size_t)t->count + 1) * sizeof *v->tails);
    if (!v->blocks || !v->ranges || !v->sets || !v->tails)
        return -ENOMEM;
    bool sorted = true;
    for (size_t i = 0; i < r->extent_count; i++)
        for (size_t k = 0; k < r->extents[i].count; k++) {
            struct block_ref *b = r->extents[i].blocks[k];
            b->refs++;
            v->blocks[v->block_count++] = b;
            sorted =
                sorted && (v->block_count == 1 || by_number(&v->blocks[v->block_count - 2],
                                                            &v->blocks[v->block_count - 1]) <= 0);
        }
    if (!sorted)
        qsort(v->blocks, v->block_count, sizeof *v->blocks, by_number);
    drop_replaced(r, v);
    list_owners(v);
    for (uint32_t i = 0; i < t->count; i++) {
        const struct extent_entry *e = &t->entries[i];
        if (e->kind < EXTENT_SET_TAIL || e->kind > EXTENT_EVENT_TAIL)
            continue;
        if (e->kind == EXTENT_SET_TAIL && e->owner >= v->set_count)
            continue;
        struct view_tail tail = {
            .kind = (enum extent_kind)e->kind,
            .owner = e->owner,
            .slot = i,
            .generation = e->generation,
            .sequence = e->sequence,
            .offset = e->offset,
            .size = e->size,
            .bytes = r->mapping->base + e->offset,
            .entry = &t->live[i],
            .remains = &r->remains,
        };
        if (!e->used || !sealed(r, v, &tail))
            v->tails[v->tail_count++] = tail;
    }
    qsort(v->tails, v->tail_count, sizeof *v->tails, by_owner);
    return show_stripes(v);
}

void view_release(struct view *v)
{
    assert(v->refs);
    if (--v->refs)
        return;
    for (size_t i = 0; i < v->block_count; i++)
        block_release(v->blocks[i]);
    free(v->blocks);
    free(v->ranges);
    free(v->sets);
    free(v->tails);
    free(v);
}

// Returns the bytes of one row, point or byte, which is the unit of a tail's `used`.
static uint64_t tail_unit(const struct store_reader *r, const struct view_tail *t)
{
    switch (t->kind) {
    case EXTENT_SET_TAIL:
        return (r->index.sets[t->owner].count + UINT64_C(1)) * sizeof(double);
    case EXTENT_POINT_TAIL:
        return sizeof(struct point_record);
    default:
        return 1;
    }
}

// Reads the published lengths of the tails. Returns -EAGAIN if the table has changed.
static int read_used(struct store_reader *r, struct view *v, uint64_t **used, uint64_t *version,
                     int64_t *newest_ns)
{
    const struct superblock *sb = super_of(r);
    uint64_t *u = malloc((v->tail_count + 1) * sizeof *u);
    if (!u)
        return -ENOMEM;
    // Acquire: each `used` below is at least as new as this version.
    *version = __atomic_load_n(&sb->version, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < v->tail_count; i++) {
        // Acquire: the bytes before `used` are read after it.
        u[i] = __atomic_load_n(&v->tails[i].entry->used, __ATOMIC_ACQUIRE);
        uint64_t unit = tail_unit(r, &v->tails[i]), room = v->tails[i].size / unit;
        u[i] = trust_tail(r, v->trust, &v->tails[i], unit, u[i] < room ? u[i] : room);
    }
    // Acquire, and after the sizes: it is not older than any point before them.
    *newest_ns = __atomic_load_n(&sb->newest_ns, __ATOMIC_ACQUIRE);
    // Acquire: sizes and newest_ns have been read before the number of the table is read again.
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&sb->table_sequence, __ATOMIC_RELAXED) != v->table_sequence) {
        free(u);
        return -EAGAIN;
    }
    *used = u;
    return 0;
}

static bool index_grown(const struct store_reader *r)
{
    const struct index *x = &r->index;
    // Acquire: the entries of the catalog before this `used` are complete.
    return !x->entry || __atomic_load_n(&x->entry->used, __ATOMIC_ACQUIRE) != x->read;
}

static int look_at_file(struct store_reader *r, struct view **out, uint64_t **used,
                        uint64_t *version, int64_t *newest_ns)
{
    const struct superblock *sb = super_of(r);
    // A writer that continues the file after a crash of its machine changes the boot id after it
    // has dropped the unsynced data. Acquire: the boot id is read after the number of the table.
    bool unchanged =
        r->view &&
        r->view->table_sequence == __atomic_load_n(&sb->table_sequence, __ATOMIC_ACQUIRE) &&
        !memcmp(r->view->boot_id, sb->boot_id, sizeof sb->boot_id);
    // The catalog grows without a change of the table, and its entry is read in the table itself.
    if (unchanged && !index_grown(r)) {
        int rc = read_used(r, r->view, used, version, newest_ns);
        if (!rc) {
            r->view->refs++;
            *out = r->view;
        }
        return rc;
    }
    struct table t = {0};
    uint8_t boot_id[sizeof sb->boot_id];
    memcpy(boot_id, sb->boot_id, sizeof boot_id);
    enum trust trust = trust_of(r);
    int rc = copy_table(r, &t);
    // Entries are written one after another: a writer that died during a change has left one entry
    // half-written, which holds no data.
    bool half_done = t.sequence & 1;
    for (uint32_t i = 0; !rc && i < t.count; i++)
        if (!entry_sound(r, &t.entries[i])) {
            if (!half_done)
                reader_damaged(r, (uint64_t)((const uint8_t *)&t.live[i] - r->mapping->base),
                               sizeof *t.entries, "an extent entry");
            half_done = false;
            t.entries[i].kind = EXTENT_EMPTY;
        }
    size_t sets = r->index.set_count;
    if (!rc)
        rc = index_update(r, trust, t.entries, t.live, t.count);
    unchanged = unchanged && r->view->table_sequence == t.sequence && sets == r->index.set_count;
    if (!rc && !unchanged) {
        rc = extents_update(r, trust, t.entries, t.live, t.count);
        struct view *v = rc ? NULL : calloc(1, sizeof *v);
        if (!rc && !v)
            rc = -ENOMEM;
        if (v) {
            v->refs = 1;
            v->table_sequence = t.sequence;
            v->trust = trust;
            memcpy(v->boot_id, boot_id, sizeof boot_id);
            rc = view_build(r, &t, v);
            if (rc) {
                view_release(v);
            } else {
                if (r->view)
                    view_release(r->view);
                r->view = v;
            }
        }
    }
    free(t.entries);
    if (!rc)
        rc = read_used(r, r->view, used, version, newest_ns);
    if (!rc) {
        r->view->refs++;
        *out = r->view;
    }
    return rc;
}

// Returns the previous view if the header or table of a file was cut off. The checks of each block
// then show whether it still exists.
static int last_view(struct store_reader *r, struct view **out, uint64_t **used, uint64_t *version,
                     int64_t *newest_ns)
{
    *used = calloc(r->view->tail_count + 1, sizeof **used);
    if (!*used)
        return -ENOMEM;
    *version = __atomic_load_n(&super_of(r)->version, __ATOMIC_RELAXED);
    *newest_ns = INT64_MAX;
    r->view->refs++;
    *out = r->view;
    return 0;
}

int view_latest(struct store_reader *r, struct view **out, uint64_t **used, uint64_t *version,
                int64_t *newest_ns)
{
    int rc = look_at_file(r, out, used, version, newest_ns);
    bool cut =
        rc == -EBADMSG && r->view && map_guard_lost(&r->remains.lost) != MAP_GUARD_NOTHING_LOST;
    return cut ? last_view(r, out, used, version, newest_ns) : rc;
}
