// secrets.c - looking at and reading files that hold secrets.
#include "aggregator/secrets.h"

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
    enum { PIECE_BYTES = 16384 };
    *out = (struct buf){.limit = SECRETS_FILE_MAX};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
    ssize_t n = 1;
    int code = 0;
    while (n > 0 && buf_reserve(out, PIECE_BYTES)) {
        n = read(fd, out->data + out->size, PIECE_BYTES);
        code = n < 0 ? errno : 0;
        out->size += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    if (!code && !out->failed) {
        buf_cstr(out);
        return 0;
    }
    secrets_free(out);
    return code ? error_set(e, -code, "cannot read %s: %s", path, strerror(code))
                : error_set(e, -EFBIG, "%s is larger than %d bytes", path, SECRETS_FILE_MAX);
}

void secrets_free(struct buf *secret)
{
    if (secret->data)
        explicit_bzero(secret->data, secret->capacity);
    buf_free(secret);
}
