// store.c - opens and closes files, and does the periodic work.
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/process_start.h"
#include "store/block.h"
#include "store/lock.h"
#include "store/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_SIZE_LIMIT (UINT64_C(1) << 30)
#define DEFAULT_MEMORY_LIMIT ((size_t)256 << 20)
#define DEFAULT_SYNC_NS (INT64_C(5) * NS_PER_S)
#define DEFAULT_CLOSE_NS (INT64_C(5) * NS_PER_S)
#define DEFAULT_REWRITE_LIMIT \
    (UINT64_C(256) << 20) // rewriting larger files costs more than it saves
// a tick begins no further step of a merge after this time; a step takes up to 3 ms
#define TICK_NS (NS_PER_S / 500)
enum { OPEN_TRIES = 100 }; // attempts for a file that other writers close and reopen
#define SPACE_RETRY_NS (INT64_C(1) * NS_PER_S)

static uint32_t clamp(uint64_t v, uint32_t least, uint32_t most)
{
    return v < least ? least : v > most ? most : (uint32_t)v;
}

// Twice as many as there are extents of blocks: a set's tail has one of its own, and a merged block
// is written before its parts are freed.
static uint32_t table_entries(const struct store *s)
{
    return clamp(2 * (s->limits.size_bytes / s->limits.extent_bytes), LAYOUT_NEW_ENTRIES_MIN,
                 LAYOUT_NEW_ENTRIES_MAX);
}

static int create(struct store *s, int fd)
{
    uint32_t entries = table_entries(s);
    int rc = s->io->reserve(s->io->user, fd, 0,
                            LAYOUT_HEADER_BYTES + entries * sizeof(struct extent_entry));
    if (writer_space_error(rc)) {
        entries = LAYOUT_NEW_ENTRIES_MIN;
        rc = s->io->reserve(s->io->user, fd, 0, LAYOUT_NEW_BYTES_MIN);
    }
    if (rc)
        return rc;
    uint8_t *base;
    rc = s->io->map(s->io->user, fd, LAYOUT_NEW_BYTES_MIN, &base);
    if (rc)
        return rc;
    struct superblock sb = {
        .major = LAYOUT_MAJOR,
        .minor = LAYOUT_MINOR,
        .header_bytes = LAYOUT_HEADER_BYTES,
        .created_ns = clock_realtime_ns(),
        .state = LAYOUT_LIVE,
        .newest_ns = INT64_MIN,
        .table_offset = LAYOUT_HEADER_BYTES,
        .table_capacity = entries,
    };
    memcpy(sb.magic, LAYOUT_MAGIC, sizeof sb.magic);
    if (getrandom(sb.file_id, sizeof sb.file_id, GRND_NONBLOCK) < 0)
        memcpy(sb.file_id, &sb.created_ns, sizeof sb.created_ns);
    sb.fixed_crc = crc32c(0, &sb, offsetof(struct superblock, fixed_crc));
    // Write the magic last: without it the file counts as not created. Release: a reader that reads
    // the magic also reads the rest of the header.
    memcpy(base + sizeof sb.magic, (uint8_t *)&sb + sizeof sb.magic, sizeof sb - sizeof sb.magic);
    uint64_t magic;
    memcpy(&magic, sb.magic, sizeof magic);
    __atomic_store_n((uint64_t *)(void *)base, magic, __ATOMIC_RELEASE);
    lock_unmap(base, LAYOUT_NEW_BYTES_MIN);
    // Sync before the file grows: a crash of the machine must not leave a long file without a
    // header, because no writer would accept it.
    return s->io->sync(s->io->user, fd);
}

