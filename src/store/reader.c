// reader.c - opens files for reading, and closes them.
#include "store/reader.h"

#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_LOOKS = 3 };

static bool add_mapping(struct store_reader *r, size_t bytes, int *rc)
{
    struct mapping *m = malloc(sizeof *m);
    void *p = m ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, r->fd, 0) : MAP_FAILED;
    *rc = !m ? -ENOMEM : p == MAP_FAILED ? -errno : 0;
    struct map_guard *guard =
        *rc ? NULL : map_guard_add(p, bytes, PROT_READ, r->fd, &r->remains.lost);
    if (!guard) {
        if (!*rc)
            munmap(p, bytes);
        *rc = *rc ? *rc : -ENOMEM;
        free(m);
        return false;
    }
    *m = (struct mapping){r->mapping, p, bytes, guard};
    r->mapping = m;
    return true;
}

int reader_map(struct store_reader *r, uint64_t size)
{
    // The file grows while it is written. Its writer truncates it only at the end, and never while
    // it has readers.
    if (size < r->file_bytes)
        map_guard_lose(&r->remains.lost, size);
    if (size < LAYOUT_HEADER_BYTES)
        return r->mapping ? -EBADMSG : -EINVAL;
    // Map more than the file's length, so that a growing file seldom needs a new mapping. Bytes
    // beyond the file's end are never accessed.
    int rc = 0;
    if ((!r->mapping || r->mapping->size < size) && !add_mapping(r, (size_t)size * 2, &rc))
        return rc;
    // Choose the witness on first use, because the file's last page may have to come from the disk.
    if (size != r->file_bytes) {
        atomic_store(&r->remains.mapping, r->mapping);
        atomic_store(&r->remains.file_bytes, size);
        atomic_store(&r->remains.witness, r->mapping->base);
        atomic_store(&r->remains.value, WITNESS_UNKNOWN);
    }
    r->file_bytes = size;
    return 0;
}

static void choose_witness(struct remains *x)
{
    const struct mapping *m = atomic_load(&x->mapping);
    uint64_t size = atomic_load(&x->file_bytes);
    size = size < m->size ? size : m->size;
    const volatile uint8_t *at = m->base + size - 1,
                           *page = at - (size - 1) % (uint64_t)sysconf(_SC_PAGESIZE);
    // Requests the page alone. A page fault would read what lies around it, too (prefetch.h).
    posix_fadvise(x->fd, page - m->base, 1, POSIX_FADV_WILLNEED);
    while (at > page && !*at)
        at--;
    atomic_store(&x->value, *at);
    atomic_store(&x->witness, (const uint8_t *)at);
}

void remains_look(struct remains *x)
{
    struct stat st;
    unsigned now = *(const volatile uint8_t *)atomic_load(&x->witness);
    bool unknown = atomic_load(&x->value) == WITNESS_UNKNOWN;
    if (unknown)
        choose_witness(x);
    // Check the length after the choice, because a witness that was chosen in a truncated file
    // proves nothing.
    if (!fstat(x->fd, &st) && (uint64_t)st.st_size < atomic_load(&x->file_bytes)) {
        map_guard_lose(&x->lost, (uint64_t)st.st_size);
    } else if (!unknown && (atomic_load(&x->grows) || lock_has_writer(x->fd))) {
        atomic_store(&x->grows, true);
        atomic_store(&x->value, now); // the writer has changed this byte
    }
}

void reader_look_for_cut(struct store_reader *r)
{
    uint64_t lost = map_guard_lost(&r->remains.lost);
    if (lost == MAP_GUARD_NOTHING_LOST || r->cut_reported)
        return;
    r->cut_reported = true;
    if (!r->damage.blocks++)
        snprintf(
            r->damage.first, sizeof r->damage.first,
            "the file was cut short, or cannot be read, from byte %llu on: what was there is lost",
            (unsigned long long)lost);
}

