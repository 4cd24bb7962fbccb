// lock.h - detects which process has a file open, and whether it is ours.
//
// Open-file-description locks on single bytes: byte 0 exclusively by the writer, byte 1 shared by
// every reader. The writer never waits for readers; it cuts the file short only if there are none,
// and keeps new ones out meanwhile.
#ifndef SONDE_STORE_LOCK_H
#define SONDE_STORE_LOCK_H

#include "base/error.h"
#include "store/layout.h"

#include <stdbool.h>
#include <stddef.h>

int lock_writer(int fd);      // 0, -EBUSY
bool lock_has_writer(int fd); // asked by a reader
int lock_reader(int fd);      // 0; a failure only means that the file may be cut under the reader
// by the writer, for the moment in which it cuts the file: 0, or there are readers
int lock_out_readers(int fd);
void lock_let_readers_in(int fd);
// of this machine since it came up; zeros where the system does not say
void lock_boot_id(uint8_t id[16]);
void lock_unmap(void *base, size_t size);

// What closed_crc has to be.
uint32_t superblock_closed_crc(const struct superblock *sb, const struct extent_entry *table);

// What the `check` of an entry of the table has to be.
uint32_t extent_entry_check(const struct extent_entry *entry);

// No extent has ever had this entry: all its bytes are 0.
bool extent_entry_is_new(const struct extent_entry *entry);

static inline bool extent_entry_lies_in(const struct extent_entry *e, uint64_t file_bytes)
{
    return e->offset <= file_bytes && e->size <= file_bytes - e->offset && e->offset % 8 == 0;
}

// Whether `sb` begins a file that this version can read: 0, -EINVAL (no store), -ENODATA (not yet
// one), -ENOTSUP (another version), -EBADMSG (damaged).
int superblock_check(const struct superblock *sb, uint64_t file_bytes, const char *path,
                     struct error *e);

#endif
