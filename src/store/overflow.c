#include "store/overflow.h"

#include "base/array.h"
#include "store/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { CHUNK_BYTES = 16 << 20, FREE_SHARE = 4, PATH_BYTES = 4096 };

struct chunk {
    uint8_t *base;
    size_t size;
};

struct store_overflow {
    int fd;
    uint64_t bytes, bytes_max; // of all chunks
    struct chunk *chunks;
    size_t count, capacity;
    size_t used; // bytes of the last chunk
    bool full;
};

static int open_unnamed(const char *folder)
{
    char path[PATH_BYTES];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    // Network file systems and old kernels have no O_TMPFILE.
    if (snprintf(path, sizeof path, "%s/.sonde-overflow-XXXXXX", folder) >= (int)sizeof path)
        return -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

struct store_overflow *store_overflow_open(const char *folder)
{
    struct statvfs disk;
    struct store_overflow *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->fd = open_unnamed(folder);
    if (o->fd < 0 || fstatvfs(o->fd, &disk) < 0) {
        store_overflow_close(o);
        return NULL;
    }
    o->bytes_max = (uint64_t)disk.f_bavail * disk.f_frsize / FREE_SHARE;
    return o;
}

void store_overflow_close(struct store_overflow *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->count; i++)
        munmap(o->chunks[i].base, o->chunks[i].size);
    free(o->chunks);
    if (o->fd >= 0)
        close(o->fd);
    free(o);
}

static bool add_chunk(struct store_overflow *o, size_t least)
{
    const struct store_io *io = &store_io_real;
    size_t size = (least + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES;
    void *base = MAP_FAILED;
    if (!o->full && size <= o->bytes_max - o->bytes &&
        io->reserve(io->user, o->fd, o->bytes, size) == 0 &&
        array_room(&o->chunks, &o->capacity, o->count + 1, sizeof *o->chunks))
        base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, o->fd, (off_t)o->bytes);
    o->full |= base == MAP_FAILED;
    if (o->full)
        return false;
    o->chunks[o->count++] = (struct chunk){base, size};
    o->bytes += size;
    o->used = 0;
    return true;
}

uint8_t *overflow_take(struct store_overflow *o, size_t size)
{
    if ((!o->count || size > o->chunks[o->count - 1].size - o->used) && !add_chunk(o, size))
        return NULL;
    uint8_t *place = o->chunks[o->count - 1].base + o->used;
    o->used += size;
    return place;
}

bool overflow_is_full(const struct store_overflow *o)
{
    return o->full;
}

void overflow_give_back(struct store_overflow *o, const uint8_t *place)
{
    o->used = (size_t)(place - o->chunks[o->count - 1].base);
}
