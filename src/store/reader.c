// reader.c - a file opened for reading, and snapshots of it.
#include "store/reader.h"

#include "base/hash.h"
#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TABLE_TRIES = 10000, TABLE_ENTRIES_MAX = 1 << 20 };

static int map_file(struct store_reader *r, uint64_t size)
{
    if (r->mapping && r->mapping->size >= size)
        return 0;
    // Longer than the file, so that growing it seldom needs another mapping.
    size_t bytes = (size_t)size * 2;
    struct mapping *m = malloc(sizeof *m);
    if (!m)
        return -ENOMEM;
    void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, r->fd, 0);
    if (p == MAP_FAILED) {
        free(m);
        return -errno;
    }
    *m = (struct mapping){r->mapping, p, bytes};
    r->mapping = m;
    return 0;
}

int store_reader_open(const char *path, struct store_reader **out, struct error *e)
{
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
    struct superblock sb = {0};
    struct stat st;
    ssize_t n = pread(fd, &sb, sizeof sb, 0);
    int rc = n < 0 || fstat(fd, &st) ? error_set(e, -errno, "cannot read %s: %s", path, strerror(errno))
                                     : superblock_check(&sb, (uint64_t)st.st_size, path, e);
    struct store_reader *r = rc ? NULL : calloc(1, sizeof *r);
    if (!r || !(r->path = strdup(path))) {
        free(r);
        close(fd);
        return rc ? rc : error_set(e, -ENOMEM, "no memory to open %s", path);
    }
    r->fd = fd;
    pthread_mutex_init(&r->mutex, NULL);
    lock_reader(fd);
    rc = map_file(r, (uint64_t)st.st_size);
    struct store_snapshot *s = rc ? NULL : store_snapshot_open(r);
    if (!s) {
        store_reader_close(r);
        return error_set(e, rc ? rc : -ENOMEM, "cannot read %s: %s", path, strerror(rc ? -rc : ENOMEM));
    }
    store_snapshot_close(s);
    *out = r;
    return 0;
}

void store_reader_close(struct store_reader *r)
{
    if (!r)
        return;
    while (r->mapping) {
        struct mapping *m = r->mapping;
        r->mapping = m->next;
        munmap((void *)(uintptr_t)m->base, m->size);
        free(m);
    }
    index_free(&r->index);
    map_free(&r->damaged);
    pthread_mutex_destroy(&r->mutex);
    close(r->fd);
    free(r->path);
    free(r);
}

struct str store_reader_meta(const struct store_reader *r, struct str key)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&r->mutex;
    pthread_mutex_lock(mutex);
    const uint64_t *at = map_get(&r->index.meta, key);
    struct str value = at ? *(const struct str *)(uintptr_t)*at : STR("");
    pthread_mutex_unlock(mutex);
    return value;
}

enum store_state store_reader_state(const struct store_reader *r)
{
    if (lock_has_writer(r->fd))
        return STORE_LIVE;
    const struct superblock *sb = (const struct superblock *)(const void *)r->mapping->base;
    return __atomic_load_n(&sb->state, __ATOMIC_ACQUIRE) == LAYOUT_CLOSED ? STORE_CLOSED : STORE_CRASHED;
}

void store_reader_damage(const struct store_reader *r, struct store_damage *out)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&r->mutex;
    pthread_mutex_lock(mutex);
    *out = r->damage;
    pthread_mutex_unlock(mutex);
}

// Under the mutex.
void reader_damaged(struct store_reader *r, uint64_t offset, uint64_t bytes, const char *what)
{
    uint64_t *key = arena_alloc(&r->index.memory, sizeof *key);
    bool added = false;
    if (key) {
        *key = offset;
        map_add(&r->damaged, (struct str){(const char *)key, sizeof *key}, &added);
    }
    if (!added)
        return;
    if (!r->damage.blocks++)
        snprintf(r->damage.first, sizeof r->damage.first, "%s at byte %llu: %llu bytes are damaged", what,
                 (unsigned long long)offset, (unsigned long long)bytes);
    r->damage.bytes += bytes;
}

// ── Snapshots ────────────────────────────────────────────────────────────────────────────────────────────────────

static void copy_words(void *to, const uint8_t *from, size_t bytes)
{
    const uint64_t *at = (const uint64_t *)(const void *)from;
    for (size_t i = 0; i < bytes / 8; i++) {
        uint64_t w = __atomic_load_n(&at[i], __ATOMIC_RELAXED);
        memcpy((char *)to + 8 * i, &w, 8);
    }
}

