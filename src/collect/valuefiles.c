// valuefiles.c - small files in /sys: lists, opens and reads them.
#include "collect/valuefiles.h"

#include "collect/procfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool full_path(const struct source *s, const char *folder, const char *name,
                      char out[VALUEFILES_PATH])
{
    int size = snprintf(out, VALUEFILES_PATH, "%s%s/%s", s->options->root ? s->options->root : "",
                        folder, name);
    return size > 0 && size < VALUEFILES_PATH;
}

int valuefiles_list(struct source *s, const char *folder, const char *prefix,
                    bool (*each)(struct source *s, const char *folder, const char *name,
                                 void *user),
                    void *user)
{
    char path[VALUEFILES_PATH];
    struct dirent **names;
    if (!full_path(s, folder, "", path))
        return source_fail(s, -ENAMETOOLONG, "the path of %s is too long", folder);
    int count = scandir(path, &names, NULL, alphasort), used = 0;
    if (count < 0)
        return source_fail(s, -errno, "cannot list %s: %s", path, strerror(errno));
    bool on = true;
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        if (on && name[0] != '.' && strncmp(name, prefix, strlen(prefix)) == 0 &&
            used < VALUEFILES_NAMES_MAX) {
            used++;
            on = each(s, folder, name, user);
        }
        free(names[i]);
    }
    free(names);
    return used;
}

bool valuefiles_text(struct source *s, const char *folder, const char *name,
                     char out[SOURCE_TAG_SIZE])
{
    char path[VALUEFILES_PATH];
    int fd = full_path(s, folder, name, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0)
        return false;
    ssize_t got = read(fd, out, SOURCE_TAG_SIZE - 1);
    close(fd);
    if (got <= 0)
        return false;
    out[got] = 0;
    out[strcspn(out, "\n")] = 0;
    return out[0] != 0;
}

bool valuefiles_add(struct valuefiles *v, struct source *s, const char *folder,
                    const struct valuefile_row *row, ptrdiff_t instance)
{
    char path[VALUEFILES_PATH];
    if (v->count == VALUEFILES_MAX || !full_path(s, folder, row->file, path))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        if (errno != ENOENT)
            v->failed = errno;
        return false;
    }
    v->files[v->count++] = (struct valuefile){fd, instance, row};
    return true;
}

bool valuefiles_number(const struct valuefiles *v, size_t file, double *out)
{
    char text[64];
    ssize_t got = pread(v->files[file].fd, text, sizeof text, 0);
    if (got <= 0)
        return false;
    struct str rest = {text, (size_t)got};
    bool negative = text[0] == '-';
    if (negative)
        rest = str_slice(rest, 1, rest.size);
    uint64_t number;
    if (!scan_u64(&rest, &number))
        return false;
    const struct valuefile_row *row = v->files[file].row;
    *out = (negative ? -(double)number : (double)number) * row->times / row->per;
    return true;
}

int valuefiles_sample(struct valuefiles *v, struct source *s, double *values)
{
    size_t found = 0;
    for (size_t i = 0; i < v->count; i++) {
        const struct valuefile *file = &v->files[i];
        double value;
        if (!valuefiles_number(v, i, &value))
            continue;
        if (file->instance < 0)
            source_put(s, values, file->row->row, value);
        else
            source_put_at(s, values, file->instance, file->row->row, value);
        found++;
    }
    return found ? 0 : source_fail(s, -EIO, "none of its %zu files can be read now", v->count);
}

int valuefiles_done(struct valuefiles *v, struct source *s, const char *absent)
{
    if (v->count)
        return 0;
    int failed = v->failed;
    valuefiles_free(v);
    return failed ? source_fail(s, -failed, "its files cannot be read: %s", strerror(failed))
                  : source_fail(s, -ENOENT, "%s", absent);
}

void valuefiles_free(struct valuefiles *v)
{
    for (size_t i = 0; i < v->count; i++)
        close(v->files[i].fd);
    free(v);
}
