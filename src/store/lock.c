#include "store/lock.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WRITER_BYTE = 0, READER_BYTE = 1, READER_TRIES = 1000 };

static struct flock byte_lock(short type, off_t byte)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
}

int lock_writer(int fd)
{
    struct flock l = byte_lock(F_WRLCK, WRITER_BYTE);
    if (!fcntl(fd, F_OFD_SETLK, &l))
        return 0;
    return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

bool lock_has_writer(int fd)
{
    struct flock l = byte_lock(F_RDLCK, WRITER_BYTE);
    return !fcntl(fd, F_OFD_GETLK, &l) && l.l_type != F_UNLCK;
}

int lock_reader(int fd)
{
    struct flock l = byte_lock(F_RDLCK, READER_BYTE);
    int rc = -1;
    for (int i = 0; i < READER_TRIES && (rc = fcntl(fd, F_OFD_SETLK, &l)); i++)
        sched_yield(); // a writer is truncating the file, which takes it one system call
    return rc ? -errno : 0;
}

int lock_out_readers(int fd)
{
    struct flock l = byte_lock(F_WRLCK, READER_BYTE);
    return fcntl(fd, F_OFD_SETLK, &l) ? -errno : 0;
}

void lock_let_readers_in(int fd)
{
    struct flock l = byte_lock(F_UNLCK, READER_BYTE);
    fcntl(fd, F_OFD_SETLK, &l);
}

void lock_boot_id(uint8_t id[16])
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

void lock_unmap(void *base, size_t size)
{
    munmap(base, size);
}

uint32_t superblock_closed_crc(const struct superblock *sb, const struct extent_entry *table)
{
    uint32_t crc = crc32c(0, sb, offsetof(struct superblock, closed_crc));
    return crc32c(crc, table, sb->table_count * sizeof *table);
}

uint32_t extent_entry_check(const struct extent_entry *entry)
{
    uint32_t crc = crc32c(0, &entry->kind, 12);
    return crc32c(crc, &entry->offset, 24);
}

bool extent_entry_is_new(const struct extent_entry *entry)
{
    static const struct extent_entry unused;
    return !memcmp(entry, &unused, sizeof unused);
}

static const char sqlite_magic[] = "SQLite format 3";

int superblock_check(const struct superblock *sb, uint64_t file_bytes, const char *path,
                     struct error *e)
{
    // The magic is written last (store.c, create).
    static const uint8_t nothing[sizeof sb->magic];
    if (file_bytes <= LAYOUT_NEW_BYTES_MAX && !memcmp(sb->magic, nothing, sizeof nothing))
        return error_set(e, -ENODATA,
                         "%s: not a sonde file yet: it is being created, or its creator was killed",
                         path);
    if (!memcmp(sb->magic, sqlite_magic, sizeof sb->magic))
        return error_set(e, -EINVAL,
                         "%s: not a sonde file but an SQLite database; if Dragon's telemetry wrote "
                         "it, make a recording of "
                         "it: sonde import --format dragon-sqlite -o DIR %s",
                         path, path);
    if (file_bytes < LAYOUT_HEADER_BYTES || memcmp(sb->magic, LAYOUT_MAGIC, sizeof sb->magic)) {
        uint32_t magic;
        memcpy(&magic, sb->magic, sizeof magic);
        return error_set(e, -EINVAL, "%s: not a sonde file (%llu bytes, magic 0x%08x)", path,
                         (unsigned long long)file_bytes, magic);
    }
    if (crc32c(0, sb, offsetof(struct superblock, fixed_crc)) != sb->fixed_crc)
        return error_set(e, -EBADMSG, "%s: its first 64 bytes are damaged", path);
    if (sb->major != LAYOUT_MAJOR)
        return error_set(e, -ENOTSUP, "%s: format version %u.%u; this program reads %u", path,
                         sb->major, sb->minor, LAYOUT_MAJOR);
    return 0;
}
