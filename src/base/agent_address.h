// agent_address.h - the addresses of an agent: a socket in the private folder of its job and, for
// processes that cannot see this folder (a container or a job step with a /tmp of its own), the
// same path as an abstract name.
//
// All processes in the network namespace see the abstract name, and any user may take an unused
// name. So both sides check the other's user: the agent checks its clients, and a client checks the
// listener.
#ifndef SONDE_BASE_AGENT_ADDRESS_H
#define SONDE_BASE_AGENT_ADDRESS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// Makes the address and returns its size, or 0 if the path is too long. An abstract name begins
// with a zero byte.
static inline socklen_t agent_address(const char *path, bool abstract, struct sockaddr_un *out)
{
    size_t size = strlen(path);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (size == 0 || size >= sizeof out->sun_path)
        return 0;
    memcpy(out->sun_path + abstract, path, size);
    return abstract ? (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + size)
                    : (socklen_t)sizeof *out;
}

// Returns 0 if the listener is a process of our own user; EPERM if not, or another errno.
static inline int agent_check_owner(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return errno;
    return peer.uid == geteuid() ? 0 : EPERM;
}

// Connects to the agent. Returns 0 or an errno: ENOENT if no agent listens at either address, EPERM
// if another user has taken the abstract name. A path is trusted; agent_check_owner checks its
// listener, too.
static inline int agent_connect(int fd, const char *path)
{
    struct sockaddr_un address;
    socklen_t size = agent_address(path, false, &address);
    if (size == 0)
        return ENAMETOOLONG;
    if (connect(fd, (const struct sockaddr *)&address, size) == 0)
        return 0;
    if (errno != ENOENT)
        return errno;
    size = agent_address(path, true, &address);
    if (connect(fd, (const struct sockaddr *)&address, size) == 0)
        return agent_check_owner(fd);
    return errno == ECONNREFUSED ? ENOENT : errno;
}

#endif
