#include "launch/source_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

// A connected datagram socket has a route, and so the source address.
static bool own_end(const struct addrinfo *to, char out[SOURCE_ADDRESS_MAX])
{
    struct sockaddr_storage own;
    socklen_t size = sizeof own;
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool known = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
                 getsockname(fd, (struct sockaddr *)&own, &size) == 0 &&
                 getnameinfo((struct sockaddr *)&own, size, out, SOURCE_ADDRESS_MAX, NULL, 0,
                             NI_NUMERICHOST) == 0;
    if (fd >= 0)
        close(fd);
    return known;
}

bool source_address(const char *host, char out[SOURCE_ADDRESS_MAX])
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *all = NULL;
    bool known = false;
    // Any port will do.
    if (getaddrinfo(host, "9", &hints, &all) != 0)
        return false;
    for (const struct addrinfo *a = all; a && !known; a = a->ai_next)
        known = own_end(a, out);
    freeaddrinfo(all);
    return known;
}
