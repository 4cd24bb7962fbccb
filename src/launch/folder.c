#include "launch/folder.h"

#include "base/atomic_file.h"
#include "base/full_io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// ---------------------------------------------------------------- making

const char *folder_temporary(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

int folder_base_path(const char *parent, char out[FOLDER_PATH_MAX], struct error *e)
{
    if (!parent)
        parent = folder_temporary();
    if (!*parent)
        parent = "/tmp";
    char whole[FOLDER_PATH_MAX];
    if (!realpath(parent, whole))
        return error_set(e, -errno, "cannot use %s for running jobs: %s; set TMPDIR or --run-dir",
                         parent, strerror(errno));
    int n = snprintf(out, FOLDER_PATH_MAX, "%s/sonde-%u", strcmp(whole, "/") == 0 ? "" : whole,
                     (unsigned)getuid());
    if (n < 0 || n >= FOLDER_PATH_MAX)
        return error_set(e, -ENAMETOOLONG, "the path %s is too long", whole);
    return 0;
}

int folder_open_private(const char *path, struct error *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        int code = errno;
        struct stat link;
        if ((code == ELOOP || code == ENOTDIR) && lstat(path, &link) == 0 && S_ISLNK(link.st_mode))
            return error_set(e, -ELOOP,
                             "%s is a link, which another user may have made: remove it, or set "
                             "TMPDIR or --run-dir",
                             path);
        return error_set(e, -code, "cannot open folder %s: %s", path, strerror(code));
    }
    struct stat info;
    int status = 0;
    if (fstat(fd, &info) < 0)
        status = error_set(e, -errno, "cannot look at folder %s: %s", path, strerror(errno));
    else if (info.st_uid != geteuid())
        status = error_set(
            e, -EPERM,
            "%s belongs to user %u, not to you: set TMPDIR or --run-dir to another folder", path,
            (unsigned)info.st_uid);
    else if (info.st_mode & 077)
        status = error_set(e, -EPERM,
                           "%s is open to other users (mode %04o): chmod 700 it, or remove it",
                           path, (unsigned)info.st_mode & 07777);
    if (status < 0) {
        close(fd);
        return status;
    }
    return fd;
}

int folder_make_private(const char *path, struct error *e)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        int code = errno;
        if (code != ENOENT || folder_make_all(path, NULL) < 0)
            return error_set(
                e, -code,
                "cannot make folder %s: %s; set TMPDIR or --run-dir to one that you can write in",
                path, strerror(code));
    }
    return folder_open_private(path, e);
}

int folder_make_all(const char *path, struct error *e)
{
    char part[FOLDER_PATH_MAX];
    size_t size = strlen(path);
    if (size == 0 || size >= sizeof part)
        return error_set(e, -ENAMETOOLONG, "the path '%.60s' is empty or too long", path);
    for (size_t i = 1; i <= size; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        // Some file systems report EROFS or EACCES even if the folder exists; that is no failure.
        struct stat info;
        if (mkdir(part, 0700) < 0) {
            int code = errno;
            if (stat(part, &info) < 0)
                return error_set(e, -code, "cannot make folder %s: %s", part, strerror(code));
            if (!S_ISDIR(info.st_mode))
                return error_set(e, -ENOTDIR, "cannot make folder %s: %s is not a folder", path,
                                 part);
        }
    }
    return 0;
}

int folder_check_writable(const char *path, struct error *e)
{
    char name[FOLDER_PATH_MAX];
    int n = snprintf(name, sizeof name, "%s/.sonde-%d-XXXXXX", path, (int)getpid());
    if (n < 0 || n >= (int)sizeof name)
        return error_set(e, -ENAMETOOLONG, "the path %.60s… is too long", path);
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return error_set(e, -errno, "cannot write in folder %s: %s", path, strerror(errno));
    close(fd);
    unlink(name);
    return 0;
}

// ---------------------------------------------------------------- files

int folder_write(const char *folder, const char *name, struct str text, struct error *e)
{
    char path[FOLDER_PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || n >= (int)sizeof path)
        return error_set(e, -ENAMETOOLONG, "the path %.60s… is too long", folder);
    int status = atomic_file_write(path, text, 0);
    return status ? error_set(e, status, "cannot write %s: %s", path, strerror(-status)) : 0;
}

int folder_read(const char *path, size_t limit, struct buf *out, struct error *e)
{
    *out = (struct buf){.limit = limit};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return error_set(e, -errno, "cannot read %s: %s", path, strerror(errno));
    int status = full_read(fd, out);
    close(fd);
    if (status == 0)
        return 0;
    buf_free(out);
    return status == -EFBIG ? error_set(e, status, "%s is larger than %zu bytes", path, limit)
                            : error_set(e, status, "cannot read %s: %s", path, strerror(-status));
}

bool folder_is_recording(const char *name)
{
    return name[0] != '.' && str_ends(str_of(name), STR(".sonde"));
}

// ---------------------------------------------------------------- removing

// The id of the mount that the descriptor's file lies on. A bind mount of the same file system has
// the same device, but another id. -1 if /proc has none.
static int mount_of(int fd)
{
    char path[64], line[128];
    int id = -1;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "mnt_id: %d", &id) == 1)
            break;
    if (f)
        fclose(f);
    return id;
}

// `mount` is the mount of the folder at depth 0; the removal stays on it.
static int remove_in(int parent, const char *name, int depth, int mount)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (depth > FOLDER_DEPTH_MAX)
        return -ELOOP;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int here = mount_of(fd);
    if (depth > 0 && here != mount) {
        close(fd);
        return -EXDEV;
    }
    DIR *folder = fdopendir(fd);
    if (!folder) {
        int code = errno;
        close(fd);
        return -code;
    }
    int status = 0;
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int one = remove_in(fd, entry->d_name, depth + 1, here);
        if (one < 0)
            status = one;
    }
    closedir(folder);
    if (status == 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        status = -errno;
    return status;
}

int folder_remove(const char *path, struct error *e)
{
    int status = remove_in(AT_FDCWD, path, 0, -1);
    if (status == -EXDEV)
        return error_set(e, status,
                         "cannot remove %s: another file system is mounted in it; unmount it first",
                         path);
    if (status < 0)
        return error_set(e, status, "cannot remove %s: %s", path, strerror(-status));
    return 0;
}