// Opens and locks the file at the path. Between the two steps another writer may close the file and
// put a new file under its name (rewrite.c). A lock on the old file would then protect a file
// without a name. Returns -EAGAIN in this case, otherwise 0.
static int open_locked(struct store *s, const struct store_options *o, struct stat *st,
                       struct error *e)
{
    // O_NONBLOCK: opening a FIFO or a device must not wait for its other end.
    int flags = O_RDWR | O_CREAT | O_NONBLOCK | O_NOCTTY | (o->new_file ? O_EXCL | O_NOFOLLOW : 0);
    int fd = s->io->open(s->io->user, s->path, flags, 0600);
    if (fd < 0)
        return error_set(e, fd, "cannot open %s for writing: %s", s->path, strerror(-fd));
    s->file.fd = fd;
    if (fstat(fd, st))
        return error_set(e, -errno, "cannot look at %s: %s", s->path, strerror(errno));
    if (!S_ISREG(st->st_mode))
        return error_set(e, -EINVAL, "cannot write %s: not a regular file", s->path);
    int rc = lock_writer(fd);
    struct stat named;
    bool left = stat(s->path, &named) || named.st_ino != st->st_ino || named.st_dev != st->st_dev;
    if (left && !o->new_file)
        return -EAGAIN;
    if (rc == -EBUSY)
        return error_set(e, rc, "%s: another process is writing it", s->path);
    if (rc)
        return error_set(e, rc, "cannot lock %s: %s", s->path, strerror(-rc));
    // Read the file's state under the lock.
    return fstat(fd, st) ? error_set(e, -errno, "cannot look at %s: %s", s->path, strerror(errno))
                         : 0;
}

static int open_file(struct store *s, const struct store_options *o, struct error *e)
{
    struct stat st;
    int rc = -EAGAIN;
    for (int i = 0; i < OPEN_TRIES && rc == -EAGAIN; i++) {
        if (s->file.fd >= 0)
            close(s->file.fd);
        s->file.fd = -1;
        rc = open_locked(s, o, &st, e);
    }
    if (rc == -EAGAIN)
        return error_set(e, -EBUSY, "%s: another file takes its place again and again", s->path);
    if (rc)
        return rc;
    int fd = s->file.fd;
    struct superblock sb = {0};
    bool fresh = st.st_size == 0;
    if (!fresh) {
        if (pread(fd, &sb, sizeof sb, 0) < 0)
            return error_set(e, -errno, "cannot read %s: %s", s->path, strerror(errno));
        static const uint8_t nothing[sizeof sb.magic];
        fresh = st.st_size <= LAYOUT_NEW_BYTES_MAX && !memcmp(sb.magic, nothing, sizeof nothing);
    }
    if (fresh) {
        rc = create(s, fd);
        if (rc)
            return error_set(e, rc, "cannot make %s: %s", s->path, strerror(-rc));
        if (fstat(fd, &st))
            return error_set(e, -errno, "cannot look at %s: %s", s->path, strerror(errno));
    } else {
        rc = superblock_check(&sb, (uint64_t)st.st_size, s->path, e);
        if (rc)
            return rc;
    }
    uint32_t dropped;
    rc = extents_open(&s->file, s->io, fd, (uint64_t)st.st_size, &dropped);
    if (rc == -EBADMSG)
        return error_set(e, rc, "%s: its extent table is damaged", s->path);
    if (rc)
        return error_set(e, rc, "cannot map %s: %s", s->path, strerror(-rc));
    s->file.table_entries = table_entries(s);
    uint8_t boot_id[16];
    lock_boot_id(boot_id);
    struct superblock *live = extents_super(&s->file);
    bool crashed = !fresh && live->state != LAYOUT_CLOSED;
    bool machine = crashed && memcmp(boot_id, live->boot_id, sizeof boot_id);
    rc = recover_file(s, crashed, machine, dropped, e);
    if (rc)
        return rc;
    loss_opened(s);
    live = extents_super(&s->file);
    // Release: recovery's corrections are seen before the file counts as live.
    __atomic_store_n(&live->state, LAYOUT_LIVE, __ATOMIC_RELEASE);
    live->writer_pid = (uint64_t)getpid();
    live->writer_start = process_start_ticks("/proc/self/stat");
    memcpy(live->boot_id, boot_id, sizeof boot_id);
    if (fresh)
        rc = catalog_meta(s, o->meta, o->meta_count);
    else
        rc = store_sync(s, NULL); // from here on, a crash must not leave a file that looks closed
    return rc ? error_set(e, rc, "cannot write to %s: %s", s->path, strerror(-rc)) : 0;
}

static void release(struct store *s)
{
    int fd = s->file.fd;
    merge_forget(s);
    if (s->io->flush_free)
        s->io->flush_free(s->io->user, &s->sync.flush);
    extents_close(&s->file);
    if (fd >= 0)
        close(fd);
    for (uint32_t i = 0; i < s->stats.sets; i++)
        free(s->catalog.sets[i].hot.blocks);
    catalog_forget(s);
    shared_free(s);
    free(s->blocks.hot_points.blocks);
    free(s->blocks.sums);
    free(s->scratch.times);
    free(s->scratch.values);
    free(s->scratch.points);
    buf_free(&s->scratch.block);
    buf_free(&s->spill.appends);
    free(s->path);
    free(s);
}

