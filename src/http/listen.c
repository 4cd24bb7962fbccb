// listen.c - resolves addresses, binds and listens, and tries the next port.
#include "http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT_MAX = 65535, BACKLOG = 1024 };

static void set_port(struct sockaddr *address, int port)
{
    if (address->sa_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)(void *)address)->sin_port = htons((uint16_t)port);
}

// Returns the socket, or a negative errno.
static int listen_at(struct sockaddr *address, socklen_t size, int port)
{
    int on = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    set_port(address, port);
    int off = 0;
    if (address->sa_family == AF_INET6) // one socket on "::" serves both address families
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    // Allow a port whose last connections are still closing, but not a port where another program
    // listens.
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, address, size) != 0 || listen(fd, BACKLOG) != 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
    return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) && in6->sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
}

int listen_take(int fd, struct listener *out, struct error *e)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address, one = sizeof(int);
    int listens = 0;
    *out = (struct listener){.fd = -1};
    if (getsockname(fd, (struct sockaddr *)&address, &size) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &one) < 0)
        return error_set(e, -errno, "descriptor %d is not a socket: %s", fd, strerror(errno));
    if (!listens || (address.ss_family != AF_INET && address.ss_family != AF_INET6))
        return error_set(e, -EINVAL, "descriptor %d does not listen on a port", fd);
    out->fd = fd;
    // the port is at the same offset in both families
    out->port = ntohs(((const struct sockaddr_in *)&address)->sin_port);
    out->loopback = is_loopback((const struct sockaddr *)&address);
    return 0;
}

// Binds an explicit port. A port that the kernel has chosen belongs to us only while we listen; an
// explicit one belongs to us until we close the socket.
static int listen_anywhere(struct sockaddr *address, socklen_t size)
{
    // number of ports to try, because another program may take a port first
    enum { TRIES_MAX = 16 };
    struct listener chosen;
    int fd = -EADDRINUSE;
    for (int tries = 0; fd == -EADDRINUSE && tries < TRIES_MAX; tries++) {
        fd = listen_at(address, size, 0);
        if (fd < 0 || listen_take(fd, &chosen, NULL) < 0)
            return fd;
        close(fd);
        fd = listen_at(address, size, chosen.port);
    }
    return fd;
}

int listen_for_nodes(const char *address, struct listener *out, struct error *e)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    int fd = -EINVAL;
    *out = (struct listener){.fd = -1};
    if (!address || inet_pton(AF_INET6, address, &v6.sin6_addr) == 1)
        fd = listen_anywhere((struct sockaddr *)&v6, sizeof v6);
    if (fd < 0 && (!address || inet_pton(AF_INET, address, &v4.sin_addr) == 1))
        fd = listen_anywhere((struct sockaddr *)&v4, sizeof v4);
    if (fd < 0)
        return error_set(e, fd, "cannot listen for nodes on %s: %s",
                         address ? address : "any address", strerror(-fd));
    return listen_take(fd, out, e);
}

void listen_refuse(int fd)
{
    // Clear SO_REUSEADDR. Otherwise another program that sets it, too, could bind a port on which
    // no socket listens.
    int off = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &off, sizeof off);
    shutdown(fd, SHUT_RDWR);
}

static int try_ports(struct sockaddr *address, socklen_t size, const char *name, int port,
                     bool exact, struct listener *out, struct error *e)
{
    int first = port ? port : LISTEN_PORT_DEFAULT,
        last = exact ? first : first + LISTEN_PORT_TRIES - 1, rc = 0;
    if (last > PORT_MAX)
        last = PORT_MAX;
    for (int p = first; p <= last; p++) {
        rc = listen_at(address, size, p);
        if (rc >= 0) {
            out->fd = rc;
            out->port = p;
            return 0;
        }
        if (rc != -EADDRINUSE)
            return error_set(e, rc, "cannot listen on %s port %d: %s", name, p, strerror(-rc));
    }
    if (exact)
        return error_set(e, rc, "port %d is taken by another program; choose another with --port",
                         first);
    return error_set(e, rc,
                     "ports %d to %d are all taken by other programs; choose another with --port",
                     first, last);
}

int listen_on(const char *address, int port, bool exact, bool loopback_only, struct listener *out,
              struct error *e)
{
    *out = (struct listener){.fd = -1};
    const char *name = address && *address ? address : "127.0.0.1";
    if (port < 0 || port > PORT_MAX)
        return error_set(e, -EINVAL, "port %d: has to be from 1 to %d", port, PORT_MAX);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    int failed = getaddrinfo(name, NULL, &hints, &found);
    if (failed)
        return error_set(e, -EINVAL, "cannot listen on \"%s\": %s", name, gai_strerror(failed));
    int rc;
    out->loopback = is_loopback(found->ai_addr);
    if (loopback_only && !out->loopback)
        rc = error_set(e, -EPERM,
                       "listening on %s without a token would show the data to everybody; give a "
                       "token, or listen on 127.0.0.1",
                       name);
    else
        rc = try_ports(found->ai_addr, found->ai_addrlen, name, port, exact, out, e);
    freeaddrinfo(found);
    return rc;
}