// A consistent copy of the segment table: nothing was allocated, sealed or freed while it was made.
static struct segment_entry *copy_table(struct store_snapshot *s, size_t *count, uint64_t *file_bytes)
{
    struct store_reader *r = s->reader;
    for (int i = 0; i < TABLE_TRIES; i++) {
        if (i % 16 == 15)
            sched_yield();
        struct stat st;
        if (fstat(r->fd, &st) || map_file(r, (uint64_t)st.st_size))
            return NULL;
        const struct superblock *sb = (const struct superblock *)(const void *)r->mapping->base;
        uint64_t sequence = __atomic_load_n(&sb->table_sequence, __ATOMIC_ACQUIRE);
        uint64_t offset = __atomic_load_n(&sb->table_offset, __ATOMIC_RELAXED);
        uint32_t n = __atomic_load_n(&sb->table_count, __ATOMIC_RELAXED);
        uint64_t bytes = n * sizeof(struct segment_entry), size = (uint64_t)st.st_size;
        if (n > TABLE_ENTRIES_MAX || offset > size || bytes > size - offset || offset % 8)
            continue;
        s->version = __atomic_load_n(&sb->version, __ATOMIC_ACQUIRE);
        struct segment_entry *table = arena_array(&s->memory, (size_t)n + 1, sizeof *table);
        if (!table)
            return NULL;
        const struct segment_entry *live = (const struct segment_entry *)(const void *)(r->mapping->base + offset);
        for (uint32_t k = 0; k < n; k++) {
            uint64_t used = __atomic_load_n(&live[k].used, __ATOMIC_ACQUIRE);
            copy_words(&table[k], (const uint8_t *)&live[k], sizeof *table);
            table[k].used = used;
        }
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        bool stable = __atomic_load_n(&sb->table_sequence, __ATOMIC_RELAXED) == sequence;
        if (stable && (!(sequence & 1) || !lock_has_writer(r->fd))) {
            s->table = live;
            *count = n;
            *file_bytes = size;
            return table;
        }
    }
    return NULL;
}

static bool entry_sound(const struct segment_entry *e, uint64_t file_bytes)
{
    uint32_t crc = crc32c(0, &e->kind, 12);
    return crc32c(crc, &e->offset, 24) == e->check && e->offset <= file_bytes && e->size <= file_bytes - e->offset &&
           e->offset % 8 == 0;
}

static bool add_blocks(struct store_snapshot *s, const struct segment_entry *e, uint32_t slot, size_t *capacity)
{
    const uint8_t *base = s->reader->mapping->base;
    uint64_t used = e->used < e->size ? e->used : e->size;
    for (uint64_t at = 0; used - at >= sizeof(struct block_header);) {
        struct block_header h;
        copy_words(&h, base + e->offset + at, sizeof h);
        if (!block_header_fits(&h, used - at)) {
            reader_damaged(s->reader, e->offset + at, used - at, "a block");
            return true;
        }
        if (s->block_count == *capacity) {
            void *grown = array_grow(s->blocks, capacity, sizeof *s->blocks);
            if (!grown)
                return false;
            s->blocks = grown;
        }
        s->blocks[s->block_count++] = (struct block_ref){h, base + e->offset + at, e->offset + at, slot, e->generation};
        at += h.size;
    }
    return true;
}

static bool add_tail(struct store_snapshot *s, const struct segment_entry *e)
{
    const struct index *x = &s->reader->index;
    uint64_t unit = e->kind == SEGMENT_POINT_TAIL   ? sizeof(struct point_record)
                    : e->kind == SEGMENT_EVENT_TAIL ? 1
                    : e->owner < x->set_count       ? (x->sets[e->owner].count + 1) * UINT64_C(8)
                                                    : 0;
    if (!unit || !e->used || e->used > e->size / unit)
        return true;
    struct tail_copy t = {(enum segment_kind)e->kind, e->owner, e->used, e->sequence, NULL};
    t.bytes = arena_alloc(&s->memory, e->used * unit);
    if (!t.bytes)
        return false;
    copy_words(t.bytes, s->reader->mapping->base + e->offset, e->used * unit);
    s->tails[s->tail_count++] = t;
    return true;
}

