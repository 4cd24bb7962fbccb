// store.c - opening, closing, and the work that is due.
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
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

static void read_boot_id(uint8_t id[16])
{
    char text[40] = {0};
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, 36);
    if (fd >= 0)
        close(fd);
    memset(id, 0, 16);
    size_t digits = 0;
    for (ssize_t i = 0; i < n && digits < 32; i++) {
        const char *hex = "0123456789abcdef", *at = strchr(hex, text[i]);
        if (text[i] == '-' || !text[i] || !at)
            continue;
        id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | (at - hex));
        digits++;
    }
}

static int create(struct store *s, int fd)
{
    int rc = s->io->reserve(s->io->user, fd, 0, LAYOUT_HEADER_BYTES);
    if (rc)
        return rc;
    uint8_t *base;
    rc = s->io->map(s->io->user, fd, LAYOUT_HEADER_BYTES, &base);
    if (rc)
        return rc;
    struct superblock sb = {
        .major = LAYOUT_MAJOR,
        .minor = LAYOUT_MINOR,
        .header_bytes = LAYOUT_HEADER_BYTES,
        .created_ns = clock_realtime_ns(),
        .state = LAYOUT_LIVE,
        .table_offset = sizeof sb,
        .table_capacity = LAYOUT_INLINE_ENTRIES,
    };
    memcpy(sb.magic, LAYOUT_MAGIC, sizeof sb.magic);
    if (getrandom(sb.file_id, sizeof sb.file_id, GRND_NONBLOCK) < 0)
        memcpy(sb.file_id, &sb.created_ns, sizeof sb.created_ns);
    sb.fixed_crc = crc32c(0, &sb, offsetof(struct superblock, fixed_crc));
    // The magic goes last: without it the file counts as never made.
    memcpy(base + sizeof sb.magic, (uint8_t *)&sb + sizeof sb.magic, sizeof sb - sizeof sb.magic);
    uint64_t magic;
    memcpy(&magic, sb.magic, sizeof magic);
    __atomic_store_n((uint64_t *)(void *)base, magic, __ATOMIC_RELEASE);
    lock_unmap(base, LAYOUT_HEADER_BYTES);
    return 0;
}

// Tails and sequence numbers as the last writer left them.
static int take_over(struct store *s)
{
    int rc = catalog_load(s);
    if (rc)
        return rc;
    struct extents *x = &s->file;
    uint32_t count = extents_super(x)->table_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct segment_entry *e = extent_entry(x, (int)i);
        if (e->kind != SEGMENT_BLOCKS)
            continue;
        if (e->sequence > s->block_sequence) {
            s->block_sequence = e->sequence;
            s->block_slot = (int)i;
        }
        uint64_t used = e->used < e->size ? e->used : e->size;
        for (uint64_t at = 0; at + sizeof(struct block_header) <= used;) {
            struct block_header h;
            memcpy(&h, x->base + e->offset + at, sizeof h);
            if (!block_header_fits(&h, used - at))
                break;
            s->stats.blocks++;
            if (h.kind != BLOCK_EVENTS && h.last_ns > s->newest_ns)
                s->newest_ns = h.last_ns;
            uint64_t *next = h.kind == BLOCK_SET      ? (h.owner < s->stats.sets ? &s->sets[h.owner].sequence : NULL)
                             : h.kind == BLOCK_POINTS ? &s->point_sequence
                                                      : &s->event_sequence;
            if (next && h.sequence_last >= *next)
                *next = h.sequence_last + 1;
            at += h.size;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct segment_entry *e = extent_entry(x, (int)i);
        if (e->kind == SEGMENT_SET_TAIL && e->owner < s->stats.sets) {
            struct set *set = &s->sets[e->owner];
            if (e->sequence < set->sequence)
                extent_reuse(x, (int)i, set->sequence);
            set->sequence = e->sequence;
            set->slot = (int)i;
            set->offset = e->offset;
            set->rows_max = (uint32_t)(e->size / ((set->count + 1) * 8));
            set->rows_max = set->rows_max > TAIL_ROWS_MAX ? TAIL_ROWS_MAX : set->rows_max;
            set->rows = (uint32_t)(e->used < set->rows_max ? e->used : set->rows_max);
            for (uint32_t r = 0; r < set->rows; r++) {
                int64_t t;
                memcpy(&t, x->base + e->offset + r * (set->count + 1) * 8, 8);
                s->newest_ns = t > s->newest_ns ? t : s->newest_ns;
            }
        } else if (e->kind == SEGMENT_POINT_TAIL) {
            if (e->sequence < s->point_sequence)
                extent_reuse(x, (int)i, s->point_sequence);
            s->point_sequence = e->sequence;
            s->point_slot = (int)i;
            s->point_offset = e->offset;
            s->point_count = (uint32_t)(e->used < TAIL_POINTS ? e->used : TAIL_POINTS);
            for (uint32_t p = 0; p < s->point_count; p++) {
                struct point_record r;
                memcpy(&r, x->base + e->offset + p * sizeof r, sizeof r);
                s->newest_ns = r.t_ns > s->newest_ns ? r.t_ns : s->newest_ns;
            }
        } else if (e->kind == SEGMENT_EVENT_TAIL) {
            if (e->sequence < s->event_sequence)
                extent_reuse(x, (int)i, s->event_sequence);
            s->event_sequence = e->sequence;
            s->event_slot = (int)i;
            s->event_offset = e->offset;
            s->event_bytes = e->used;
        }
    }
    return 0;
}