// Small limits need small pieces: no tail or extent takes more than a sixteenth of the limit.
static void set_sizes(struct store *s)
{
    uint64_t share = s->limits.size_bytes / 16;
    s->limits.extent_bytes = clamp(share / 4, BLOCK_EXTENT_BYTES_MIN, BLOCK_EXTENT_BYTES_MAX);
    s->limits.point_room =
        clamp(share / sizeof(struct point_record), TAIL_POINTS_MIN, TAIL_POINTS_MAX);
    s->limits.event_room = clamp(share, TAIL_EVENT_BYTES_MIN, TAIL_EVENT_BYTES_MAX);
}

static void set_limits(struct store *s, const struct store_options *o)
{
    uint64_t *limits = s->limits.catalog;
    limits[LIMIT_METRICS] = o->metric_limit ? o->metric_limit : STORE_METRICS_MAX_DEFAULT;
    limits[LIMIT_PAIRS] = o->pair_limit ? o->pair_limit : STORE_PAIRS_MAX_DEFAULT;
    limits[LIMIT_SERIES] = o->series_limit ? o->series_limit : STORE_SERIES_MAX_DEFAULT;
    limits[LIMIT_SETS] = o->set_limit ? o->set_limit : STORE_SETS_MAX_DEFAULT;
    limits[LIMIT_CATALOG_BYTES] = o->catalog_limit_bytes
                                      ? clamp(o->catalog_limit_bytes, 1, STORE_CATALOG_BYTES_MAX)
                                      : clamp(s->limits.size_bytes / 4, STORE_CATALOG_BYTES_MIN,
                                              STORE_CATALOG_BYTES_MAX_DEFAULT);
}

int store_open(const char *path, const struct store_options *options, struct store **out,
               struct error *e)
{
    static const struct store_options defaults = {0};
    const struct store_options *o = options ? options : &defaults;
    *out = NULL;
    struct store *s = calloc(1, sizeof *s);
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return error_set(e, -ENOMEM, "no memory to open %s", path);
    }
    s->file.fd = -1;
    s->io = o->io ? o->io : &store_io_real;
    s->limits.size_bytes = o->size_limit_bytes ? o->size_limit_bytes : DEFAULT_SIZE_LIMIT;
    s->limits.window_ns = o->window_ns;
    s->limits.sync_interval_ns = o->sync_interval_ns ? o->sync_interval_ns : DEFAULT_SYNC_NS;
    s->limits.close_budget_ns = o->close_budget_ns ? o->close_budget_ns : DEFAULT_CLOSE_NS;
    s->limits.rewrite_bytes =
        o->rewrite_limit_bytes ? o->rewrite_limit_bytes : DEFAULT_REWRITE_LIMIT;
    s->limits.merge_most_bytes = o->merge_limit_bytes ? o->merge_limit_bytes : SIZE_MAX;
    s->limits.merge_room = o->merge_room;
    s->limits.user = o->user;
    s->limits.memory_bytes = o->memory_limit_bytes ? o->memory_limit_bytes : DEFAULT_MEMORY_LIMIT;
    set_sizes(s);
    set_limits(s, o);
    s->catalog.slot = s->blocks.hot_slot = s->blocks.cold_slot = EXTENT_NO_SLOT;
    s->tails.points = s->tails.events = (struct tail){.slot = EXTENT_NO_SLOT, .sequence = 1};
    s->newest_ns = s->shared.singles_before_ns = INT64_MIN;
    s->now_ns = INT64_MAX;
    // an empty file needs no sync, and a short run needs only the last one
    s->sync.last_ns = clock_realtime_ns();
    int rc = open_file(s, o, e);
    if (rc) {
        release(s);
        return rc;
    }
    *out = s;
    return 0;
}

// ---- Sync ----

