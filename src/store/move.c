// move.c - moves the file to another place that has space.
//
// Offsets stay the same, so the writer only changes its mapping. For readers that have the old file
// open, it becomes a closed file, as after a rewrite (rewrite.c). The caller redirects the old name
// to the new file.
#include "store/lock.h"
#include "store/writer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int go_to(struct store *s, int fd)
{
    int rc = lock_writer(fd);
    return rc ? rc : extents_move(&s->file, fd);
}

int store_move(struct store *s, const char *path, struct error *e)
{
    char *name = strdup(path);
    if (s->sync.under_way)
        store_sync(s, NULL); // a sync in progress belongs to the old file
    int fd = name ? s->io->open(s->io->user, path, O_RDWR | O_CREAT | O_EXCL, 0600) : -ENOMEM;
    int rc = fd < 0 ? fd : go_to(s, fd);
    if (rc) {
        if (fd >= 0) {
            close(fd);
            unlink(path);
        }
        free(name);
        return error_set(e, rc, "cannot move %s to %s: %s", s->path, path, strerror(-rc));
    }
    free(s->path);
    s->path = name;
    s->spill.last_try_ns = 0;
    return 0;
}
