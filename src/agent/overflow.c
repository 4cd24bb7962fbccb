#include "agent/overflow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void overflow_resolve(const char *path, char out[PATH_MAX])
{
    if (!realpath(path, out))
        snprintf(out, PATH_MAX, "%s", path);
}

// Makes the path of the moved file. Its name begins with a dot, because the file is not a complete
// recording.
static int target_of(const char *path, const char *folder, char out[PATH_MAX], struct error *e)
{
    const char *slash = strrchr(path, '/');
    int n = snprintf(out, PATH_MAX, "%s/.%s", folder, slash ? slash + 1 : path);
    if (n < 0 || n >= PATH_MAX)
        return error_set(e, -ENAMETOOLONG, "the path %.60s… is too long", folder);
    if (mkdir(folder, 0700) && errno != EEXIST)
        return error_set(e, -errno, "cannot make folder %s: %s", folder, strerror(errno));
    return 0;
}

// Makes `path` a link to the moved file. A link takes almost no space. If even this space is
// missing, removing the old file frees some.
static int lead(const char *path, const char *target, struct error *e)
{
    char draft[PATH_MAX];
    int n = snprintf(draft, sizeof draft, "%s.link", path);
    if (n < 0 || n >= PATH_MAX)
        return error_set(e, -ENAMETOOLONG, "the path %.60s… is too long", path);
    unlink(draft);
    if (!symlink(target, draft) && !rename(draft, path))
        return 0;
    unlink(draft);
    unlink(path);
    return symlink(target, path)
               ? error_set(e, -errno, "cannot make the link %s: %s", path, strerror(errno))
               : 0;
}

int overflow_open(const char *path, const char *folder, const struct store_options *options,
                  struct store **out, struct error *e)
{
    char target[PATH_MAX];
    int rc = target_of(path, folder, target, e);
    if (!rc && access(target, F_OK) == 0)
        rc = error_set(e, -EEXIST, "%s already exists", target);
    if (!rc)
        rc = store_open(target, options, out, e);
    if (!rc && (rc = lead(path, target, e))) {
        store_abandon(*out);
        *out = NULL;
        unlink(target);
    }
    return rc;
}

int overflow_move(struct store *store, const char *path, const char *folder, struct error *e)
{
    char target[PATH_MAX];
    int rc = target_of(path, folder, target, e);
    if (!rc)
        rc = store_move(store, target, e);
    return rc ? rc : lead(path, target, e);
}
