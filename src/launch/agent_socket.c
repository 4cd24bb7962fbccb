#include "launch/agent_socket.h"

#include "agent/folder.h"
#include "launch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

int agent_socket_open(const char *path, struct error *e)
{
    int low = folder_listen(path, e);
    if (low < 0)
        return low;
    int fd = fcntl(low, F_DUPFD_CLOEXEC, CHILD_HIGH_FD);
    if (fd < 0)
        fd = error_set(e, -errno, "cannot keep the socket %s: %s", path, strerror(errno));
    close(low);
    if (fd < 0)
        folder_unlisten(path);
    return fd;
}

void agent_socket_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void agent_socket_refuse(int *fd, const char *path)
{
    bool open = *fd >= 0;
    agent_socket_close(fd);
    if (open)
        folder_unlisten(path);
}