static void note_tail(struct store *s, struct tail *t, uint64_t unit)
{
    if (t->slot == EXTENT_NO_SLOT || !t->used)
        return;
    t->idle++;
    if (t->used > t->checked) {
        t->idle = 0;
        const uint8_t *new = s->file.base + t->offset + t->checked *unit;
        t->crc = crc32c(t->crc, new, (t->used - t->checked) * unit);
        t->checked = t->used;
    }
    extent_note_sync(&s->file, t->slot, s->sync.parity, t->used, t->crc);
}

// Notes the current contents of tails, which the next sync writes to disk. A note may reach the
// disk before its data. Then its checksum is wrong, and the note of the previous sync counts.
static void note_all(struct store *s)
{
    for (uint32_t i = 0; i < s->stats.sets; i++)
        note_tail(s, &s->catalog.sets[i].tail, (s->catalog.sets[i].count + 1) * UINT64_C(8));
    note_tail(s, &s->tails.points, sizeof(struct point_record));
    note_tail(s, &s->tails.events, 1);
    for (uint32_t i = 0; i < extents_super(&s->file)->table_count; i++) {
        const struct extent_entry *e = extent_entry(&s->file, (int)i);
        if (e->kind == EXTENT_BLOCKS || e->kind == EXTENT_CATALOG ||
            e->kind == EXTENT_CATALOG_PACKED)
            extent_note_sync(&s->file, (int)i, s->sync.parity, (uint32_t)e->used, 0);
    }
}

static int sync_done(struct store *s, int rc, struct error *e)
{
    s->sync.under_way = false;
    if (rc) {
        s->stats.sync_errors++;
        if (!s->reported.sync)
            log_warning("%s: cannot be written to disk: %s; it is tried again", s->path,
                        strerror(-rc));
        s->reported.sync = true;
        return error_set(e, rc, "cannot write %s to disk: %s", s->path, strerror(-rc));
    }
    s->reported.sync = false;
    s->sync.parity ^= 1;
    extents_synced(&s->file);
    return 0;
}

int store_sync(struct store *s, struct error *e)
{
    if (s->sync.under_way)
        sync_done(s, s->io->flush_result(s->io->user, &s->sync.flush, true), NULL);
    note_all(s);
    extents_sync_begins(&s->file);
    return sync_done(s, s->io->sync(s->io->user, s->file.fd), e);
}

// Syncs in the background. The data that exist at the start of a sync are on disk when it ends,
// some ticks later. Until then, data that the previous sync covers are kept.
static int sync_in_background(struct store *s)
{
    if (s->sync.under_way || !s->io->flush_start)
        return s->sync.under_way ? 0 : store_sync(s, NULL);
    note_all(s);
    extents_sync_begins(&s->file);
    int rc = s->io->flush_start(s->io->user, s->file.fd, &s->sync.flush);
    if (rc)
        return sync_done(s, s->io->sync(s->io->user, s->file.fd), NULL);
    s->sync.under_way = true;
    return 0;
}

static int look_for_sync(struct store *s)
{
    int rc =
        s->sync.under_way ? s->io->flush_result(s->io->user, &s->sync.flush, false) : -EINPROGRESS;
    return rc == -EINPROGRESS ? 0 : sync_done(s, rc, NULL);
}

static void look_for_file(struct store *s)
{
    struct stat st;
    if (s->reported.unlink || fstat(s->file.fd, &st) || st.st_nlink)
        return;
    log_warning("%s: another program has removed this file while sonde writes it; its data are "
                "lost when this process ends",
                s->path);
    s->reported.unlink = true;
}

static int merge_for_a_while(struct store *s)
{
    int64_t until = clock_monotonic_ns() + TICK_NS;
    int rc = 1;
    while (rc > 0 && clock_monotonic_ns() < until)
        rc = merge_step(s, MERGE_LIVE);
    return rc < 0 ? rc : 0;
}

// ---- Truncated files ----

// Returns the rows, points or bytes of a tail after offset `lost`.
static uint64_t tail_behind(const struct tail *t, uint64_t unit, uint64_t lost)
{
    if (t->slot == EXTENT_NO_SLOT || t->offset + t->used * unit <= lost)
        return 0;
    return t->offset >= lost ? t->used : t->used - (lost - t->offset) / unit;
}

