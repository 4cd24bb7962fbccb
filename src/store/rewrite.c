// rewrite.c - replaces the file by a copy without gaps.
//
// While a file is written, it has free space for tails, and extents that are not full. At the end
// the writer copies all valid data, back to back, into a new file beside it, and gives this file
// the name of the old one. At every moment the name refers to a complete file. Readers of the old
// file continue to read it.
//
//   ┌────────────┬────────────────┬───────────────┬────────┬────────┬─ ─
//   │ superblock │ extent table  │ catalog, zstd │ blocks │ blocks │      8-byte aligned, no gaps
//   └────────────┴────────────────┴───────────────┴────────┴────────┴─ ─
#include "base/array.h"
#include "store/block.h"
#include "store/catalog.h"
#include "store/lock.h"
#include "store/writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct live_block {
    struct block_header h;
    const uint8_t *bytes;
};

static int by_number(const void *a, const void *b)
{
    return block_by_number(&((const struct live_block *)a)->h, &((const struct live_block *)b)->h);
}

static int by_time(const void *a, const void *b)
{
    const struct block_header *x = &((const struct live_block *)a)->h,
                              *y = &((const struct live_block *)b)->h;
    return x->last_ns < y->last_ns ? -1 : x->last_ns > y->last_ns;
}

// Lists all valid blocks, oldest first. Returns -EUCLEAN if a part of the extents is unreadable;
// then nothing is deleted.
static int live_blocks(const struct store *s, struct live_block **out, size_t *count,
                       uint64_t *bytes)
{
    size_t capacity = 0, n = 0;
    struct live_block *blocks = NULL;
    const struct extents *x = &s->file;
    for (uint32_t i = 0; i < extents_super(x)->table_count; i++) {
        const struct extent_entry *e = extent_entry(x, (int)i);
        if (e->kind != EXTENT_BLOCKS)
            continue;
        for (uint64_t at = 0; at < e->used;) {
            struct live_block b = {.bytes = x->base + e->offset + at};
            if (e->used - at >= sizeof b.h)
                memcpy(&b.h, b.bytes, sizeof b.h);
            if (!block_header_fits(&b.h, e->used - at)) {
                free(blocks);
                return -EUCLEAN;
            }
            if (!array_room(&blocks, &capacity, n + 1, sizeof *blocks)) {
                free(blocks);
                return -ENOMEM;
            }
            blocks[n++] = b;
            at += b.h.size;
        }
    }
    if (n)
        qsort(blocks, n, sizeof *blocks, by_number);
    size_t kept = 0;
    *bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const struct block_header *h = &blocks[i].h, *wide = kept ? &blocks[kept - 1].h : NULL;
        bool covered = wide && block_covers(wide, h);
        if (covered && block_intact(wide, blocks[kept - 1].bytes))
            continue;
        *bytes += h->size;
        blocks[kept++] = blocks[i];
    }
    if (kept)
        qsort(blocks, kept, sizeof *blocks, by_time);
    *out = blocks;
    *count = kept;
    return 0;
}

// Packs all entries, in order.
static int packed_catalog(const struct store *s, struct buf *out)
{
    struct buf entries = {0};
    int rc = 0;
    for (uint64_t sequence = 1; !rc && sequence <= s->catalog.sequence; sequence++)
        for (uint32_t i = 0; i < extents_super(&s->file)->table_count; i++) {
            const struct extent_entry *e = extent_entry(&s->file, (int)i);
            if ((e->kind != EXTENT_CATALOG && e->kind != EXTENT_CATALOG_PACKED) ||
                e->sequence != sequence)
                continue;
            const uint8_t *from = s->file.base + e->offset;
            if (e->kind == EXTENT_CATALOG) {
                buf_add(&entries, from, e->used);
                continue;
            }
            uint8_t *raw;
            size_t size;
            rc = catalog_unpack(from, e->used, &raw, &size);
            if (rc)
                break;
            buf_add(&entries, raw, size);
            free(raw);
        }
    if (!rc)
        rc = entries.failed ? -ENOMEM : catalog_pack(buf_str(&entries), out);
    buf_free(&entries);
    return rc;
}

static size_t aligned(size_t n)
{
    return (n + 7) / 8 * 8;
}

struct image {
    struct superblock sb;
    struct extent_entry *table;
    uint32_t extents;
    size_t bytes;
};

static struct extent_entry entry_of(enum extent_kind kind, uint64_t offset, uint64_t size,
                                    uint64_t sequence)
{
    struct extent_entry e = {.kind = kind,
                             .generation = 1,
                             .offset = offset,
                             .size = size,
                             .used = size,
                             .sequence = sequence};
    e.check = extent_entry_check(&e);
    // All data are on disk before the new file gets the name.
    e.synced[0].used = e.synced[1].used = (uint32_t)size;
    return e;
}

