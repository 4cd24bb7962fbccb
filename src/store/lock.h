// lock.h - locks of a recording, and checks whether a file is a sonde file.
//
// Locks are open-file-description locks on single bytes. The writer locks byte 0 exclusively; every
// reader has a shared lock on byte 1. The writer never waits for readers. It truncates the file
// only if the file has no readers, and keeps new readers out meanwhile.
#ifndef SONDE_STORE_LOCK_H
#define SONDE_STORE_LOCK_H

#include "base/error.h"
#include "store/layout.h"

#include <stdbool.h>
#include <stddef.h>

int lock_writer(int fd);      // returns 0, or -EBUSY if another writer has the lock
bool lock_has_writer(int fd); // for readers
// returns 0; after a failure the writer may truncate the file under the reader
int lock_reader(int fd);
// locks readers out while the writer truncates the file; fails if the file has readers
int lock_out_readers(int fd);
void lock_let_readers_in(int fd);
// stores the id of the machine's current boot; zeros if the system does not provide it
void lock_boot_id(uint8_t id[16]);
void lock_unmap(void *base, size_t size);

// Computes the correct value of closed_crc.
uint32_t superblock_closed_crc(const struct superblock *sb, const struct extent_entry *table);

// Computes the correct value of the entry's `check`.
uint32_t extent_entry_check(const struct extent_entry *entry);

// True if no extent has ever used this entry: all its bytes are 0.
bool extent_entry_is_new(const struct extent_entry *entry);

static inline bool extent_entry_lies_in(const struct extent_entry *e, uint64_t file_bytes)
{
    return e->offset <= file_bytes && e->size <= file_bytes - e->offset && e->offset % 8 == 0;
}

// Checks that this version can read the file that begins with `sb`. Returns 0, -EINVAL (not a sonde
// file), -ENODATA (not completely created), -ENOTSUP (another version) or -EBADMSG (damaged).
int superblock_check(const struct superblock *sb, uint64_t file_bytes, const char *path,
                     struct error *e);

#endif