static int open_file(struct store *s, const struct store_options *o, struct error *e)
{
    int fd = s->io->open(s->io->user, s->path, O_RDWR | O_CREAT, 0600);
    if (fd < 0)
        return error_set(e, fd, "cannot open %s for writing: %s", s->path, strerror(-fd));
    s->file.fd = fd;
    int rc = lock_writer(fd);
    if (rc == -EBUSY)
        return error_set(e, rc, "%s: another process is writing it", s->path);
    if (rc)
        return error_set(e, rc, "cannot lock %s: %s", s->path, strerror(-rc));
    struct stat st;
    if (fstat(fd, &st))
        return error_set(e, -errno, "cannot look at %s: %s", s->path, strerror(errno));
    struct superblock sb = {0};
    bool fresh = st.st_size == 0;
    if (!fresh) {
        if (pread(fd, &sb, sizeof sb, 0) < 0)
            return error_set(e, -errno, "cannot read %s: %s", s->path, strerror(errno));
        static const uint8_t nothing[sizeof sb.magic];
        fresh = st.st_size <= LAYOUT_HEADER_BYTES && !memcmp(sb.magic, nothing, sizeof nothing);
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
    if (rc)
        return error_set(e, rc, "cannot map %s: %s", s->path, strerror(-rc));
    bool crashed = !fresh && extents_super(&s->file)->state != LAYOUT_CLOSED;
    rc = take_over(s);
    if (rc)
        return error_set(e, rc, "%s: cannot read its catalog: %s", s->path, strerror(-rc));
    if (crashed)
        log_info("%s: was not closed; %llu blocks, %llu series found", s->path, (unsigned long long)s->stats.blocks,
                 (unsigned long long)s->stats.series);
    struct superblock *live = extents_super(&s->file);
    live->state = LAYOUT_LIVE;
    live->writer_pid = (uint64_t)getpid();
    read_boot_id(live->boot_id);
    if (fresh) {
        rc = catalog_meta(s, o->meta, o->meta_count);
        if (rc)
            return error_set(e, rc, "cannot write to %s: %s", s->path, strerror(-rc));
    }
    return 0;
}

static void release(struct store *s)
{
    int fd = s->file.fd;
    extents_close(&s->file);
    if (fd >= 0)
        close(fd);
    map_free(&s->metric_ids);
    map_free(&s->pair_ids);
    map_free(&s->series_ids);
    map_free(&s->set_ids);
    arena_free(&s->names);
    free(s->metrics);
    free(s->sets);
    free(s->path);
    free(s);
}

int store_open(const char *path, const struct store_options *options, struct store **out, struct error *e)
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
    s->size_limit_bytes = o->size_limit_bytes ? o->size_limit_bytes : DEFAULT_SIZE_LIMIT;
    s->window_ns = o->window_ns;
    s->sync_interval_ns = o->sync_interval_ns ? o->sync_interval_ns : DEFAULT_SYNC_NS;
    s->series_limit = o->series_limit ? o->series_limit : STORE_SERIES_MAX_DEFAULT;
    s->memory_limit_bytes = o->memory_limit_bytes ? o->memory_limit_bytes : DEFAULT_MEMORY_LIMIT;
    s->catalog_slot = s->point_slot = s->event_slot = s->block_slot = EXTENT_NO_SLOT;
    s->point_sequence = s->event_sequence = 1;
    s->newest_ns = INT64_MIN;
    int rc = open_file(s, o, e);
    if (rc) {
        release(s);
        return rc;
    }
    *out = s;
    return 0;
}

int store_close(struct store *s, struct error *e)
{
    int rc = store_seal(s);
    struct extents *x = &s->file;
    for (uint32_t i = 0; i < extents_super(x)->table_count; i++) {
        const struct segment_entry *entry = extent_entry(x, (int)i);
        if (entry->kind >= SEGMENT_SET_TAIL && entry->kind <= SEGMENT_EVENT_TAIL && !entry->used)
            extent_free(x, (int)i);
    }
    int sync = store_sync(s, e);
    rc = rc ? rc : sync;
    if (!rc) {
        extents_super(x)->state = LAYOUT_CLOSED;
        rc = s->io->sync(s->io->user, x->fd);
    }
    if (rc)
        error_set(e, rc, "cannot close %s: %s", s->path, strerror(-rc));
    release(s);
    return rc;
}

void store_abandon(struct store *s)
{
    release(s);
}

int store_sync(struct store *s, struct error *e)
{
    int rc = s->io->sync(s->io->user, s->file.fd);
    if (rc) {
        s->stats.sync_errors++;
        return error_set(e, rc, "cannot write %s to disk: %s", s->path, strerror(-rc));
    }
    return 0;
}

int store_tick(struct store *s, int64_t now_ns)
{
    retain(s);
    if (now_ns - s->last_sync_ns < s->sync_interval_ns)
        return 0;
    s->last_sync_ns = now_ns;
    return store_sync(s, NULL);
}

void store_get_stats(const struct store *s, struct store_stats *out)
{
    *out = s->stats;
    out->file_bytes = s->file.file_bytes;
    out->used_bytes = s->file.used_bytes;
    out->memory_bytes = s->names.used_bytes + s->metric_capacity * sizeof *s->metrics +
                        s->set_capacity * sizeof *s->sets +
                        (s->metric_ids.capacity + s->pair_ids.capacity + s->series_ids.capacity + s->set_ids.capacity) *
                            sizeof(struct map_slot);
}