// Returns the number of values after offset `lost`, from the state in memory. If an extent's entry
// is lost, too, all its values count.
static uint64_t values_behind(const struct store *s, uint64_t lost)
{
    uint64_t values = tail_behind(&s->tails.points, sizeof(struct point_record), lost);
    const uint8_t *kept_end = s->file.base + lost;
    for (uint32_t i = 0; i < s->stats.sets; i++)
        values += tail_behind(&s->catalog.sets[i].tail,
                              (s->catalog.sets[i].count + 1) * UINT64_C(8), lost) *
                  s->catalog.sets[i].count;
    for (size_t slot = 0; slot < s->blocks.sum_capacity; slot++) {
        const struct extent_entry *e = extent_entry(&s->file, (int)slot);
        bool known = (const uint8_t *)(e + 1) <= kept_end && e->kind == EXTENT_BLOCKS;
        if (s->blocks.sums[slot].blocks && (!known || e->offset + e->used > lost))
            values += s->blocks.sums[slot].values;
    }
    return values;
}

static bool found_cut(struct store *s)
{
    if (extents_whole(&s->file))
        return false;
    if (!s->reported.cut) {
        uint64_t lost = map_guard_lost(&s->file.lost);
        s->stats.lost_values = values_behind(s, lost);
        log_warning("%s: was cut short by another program, or cannot be read, from byte %llu on: "
                    "%llu values that were "
                    "behind it are lost; nothing more goes into this file",
                    s->path, (unsigned long long)lost, (unsigned long long)s->stats.lost_values);
    }
    s->reported.cut = true;
    return true;
}

bool store_is_cut(const struct store *s)
{
    return writer_is_cut(s);
}

int store_tick(struct store *s, int64_t now_ns)
{
    if (found_cut(s))
        return -ESTALE;
    int rc = look_for_sync(s);
    s->now_ns = now_ns;
    if (spill_in_use(s) &&
        (now_ns - s->spill.last_try_ns >= SPACE_RETRY_NS || now_ns < s->spill.last_try_ns)) {
        s->spill.last_try_ns = now_ns;
        int replayed = spill_replay(s);
        rc = rc ? rc : replayed;
    }
    retain_make_room(s, 0);
    int merged = spill_in_use(s) ? 0 : seal_idle(s);
    if (!merged && !spill_in_use(s))
        merged = merge_for_a_while(s);
    rc = rc ? rc : merged;
    if (now_ns - s->sync.last_ns >= s->limits.sync_interval_ns || now_ns < s->sync.last_ns) {
        s->sync.last_ns = now_ns;
        look_for_file(s);
        int synced = sync_in_background(s);
        rc = rc ? rc : synced;
    }
    return rc;
}

// ---- Closing ----

// Closes the file in place: truncates free space at its end, and turns gaps into holes.
static int close_in_place(struct store *s)
{
    // Free the unfinished extent if all its blocks have been merged.
    if (s->blocks.hot_slot != EXTENT_NO_SLOT && !s->blocks.sums[s->blocks.hot_slot].live_bytes) {
        extent_free_later(&s->file, s->blocks.hot_slot);
        s->blocks.hot_slot = EXTENT_NO_SLOT;
    }
    int rc = store_sync(s, NULL);
    if (rc)
        return rc;
    struct extents *x = &s->file;
    for (uint32_t i = 0; i < extents_super(x)->table_count; i++) {
        const struct extent_entry *entry = extent_entry(x, (int)i);
        if (entry->kind >= EXTENT_SET_TAIL && entry->kind <= EXTENT_EVENT_TAIL && !entry->used)
            extent_free(x, (int)i);
    }
    // A writer never continues an extent of blocks of an earlier writer, so the unused rest of each
    // is never used again.
    for (uint32_t i = 0; i < extents_super(x)->table_count; i++) {
        const struct extent_entry *entry = extent_entry(x, (int)i);
        if (entry->kind == EXTENT_BLOCKS && entry->used < entry->size)
            s->io->punch(s->io->user, x->fd, entry->offset + entry->used,
                         entry->size - entry->used);
    }
    for (size_t i = 0; i < x->gap_count; i++)
        s->io->punch(s->io->user, x->fd, x->gaps[i].offset, x->gaps[i].size);
    // With readers, truncating would make them access the mapping beyond the new end.
    if (!lock_out_readers(x->fd)) {
        extents_trim(x);
        lock_let_readers_in(x->fd);
    }
    // The table is written to disk before its checksum, and the checksum before the state. So a
    // file that is marked as closed is complete.
    rc = s->io->sync(s->io->user, x->fd);
    if (rc)
        return rc;
    extents_mark_closed(x);
    return s->io->sync(s->io->user, x->fd);
}

