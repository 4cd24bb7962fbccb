// secrets.c - looking at and reading files that hold secrets.
#include "aggregator/secrets.h"

#include "base/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int secrets_check_private(const char *path, struct error *e)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return error_set(e, -errno, "cannot look at %s: %s", path, strerror(errno));
    if (st.st_mode & (S_IRGRP | S_IROTH))
        return error_set(e, -EPERM, "%s can be read by other users (mode %04o); make it yours alone: chmod 600 %s",
                         path, (unsigned)st.st_mode & 07777u, path);
    return 0;
}

int secrets_read(const char *path, struct buf *out, struct error *e)
{
    *out = (struct buf){.limit = SECRETS_FILE_MAX};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
    int rc = whole_read(fd, out);
    close(fd);
    if (rc == 0) {
        buf_cstr(out);
        return 0;
    }
    secrets_free(out);
    return rc == -EFBIG ? error_set(e, rc, "%s is larger than %d bytes", path, SECRETS_FILE_MAX)
                        : error_set(e, rc, "cannot read %s: %s", path, strerror(-rc));
}

void secrets_free(struct buf *secret)
{
    if (secret->data)
        explicit_bzero(secret->data, secret->capacity);
    buf_free(secret);
}