static bool fill(struct store_snapshot *s)
{
    size_t count, capacity = 0;
    uint64_t file_bytes;
    struct segment_entry *table = copy_table(s, &count, &file_bytes);
    if (!table)
        return false;
    for (size_t i = 0; i < count; i++)
        if (table[i].kind != SEGMENT_EMPTY && !entry_sound(&table[i], file_bytes)) {
            reader_damaged(s->reader, (uint64_t)i, sizeof *table, "a segment entry");
            table[i].kind = SEGMENT_EMPTY;
        }
    struct index *x = &s->reader->index;
    if (index_update(s->reader, table, count, s->reader->mapping->base, file_bytes))
        return false;
    s->metric_count = x->metric_count;
    s->series_count = x->series_count;
    s->set_count = x->set_count;
    s->tails = arena_array(&s->memory, count + 1, sizeof *s->tails);
    if (!s->tails)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (table[i].kind == SEGMENT_BLOCKS && !add_blocks(s, &table[i], (uint32_t)i, &capacity))
            return false;
        if (table[i].kind >= SEGMENT_SET_TAIL && table[i].kind <= SEGMENT_EVENT_TAIL && !add_tail(s, &table[i]))
            return false;
    }
    // A tail that was emptied while it was copied is in the blocks of the next try.
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    for (size_t i = 0; i < count; i++)
        if (table[i].kind != SEGMENT_EMPTY &&
            __atomic_load_n(&s->table[i].generation, __ATOMIC_RELAXED) != table[i].generation)
            return false;
    return true;
}

struct store_snapshot *store_snapshot_open(struct store_reader *r)
{
    struct store_snapshot *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    pthread_mutex_lock(&r->mutex);
    bool ok = false;
    for (int i = 0; i < TABLE_TRIES && !ok; i++) {
        free(s->blocks);
        arena_free(&s->memory);
        *s = (struct store_snapshot){.reader = r};
        ok = fill(s);
    }
    pthread_mutex_unlock(&r->mutex);
    if (!ok) {
        store_snapshot_close(s);
        return NULL;
    }
    return s;
}

void store_snapshot_close(struct store_snapshot *s)
{
    if (!s)
        return;
    free(s->blocks);
    arena_free(&s->memory);
    free(s);
}

uint64_t store_snapshot_version(const struct store_snapshot *s)
{
    return s->version;
}

uint8_t *block_fetch(struct store_snapshot *s, const struct block_ref *b)
{
    uint8_t *copy = malloc(b->header.size);
    if (!copy)
        return NULL;
    copy_words(copy, b->bytes, b->header.size);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    bool gone = __atomic_load_n(&s->table[b->slot].generation, __ATOMIC_RELAXED) != b->generation;
    if (!gone && block_head_intact(&b->header, copy) && block_data_intact(&b->header, copy))
        return copy;
    if (!gone) {
        pthread_mutex_lock(&s->reader->mutex);
        reader_damaged(s->reader, b->offset, b->header.size, "a block");
        pthread_mutex_unlock(&s->reader->mutex);
    }
    free(copy);
    return NULL;
}

bool store_time_range(const struct store_snapshot *s, int64_t *first_ns, int64_t *last_ns)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < s->block_count; i++)
        if (s->blocks[i].header.kind != BLOCK_EVENTS) {
            first = s->blocks[i].header.first_ns < first ? s->blocks[i].header.first_ns : first;
            last = s->blocks[i].header.last_ns > last ? s->blocks[i].header.last_ns : last;
        }
    for (size_t i = 0; i < s->tail_count; i++) {
        const struct tail_copy *t = &s->tails[i];
        size_t unit = t->kind == SEGMENT_SET_TAIL ? (s->reader->index.sets[t->owner].count + 1) * sizeof(double)
                                                  : sizeof(struct point_record);
        for (uint64_t k = 0; t->kind != SEGMENT_EVENT_TAIL && k < t->used; k++) {
            int64_t at;
            memcpy(&at, t->bytes + k * unit + (t->kind == SEGMENT_POINT_TAIL ? 8 : 0), sizeof at);
            first = at < first ? at : first;
            last = at > last ? at : last;
        }
    }
    *first_ns = first;
    *last_ns = last;
    return first <= last;
}

int store_blocks(struct store_snapshot *s, store_block_fn *each, void *user)
{
    for (size_t i = 0; i < s->block_count; i++) {
        const struct block_ref *b = &s->blocks[i];
        uint8_t *copy = block_fetch(s, b);
        struct store_block_info info = {
            .offset = b->offset,
            .size_bytes = b->header.size,
            .series = b->header.columns,
            .rows = b->header.rows,
            .values = b->header.values,
            .first_ns = b->header.first_ns,
            .last_ns = b->header.last_ns,
            .cold = b->header.flags & BLOCK_COLD,
            .intact = copy,
        };
        free(copy);
        if (!each(&info, user))
            break;
    }
    return 0;
}
