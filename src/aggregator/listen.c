// listen.c - resolve, bind, listen, try the next port.
#include "aggregator/listen.h"

#include "aggregator/auth.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
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

// The socket, or a negative errno.
static int listen_at(struct sockaddr *address, socklen_t size, int port)
{
    int on = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    set_port(address, port);
    // A port whose last connections are still winding down is free; one that another program listens on is not.
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, address, size) != 0 || listen(fd, BACKLOG) != 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

static int try_ports(struct sockaddr *address, socklen_t size, const char *name, int port, bool exact,
                     struct listener *out, struct error *e)
{
    int first = port ? port : LISTEN_PORT_DEFAULT, last = exact ? first : first + LISTEN_PORT_TRIES - 1, rc = 0;
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
        return error_set(e, rc, "port %d is taken by another program; choose another with --port", first);
    return error_set(e, rc, "ports %d to %d are all taken by other programs; choose another with --port", first, last);
}

int listen_on(const char *address, int port, bool exact, bool loopback_only, struct listener *out, struct error *e)
{
    *out = (struct listener){.fd = -1};
    const char *name = address && *address ? address : "127.0.0.1";
    if (port < 0 || port > PORT_MAX)
        return error_set(e, -EINVAL, "port %d: has to be from 1 to %d", port, PORT_MAX);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    int failed = getaddrinfo(name, NULL, &hints, &found);
    if (failed)
        return error_set(e, -EINVAL, "cannot listen on \"%s\": %s", name, gai_strerror(failed));
    char digits[NI_MAXHOST];
    int rc;
    if (getnameinfo(found->ai_addr, found->ai_addrlen, digits, sizeof digits, NULL, 0, NI_NUMERICHOST) != 0)
        digits[0] = 0;
    out->loopback = auth_is_loopback(str_of(digits));
    if (loopback_only && !out->loopback)
        rc = error_set(
            e, -EPERM,
            "listening on %s without a token would show the data to everybody; give a token, or listen on 127.0.0.1",
            name);
    else
        rc = try_ports(found->ai_addr, found->ai_addrlen, name, port, exact, out, e);
    freeaddrinfo(found);
    return rc;
}
