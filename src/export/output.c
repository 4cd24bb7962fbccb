#include "export/output.h"

#include "base/full_io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int export_output_open(struct export_output *o, const char *path, struct error *e)
{
    struct stat info;
    *o = (struct export_output){.fd = STDOUT_FILENO, .path = path};
    if (strcmp(path, "-") == 0) {
        o->path = "standard output";
        return 0;
    }
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        if (S_ISDIR(info.st_mode))
            return error_set(e, -EISDIR, "cannot write %s: it is a folder; give -o FILE", path);
        o->fd = open(path, O_WRONLY | O_CLOEXEC);
        o->opened = o->fd >= 0;
        return o->opened ? 0 : error_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
    }
    int rc = atomic_file_begin(&o->file, path);
    if (rc)
        return error_set(e, rc, "cannot write %s: %s", path, strerror(-rc));
    o->fd = o->file.fd;
    o->draft = true;
    return 0;
}

int export_output_close(struct export_output *o, int status, struct error *e)
{
    int rc = status;
    if (o->draft)
        rc = atomic_file_end(&o->file, status, ATOMIC_FILE_DURABLE);
    else if (o->opened && close(o->fd) < 0 && !status)
        rc = -errno;
    if (!status && rc)
        error_set(e, rc, "cannot write %s: %s", o->path, strerror(-rc));
    return rc;
}

int export_write(struct export_output *o, struct str bytes, struct error *e)
{
    int rc = full_write(o->fd, bytes, -1);
    if (rc)
        return error_set(e, rc, "cannot write %s: %s", o->path, strerror(-rc));
    o->bytes += bytes.size;
    return 0;
}

int export_flush(struct export_output *o, struct buf *b, bool all, struct error *e)
{
    if (b->failed)
        return error_set(e, -ENOMEM, "out of memory");
    if (!b->size || (!all && b->size < EXPORT_BUFFER_BYTES))
        return 0;
    int rc = export_write(o, buf_str(b), e);
    b->size = 0;
    return rc;
}
