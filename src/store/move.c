// move.c - the file goes on in another place, where there is space.
//
// Offsets stay as they are, so nothing of the writer's has to be changed but the mapping. Readers that have the old file open see it closed, as
// when a file is written anew (rewrite.c); the caller leads its name to the new one.
#include "store/lock.h"
#include "store/writer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int copy_to(struct store *s, int fd, uint8_t **base)
{
    const struct store_io *io = s->io;
    int (*write)(void *, int, const void *, size_t, uint64_t) = io->write ? io->write : store_io_real.write;
    int rc = lock_writer(fd);
    if (!rc)
        rc = io->reserve(io->user, fd, 0, s->file.end);
    if (!rc)
        rc = write(io->user, fd, s->file.base, s->file.end, 0);
    if (!rc)
        rc = io->sync(io->user, fd);
    if (!rc && map_guard_lost(&s->file.lost) != MAP_GUARD_NOTHING_LOST)
        rc = -ESTALE; // zeros may have been copied
    return rc ? rc : io->map(io->user, fd, s->file.mapped_bytes, base);
}

int store_move(struct store *s, const char *path, struct error *e)
{
    struct extents *x = &s->file;
    uint8_t *base = NULL;
    struct map_guard *guard = NULL;
    char *name = strdup(path);
    if (s->flushing)
        store_sync(s, NULL); // a sync that is under way is of the old file
    int fd = name ? s->io->open(s->io->user, path, O_RDWR | O_CREAT | O_EXCL, 0600) : -ENOMEM;
    int rc = fd < 0 ? fd : copy_to(s, fd, &base);
    if (!rc && !(guard = map_guard_add(base, x->mapped_bytes, PROT_READ | PROT_WRITE, fd, &x->lost))) {
        munmap(base, x->mapped_bytes);
        rc = -ENOMEM;
    }
    if (rc) {
        if (fd >= 0) {
            close(fd);
            unlink(path);
        }
        free(name);
        return error_set(e, rc, "cannot move %s to %s: %s", s->path, path, strerror(-rc));
    }
    __atomic_store_n(&extents_super(x)->state, LAYOUT_CLOSED, __ATOMIC_RELEASE);
    map_guard_remove(x->guard);
    munmap(x->base, x->mapped_bytes);
    close(x->fd);
    x->fd = fd;
    x->base = base;
    x->guard = guard;
    x->file_bytes = x->reserved_bytes = x->end;
    x->inherited_bytes = 0;
    free(s->path);
    s->path = name;
    s->last_space_try_ns = 0;
    return 0;
}
