#include "base/atomic_file.h"

#include "base/full_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int atomic_file_begin(struct atomic_file *f, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int n = snprintf(f->path, sizeof f->path, "%s", path);
    int m = snprintf(f->draft, sizeof f->draft, "%.*s.%s.XXXXXX", (int)(name - path), path, name);
    if (n < 0 || n >= PATH_MAX || m < 0 || m >= PATH_MAX)
        return -ENAMETOOLONG;
    f->fd = mkostemp(f->draft, O_CLOEXEC); // mode 0600
    return f->fd < 0 ? -errno : 0;
}

int atomic_file_end(struct atomic_file *f, int status, unsigned flags)
{
    if (status == 0 && (flags & ATOMIC_FILE_DURABLE) && fsync(f->fd) < 0)
        status = -errno;
    if (close(f->fd) < 0 && status == 0)
        status = -errno;
    if (status == 0 && !(flags & ATOMIC_FILE_NEW)) {
        if (rename(f->draft, f->path) == 0)
            return 0;
        status = -errno;
    } else if (status == 0 && link(f->draft, f->path) < 0) {
        status = -errno;
    }
    unlink(f->draft);
    return status;
}

int atomic_file_write(const char *path, struct str text, unsigned flags)
{
    struct atomic_file f;
    int status = atomic_file_begin(&f, path);
    return status < 0 ? status : atomic_file_end(&f, full_write(f.fd, text, 0), flags);
}