// True if header and table match the checksum that the writer stored when it closed the file.
// Checks copies, because another process may change the originals.
static bool closed_as_written(const struct store_reader *r, const struct superblock *sb)
{
    uint64_t bytes = sb->table_count * sizeof(struct extent_entry);
    if (sb->table_offset > r->file_bytes || sb->table_offset % 8 ||
        bytes > r->file_bytes - sb->table_offset)
        return false;
    const uint8_t *table = r->mapping->base + sb->table_offset;
    return superblock_closed_crc(sb, (const struct extent_entry *)(const void *)table) ==
           sb->closed_crc;
}

// Checks header and table. A closed file has one checksum for both; a file that is being written
// only has one for each entry. If a writer opens and closes the file during the check, the check is
// repeated.
static void check_head(struct store_reader *r)
{
    struct superblock sb;
    bool ok = false;
    for (int i = 0; i < HEAD_LOOKS && !ok; i++) {
        reader_copy_words(&sb, r->mapping->base, sizeof sb);
        ok = sb.state == LAYOUT_LIVE ||
             (sb.state == LAYOUT_CLOSED && (closed_as_written(r, &sb) || lock_has_writer(r->fd)));
    }
    if (!ok)
        reader_report(r, 0, sb.header_bytes, "the header or the extent table");
}

int store_reader_open(const char *path, struct store_reader **out, struct error *e)
{
    *out = NULL;
    // O_NONBLOCK: opening a FIFO or a device must not wait for its other end.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
    struct superblock sb = {0};
    struct stat st;
    // lock before reading the size: from here on the writer does not truncate the file
    lock_reader(fd);
    int rc = fstat(fd, &st) ? error_set(e, -errno, "cannot look at %s: %s", path, strerror(errno))
             : !S_ISREG(st.st_mode)
                 ? error_set(e, -EINVAL, "cannot read %s: not a regular file", path)
             : pread(fd, &sb, sizeof sb, 0) < 0
                 ? error_set(e, -errno, "cannot read %s: %s", path, strerror(errno))
                 : superblock_check(&sb, (uint64_t)st.st_size, path, e);
    struct store_reader *r = rc ? NULL : calloc(1, sizeof *r);
    if (!r || !(r->path = strdup(path))) {
        free(r);
        close(fd);
        return rc ? rc : error_set(e, -ENOMEM, "no memory to open %s", path);
    }
    r->fd = fd;
    r->remains.lost = MAP_GUARD_NOTHING_LOST;
    r->remains.fd = fd;
    r->remains.grows = sb.state != LAYOUT_CLOSED || lock_has_writer(fd);
    lock_boot_id(r->boot_id);
    pthread_mutex_init(&r->mutex, NULL);
    pthread_mutex_init(&r->events_mutex, NULL);
    rc = reader_map(r, (uint64_t)st.st_size);
    if (rc) {
        error_set(e, rc, "cannot map %s: %s", path, strerror(-rc));
        store_reader_close(r);
        return rc;
    }
    check_head(r);
    // The first snapshot shows whether the file is readable, and reads its attributes.
    struct store_snapshot *s = store_snapshot_open(r);
    if (!s) {
        store_reader_close(r);
        return error_set(e, -EBADMSG,
                         "cannot read %s: its extent table is damaged, or there is no memory",
                         path);
    }
    store_snapshot_close(s);
    *out = r;
    return 0;
}

void store_reader_close(struct store_reader *r)
{
    if (!r)
        return;
    if (r->view)
        view_release(r->view);
    extents_free(r);
    while (r->mapping) {
        struct mapping *m = r->mapping;
        r->mapping = m->next;
        map_guard_remove(m->guard);
        munmap((void *)(uintptr_t)m->base, m->size);
        free(m);
    }
    index_free(&r->index);
    event_index_free(&r->events);
    pthread_mutex_destroy(&r->events_mutex);
    map_free(&r->damaged);
    pthread_mutex_destroy(&r->mutex);
    close(r->fd);
    free(r->path);
    free(r);
}

