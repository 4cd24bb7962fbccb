// folder.c - implements folder.h.
#include "agent/folder.h"

#include "base/agent_address.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    // enough for programs that start together and end before the agent accepts them; the system may
    // lower the number (net.core.somaxconn)
    LISTEN_BACKLOG = 65535,
};

static int make_folders(const char *path, struct error *e)
{
    char part[PATH_MAX];
    size_t size = strlen(path);
    if (size == 0 || size >= sizeof part)
        return error_set(e, -ENAMETOOLONG, "the run folder's path is empty or longer than %d bytes",
                         PATH_MAX - 1);
    memcpy(part, path, size + 1);
    for (size_t i = 1; i <= size; i++) {
        if (part[i] != '/' && part[i] != 0)
            continue;
        part[i] = 0;
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            int code = -errno;
            // mkdir does not report an existing folder on a read-only file system
            struct stat about;
            if (stat(part, &about) != 0 || !S_ISDIR(about.st_mode))
                return error_set(e, code, "cannot make the run folder %s: %s", path,
                                 strerror(-code));
        }
        part[i] = path[i];
    }
    return 0;
}

int folder_prepare(const char *path, struct error *e)
{
    int failed = make_folders(path, e);
    if (failed)
        return failed;
    struct stat about;
    if (lstat(path, &about) != 0)
        return error_set(e, -errno, "cannot look at the run folder %s: %s", path, strerror(errno));
    if (!S_ISDIR(about.st_mode))
        return error_set(e, -ENOTDIR, "the run folder %s is not a folder", path);
    if (about.st_uid != geteuid())
        return error_set(e, -EPERM,
                         "the run folder %s belongs to user %u, not to user %u: choose another",
                         path, (unsigned)about.st_uid, (unsigned)geteuid());
    if (about.st_mode & 077)
        return error_set(
            e, -EPERM,
            "the run folder %s is open to others (mode %04o): chmod 700 it, or choose another",
            path, (unsigned)about.st_mode & 07777);
    if (access(path, W_OK | X_OK) != 0)
        return error_set(e, -errno, "cannot write to the run folder %s: %s", path, strerror(errno));
    return 0;
}

// Removes a socket of this name if a dead agent has left it. Fails if a running agent has it.
static int clear_name(const char *path, const struct sockaddr_un *address, struct error *e)
{
    struct stat about;
    if (lstat(path, &about) != 0)
        return errno == ENOENT
                   ? 0
                   : error_set(e, -errno, "cannot look at %s: %s", path, strerror(errno));
    if (!S_ISSOCK(about.st_mode))
        return error_set(e, -EEXIST, "%s exists and is not a socket; remove it", path);
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0)
        return error_set(e, -errno, "cannot make a socket: %s", strerror(errno));
    int refused =
        connect(probe, (const struct sockaddr *)address, sizeof *address) != 0 ? errno : 0;
    close(probe);
    if (refused == 0 || refused == EAGAIN)
        return error_set(e, -EADDRINUSE, "another agent is listening on %s", path);
    if (refused != ECONNREFUSED && refused != ENOENT)
        return error_set(e, -refused, "cannot find out which process listens on %s: %s", path,
                         strerror(refused));
    if (unlink(path) != 0 && errno != ENOENT)
        return error_set(e, -errno, "cannot remove the socket %s that a dead agent left: %s", path,
                         strerror(errno));
    return 0;
}

int folder_listen(const char *path, struct error *e)
{
    struct sockaddr_un address;
    if (!agent_address(path, false, &address))
        return error_set(e, -ENAMETOOLONG,
                         "the socket's path is %zu bytes long, and the system allows %zu: choose a "
                         "shorter folder (TMPDIR): %s",
                         strlen(path), sizeof address.sun_path - 1, path);
    int failed = clear_name(path, &address, e);
    if (failed)
        return failed;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set(e, -errno, "cannot make a socket: %s", strerror(errno));
    // bind gives the file the mode of the unbound socket.
    if (fchmod(fd, 0600) != 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, LISTEN_BACKLOG) != 0) {
        int code = -errno;
        close(fd);
        return error_set(e, code, "cannot listen on %s: %s", path, strerror(-code));
    }
    return fd;
}

int folder_listen_abstract(const char *path)
{
    struct sockaddr_un address;
    socklen_t size = agent_address(path, true, &address);
    int fd = size ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    if (fd < 0)
        return size ? -errno : -ENAMETOOLONG;
    if (bind(fd, (const struct sockaddr *)&address, size) == 0 && listen(fd, LISTEN_BACKLOG) == 0)
        return fd;
    int code = -errno;
    close(fd);
    return code;
}

int folder_listen_take(int fd, struct error *e)
{
    struct sockaddr_un address;
    socklen_t size = sizeof address, one = sizeof(int);
    int listens = 0;
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &one) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return error_set(e, -errno, "descriptor %d is not a socket: %s", fd, strerror(errno));
    if (listens && address.sun_family == AF_UNIX)
        return fd;
    return error_set(e, -EINVAL, "descriptor %d does not listen on a Unix socket", fd);
}

void folder_unlisten(const char *path)
{
    struct sockaddr_un address;
    if (agent_address(path, false, &address))
        clear_name(path, &address, NULL);
}
