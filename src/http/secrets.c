// secrets.c - opens, checks and reads files that hold secrets.
#include "http/secrets.h"

#include "base/full_io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_private(int fd, const char *path, struct error *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return error_set(e, -errno, "cannot look at %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return error_set(e, -EINVAL, "%s is not a regular file", path);
    if (st.st_uid != geteuid())
        return error_set(e, -EPERM, "%s belongs to another user (uid %u); use a file of your own",
                         path, (unsigned)st.st_uid);
    if (st.st_mode & 077)
        return error_set(
            e, -EPERM,
            "%s can be opened by other users (mode %04o); make it yours alone: chmod 600 %s", path,
            (unsigned)st.st_mode & 07777u, path);
    return 0;
}

int secrets_read(const char *path, enum secrets_how how, struct buf *out, struct error *e)
{
    *out = (struct buf){.limit = SECRETS_FILE_MAX};
    // O_NONBLOCK, because opening a pipe must not block.
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (how == SECRETS_NO_LINK ? O_NOFOLLOW : 0));
    if (fd < 0 && errno == ELOOP)
        return error_set(e, -ELOOP, "%s is a link; name the file itself", path);
    if (fd < 0)
        return error_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
    int rc = how == SECRETS_PUBLIC ? 0 : check_private(fd, path, e);
    if (rc) {
        close(fd);
        return rc;
    }
    rc = full_read(fd, out);
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