static uint64_t hot_values(const struct store *s)
{
    uint64_t values = s->blocks.hot_points.rows;
    for (uint32_t i = 0; i < s->stats.sets; i++)
        values += s->catalog.sets[i].hot.rows * s->catalog.sets[i].count;
    return values;
}

// Merges all hot blocks: to the smallest size while the speed so far promises an end in time, then
// fast.
static int merge_all(struct store *s)
{
    int64_t start = clock_monotonic_ns(), thorough_ns = 0;
    uint64_t first = s->stats.merged_values, thorough_values = 0;
    enum merge_pace pace = MERGE_CLOSING;
    for (;;) {
        int64_t now = clock_monotonic_ns();
        if (now - start >= s->limits.close_budget_ns) {
            uint64_t left = hot_values(s);
            if (left)
                log_warning("%s: %llu values (%llu were done) stay larger than they could be: "
                            "closing has %lld ms for it",
                            s->path, (unsigned long long)left,
                            (unsigned long long)(s->stats.merged_values - first),
                            (long long)(s->limits.close_budget_ns / 1000000));
            return 0;
        }
        if (s->blocks.merge == NULL && s->limits.close_budget_ns != INT64_MAX && thorough_values) {
            double needed = (double)thorough_ns / (double)thorough_values * (double)hot_values(s);
            pace = needed < (double)(start + s->limits.close_budget_ns - now) ? MERGE_CLOSING
                                                                              : MERGE_HURRIED;
        }
        uint64_t before = s->stats.merged_values;
        int rc = merge_step(s, pace);
        if (rc <= 0)
            return rc;
        if (pace == MERGE_CLOSING) {
            thorough_ns += clock_monotonic_ns() - now;
            thorough_values += s->stats.merged_values - before;
        }
    }
}

int store_close(struct store *s, struct error *e)
{
    if (found_cut(s)) {
        error_set(e, -ESTALE, "cannot close %s: another program has cut it short", s->path);
        release(s);
        return -ESTALE;
    }
    int rc = spill_replay(s);
    if (rc)
        spill_lose(s);
    s->closing = true;
    int sealed = seal_all(s);
    free(s->scratch.points); // free the scratch of sealing, because merges need the memory
    s->scratch.points = NULL;
    rc = rc ? rc : sealed;
    if (!rc)
        merge_all(s);
    retain_closed(s);
    // Data that could not be sealed are in tails, which exist only in the old file.
    int closed = sealed ? sealed : rewrite_file(s);
    bool closed_in_place = closed != 0;
    if (closed_in_place)
        closed = close_in_place(s);
    rc = rc ? rc : closed;
    struct stat st;
    if (!rc && !fstat(s->file.fd, &st) && !st.st_nlink && closed_in_place)
        rc = -ENOENT; // another program has removed the file; its data end with this process
    if (rc)
        error_set(e, rc, "cannot close %s: %s", s->path, strerror(-rc));
    release(s);
    return rc;
}

void store_abandon(struct store *s)
{
    release(s);
}

void store_get_stats(const struct store *s, struct store_stats *out)
{
    *out = s->stats;
    out->hot_values = hot_values(s);
    out->file_bytes = s->file.file_bytes;
    out->used_bytes = s->file.used_bytes;
    out->memory_bytes =
        s->catalog.names.used_bytes + s->catalog.metric_capacity * sizeof *s->catalog.metrics +
        s->catalog.set_capacity * sizeof *s->catalog.sets +
        (s->catalog.metric_ids.capacity + s->catalog.pair_ids.capacity +
         s->catalog.set_ids.capacity) *
            sizeof(struct map_slot) +
        s->catalog.series_slot_count * sizeof *s->catalog.series_slots +
        s->catalog.series_capacity * sizeof *s->catalog.series_keys + s->tails.bytes +
        s->spill.appends.capacity + s->scratch.block.capacity +
        (s->scratch.time_capacity + s->scratch.value_capacity) * sizeof(double) +
        s->blocks.sum_capacity * sizeof *s->blocks.sums + merge_memory(s) + shared_memory(s);
}
