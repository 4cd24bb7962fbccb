#include "cli/export_copies.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "sonde-export-"

enum { TRIES = 100 };

// Opens the folder and locks it. Returns a negative number if another process has the lock, or the
// folder is not ours.
static int lock_folder(const char *path)
{
    struct stat opened, named;
    int fd = folder_open_private(path, NULL);
    if (fd < 0)
        return fd;
    // The process that had the lock before may have removed the folder.
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &opened) == 0 && lstat(path, &named) == 0 &&
        named.st_dev == opened.st_dev && named.st_ino == opened.st_ino)
        return fd;
    close(fd);
    return -EBUSY;
}

static void remove_abandoned(const char *parent)
{
    DIR *folder = opendir(parent);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        char path[FOLDER_PATH_MAX];
        int n = snprintf(path, sizeof path, "%s/%s", parent, entry->d_name);
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 || n >= (int)sizeof path)
            continue;
        int fd = lock_folder(path);
        if (fd < 0)
            continue;
        folder_remove(path, NULL);
        close(fd);
    }
    if (folder)
        closedir(folder);
}

int export_copies_make(struct export_copies *c, struct error *e)
{
    const char *parent = folder_temporary();
    int rc = -EBUSY;
    remove_abandoned(parent);
    // Another export may remove the folder before it is locked, because it looks abandoned.
    for (int i = 0; i < TRIES && (rc == -EBUSY || rc == -ENOENT); i++) {
        int n = snprintf(c->path, sizeof c->path, "%s/" PREFIX "XXXXXX", parent);
        rc = n >= (int)sizeof c->path ? -ENAMETOOLONG : mkdtemp(c->path) ? 0 : -errno;
        if (rc)
            break;
        c->lock_fd = lock_folder(c->path);
        rc = c->lock_fd < 0 ? c->lock_fd : 0;
    }
    if (!rc)
        return 0;
    c->path[0] = 0;
    return error_set(e, rc, "cannot make a folder in %s: %s; set TMPDIR", parent, strerror(-rc));
}

void export_copies_remove(struct export_copies *c)
{
    if (!c->path[0])
        return;
    folder_remove(c->path, NULL);
    close(c->lock_fd);
    c->path[0] = 0;
}