// Plans the place of all data. Blocks go into extents of about the usual size, because retention
// frees whole extents.
static int plan(const struct store *s, const struct live_block *blocks, size_t count,
                size_t catalog_bytes, struct image *m)
{
    uint32_t extents = 1;
    uint64_t in_extent = 0;
    for (size_t i = 0; i < count; i++) {
        if (!i || in_extent + blocks[i].h.size > s->limits.extent_bytes) {
            extents++;
            in_extent = 0;
        }
        in_extent += blocks[i].h.size;
    }
    m->sb = *extents_super(&s->file);
    m->sb.state = LAYOUT_CLOSED;
    m->sb.table_sequence = 0;
    m->sb.table_count = extents;
    m->sb.table_capacity = extents > LAYOUT_INLINE_ENTRIES ? extents : LAYOUT_INLINE_ENTRIES;
    m->sb.table_offset = extents > LAYOUT_INLINE_ENTRIES ? LAYOUT_HEADER_BYTES : sizeof m->sb;
    m->table = calloc(m->sb.table_capacity, sizeof *m->table);
    if (!m->table)
        return -ENOMEM;
    uint64_t at = extents > LAYOUT_INLINE_ENTRIES ? LAYOUT_HEADER_BYTES + extents * sizeof *m->table
                                                  : LAYOUT_HEADER_BYTES;
    m->table[0] = entry_of(EXTENT_CATALOG_PACKED, at, catalog_bytes, 1);
    at += aligned(catalog_bytes);
    uint32_t n = 1;
    for (size_t i = 0; i < count; n++) {
        uint64_t size = 0;
        for (; i < count && (!size || size + blocks[i].h.size <= s->limits.extent_bytes); i++)
            size += blocks[i].h.size;
        m->table[n] = entry_of(EXTENT_BLOCKS, at, size, n);
        at += size;
    }
    m->extents = n;
    m->sb.table_count = n;
    m->bytes = at;
    return 0;
}

static int put(const struct store *s, int fd, const void *data, size_t size, uint64_t *at)
{
    const struct store_io *io = s->io->write ? s->io : &store_io_real;
    int rc = io->write(io->user, fd, data, size, *at);
    *at += size;
    return rc;
}

// Writes the file with write() instead of a mapping. On a file system without room a write returns
// an error, while a store through a mapping kills the process.
static int fill(const struct store *s, int fd, struct image *m, const struct live_block *blocks,
                size_t count, struct str catalog)
{
    uint8_t head[LAYOUT_HEADER_BYTES] = {0};
    size_t table_bytes = m->sb.table_capacity * sizeof *m->table;
    m->sb.closed_crc = superblock_closed_crc(&m->sb, m->table);
    memcpy(head, &m->sb, sizeof m->sb);
    bool inside = m->sb.table_offset < sizeof head;
    if (inside)
        memcpy(head + m->sb.table_offset, m->table, table_bytes);
    uint64_t at = 0;
    int rc = put(s, fd, head, sizeof head, &at);
    if (!rc && !inside)
        rc = put(s, fd, m->table, table_bytes, &at);
    assert(rc || at == m->table[0].offset);
    if (!rc)
        rc = put(s, fd, catalog.data, catalog.size, &at);
    at = m->table[0].offset + aligned(catalog.size);
    for (size_t i = 0; !rc && i < count; i++)
        rc = put(s, fd, blocks[i].bytes, blocks[i].h.size, &at);
    return rc;
}

static int write_image(const struct store *s, const char *path, struct image *m,
                       const struct live_block *blocks, size_t count, struct str catalog)
{
    const struct store_io *io = s->io;
    struct stat st;
    if (fstat(s->file.fd, &st))
        return -errno;
    unlink(path);
    int fd = io->open(io->user, path, O_RDWR | O_CREAT | O_EXCL, st.st_mode & 07777);
    if (fd < 0)
        return fd;
    int rc = io->reserve(io->user, fd, 0, m->bytes);
    if (!rc)
        rc = fill(s, fd, m, blocks, count, catalog);
    if (!rc && map_guard_lost(&s->file.lost) != MAP_GUARD_NOTHING_LOST)
        rc = -EIO; // the copy may contain zeros that replace the end of a truncated file
    if (!rc)
        rc = io->sync(io->user, fd);
    if (!rc)
        rc = io->rename(io->user, path, s->path);
    close(fd);
    if (rc)
        unlink(path);
    return rc;
}

// Syncs the folder, so that the new name is on disk, too.
static void sync_folder(const struct store *s)
{
    char *folder = strdup(s->path);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash)
        slash[slash == folder] = 0;
    int fd = folder ? open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        s->io->sync(s->io->user, fd);
        close(fd);
    }
    free(folder);
}

// True if the path still refers to this file. If not, another program has removed or replaced the
// file, and we must not create it again.
static bool still_there(const struct store *s)
{
    struct stat mine, named;
    return !fstat(s->file.fd, &mine) && !stat(s->path, &named) && mine.st_ino == named.st_ino &&
           mine.st_dev == named.st_dev;
}

int rewrite_file(struct store *s)
{
    if (!still_there(s))
        return -ENOENT;
    struct live_block *blocks = NULL;
    size_t count = 0;
    uint64_t bytes = 0;
    struct buf catalog = {0};
    struct image m = {0};
    char *path = NULL;
    int rc = live_blocks(s, &blocks, &count, &bytes);
    if (!rc && bytes > s->limits.rewrite_bytes)
        rc = -EFBIG;
    if (!rc)
        rc = packed_catalog(s, &catalog);
    if (!rc)
        rc = plan(s, blocks, count, catalog.size, &m);
    if (!rc && asprintf(&path, "%s.closing", s->path) < 0)
        rc = -ENOMEM;
    if (!rc)
        rc = write_image(s, path, &m, blocks, count, buf_str(&catalog));
    if (!rc) {
        sync_folder(s);
        // This is for readers that have the old file open, or are about to open it.
        extents_mark_closed(&s->file);
    }
    free(path);
    free(m.table);
    free(blocks);
    buf_free(&catalog);
    return rc;
}
