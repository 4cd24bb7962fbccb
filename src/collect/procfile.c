// procfile.c - opens and re-reads files; grows the buffer.
#include "collect/procfile.h"

#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int procfile_open(struct procfile *f, struct source *s, const char *path)
{
    char full[4096];
    *f = (struct procfile){.fd = -1, .path = path};
    int size = snprintf(full, sizeof full, "%s%s", s->options->root ? s->options->root : "", path);
    if (size < 0 || (size_t)size >= sizeof full)
        return source_fail(s, -ENAMETOOLONG, "cannot open %s: the root folder's path is too long",
                           path);
    f->fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0)
        return source_fail(s, -errno, "cannot open %s: %s", full, strerror(errno));
    f->data = malloc(PROCFILE_SIZE_FIRST);
    if (!f->data) {
        procfile_close(f);
        return source_fail(s, -ENOMEM, "no memory to read %s", full);
    }
    f->capacity = PROCFILE_SIZE_FIRST;
    struct str contents;
    int failed = procfile_read(f, s, &contents);
    if (failed)
        procfile_close(f);
    return failed;
}

int procfile_folder(struct source *s, const char *path)
{
    char full[4096];
    int size = snprintf(full, sizeof full, "%s%s", s->options->root ? s->options->root : "", path);
    if (size < 0 || (size_t)size >= sizeof full)
        return source_fail(s, -ENAMETOOLONG, "cannot open %s: the root folder's path is too long",
                           path);
    int fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : source_fail(s, -errno, "cannot open %s: %s", full, strerror(errno));
}

void procfile_close(struct procfile *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->data);
    *f = (struct procfile){.fd = -1, .path = f->path};
}

int procfile_read(struct procfile *f, struct source *s, struct str *out)
{
    for (;;) {
        ssize_t got = pread(f->fd, f->data, f->capacity, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return source_fail(s, -errno, "cannot read %s: %s", f->path, strerror(errno));
        if (got == 0)
            return source_fail(s, -ENODATA, "%s is empty", f->path);
        if ((size_t)got < f->capacity) {
            *out = (struct str){f->data, (size_t)got};
            return 0;
        }
        if (f->capacity >= PROCFILE_SIZE_MAX)
            return source_fail(s, -EFBIG, "%s is larger than %d bytes", f->path, PROCFILE_SIZE_MAX);
        if (!array_grow(&f->data, &f->capacity, f->capacity + 1, 1))
            return source_fail(s, -ENOMEM, "no memory to read %s", f->path);
    }
}

bool scan_decimal(struct str word, double *out)
{
    uint64_t whole, part = 0;
    double scale = 1;
    if (!scan_u64(&word, &whole))
        return false;
    if (word.size && word.data[0] == '.') {
        word = str_slice(word, 1, word.size);
        size_t digits = word.size;
        if (digits == 0 || digits > 9 || word.data[0] == ' ' || !scan_u64(&word, &part))
            return false;
        for (size_t i = 0; i < digits; i++)
            scale *= 10;
    }
    if (word.size)
        return false;
    *out = (double)whole + (double)part / scale;
    return true;
}
