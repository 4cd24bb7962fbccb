// lock.h - locks of a recording, and checks whether a file is a sonde file.
//
// Locks are open-file-description locks on single bytes: the writer locks byte 0 exclusively, every
// reader shares byte 1. The writer never waits for readers; it truncates the file only if it has no
// readers, and keeps new ones out meanwhile.
#ifndef SONDE_STORE_LOCK_H
#define SONDE_STORE_LOCK_H

#include "base/error.h"
#include "store/layout.h"

#include <stdbool.h>
#include <stddef.h>

int lock_writer(int fd);      // 0, -EBUSY
bool lock_has_writer(int fd); // for readers
// returns 0; after a failure the writer may truncate the file under the reader
int lock_reader(int fd);
// for the writer, while it truncates the file: 0, or an error if the file has readers
int lock_out_readers(int fd);
void lock_let_readers_in(int fd);
// the id of the machine's current boot; zeros if the system gives none
void lock_boot_id(uint8_t id[16]);
void lock_unmap(void *base, size_t size);

// The required value of closed_crc.
uint32_t superblock_closed_crc(const struct superblock *sb, const struct extent_entry *table);

// The required value of the entry's `check`.
uint32_t extent_entry_check(const struct extent_entry *entry);

// Whether no extent has ever used this entry: all its bytes are 0.
bool extent_entry_is_new(const struct extent_entry *entry);

static inline bool extent_entry_lies_in(const struct extent_entry *e, uint64_t file_bytes)
{
    return e->offset <= file_bytes && e->size <= file_bytes - e->offset && e->offset % 8 == 0;
}

// Whether this version can read the file that begins with `sb`: 0, -EINVAL (no sonde file),
// -ENODATA (not completely created), -ENOTSUP (another version), -EBADMSG (damaged).
int superblock_check(const struct superblock *sb, uint64_t file_bytes, const char *path,
                     struct error *e);

#endif