// The mutex may be locked in a const reader, because that changes nothing that callers see.
static pthread_mutex_t *mutex_of(const struct store_reader *r)
{
    return (pthread_mutex_t *)(uintptr_t)&r->mutex;
}

struct str store_reader_meta(const struct store_reader *r, struct str key)
{
    pthread_mutex_lock(mutex_of(r));
    const uint64_t *at = map_get(&r->index.meta, key);
    struct str value = at ? *(const struct str *)(uintptr_t)*at : STR("");
    pthread_mutex_unlock(mutex_of(r));
    return value;
}

enum store_state store_reader_state(const struct store_reader *r)
{
    if (lock_has_writer(r->fd))
        return STORE_LIVE;
    pthread_mutex_lock(mutex_of(r));
    const struct superblock *sb = (const struct superblock *)(const void *)r->mapping->base;
    pthread_mutex_unlock(mutex_of(r));
    // Acquire: the data that the caller reads next were written before the file was closed.
    return __atomic_load_n(&sb->state, __ATOMIC_ACQUIRE) == LAYOUT_CLOSED ? STORE_CLOSED
                                                                          : STORE_CRASHED;
}

static uint64_t counter(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_RELAXED);
}

void store_reader_losses(const struct store_reader *r, struct store_losses *out)
{
    bool live = lock_has_writer(r->fd);
    pthread_mutex_lock(mutex_of(r));
    const struct superblock *sb = (const struct superblock *)(const void *)r->mapping->base;
    uint64_t waiting = counter(&sb->waiting);
    *out = (struct store_losses){.dropped = counter(&sb->dropped) + (live ? 0 : waiting),
                                 .waiting = live ? waiting : 0,
                                 .retired = counter(&sb->retired)};
    pthread_mutex_unlock(mutex_of(r));
}

void store_reader_damage(const struct store_reader *r, struct store_damage *out)
{
    pthread_mutex_lock(mutex_of(r));
    reader_look_for_cut((struct store_reader *)(uintptr_t)r);
    *out = r->damage;
    pthread_mutex_unlock(mutex_of(r));
}

// Counts damage at a place once. Returns true if the place was not counted before. *first: no
// damage was counted before.
static bool count_damage(struct store_reader *r, uint64_t offset, uint64_t bytes, bool *first)
{
    uint64_t *key = arena_alloc(&r->index.memory, sizeof *key);
    bool added = false;
    if (key) {
        *key = offset;
        map_add(&r->damaged, (struct str){(const char *)key, sizeof *key}, &added);
    }
    if (!added)
        return false;
    *first = !r->damage.blocks++;
    r->damage.bytes += bytes;
    return true;
}

void reader_damaged(struct store_reader *r, uint64_t offset, uint64_t bytes, const char *what)
{
    bool first;
    if (count_damage(r, offset, bytes, &first) && first)
        snprintf(r->damage.first, sizeof r->damage.first, "%s at byte %llu (%llu bytes) is damaged",
                 what, (unsigned long long)offset, (unsigned long long)bytes);
}

void reader_unsure(struct store_reader *r, uint64_t offset, uint64_t bytes)
{
    bool first;
    if (!lock_has_writer(r->fd) && count_damage(r, offset, bytes, &first) && first)
        snprintf(r->damage.first, sizeof r->damage.first,
                 "%llu bytes at byte %llu came after the last sync, in another boot of the "
                 "machine: left out",
                 (unsigned long long)bytes, (unsigned long long)offset);
}

void reader_report(struct store_reader *r, uint64_t offset, uint64_t bytes, const char *what)
{
    pthread_mutex_lock(&r->mutex);
    reader_damaged(r, offset, bytes, what);
    pthread_mutex_unlock(&r->mutex);
}
